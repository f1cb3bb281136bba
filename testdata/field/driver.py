"""Changes the router of a running engine through the folder MOEBALANCE_CONTROL, as 'moebalance hook --help' says: a fresh folder
for each launch, an order at a time, renewed until the next one or until over is set."""
import json
import os
import pathlib
import threading
import time

TERM, RENEWED = 60.0, 10.0  # seconds


class Driver:
    def __init__(self, folder, ranks):
        self.folder, self.ranks, self.order = pathlib.Path(folder), ranks, {"sequence": 0}
        self.lock, self.over = threading.Lock(), threading.Event()
        threading.Thread(target=self.renew, daemon=True).start()

    def renew(self):
        while not self.over.wait(RENEWED):
            if self.order["sequence"]:
                self.write()

    def write(self):
        with self.lock:
            text = json.dumps({**self.order, "expires_ns": time.time_ns() + int(TERM * 1e9)})
            (self.folder / "arm.new").write_text(text)
            os.replace(self.folder / "arm.new", self.folder / "arm.json")

    def set(self, arm, router):
        self.order = {"sequence": self.order["sequence"] + 1, "arm": arm, "router": router}
        self.write()

    def acknowledged(self):
        """Whether all ranks have changed. An error, or an order that expired, ends the program."""
        said = [json.loads(path.read_text()) for path in self.folder.glob("ack.rank*.json")]
        said = [ack for ack in said if ack["sequence"] == self.order["sequence"]]
        for ack in said:
            if "error" in ack or "expired" in ack:
                raise SystemExit(f"rank {ack['rank']}: {ack.get('error', 'expired')}")
        return len(said) >= self.ranks
