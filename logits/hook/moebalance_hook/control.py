"""The switch: a driver changes a running engine's router through the folder MOEBALANCE_CONTROL, fresh for each launch.

The driver replaces DIR/arm.json by renaming:

    {"sequence": 3, "arm": "perfect", "router": "perfect", "expires_ns": 1790000000000000000}

Each rank reads it in the thread that runs the model, at the start of a step, and answers in DIR/ack.rank<global>.json:

    {"sequence": 3, "arm": "perfect", "router": "perfect", "steps": 812, "time_ns": ..., "rank": 0, "ranks": 4}

steps are those before. "error" says why the router stayed as it was. All ranks change at the same step, a few after the
last has seen the order (seen.rank<global>.json). So a change needs steps: the driver sends runs that it does not time,
and times what begins after every rank has answered. It renews expires_ns with the same sequence;
when that passes, the router is the launch's own again and the answer has "expired": true. Counts and proof of each
sequence are in folders of their own, sequence<n>, in MOEBALANCE_COUNTS: an answer claims, counts measure.
"""

import json
import pathlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .common import place_in_world, refuse, save_json, variable

if TYPE_CHECKING:
    from .hook import Hook

SHARE, MOST = 200, 0.1  # reading the folder takes one part in so many of the time; seconds between
AHEAD = 8  # steps that a rank may be ahead of another one
TERM, RENEWED = 60.0, 10.0  # seconds


class Order(NamedTuple):
    sequence: int
    arm: str
    router: str
    expires_ns: int


class Control:
    """The engine's side."""

    def __init__(self, folder: str, normal: str):
        self.folder, self.normal = pathlib.Path(folder), normal
        self.now = Order(0, "normal", normal, 0)  # 0: does not expire
        self.wanted: Order | None = None  # not obeyed yet
        self.expired, self.text, self.next, self.begun = False, "", 0.0, False

    @property
    def name(self) -> str:
        """What counts and ranges are of."""
        return f"sequence{self.now.sequence}{'.expired' if self.expired else ''}"

    def poll(self, hook: "Hook") -> None:
        """Obeys the driver: at the start of a step, in the thread that runs the model."""
        path = self.folder / f"ack.rank{hook.world[0]}.json"
        if not self.begun and path.exists():
            refuse(f"MOEBALANCE_CONTROL: want a fresh folder for each launch, have {path} of another one")
        self.begun, start = True, time.monotonic()
        if self.late() or start >= self.next:
            try:
                text = (self.folder / "arm.json").read_text()
            except (OSError, ValueError):
                text = ""
            self.next = start + min(MOST, SHARE * (time.monotonic() - start))
            if text and text != self.text:
                self.text = text
                self.take(hook, text)
        if self.wanted:
            self.obey(hook, self.wanted)
        if self.late():
            order, self.now = self.now, self.now._replace(expires_ns=0)
            if hook.spec != self.normal:
                self.change(hook, order._replace(router=self.normal, expires_ns=0), expired=True)

    def late(self) -> bool:
        return 0 < self.now.expires_ns < time.time_ns()

    def take(self, hook: "Hook", text: str) -> None:
        try:
            said = json.loads(text)
            order = Order(*(said[key] for key in Order._fields))
            if [type(x) for x in order] != [int, str, str, int]:
                raise ValueError("want whole numbers sequence and expires_ns, and texts arm and router")
        except (ValueError, KeyError, TypeError) as e:
            return self.answer(hook, error=f"arm.json: {e!r}")
        if order.sequence != self.now.sequence:
            if not self.wanted or self.wanted.sequence != order.sequence:
                seen = {"sequence": order.sequence, "steps": hook.steps}
                save_json(str(self.folder), f"seen.rank{hook.world[0]}.json", seen)
            self.wanted = order
        elif not self.expired:
            self.now = self.now._replace(expires_ns=order.expires_ns)

    def obey(self, hook: "Hook", order: Order) -> None:
        """Changes at the step on which all ranks agree, from what each has said it has seen."""
        said = [json.loads(path.read_text()) for path in self.folder.glob("seen.rank*.json")]
        seen, ranks = [s["steps"] for s in said if s["sequence"] == order.sequence], hook.world[1]
        agreed = max(seen) + (AHEAD if ranks > 1 else 0)
        if len(seen) >= ranks and hook.steps >= agreed:
            self.wanted, missed = None, hook.steps - agreed
            self.change(hook, order, error=f"changed {missed} steps after other ranks" if missed else "")

    def change(self, hook: "Hook", order: Order, expired: bool = False, error: str = "") -> None:
        with hook.writing:
            hook.end_sequence()
            self.now, self.expired = order, expired
        try:
            hook.set_router(order.router)
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
        except Exception as e:  # a server goes on with the router that it has
            error = str(e)
        self.answer(hook, expired=expired, error=error)

    def answer(self, hook: "Hook", **more: Any) -> None:
        (rank, ranks), now = hook.world, self.now
        said = {"sequence": now.sequence, "arm": now.arm, "router": hook.spec, "steps": hook.steps}
        said.update(time_ns=time.time_ns(), rank=rank, ranks=ranks, **{key: x for key, x in more.items() if x})
        save_json(str(self.folder), f"ack.rank{rank}.json", said)


