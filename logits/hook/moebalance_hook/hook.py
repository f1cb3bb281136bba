"""What a process replaces and records: the layers' tables, the switch between routers, counts and proof."""
import atexit
import contextlib
import hashlib
import os
import re
import struct
import sys
import threading
import time
from typing import Any, Callable, Iterator

import torch

from .common import TRIED, Gate, Site, capturing, named, persistent, place_in_world, refuse, save, save_json, variable
from .control import Control
from .drawn import Drawn
from .entry import Entry, find

MOST_LAYERS, RING = 512, 64
IDLE = 2.0  # seconds without a step, after which what was counted is written
Chooser = Callable[[torch.Tensor], "torch.Tensor | None"]  # the engine's own choice by given logits, if it can be seen


class Layer:
    def __init__(self, name: str, index: int, slot: int):
        self.name, self.index, self.slot, self.offset = name, index, slot, 0
        self.captured, self.proved = False, False
        self.spread = 0.0  # of the correction bias, which tables must outweigh
        self.bias: torch.Tensor | None = None  # set to zero but where the learned logits route
        self.learned_bias: torch.Tensor | None = None
        self.tables: dict[torch.dtype, torch.Tensor] = {}  # DeepSeek-V3's gate in vLLM: float32, large batches bfloat16


class Hook:
    def __init__(self) -> None:
        self.spec = "perfect" if os.environ.get("ENABLE_PERFECT_ROUTER") == "1" else variable("ROUTER", "off")
        self.control = Control(variable("CONTROL"), self.spec) if variable("CONTROL") else None
        self.own_tables = bool(variable("ROUTER") or self.control)  # a table for each layer, which set_router fills
        self.flag: torch.Tensor | None = None  # on the GPU: tables rather than the learned logits, with control
        self.layers: dict[str, Layer] = {}
        self.site: Site | None = None
        self.world = 0, 1  # global rank, and how many
        self.entry: Entry | None = None
        self.drawn: Drawn | None = None
        self.shared: dict[torch.dtype, torch.Tensor] = {}
        self.experts, self.top_k, self.bias = 0, 0, set()
        self.slots, self.placement = 0, None  # physical experts, which are counted; what moved them
        self.counts = self.ring = self.base = self.last = None
        self.filled, self.steps, self.ended, self.tokens, self.records = 0, 0, 0, 0, []
        self.known: dict[str, dict[int, torch.Tensor]] = {}  # rows per layer of the routers set so far
        self.lock, self.writing = threading.Lock(), threading.Lock()
        self.unfinished, self.range = False, None  # a step that is not recorded yet, and its range

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
        if self.entry is None and (self.spec != "off" or self.control):
            if self.control and self.spec == "perfect":
                refuse("MOEBALANCE_CONTROL changes the router: want ENABLE_PERFECT_ROUTER unset")
            self.entry = find(site, experts, gate)
            self.top_k, self.drawn = self.entry.top_k, self.draw(self.spec)
        elif self.entry and not self.entry.fits(site, experts, gate):
            refuse(f"layer {name} routes otherwise than others: {self.entry.path} does not fit it")
        index, taken = int(number[1]) if number else len(self.layers), {layer.index for layer in self.layers.values()}
        layer = Layer(name, max(taken) + 1 if index in taken else index, len(self.layers))
        self.bias.add(self.judge(layer, gate.bias))
        if self.entry and choose:
            layer.proved = self.prove_choice(layer, learned, choose)
        self.set_bias(layer)
        self.layers[name] = layer
        return layer

    def draw(self, spec: str) -> Drawn | None:
        return None if spec in ("perfect", "off") else Drawn(spec, self.entry, self.site)

    def judge(self, layer: Layer, bias: torch.Tensor | None) -> str:
        """What becomes of a correction bias: read once."""
        if bias is None:
            return "none"
        if variable("BIAS") == "zero":
            layer.bias, layer.learned_bias = bias, bias.detach().clone()
            bias.data.zero_()
            return "zeroed"
        if self.entry is None:
            return "learned"
        values = bias.detach().float().cpu()
        layer.spread = float(values.max() - values.min())
        packed = struct.pack(f"<{len(values)}f", *values.tolist())
        if self.drawn is None and hashlib.sha256(packed).hexdigest() == self.entry.meta["bias_sha256"]:
            layer.spread = 0.0
            return "of the entry"
        self.tolerate(layer, self.drawn)
        return "tolerated"

    def tolerate(self, layer: Layer, drawn: Drawn | None) -> None:
        limit = self.entry.tolerates
        if drawn:
            limit = min(limit, 0.5 if self.entry.groups > 1 else 1.0)
        if not layer.spread < limit:
            refuse(f"layer {layer.name}: the correction bias spreads over {layer.spread:g}, the logits tolerate less "
                   f"than {limit:g}: set MOEBALANCE_BIAS=zero in both arms, or make the entry with the bias "
                   "('moebalance logits generate --bias')")

    def set_bias(self, layer: Layer) -> None:
        if layer.bias is not None and self.control:
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
            refuse(f"layer {layer.name}: its router is not that of {entry.path} ({entry.method}): of {int(seen.sum())} "
                   f"tokens {int(wrong.sum())} go to other experts than the entry's, token {row} to "
                   f"{got[row].tolist()} in the place of {want[row].tolist()}")
        if variable("COUNTS"):
            self.prove_counting(layer, chosen.reshape(tokens, -1), got)
        return bool(seen.any())

    def prove_counting(self, layer: Layer, chosen: torch.Tensor, known: torch.Tensor) -> None:
        """What was chosen, counted as steps are, must be what it is."""
        row = torch.zeros(self.experts + 1, dtype=torch.int64, device=chosen.device)
        self.add(chosen, row, self.experts)
        if row[:-1].tolist() != torch.bincount(known[known >= 0], minlength=self.experts).tolist():
            refuse(f"layer {layer.name}: the slots that were counted on this device are not those that were chosen: "
                   "leave MOEBALANCE_COUNTS unset")

    def logits(self, layer: Layer, learned: torch.Tensor) -> torch.Tensor:
        """What routes: a view of the layer's table, the learned logits, or with control one of them by the flag."""
        if self.spec == "off" and not self.control:
            return learned
        tokens = learned.numel() // self.experts
        captured, table = capturing(), layer.tables.get(learned.dtype)
        if table is None or layer.offset + tokens > len(table):
            if captured or layer.captured and table is not None:
                refuse(f"layer {layer.name}: {tokens} tokens, more than before CUDA graphs were captured: set "
                       "MOEBALANCE_TOKENS to the engine's largest batch (vLLM: max_num_batched_tokens)")
            table = layer.tables[learned.dtype] = self.make(layer, tokens, learned)
        layer.captured = layer.captured or captured
        view = table[layer.offset:layer.offset + tokens].view(learned.shape)
        return torch.where(self.flag, view, learned) if self.control else view

    def make(self, layer: Layer, tokens: int, like: torch.Tensor) -> torch.Tensor:
        if self.control and self.flag is None:
            self.flag = persistent(torch.full, (1,), self.spec != "off", like=like)
        rows = max(tokens, int(variable("TOKENS", "0")), *map(len, layer.tables.values()))
        if not self.own_tables:
            layer.offset, rows = layer.index * self.entry.period % len(self.entry.ids), rows + len(self.entry.ids)
        table = None if self.own_tables else self.shared.get(like.dtype)
        if table is None or len(table) < rows:
            table = persistent(torch.empty, rows, self.experts, like=like, dtype=like.dtype)
            self.fill(table, self.rows(self.drawn, layer.index) if self.own_tables else self.entry.ids)
            if not self.own_tables:
                self.shared[like.dtype] = table
        return table

    def rows(self, drawn: Drawn | None, layer: int) -> torch.Tensor:
        return drawn.rows(layer) if drawn else self.entry.ids.roll(-(layer * self.entry.period), 0)

    def fill(self, table: torch.Tensor, rows: torch.Tensor) -> None:
        rows = rows[torch.arange(len(table)) % len(rows)].to(table.device)
        if rows.is_floating_point():
            table.copy_(rows)
        else:
            table.fill_(self.entry.low).scatter_(1, rows, self.entry.high)

    def set_router(self, spec: str) -> None:
        """Another router in the same tables, also for CUDA graphs already captured. One refused changes nothing."""
        if spec == self.spec:
            return
        if not self.control and ("off" in (spec, self.spec) or not self.own_tables):
            refuse(f"cannot change from {self.spec} to {spec} within a launch: start it with MOEBALANCE_CONTROL, or "
                   "with MOEBALANCE_ROUTER=target:1 or another drawn router")
        if self.entry:
            drawn = self.draw(spec)
            for layer in self.layers.values():
                self.tolerate(layer, drawn)
            if spec != "off":
                if spec not in self.known:
                    self.known[spec] = {layer.index: self.rows(drawn, layer.index) for layer in self.layers.values()}
                for layer in self.layers.values():
                    for table in layer.tables.values():
                        self.fill(table, self.known[spec][layer.index])
                self.drawn = drawn
            if self.flag is not None:
                self.flag.fill_(spec != "off")
        self.spec = spec
        for layer in self.layers.values():
            self.set_bias(layer)

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
        return self.counts[:, :self.slots].to("cpu", copy=True)

    def step(self, tokens: int = 0) -> None:
        """Begins a step: what was counted since the last one is the step before. The first one ends the warm-up."""
        with self.lock:
            if self.last is None:
                self.last, self.world = self.counted(), place_in_world()
                atexit.register(self.write)
                threading.Thread(target=self.write_when_idle, daemon=True).start()
            self.record()
        if self.control:
            self.control.poll(self)
        with self.lock:
            self.steps, self.tokens, self.unfinished = self.steps + 1, self.tokens + tokens, True
        if self.steps == 2:
            self.prove()
            print(self.claim(), file=sys.stderr, flush=True)
        self.close_range()
        self.range = named(f"step {self.steps} {self.spec} {tokens} tokens")
        self.range.__enter__()

    def finish(self) -> None:
        """Ends a step; a step that fails is never ended."""
        self.close_range()
        self.ended = self.steps

    @contextlib.contextmanager
    def running(self, tokens: int) -> Iterator[None]:
        """Around a step."""
        self.step(tokens)
        yield
        self.finish()

    def close_range(self) -> None:
        if self.range is not None:
            self.range.__exit__(None, None, None)
            self.range = None

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
            self.ring[self.filled].copy_(self.counts[:len(self.layers), :self.slots])
            self.filled += 1
            if self.filled == RING:
                self.drain()
        self.unfinished = False

    def drain(self) -> None:
        if self.filled:
            for now in self.ring[:self.filled].cpu():
                step = now - self.last[:len(now)]
                self.last[:len(now)] = now
                if self.site.mode == "dep" or step.any():
                    self.records.append(step.int())
        self.filled = 0

    def end_sequence(self) -> None:
        """Writes what was counted under the arm that ends, and counts from here; the caller holds writing."""
        records = self.snapshot()
        if self.steps:
            self.write_files(records)
        with self.lock:
            self.records, self.tokens, self.last = [], 0, self.counted()

    def totals(self) -> dict[str, Any]:
        """Slots per layer and expert since reset."""
        now = self.counts[:len(self.layers), :self.slots].cpu()
        counts = now if self.base is None else now - self.base
        return {"layers": [layer.index for layer in self.layers.values()], "counts": counts.tolist()}

    def reset(self) -> None:
        self.base = self.counts[:len(self.layers), :self.slots].to("cpu", copy=True)

    # Files

    def write_when_idle(self) -> None:
        """So that a process that is killed has lost no more than what ran since the engine last waited for requests."""
        before = written = 0
        while True:
            time.sleep(IDLE)
            if self.steps == self.ended == before != written:
                self.write()
                written = before
            before = self.steps

    def write(self) -> None:
        """Writes all that was recorded: when the engine is idle, and at the end of the process."""
        if self.site is not None and self.last is not None:
            with self.writing:
                self.write_files(self.snapshot())

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
        if not folder or not self.control:
            return folder
        return os.path.join(folder, f"sequence{self.control.sequence}{'.expired' if self.control.expired else ''}")

    def write_files(self, records: list[torch.Tensor]) -> None:
        folder = self.folder("COUNTS")
        if folder and records and self.site.writes:
            from safetensors.torch import save_file
            index = [layer.index for layer in self.layers.values()]
            counts = {f"{i}_{index[slot]}": row for i, step in enumerate(records) for slot, row in enumerate(step)}
            save(folder, f"rank{self.site.rank}.safetensors", lambda path: save_file(counts, path))
            if self.site.rank == 0:
                save_json(folder, "meta_info.json", {"num_experts": self.slots, "num_experts_per_token": self.top_k,
                                                     "ep_size": self.site.ranks, "mode": self.site.mode})
        self.prove(len(records))

    def claim(self) -> str:
        rank, ranks = self.site.rank, self.site.ranks
        return f"moebalance hook: rank {rank} of {ranks} routes {len(self.layers)} layers by {self.spec}"

    def prove(self, recorded: int = 0) -> None:
        folder = self.folder("PROOF") or self.folder("COUNTS")
        if not folder or not self.site.writes:
            return
        site, entry, arm = self.site, self.entry, "perfect" if self.spec == "perfect" else "normal"
        proof = {
            "schema_version": 1, "kind": "moebalance hook", "claim": self.claim(), "engine": site.engine,
            "engine_version": site.version, "releases_tried": TRIED[site.engine], "rank": site.rank,
            "ranks": site.ranks, "global_rank": self.world[0], "mode": site.mode, "arm": arm, "router": self.spec,
            "layers": len(self.layers), "layers_proved": sum(layer.proved for layer in self.layers.values()),
            "experts": self.experts, "physical_experts": self.slots or None, "placement": self.placement,
            "top_k": self.top_k, "correction_bias": sorted(self.bias), "entry": entry and os.path.basename(entry.path),
            "entry_sha256": entry and entry.sha256, "plan": entry and entry.meta.get("plan"), "steps": self.steps,
            "tokens": self.tokens or None, "steps_recorded": recorded}
        if self.control:
            proof.update(sequence=self.control.sequence, sequence_arm=self.control.arm)
        save_json(folder, f"moebalance-hook.rank{site.rank}.json", proof)


HOOK = Hook()
