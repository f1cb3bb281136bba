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
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .common import refuse, save_json

SHARE, MOST = 200, 0.1  # reading the folder takes one part in so many of the time; seconds between
AHEAD = 8  # steps that a rank may be ahead of another one


class Order(NamedTuple):
    sequence: int
    arm: str
    router: str
    expires_ns: int


class Control:
    """The engine's side. turn ends a sequence, has an order's router route, and says which one does."""

    def __init__(self, folder: str, normal: str, turn: Callable[[Order, bool], str]):
        self.folder, self.normal, self.turn, self.routes = pathlib.Path(folder), normal, turn, normal
        self.now = Order(0, "normal", normal, 0)  # 0: does not expire
        self.wanted: Order | None = None  # not obeyed yet
        self.expired, self.text, self.next, self.begun = False, "", 0.0, False

    @property
    def name(self) -> str:
        """What counts and ranges are of."""
        return f"sequence{self.now.sequence}{'.expired' if self.expired else ''}"

    def poll(self, world: tuple[int, int], steps: int) -> None:
        """Obeys the driver: at the start of a step, behind so many, in the thread that runs the model."""
        self.world, self.steps = world, steps
        path = self.folder / f"ack.rank{world[0]}.json"
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
                self.take(text)
        if self.wanted:
            self.obey(self.wanted)
        if self.late():
            order, self.now = self.now, self.now._replace(expires_ns=0)
            if self.routes != self.normal:
                self.change(order._replace(router=self.normal, expires_ns=0), expired=True)

    def late(self) -> bool:
        return 0 < self.now.expires_ns < time.time_ns()

    def take(self, text: str) -> None:
        try:
            said = json.loads(text)
            order = Order(*(said[key] for key in Order._fields))
            if [type(x) for x in order] != [int, str, str, int]:
                raise ValueError("want whole numbers sequence and expires_ns, and texts arm and router")
        except (ValueError, KeyError, TypeError) as e:
            return self.answer(error=f"arm.json: {e!r}")
        if order.sequence != self.now.sequence:
            if not self.wanted or self.wanted.sequence != order.sequence:
                seen = {"sequence": order.sequence, "steps": self.steps}
                save_json(str(self.folder), f"seen.rank{self.world[0]}.json", seen)
            self.wanted = order
        elif not self.expired:
            self.now = self.now._replace(expires_ns=order.expires_ns)

    def obey(self, order: Order) -> None:
        """Changes at the step on which all ranks agree, from what each has said it has seen."""
        said = [json.loads(path.read_text()) for path in self.folder.glob("seen.rank*.json")]
        seen, ranks = [s["steps"] for s in said if s["sequence"] == order.sequence], self.world[1]
        agreed = max(seen) + (AHEAD if ranks > 1 else 0)
        if len(seen) >= ranks and self.steps >= agreed:
            self.wanted, missed = None, self.steps - agreed
            self.change(order, error=f"changed {missed} steps after other ranks" if missed else "")

    def change(self, order: Order, expired: bool = False, error: str = "") -> None:
        try:
            self.routes = self.turn(order, expired)
        except Exception as e:  # a server goes on with the router that it has
            error = str(e)
        self.answer(expired=expired, error=error)

    def answer(self, **more: Any) -> None:
        (rank, ranks), now = self.world, self.now
        said = {"sequence": now.sequence, "arm": now.arm, "router": self.routes, "steps": self.steps}
        said.update(time_ns=time.time_ns(), rank=rank, ranks=ranks, **{key: x for key, x in more.items() if x})
        save_json(str(self.folder), f"ack.rank{rank}.json", said)
