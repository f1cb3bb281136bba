"""Reads this rank's entry of the cache, and trusts nothing of it that can be checked."""
import glob
import hashlib
import json
import os
import stat
from typing import NoReturn

import torch

from .common import Gate, Site, refuse, variable

SCORING = {"Default": "softmax", "Renormalize": "softmax", "RenormalizeNaive": "softmax", "DeepSeekV3": "sigmoid",
           "MiniMax2": "sigmoid", "SigmoidRenorm": "sigmoid", "DeepSeekV4": "sqrtsoftplus"}
BIASED = ("DeepSeekV3", "DeepSeekV4", "MiniMax2")
SAME = ("model", "method", "groups", "top_k_groups", "bias_sha256", "layout")  # of the entries of one cache
NUMBERS = ("experts", "top_k", "groups", "top_k_groups", "ranks", "rank", "layer")
SCHEMA = "moebalance.logits/1"
MOST_HEADER = 100 << 20


def crc32c(data: bytes) -> int:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Entry:
    """The periodic entry of this rank: ids [rows, top_k], row (t + layer * period) % rows for token t."""

    def __init__(self, path: str):
        """Reads the header; load reads and checks the rest."""
        self.path = path
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                self.wrong("a regular file", "another kind of file")
            with open(path, "rb") as f:
                size, length = os.fstat(f.fileno()).st_size, int.from_bytes(f.read(8), "little")
                if not 2 <= length <= min(size - 8, MOST_HEADER):
                    self.wrong("a safetensors file", f"{size} bytes that are none")
                self.tensors = json.loads(f.read(length))
            self.meta, self.start = dict(self.tensors.pop("__metadata__", {})), 8 + length
        except (OSError, ValueError, AttributeError, TypeError) as e:
            self.wrong("a safetensors file", str(e))
        if self.meta.get("schema") != SCHEMA:
            self.wrong(f"an entry of schema {SCHEMA}", f"schema {self.meta.get('schema')!r}: keep such files elsewhere")
        self.number = {key: self.whole(key) for key in NUMBERS}
        self.periodic = self.meta.get("tokens_per_rank") == "any"
        self.experts, self.top_k = self.number["experts"], self.number["top_k"]
        self.groups, self.keep = max(1, self.number["groups"]), self.number["top_k_groups"]
        self.ranks, self.method, self.mode = self.number["ranks"], self.meta.get("method", ""), self.meta.get("mode")
        self.model = self.meta.get("model", "")

    def wrong(self, want: str, have: str) -> NoReturn:
        refuse(f"{self.path}: want {want}, have {have}".replace("\n", " "))

    def whole(self, key: str, least: int = 0) -> int:
        text = self.meta.get(key, "")
        if not (isinstance(text, str) and text.isdecimal() and len(text) < 10 and int(text) >= least):
            self.wrong(f"metadata {key!r} to be a whole number of at least {least}", repr(text))
        return int(text)

    def real(self, key: str) -> float:
        try:
            return float(str(self.meta.get(key)).replace("any", "inf"))
        except ValueError:
            self.wrong(f"metadata {key!r} to be a number", repr(self.meta.get(key)))

    def __str__(self) -> str:
        groups = f" in {self.keep} of {self.groups} groups" if self.groups > 1 else ""
        gate = f"{self.experts} experts, top-{self.top_k}{groups}, {self.method}"
        return f"{self.model}: {gate}, {self.ranks} ranks, {self.mode}"

    def fits(self, site: Site, experts: int, gate: Gate) -> bool:
        """Whether it is of the model's shape and routing method, as far as the engine says."""
        scores = gate.scoring in (None, SCORING.get(self.method, gate.scoring))
        scores = scores and (gate.bias is None or self.method in BIASED)
        groups = gate.groups is None or (max(1, gate.groups) == self.groups
                                         and (self.groups == 1 or gate.top_k_groups in (None, self.keep)))
        ranks = self.ranks == site.ranks and (site.ranks == 1 or self.mode == site.mode)
        return (self.experts == experts and gate.top_k in (None, self.top_k) and groups and scores and ranks
                and variable("MODEL", self.model) == self.model)

    def load(self) -> "Entry":
        """Reads and checks the content."""
        with open(self.path, "rb") as f:
            data = f.read()
        self.sha256 = hashlib.sha256(data).hexdigest()
        have = f"crc32c:{crc32c(data[self.start:]):08x}"
        if have != self.meta.get("checksum"):
            self.wrong(f"content of checksum {self.meta.get('checksum')}", f"{have}: a damaged file; generate it anew")
        self.period, rows = self.whole("period"), self.whole("rows", 1)
        tensor, size = self.tensors.get("expert_ids"), 4 * rows * self.top_k
        want = {"dtype": "I32", "shape": [rows, self.top_k], "data_offsets": [0, size]}  # the first tensor
        if tensor != want or size > len(data) - self.start:
            self.wrong(f"the tensor expert_ids, {want}", str(tensor))
        ids = torch.frombuffer(bytearray(data[self.start:self.start + size]), dtype=torch.int32)
        self.ids = ids.view(rows, self.top_k).long()
        self.check_rows()
        self.high, self.low, self.tolerates = self.real("high"), self.real("low"), self.real("bias_spread_survived")
        self.owner = self.owners()
        return self

    def check_rows(self) -> None:
        ordered = self.ids.sort(-1).values
        wrong = (ordered[:, 0] < 0) | (ordered[:, -1] >= self.experts) | (ordered[:, 1:] == ordered[:, :-1]).any(-1)
        if self.groups > 1:
            size = self.experts // self.groups
            entered = torch.zeros(len(self.ids), self.groups, dtype=torch.bool)
            wrong |= entered.scatter_(1, (self.ids // size).clamp(0, self.groups - 1), True).sum(-1) > self.keep
        if wrong.any():
            row = int(wrong.nonzero()[0, 0])
            groups = f" in at most {self.keep} groups" if self.groups > 1 else ""
            self.wrong(f"{self.top_k} distinct experts from 0 to {self.experts - 1}{groups}",
                       f"{self.ids[row].tolist()} in row {row}")

    def owners(self) -> torch.Tensor:
        """The first rank of each expert."""
        n, ranks, layout = self.experts, self.ranks, self.meta.get("layout")
        try:
            held = [range(-(-r * n // ranks), -(-(r + 1) * n // ranks)) for r in range(ranks)]
            if layout != "contiguous":
                held = json.loads(layout)
            owner = torch.full((n,), -1)
            for rank, own in reversed(list(enumerate(held))):
                owner[list(own)] = rank
            if len(held) == ranks and int(owner.min()) >= 0:
                return owner
        except (TypeError, ValueError, IndexError):
            pass
        self.wrong("metadata 'layout' to give each expert a rank", repr(layout))

    def rank_load(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.bincount(self.owner[ids].flatten(), minlength=self.ranks).double()

    def of_layer(self, layer: int, tokens: int) -> torch.Tensor:
        """The experts of a layer's first tokens."""
        return self.ids[(torch.arange(tokens) + layer * self.period) % len(self.ids)]


def find(site: Site, experts: int, gate: Gate) -> Entry:
    """The one entry of the cache for this process."""
    folder, found, others = variable("CACHE"), {}, set()
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.safetensors"))):
        entry = Entry(path)
        if not entry.periodic or entry.number["layer"] != 0:
            continue
        others.add(str(entry))
        if entry.fits(site, experts, gate) and entry.number["rank"] == site.rank:
            found[tuple(entry.meta.get(key) for key in SAME)] = entry
    if len(found) != 1:
        groups = f" in {gate.top_k_groups} of {gate.groups} groups" if gate.groups and gate.groups > 1 else ""
        scores = f"{gate.scoring or 'any'} scores{' with a bias' if gate.bias is not None else ''}"
        refuse(f"MOEBALANCE_CACHE={folder}: want one periodic entry for {experts} experts, top-{gate.top_k}{groups}, "
               f"{scores}, rank {site.rank} of {site.ranks}, {site.mode}; have {len(found)}. Choose with "
               f"MOEBALANCE_MODEL, or make it with 'moebalance logits generate --ep {site.ranks} --mode {site.mode}'. "
               f"The cache holds: {'; '.join(sorted(others)) or 'none'}")
    return next(iter(found.values())).load()
