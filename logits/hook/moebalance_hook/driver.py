"""The driver's side of the switch (control.py): orders, and two routers measured in turn."""

import json
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from .common import place_in_world, refuse, save_json, variable

TERM, RENEWED = 60.0, 10.0  # seconds


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
            if place_in_world()[1] > 1:  # what the first rank says, where ranks run the same program
                torch.distributed.broadcast_object_list(said := [state], src=0)
                state = said[0]
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
