"""Reads this rank's entry of the cache, and trusts nothing of it that can be checked."""

import glob
import hashlib
import itertools
import json
import os
from typing import NoReturn

import torch
from safetensors import SafetensorError, safe_open

from .common import Gate, Site, refuse, variable

SCORING = {
    **dict.fromkeys(("Default", "Renormalize", "RenormalizeNaive"), "softmax"),
    **dict.fromkeys(("DeepSeekV3", "MiniMax2", "SigmoidRenorm"), "sigmoid"),
    "DeepSeekV4": "sqrtsoftplus",
}
BIASED = ("DeepSeekV3", "DeepSeekV4", "MiniMax2")
SAME = ("model", "method", "groups", "top_k_groups", "bias_sha256", "layout")  # of the entries of one cache
SCHEMA = "moebalance.logits/2"


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
        """Reads the metadata; load reads and checks the rest."""
        self.path = path
        if not os.path.isfile(path):
            self.wrong("a regular file", "another kind of file")
        try:
            with safe_open(path, "pt") as f:
                self.meta = f.metadata() or {}
        except (OSError, SafetensorError) as e:
            self.wrong("a safetensors file", f"a damaged file, or another one: {e}")
        if self.meta.get("schema") != SCHEMA:
            self.wrong(f"an entry of schema {SCHEMA}", f"schema {self.meta.get('schema')!r}: keep such files elsewhere")
        self.experts, self.top_k, self.keep = self.whole("experts"), self.whole("top_k"), self.whole("top_k_groups")
        self.groups, self.ranks, self.rank = max(1, self.whole("groups")), self.whole("ranks"), self.whole("rank")
        self.method, self.mode, self.model = (self.meta.get(key, "") for key in ("method", "mode", "model"))
        self.periodic = self.meta.get("tokens_per_rank") == "any" and self.whole("layer") == 0

    def wrong(self, want: str, have: str) -> NoReturn:
        refuse(f"{self.path}: want {want}, have {have}")

    def whole(self, key: str) -> int:
        text = self.meta.get(key, "")
        if not (text.isdecimal() and len(text) < 10):
            self.wrong(f"metadata {key!r} to be a whole number", repr(text))
        return int(text)

    def real(self, key: str) -> float:
        try:
            return float(self.meta.get(key, "").replace("any", "inf"))
        except ValueError:
            self.wrong(f"metadata {key!r} to be a number", repr(self.meta.get(key)))

    def __str__(self) -> str:
        groups = f" in {self.keep} of {self.groups} groups" if self.groups > 1 else ""
        gate = f"{self.experts} experts, top-{self.top_k}{groups}, {self.method}"
        return f"{self.model}: {gate}, {self.ranks} ranks, {self.mode}"

    def fits(self, site: Site, experts: int, gate: Gate) -> bool:
        """Whether it is of the model's shape and routing method, as far as the engine says."""
        return (
            (self.experts, self.ranks) == (experts, site.ranks)
            and gate.top_k in (None, self.top_k)
            and (gate.groups is None or max(1, gate.groups) == self.groups)
            and (gate.groups is None or self.groups == 1 or gate.top_k_groups in (None, self.keep))
            and gate.scoring in (None, SCORING.get(self.method, gate.scoring))
            and (gate.bias is None or self.method in BIASED)
            and (site.ranks == 1 or self.mode == site.mode)
            and variable("MODEL", self.model) == self.model
        )

    def load(self) -> "Entry":
        """Reads and checks the content."""
        with open(self.path, "rb") as f:
            data = f.read()
        self.sha256 = hashlib.sha256(data).hexdigest()
        have = f"crc32c:{crc32c(data[8 + int.from_bytes(data[:8], 'little') :]):08x}"
        if have != self.meta.get("checksum"):
            self.wrong(f"content of checksum {self.meta.get('checksum')}", f"{have}: a damaged file; generate it anew")
        self.period, shape = self.whole("period"), [self.whole("rows"), self.top_k]
        with safe_open(self.path, "pt") as f:
            ids = f.get_tensor("expert_ids") if "expert_ids" in f.keys() else None
        if ids is None or ids.dtype != torch.int32 or list(ids.shape) != shape or not shape[0]:
            self.wrong(f"the tensor expert_ids, int32 {shape}", "another one" if ids is not None else "none")
        self.ids = ids.long()
        self.check_rows()
        self.high, self.low, self.tolerates = self.real("high"), self.real("low"), self.real("bias_spread_survived")
        self.owner = self.owners()
        return self

    def check_rows(self) -> None:
        ordered = self.ids.sort(-1).values
        wrong = (ordered[:, 0] < 0) | (ordered[:, -1] >= self.experts) | (ordered[:, 1:] == ordered[:, :-1]).any(-1)
        groups = ""
        if self.groups > 1:
            group, groups = ordered * self.groups // self.experts, f" in at most {self.keep} groups"
            wrong |= (group[:, 1:] != group[:, :-1]).sum(-1) >= self.keep
        if wrong.any():
            row = int(wrong.nonzero()[0, 0])
            want = f"{self.top_k} distinct experts from 0 to {self.experts - 1}{groups}"
            self.wrong(want, f"{self.ids[row].tolist()} in row {row}")

    def owners(self) -> torch.Tensor:
        """The first rank of each expert."""
        n, ranks, layout = self.experts, self.ranks, self.meta.get("layout", "")
        try:
            begin = [r * (n // ranks) + min(r, n % ranks) for r in range(ranks + 1)]  # the first hold one more
            held = [range(*ends) for ends in itertools.pairwise(begin)]
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
        if entry.periodic:
            others.add(str(entry))
            if entry.fits(site, experts, gate) and entry.rank == site.rank:
                found[tuple(entry.meta.get(key) for key in SAME)] = entry
    if len(found) != 1:
        groups = f" in {gate.top_k_groups} of {gate.groups} groups" if gate.groups and gate.groups > 1 else ""
        scores = f"{gate.scoring or 'any'} scores{' with a bias' if gate.bias is not None else ''}"
        want = f"{experts} experts, top-{gate.top_k}{groups}, {scores}, rank {site.rank} of {site.ranks}, {site.mode}"
        make = f"'moebalance logits generate --ep {site.ranks} --mode {site.mode}'"
        refuse(
            f"MOEBALANCE_CACHE={folder}: want one periodic entry for {want}; have {len(found)}. Choose with "
            f"MOEBALANCE_MODEL, or make it with {make}. The cache holds: {'; '.join(sorted(others)) or 'none'}"
        )
    return next(iter(found.values())).load()
