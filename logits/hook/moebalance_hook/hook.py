"""What a process replaces and records: the layers' tables, the switch between routers, counts and proof."""

import atexit
import contextlib
import hashlib
import os
import re
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .common import TRIED, Gate, Site, capturing, named, persistent, place_in_world, refuse, save, save_json, variable
from .control import Control
from .drawn import Drawn
from .entry import Entry, find

MOST_LAYERS, RING = 512, 64
IDLE = 2.0  # seconds without a step, after which what was counted is written
Chooser = Callable[[torch.Tensor], torch.Tensor | None]  # the engine's own choice by given logits, if it can be seen


class Layer:
    def __init__(self, name: str, index: int, slot: int, bias: torch.Tensor | None):
        self.name, self.index, self.slot, self.bias = name, index, slot, bias
        self.captured, self.proved = False, False
        self.spread, self.of_entry = 0.0, False  # of the correction bias; whether the entry is made with it
        self.learned_bias: torch.Tensor | None = None  # where it is set to zero in other arms than the learned one
        self.tables: dict[torch.dtype, torch.Tensor] = {}  # DeepSeek-V3's gate in vLLM: float32, large batches bfloat16


class Hook:
    def __init__(self) -> None:
        self.spec = "perfect" if os.environ.get("ENABLE_PERFECT_ROUTER") == "1" else variable("ROUTER", "off")
        self.control = Control(variable("CONTROL"), self.spec) if variable("CONTROL") else None
        self.flag: Any = None  # with control, on the GPU: tables rather than the learned logits
        self.layers: dict[str, Layer] = {}
        self.site: Site = None  # type: ignore # until the first layer
        self.world = 0, 1  # global rank, and how many
        self.entry: Entry = None  # type: ignore # until the first layer, and where none routes
        self.drawn: Drawn | None = None
        self.known: dict[tuple[str, int], torch.Tensor] = {}  # rows by router and layer
        self.experts, self.top_k = 0, 0
        self.bias: set[str] = set()
        self.slots, self.placement = 0, ""  # physical experts, which are counted; what moved them
        self.counts: Any = None  # slots since the start, on the device
        self.ring: Any = None  # of the last steps
        self.last: Any = None  # at the last recorded step
        self.records: list[torch.Tensor] = []
        self.filled, self.tokens = 0, 0
        self.steps, self.ended, self.before, self.written = 0, 0, 0, 0  # begun, ended, before this sequence, in files
        self.lock, self.writing = threading.Lock(), threading.Lock()
        self.writer, self.over = threading.Thread(target=self.write_when_idle, daemon=True), threading.Event()
        self.unfinished, self.range = False, contextlib.ExitStack()  # a step that is not recorded yet, and its range
        self.claimed = False

    @property
    def routes(self) -> bool:
        """Whether this launch may replace logits."""
        return self.spec != "off" or self.control is not None

    # Layers and their tables

    def layer(self, name: str, site: Site, learned: torch.Tensor, gate: Gate, choose: Chooser | None) -> Layer:
        """The state of a layer, made at its first call, which must be eager."""
        if name in self.layers:
            return self.layers[name]
        self.site, experts, number = site, learned.shape[-1], re.search(r"\.(\d+)\.", name + ".")
        if self.experts not in (0, experts):
            refuse(f"layer {name} has {experts} experts, others {self.experts}")
        if capturing():
            refuse(f"layer {name} is first called in a CUDA graph: want a batch without graphs before")
        if len(self.layers) >= MOST_LAYERS:
            refuse(f"want at most {MOST_LAYERS} layers")
        self.experts, self.top_k = experts, gate.top_k or self.top_k
        if self.entry is None and self.routes:
            if self.control and self.spec == "perfect":
                refuse("MOEBALANCE_CONTROL changes the router: want ENABLE_PERFECT_ROUTER unset")
            self.entry = find(site, experts, gate)
            self.top_k, self.drawn = self.entry.top_k, self.draw(self.spec)
        elif self.entry and not self.entry.fits(site, experts, gate):
            refuse(f"layer {name} routes otherwise than others: {self.entry.path} does not fit it")
        index, taken = int(number[1]) if number else len(self.layers), {layer.index for layer in self.layers.values()}
        layer = Layer(name, max(taken) + 1 if index in taken else index, len(self.layers), gate.bias)
        self.bias.add(self.judge(layer))
        if self.entry and choose:
            layer.proved = self.prove_choice(layer, learned, choose)
        self.set_bias(layer)
        self.layers[name] = layer
        return layer

    def draw(self, spec: str) -> Drawn | None:
        return None if spec in ("perfect", "off") else Drawn(spec, self.entry, self.site)

    def judge(self, layer: Layer) -> str:
        """What becomes of a correction bias: read once."""
        if layer.bias is None:
            return "none"
        if variable("BIAS") == "zero":
            layer.learned_bias = layer.bias.detach().clone()
            layer.bias.data.zero_()
            return "zeroed"
        if self.entry is None:
            return "learned"
        values = layer.bias.detach().float().cpu()
        layer.spread = float(values.max() - values.min())
        packed = struct.pack(f"<{len(values)}f", *values.tolist())
        layer.of_entry = hashlib.sha256(packed).hexdigest() == self.entry.meta["bias_sha256"]
        self.tolerate(layer, self.drawn)
        return "of the entry" if layer.of_entry else "tolerated"

    def tolerate(self, layer: Layer, drawn: Drawn | None) -> None:
        limit = self.entry.tolerates
        if drawn:
            limit = min(limit, 0.5 if self.entry.groups > 1 else 1.0)
        if not layer.spread < limit and (drawn or not layer.of_entry):
            refuse(
                f"layer {layer.name}: the correction bias spreads over {layer.spread:g}, the logits tolerate less "
                f"than {limit:g}: set MOEBALANCE_BIAS=zero in both arms, or make the entry with the bias "
                "('moebalance logits generate --bias')"
            )

    def set_bias(self, layer: Layer) -> None:
        if layer.bias is not None and layer.learned_bias is not None and self.control:
            layer.bias.data.copy_(layer.learned_bias if self.spec == "off" else torch.zeros_like(layer.learned_bias))

    def prove_choice(self, layer: Layer, learned: torch.Tensor, choose: Chooser) -> bool:
        """Given the balanced logits, the engine's own router must choose the entry's experts. False: that is unseen."""
        entry, tokens = self.entry, learned.numel() // self.experts
        want = entry.of_layer(layer.index, tokens)
        balanced = torch.full((tokens, self.experts), entry.low, dtype=learned.dtype, device=learned.device)
        chosen = choose(balanced.scatter_(1, want.to(learned.device), entry.high).view(learned.shape))
        if chosen is None:
            return False
        got = chosen.reshape(tokens, -1).long().cpu()
        if got.shape[1] != entry.top_k:
            refuse(f"layer {layer.name}: the engine chooses {got.shape[1]} experts a token, {entry.path} {entry.top_k}")
        seen = (got >= 0).all(-1)  # -1 is padding
        wrong = (got.sort(-1).values != want.sort(-1).values).any(-1) & seen
        if wrong.any():
            row = int(wrong.nonzero()[0, 0])
            refuse(
                f"layer {layer.name}: its router is not that of {entry.path} ({entry.method}): of {int(seen.sum())} "
                f"tokens {int(wrong.sum())} go to other experts than the entry's, token {row} to "
                f"{got[row].tolist()} in the place of {want[row].tolist()}"
            )
        if variable("COUNTS"):  # what was chosen, counted as steps are, must be what it is
            counted = torch.zeros(self.experts + 1, dtype=torch.int64, device=chosen.device)
            self.add(chosen.reshape(tokens, -1), counted, self.experts)
            if counted[:-1].tolist() != torch.bincount(got[got >= 0], minlength=self.experts).tolist():
                refuse(
                    f"layer {layer.name}: the slots that were counted on this device are not those that were chosen: "
                    "leave MOEBALANCE_COUNTS unset"
                )
        return bool(seen.any())

    def logits(self, layer: Layer, learned: torch.Tensor) -> torch.Tensor:
        """What routes: a view of the layer's table, the learned logits, or with control one of them by the flag."""
        if not self.routes:
            return learned
        tokens, captured, table = learned.numel() // self.experts, capturing(), layer.tables.get(learned.dtype)
        if table is None or tokens > len(table):
            if captured or layer.captured and table is not None:
                refuse(
                    f"layer {layer.name}: {tokens} tokens, more than before CUDA graphs were captured: set "
                    "MOEBALANCE_TOKENS to the engine's largest batch (vLLM: max_num_batched_tokens)"
                )
            rows = max(tokens, int(variable("TOKENS", "0")), *map(len, layer.tables.values()))
            table = persistent(torch.empty, rows, self.experts, like=learned, dtype=learned.dtype)
            layer.tables[learned.dtype] = table
            self.fill(layer, table)
            if self.control and self.flag is None:
                self.flag = persistent(torch.full, (1,), self.spec != "off", like=learned)
        layer.captured = layer.captured or captured
        view = table[:tokens].view(learned.shape)
        return torch.where(self.flag, view, learned) if self.control else view

    def fill(self, layer: Layer, table: torch.Tensor) -> None:
        """Repeats the rows of the router that is on: the experts of each, or whole logits."""
        entry, key = self.entry, (self.spec, layer.index)
        if key not in self.known:
            own = entry.of_layer(layer.index, len(entry.ids))
            self.known[key] = self.drawn.rows(layer.index) if self.drawn else own
        rows = self.known[key]
        rows = rows[torch.arange(len(table)) % len(rows)].to(table.device)
        if rows.is_floating_point():
            table.copy_(rows)
        else:
            table.fill_(entry.low).scatter_(1, rows, entry.high)

    def set_router(self, spec: str) -> None:
        """Another router in the same tables, also for CUDA graphs already captured. One refused changes nothing."""
        if spec == self.spec:
            return
        if not self.control and "off" in (spec, self.spec):
            refuse(f"cannot change from {self.spec} to {spec} within a launch: start it with MOEBALANCE_CONTROL")
        if self.entry:
            drawn = self.draw(spec)
            for layer in self.layers.values():
                self.tolerate(layer, drawn)
            self.drawn = drawn
        self.spec = spec
        for layer in self.layers.values():
            for table in layer.tables.values() if spec != "off" else ():
                self.fill(layer, table)
            self.set_bias(layer)
        if self.flag is not None:
            self.flag.fill_(spec != "off")

    # Steps and counts

    def seen(self, layer: Layer, ids: torch.Tensor) -> None:
        """Adds a layer's choices; id -1 is padding."""
        if self.counts is None:
            self.slots = self.slots or self.experts
            width = self.slots + 1 + (self.slots + 1) % 2  # one for padding; rows begin at multiples of 16 bytes
            self.counts = persistent(torch.zeros, MOST_LAYERS, width, like=ids, dtype=torch.int64)
        self.top_k = ids.shape[-1]
        self.add(ids, self.counts[layer.slot], self.slots)

    def add(self, ids: torch.Tensor, row: torch.Tensor, experts: int) -> None:
        if ids.is_cuda:
            from .counting import add

            add(ids, row, experts)
        else:
            flat = ids.reshape(-1).long()
            row.scatter_add_(0, flat.masked_fill(flat < 0, experts), torch.ones_like(flat))

    def counted(self) -> torch.Tensor:
        if self.counts is None:
            return torch.zeros(MOST_LAYERS, self.slots or 1, dtype=torch.int64)
        return self.counts[:, : self.slots].to("cpu", copy=True)

    @property
    def arm(self) -> str:
        if self.control:
            return self.control.now.arm + (" expired" if self.control.expired else "")
        return "perfect" if self.spec == "perfect" else "normal"

    def step(self, tokens: int = 0) -> None:
        """Begins a step: what was counted since the last one is the step before. The first one ends the warm-up."""
        with self.lock:
            if self.last is None:
                self.last, self.world = self.counted(), place_in_world()
                self.writer.start()
                atexit.register(self.close)
            self.record()
        if self.control and self.layers:
            self.control.poll(self)
        with self.lock:
            self.steps, self.tokens, self.unfinished = self.steps + 1, self.tokens + tokens, True
        if self.layers and self.steps > 1 and not self.claimed:
            self.claimed = True
            self.prove()
            print(self.claim(), file=sys.stderr, flush=True)
        self.range.close()
        sequence = self.control.now.sequence if self.control else 0
        self.range.enter_context(
            named(f"moebalance step={self.steps} tokens={tokens} sequence={sequence} arm={self.arm}")
        )

    def finish(self) -> None:
        """Ends a step; a step that fails is never ended."""
        self.range.close()
        self.ended = self.steps

    @contextlib.contextmanager
    def running(self, tokens: int) -> Iterator[None]:
        """Around a step."""
        self.step(tokens)
        yield
        self.finish()

    def record(self) -> None:
        """Records a step that has begun."""
        most = int(variable("STEPS", "2048"))
        if self.unfinished and self.counts is not None and len(self.records) + self.filled < most:
            if self.last.shape[1] != self.slots:
                self.last = torch.zeros(MOST_LAYERS, self.slots, dtype=torch.int64)
            if self.ring is None or self.ring.shape[1] != len(self.layers):
                self.drain()
                shape = RING, len(self.layers), self.slots
                self.ring = persistent(torch.empty, *shape, like=self.counts, dtype=torch.int64)
            self.ring[self.filled].copy_(self.counts[: len(self.layers), : self.slots])
            self.filled += 1
            if self.filled == RING:
                self.drain()
        self.unfinished = False

    def drain(self) -> None:
        if self.filled:
            for now in self.ring[: self.filled].cpu():
                step = now - self.last[: len(now)]
                self.last[: len(now)] = now
                if self.site.mode == "dep" or step.any():
                    self.records.append(step.int())
        self.filled = 0

    def end_sequence(self) -> None:
        """Writes what was counted under the arm that ends, and counts from here; the caller holds writing."""
        records = self.snapshot()
        if self.steps:
            self.write_files(records)
        with self.lock:
            self.records, self.tokens, self.before, self.last = [], 0, self.steps, self.counted()

    def totals(self) -> dict[str, Any]:
        """Slots per layer and expert since the process began."""
        counts = self.counted()[: len(self.layers)].tolist()
        return {"layers": [layer.index for layer in self.layers.values()], "counts": counts}

    # Files

    def write_when_idle(self) -> None:
        """So that a process that is killed has lost no more than what ran since the engine last waited for requests."""
        before = 0
        while not self.over.wait(IDLE):
            if self.steps == self.ended == before != self.written:
                self.write()
            before = self.steps

    def close(self) -> None:
        """At the end of the process: a thread within PyTorch while the interpreter ends would abort it."""
        self.over.set()
        self.writer.join()
        if self.written != self.steps:
            self.write()

    def write(self) -> None:
        """Writes all that was recorded: when the engine is idle, and at the end of the process."""
        if self.site is not None and self.last is not None:
            with self.writing:
                steps = self.ended
                self.write_files(self.snapshot())
                self.written = steps

    def snapshot(self) -> list[torch.Tensor]:
        """The steps that have ended. Others wait for it to begin, but not for the files."""
        with self.lock:
            if self.counts is not None and self.counts.is_cuda:
                torch.cuda.synchronize(self.counts.device)  # steps may run in another stream
            if self.steps == self.ended:
                self.record()
            self.drain()
            return list(self.records)

    def folder(self, name: str) -> str:
        """Where a variable says to write; with control, what belongs to the sequence."""
        folder = variable(name)
        return os.path.join(folder, self.control.name) if folder and self.control else folder

    def write_files(self, records: list[torch.Tensor]) -> None:
        folder, site = self.folder("COUNTS"), self.site
        if folder and records and site.writes:
            from safetensors.torch import save_file

            index = [layer.index for layer in self.layers.values()]
            counts = {f"{i}_{index[slot]}": row for i, step in enumerate(records) for slot, row in enumerate(step)}
            save(folder, f"rank{site.rank}.safetensors", lambda path: save_file(counts, path))
            if site.rank == 0:
                meta = {"num_experts": self.slots, "num_experts_per_token": self.top_k}
                save_json(folder, "meta_info.json", {**meta, "ep_size": site.ranks, "mode": site.mode})
        self.prove(len(records))

    def claim(self) -> str:
        rank, ranks = self.site.rank, self.site.ranks
        return f"moebalance hook: rank {rank} of {ranks} routes {len(self.layers)} layers by {self.spec}"

    def prove(self, recorded: int = 0) -> None:
        folder = self.folder("PROOF") or self.folder("COUNTS")
        if not folder or not self.site.writes:
            return
        site, entry, layers = self.site, self.entry, self.layers.values()
        proof = {"schema_version": 1, "kind": "moebalance hook", "claim": self.claim(), **site._asdict()}
        del proof["writes"]
        proof.update(releases_tried=TRIED[site.engine], global_rank=self.world[0], router=self.spec)
        proof.update(arm="perfect" if self.spec == "perfect" else "normal")
        proof.update(layers=len(layers), layers_proved=sum(layer.proved for layer in layers))
        proof.update(experts=self.experts, physical_experts=self.slots or None, placement=self.placement or None)
        proof.update(top_k=self.top_k, correction_bias=sorted(self.bias))
        if entry:
            proof.update(entry=os.path.basename(entry.path), entry_sha256=entry.sha256, plan=entry.meta.get("plan"))
        proof.update(steps=self.steps - self.before, tokens=self.tokens or None, steps_recorded=recorded)
        if self.control:
            proof.update(sequence=self.control.now.sequence, sequence_arm=self.control.now.arm)
        save_json(folder, f"moebalance-hook.rank{site.rank}.json", proof)


HOOK = Hook()
