"""What a process records: slots per step, layer and expert, in a ring on the device that gives whole steps."""

import threading
from typing import Any

import torch

from .common import persistent, refuse, variable
from .tables import MOST_LAYERS

RING = 64


class Recorder:
    def __init__(self) -> None:
        self.slots, self.top_k = 0, 0  # physical experts, which are counted
        self.counts: Any = None  # slots since the start, on the device
        self.ring: Any = None  # of the last steps
        self.last: Any = None  # at the last recorded step; None until the first one
        self.filled, self.layers = 0, 0
        self.records: list[torch.Tensor] = []
        self.unfinished, self.dep = False, False  # a step that is not recorded yet
        self.lock = threading.Lock()

    def seen(self, slot: int, ids: torch.Tensor) -> None:
        """Adds a layer's choices; id -1 is padding."""
        if self.counts is None:
            width = self.slots + 1 + (self.slots + 1) % 2  # one for padding; rows begin at multiples of 16 bytes
            self.counts = persistent(torch.zeros, MOST_LAYERS, width, like=ids, dtype=torch.int64)
        self.top_k = ids.shape[-1]
        self.add(ids, self.counts[slot], self.slots)

    def add(self, ids: torch.Tensor, row: torch.Tensor, experts: int) -> None:
        if ids.is_cuda:
            from .counting import add

            add(ids, row, experts)
        else:
            flat = ids.reshape(-1).long()
            row.scatter_add_(0, flat.masked_fill(flat < 0, experts), torch.ones_like(flat))

    def check(self, chosen: torch.Tensor, experts: int, name: str) -> None:
        """What was chosen, counted as steps are, must be what it is."""
        got, counted = chosen.long().cpu(), torch.zeros(experts + 1, dtype=torch.int64, device=chosen.device)
        self.add(chosen, counted, experts)
        if counted[:-1].tolist() != torch.bincount(got[got >= 0], minlength=experts).tolist():
            refuse(
                f"layer {name}: the slots that were counted on this device are not those that were chosen: "
                "leave MOEBALANCE_COUNTS unset"
            )

    def counted(self) -> torch.Tensor:
        if self.counts is None:
            return torch.zeros(MOST_LAYERS, self.slots or 1, dtype=torch.int64)
        return self.counts[:, : self.slots].to("cpu", copy=True)

    def begin(self) -> None:
        """Before a step: what was counted since the last one is the step before. The first one ends the warm-up."""
        with self.lock:
            if self.last is None:
                self.last = self.counted()
            self.record()

    def record(self) -> None:
        most = int(variable("STEPS", "2048"))
        if self.unfinished and self.counts is not None and len(self.records) + self.filled < most:
            if self.last.shape[1] != self.slots:
                self.last = torch.zeros(MOST_LAYERS, self.slots, dtype=torch.int64)
            if self.ring is None or self.ring.shape[1] != self.layers:
                self.drain()
                self.ring = persistent(torch.empty, RING, self.layers, self.slots, like=self.counts, dtype=torch.int64)
            self.ring[self.filled].copy_(self.counts[: self.layers, : self.slots])
            self.filled += 1
            if self.filled == RING:
                self.drain()
        self.unfinished = False

    def drain(self) -> None:
        if self.filled:
            for now in self.ring[: self.filled].cpu():
                step = now - self.last[: len(now)]
                self.last[: len(now)] = now
                if self.dep or step.any():
                    self.records.append(step.int())
        self.filled = 0

    def snapshot(self, ended: bool) -> list[torch.Tensor]:
        """The steps that have ended. Others wait for it to begin, but not for the files."""
        with self.lock:
            if self.counts is not None and self.counts.is_cuda:
                torch.cuda.synchronize(self.counts.device)  # steps may run in another stream
            if ended:
                self.record()
            self.drain()
            return list(self.records)

    def restart(self) -> None:
        """Counts from here."""
        with self.lock:
            self.records, self.last = [], self.counted()
