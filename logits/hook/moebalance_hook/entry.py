"""Reads the cache: its manifest, and this rank's entry of each router. Trusts nothing of it that can be checked."""

import hashlib
import json
import os
import pathlib
import zlib
from typing import NoReturn

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from .common import Gate, Site, refuse

SCORING = {
    **dict.fromkeys(("Default", "Renormalize", "RenormalizeNaive"), "softmax"),
    **dict.fromkeys(("DeepSeekV3", "MiniMax2", "SigmoidRenorm"), "sigmoid"),
    "DeepSeekV4": "sqrtsoftplus",
}
BIASED = ("DeepSeekV3", "DeepSeekV4", "MiniMax2")
SCHEMA = 4


def wrong(path: str, want: str, have: str) -> NoReturn:
    refuse(f"{path}: want {want}, have {have}")


def read(path: str, make: str) -> bytes:
    if os.path.isfile(path):
        return pathlib.Path(path).read_bytes()
    refuse(f"{path} is missing, or no regular file: make it with 'moebalance logits generate {make}'")


class Entry:
    """The periodic entry of this rank for one router: ids [rows, top_k], a table of rows/layers for each layer."""

    def __init__(self, cache: "Cache", path: str, make: str):
        self.path, data = path, read(path, make)
        self.sha256 = hashlib.sha256(data).hexdigest()
        size = int.from_bytes(data[:8], "little")
        try:
            tensors, self.meta = load(data), json.loads(data[8 : 8 + size])["__metadata__"]
        except (SafetensorError, ValueError, KeyError, TypeError) as e:
            wrong(path, "a safetensors file with metadata", f"a damaged file, or another one: {e}")
        for key, want in (("manifest", cache.checksum), ("checksum", f"crc32:{zlib.crc32(data[8 + size :]):08x}")):
            if self.meta.get(key) != want:
                wrong(path, f"{key} {want}", f"{self.meta.get(key)}: a damaged file, or another cache's")
        try:
            self.ids = tensors["expert_ids"].long().unflatten(0, (int(self.meta["layers"]), -1))
            self.period = int(self.meta["period"])
            self.tolerates = float(self.meta["bias_spread_survived"].replace("any", "inf"))
        except (KeyError, ValueError, RuntimeError) as e:
            wrong(path, "metadata layers, period, bias_spread_survived and the tensor expert_ids", repr(e))
        self.check(cache)

    def check(self, cache: "Cache") -> None:
        rows = self.ids.flatten(0, 1)
        ordered = rows.sort(-1).values
        bad = (ordered[:, 0] < 0) | (ordered[:, -1] >= cache.experts) | (ordered.diff() == 0).any(-1)
        bad |= ((ordered * cache.groups // cache.experts).diff() != 0).sum(-1) >= max(1, cache.keep)
        if rows.shape[-1] != cache.top_k or bad.any():
            row = int(bad.nonzero()[0, 0]) if bad.any() else 0
            groups = f" in at most {cache.keep} groups" if cache.groups > 1 else ""
            want = f"{cache.top_k} distinct experts from 0 to {cache.experts - 1}{groups}"
            wrong(self.path, want, f"{rows[row].tolist()} in row {row}")

    def of_layer(self, layer: int, tokens: int) -> torch.Tensor:
        """The experts of a layer's first tokens."""
        table = self.ids[layer % len(self.ids)]
        return table[(torch.arange(tokens) + layer * self.period) % len(table)]


class Cache:
    """The folder that 'moebalance logits generate' filled for one model on so many ranks."""

    def __init__(self, folder: str, site: Site, experts: int, gate: Gate):
        self.folder, self.rank, path = folder, site.rank, os.path.join(folder, "manifest.json")
        self.make = f"--ep {site.ranks} --mode {site.mode} --cache {folder}"
        text = read(path, self.make)
        self.checksum = f"crc32:{zlib.crc32(text):08x}"
        try:
            m = json.loads(text)
            if (m["kind"], m["schema_version"]) != ("moebalance logits", SCHEMA):
                raise ValueError(f"{m['kind']!r} of version {m['schema_version']}")
            self.experts, self.top_k, self.ranks, self.mode = (m[key] for key in ("experts", "top_k", "ranks", "mode"))
            self.groups, self.keep = max(1, m["groups"]), m["top_k_groups"]
            self.model, self.method = m["model"], m["method"]
            self.high, self.low = float(m["high"]), float(m["low"])
        except (ValueError, KeyError, TypeError) as e:
            wrong(path, f"the manifest of a cache of version {SCHEMA}", f"another one: {e!r}")
        self.expect(path, site, experts, gate)

    def __str__(self) -> str:
        groups = f" in {self.keep} of {self.groups} groups" if self.groups > 1 else ""
        gate = f"{self.experts} experts, top-{self.top_k}{groups}, {self.method}"
        return f"{self.model}: {gate}, {self.ranks} ranks, {self.mode}"

    def expect(self, path: str, site: Site, experts: int, gate: Gate) -> None:
        """Refuses a cache that is not of the model's shape and routing method, as far as the engine says."""
        fits = (
            (self.experts, self.ranks) == (experts, site.ranks)
            and gate.top_k in (None, self.top_k)
            and (gate.groups is None or max(1, gate.groups) == self.groups)
            and (gate.groups is None or self.groups == 1 or gate.top_k_groups in (None, self.keep))
            and gate.scoring in (None, SCORING.get(self.method, gate.scoring))
            and (gate.bias is None or self.method in BIASED)
            and (site.ranks == 1 or self.mode == site.mode)
        )
        if not fits:
            groups = f" in {gate.top_k_groups} of {gate.groups} groups" if gate.groups and gate.groups > 1 else ""
            scores = f"{gate.scoring or 'any'} scores{' with a bias' if gate.bias is not None else ''}"
            want = f"{experts} experts, top-{gate.top_k}{groups}, {scores}, {site.ranks} ranks, {site.mode}"
            wrong(path, f"{want} ('moebalance logits generate {self.make}')", str(self))

    def entry(self, router: str) -> Entry:
        """The rows of a router."""
        kind, _, value = router.partition(":")
        try:
            if router == "perfect":
                name, make = "diagonal", ""
            elif kind == "target":
                name, make = f"target-{float(value):.15g}", f" --plan target:{value}"
            elif kind == "recorded":
                name = f"recorded-{zlib.crc32(pathlib.Path(value).read_bytes()):08x}"
                make = f" --plan recorded:{value}"
            else:
                raise ValueError
        except ValueError:
            refuse(f"unknown router {router!r}: want perfect, off, target:MAX_OVER_MEAN or recorded:FILE")
        path = os.path.join(self.folder, f"{name}-rank{self.rank}-any.safetensors")
        return Entry(self, path, self.make + make)