class Driver:
    """The driver's side."""

    def __init__(self, folder: str, ranks: int | None = None):
        self.folder, self.ranks, self.sequence = folder, ranks, 0
        self.order: dict[str, Any] = {}
        self.lock, self.over = threading.Lock(), threading.Event()
        threading.Thread(target=self.renew, daemon=True).start()

    def renew(self) -> None:
        while not self.over.wait(RENEWED):
            if self.order:
                self.write()

    def write(self) -> None:
        with self.lock:
            self.order["expires_ns"] = time.time_ns() + int(TERM * 1e9)
            save_json(self.folder, "arm.json", self.order)

    def set(self, arm: str, router: str) -> None:
        self.sequence += 1
        self.order = {"sequence": self.sequence, "arm": arm, "router": router}
        self.write()

    def acknowledged(self) -> bool:
        """Whether all ranks have changed."""
        said = {path: json.loads(path.read_text()) for path in pathlib.Path(self.folder).glob("ack.rank*.json")}
        said = {path: ack for path, ack in said.items() if ack["sequence"] == self.sequence}
        for path, ack in said.items():
            if "error" in ack or "expired" in ack:
                refuse(f"{path}: {ack.get('error', 'expired')}")
        return bool(said) and len(said) >= (self.ranks or next(iter(said.values()))["ranks"])


def agreed(value: str) -> str:
    """What the first rank says, where ranks run the same program."""
    said = [value]
    if place_in_world()[1] > 1:
        torch.distributed.broadcast_object_list(said, src=0)
    return said[0]


def alternate(
    measure: Callable[[], Any], blocks: int = 6, routers: dict[str, str] | None = None, ranks: int | None = None
) -> dict[str, Any]:
    """Measures two routers in turn within one launch, ABBA and BAAB, and prints the record as JSON: for vLLM's LLM,
    SGLang's Engine, or transformers in this process, under torchrun in each. The engine must have been started with
    MOEBALANCE_CONTROL set to a fresh folder, which is this process's too. measure runs the batch and returns nothing, a
    number, or a dict of numbers; after each change it runs untimed."""
    folder, arms = variable("CONTROL"), list((routers or {"normal": "off", "perfect": "perfect"}).items())
    if not folder or len(arms) != 2 or blocks < 1:
        refuse("alternate: want MOEBALANCE_CONTROL set before the engine starts, two routers and at least one block")
    driver = Driver(folder, ranks) if place_in_world()[0] == 0 else None
    record: dict[str, Any] = {"schema_version": 1, "kind": "moebalance alternate", "routers": dict(arms), "blocks": []}

    def change(arm: str, router: str) -> None:
        if driver:
            driver.set(arm, router)
        end, state = time.monotonic() + TERM, "wait"
        while state == "wait":
            measure()
            if driver:
                state = "done" if driver.acknowledged() else "late" if time.monotonic() > end else "wait"
            state = agreed(state)
        if state == "late":
            refuse(f"alternate: no answer of all ranks in {folder}: was the engine started with MOEBALANCE_CONTROL?")

    def segment(arm: str) -> dict[str, Any]:
        start_ns, start = time.time_ns(), time.perf_counter()
        value = measure()
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        if driver:
            driver.acknowledged()  # refuses what expired meanwhile
        sequence = driver.sequence if driver else None
        return {"arm": arm, "sequence": sequence, "start_ns": start_ns, "seconds": seconds, "value": value}

    now = None
    try:
        for block in range(blocks):
            order, segments = "BAAB" if block % 2 else "ABBA", []
            for arm, router in (arms["AB".index(letter)] for letter in order):
                if arm != now:
                    change(arm, router)
                    now = arm
                segments.append(segment(arm))
            record["blocks"].append({"order": order, "segments": segments})
    finally:
        if driver:
            driver.set(*arms[0])
            driver.over.set()
    if driver:
        print(json.dumps(record), flush=True)
    return record
