"""This process: its tables, what it records, the switch between routers, and the files that prove it."""

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import torch

from .common import TRIED, Gate, Site, Unwritten, named, place_in_world, save, save_json, variable
from .control import Control, Order
from .recorder import Recorder
from .tables import Chooser, Layer, Tables

IDLE = 2.0  # seconds without a step, after which what was counted is written


class Steps:
    """How many have begun, ended, passed before this sequence, and are in files; the tokens of this sequence."""

    begun = ended = before = written = tokens = 0


class Hook:
    def __init__(self) -> None:
        spec, folder = variable("ROUTER", "off"), variable("CONTROL")
        spec = "perfect" if os.environ.get("ENABLE_PERFECT_ROUTER") == "1" else spec
        self.tables, self.recorder, self.steps = Tables(spec, bool(folder)), Recorder(), Steps()
        self.layers, self.logits, self.set_router = self.tables.layers, self.tables.logits, self.tables.set_router
        self.control = Control(folder, spec, self.turn) if folder else None
        self.site: Site = None  # type: ignore # until the first layer
        self.world, self.placement = (0, 1), ""  # global rank, and how many; what moved the experts
        self.writing, self.over = threading.Lock(), threading.Event()
        self.writer, self.unwritten = threading.Thread(target=self.write_when_idle, daemon=True), Unwritten()
        self.range, self.claimed = contextlib.ExitStack(), False  # of the step

    def layer(self, name: str, site: Site, learned: torch.Tensor, gate: Gate, choose: Chooser | str) -> Layer:
        """The state of a layer, made at its first call; see Tables.add."""
        if name in self.layers:
            return self.layers[name]

        def counted(logits: torch.Tensor) -> torch.Tensor | None:
            chosen = choose(logits)
            if chosen is not None and variable("COUNTS"):
                self.recorder.check(chosen.reshape(-1, chosen.shape[-1]), self.tables.experts, name)
            return chosen

        layer = self.tables.add(name, site, learned, gate, choose if isinstance(choose, str) else counted)
        self.site, self.recorder.layers, self.recorder.dep = site, len(self.layers), site.mode == "dep"
        self.recorder.slots = self.recorder.slots or self.tables.experts
        return layer

    def turn(self, order: Order, expired: bool) -> str:
        """Ends the sequence that was: writes what was counted under its arm, and has an order's router route."""
        with self.writing:
            if self.steps.begun:
                self.write_files(self.recorder.snapshot(self.steps.begun == self.steps.ended))
            self.recorder.restart()
            self.steps.tokens, self.steps.before = 0, self.steps.begun
            self.control.now, self.control.expired = order, expired
        self.set_router(order.router)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        return self.tables.spec

    @property
    def arm(self) -> str:
        return "perfect" if self.tables.spec == "perfect" else "normal"

    # Steps

    def step(self, tokens: int = 0) -> None:
        """Begins a step."""
        steps, control = self.steps, self.control
        if self.recorder.last is None:
            self.world = place_in_world()
            self.writer.start()
            atexit.register(self.close)
        self.recorder.begin()
        if control and self.layers:
            control.poll(self.world, steps.begun)
        with self.recorder.lock:
            steps.begun, steps.tokens, self.recorder.unfinished = steps.begun + 1, steps.tokens + tokens, True
            self.unwritten.hold(self.world[0])
        if self.layers and steps.begun > 1 and not self.claimed:
            self.claimed = True
            self.prove()
            print(self.claim(), file=sys.stderr, flush=True)
        said = f"0 arm={self.arm}"
        if control:
            said = f"{control.now.sequence} arm={control.now.arm}{' expired' if control.expired else ''}"
        self.range.close()
        self.range.enter_context(named(f"moebalance step={steps.begun} tokens={tokens} sequence={said}"))

    def finish(self) -> None:
        """Ends a step; a step that fails is never ended."""
        self.range.close()
        self.steps.ended = self.steps.begun

    @contextlib.contextmanager
    def running(self, tokens: int) -> Iterator[None]:
        """Around a step."""
        self.step(tokens)
        yield
        self.finish()

    def totals(self) -> dict[str, Any]:
        """Slots per layer and expert since the process began."""
        counts = self.recorder.counted()[: len(self.layers)].tolist()
        return {"layers": [layer.index for layer in self.layers.values()], "counts": counts}

    # Files

    def write_when_idle(self) -> None:
        """So that a process that is killed has lost no more than what ran since the engine last waited for requests."""
        before = 0
        while not self.over.wait(IDLE):
            if self.steps.begun == self.steps.ended == before != self.steps.written:
                self.write()
            before = self.steps.begun

    def close(self) -> None:
        """At the end of the process: a thread within PyTorch while the interpreter ends would abort it."""
        self.over.set()
        self.writer.join()
        if self.steps.written != self.steps.begun:
            self.write()

    def write(self) -> None:
        """Writes all that was recorded: when the engine is idle, and at the end of the process."""
        if self.site is not None and self.recorder.last is not None:
            with self.writing:
                ended = self.steps.ended
                self.write_files(self.recorder.snapshot(self.steps.begun == ended))
                self.steps.written = ended
        with self.recorder.lock:
            if self.steps.begun == self.steps.ended:
                self.unwritten.release()

    def folder(self, name: str) -> str:
        """Where a variable says to write; with control, what belongs to the sequence."""
        folder = variable(name)
        return os.path.join(folder, self.control.name) if folder and self.control else folder

    def write_files(self, records: list[torch.Tensor]) -> None:
        folder, site, recorder = self.folder("COUNTS"), self.site, self.recorder
        if folder and records and site.writes:
            from safetensors.torch import save_file

            index = [layer.index for layer in self.layers.values()]
            counts = {f"{i}_{index[slot]}": row for i, step in enumerate(records) for slot, row in enumerate(step)}
            save(folder, f"rank{site.rank}.safetensors", lambda path: save_file(counts, path))
            if site.rank == 0:
                meta = {"num_experts": recorder.slots, "num_experts_per_token": recorder.top_k}
                save_json(folder, "meta_info.json", {**meta, "ep_size": site.ranks, "mode": site.mode})
        self.prove(len(records))

    def claim(self) -> str:
        rank, ranks = self.site.rank, self.site.ranks
        return f"moebalance hook: rank {rank} of {ranks} routes {len(self.layers)} layers by {self.tables.spec}"

    def prove(self, recorded: int = 0) -> None:
        folder, site, tables, steps = self.folder("PROOF") or self.folder("COUNTS"), self.site, self.tables, self.steps
        if not folder or not site.writes:
            return
        layers, cache = self.layers.values(), tables.cache
        proof = {"schema_version": 1, "kind": "moebalance hook", "claim": self.claim(), **site._asdict()}
        del proof["writes"]
        proof.update(releases_tried=TRIED[site.engine], global_rank=self.world[0], router=tables.spec)
        proof.update(arm=self.arm, layers=len(layers), layers_proved=sum(layer.proved for layer in layers))
        # What hides choices, which are then not counted, and which backend shows them.
        proof.update(hidden=sorted({layer.hidden for layer in layers if layer.hidden}))
        proof.update(
            experts=tables.experts, physical_experts=self.recorder.slots or None, placement=self.placement or None
        )
        proof.update(top_k=self.recorder.top_k or (cache.top_k if cache else 0), correction_bias=sorted(tables.bias))
        if tables.entry:
            proof.update(entry=os.path.basename(tables.entry.path), entry_sha256=tables.entry.sha256)
            proof.update(plan=tables.entry.meta.get("plan"))
        proof.update(steps=steps.begun - steps.before, tokens=steps.tokens or None, steps_recorded=recorded)
        if self.control:
            proof.update(sequence=self.control.now.sequence, sequence_arm=self.control.now.arm)
        save_json(folder, f"moebalance-hook.rank{site.rank}.json", proof)


HOOK = Hook()
