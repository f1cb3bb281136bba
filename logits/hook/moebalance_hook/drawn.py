"""Skewed routing: rows of top_k distinct experts by Gumbel noise on the log of a popularity, within the groups."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import torch

from .common import Site, refuse, variable
from .entry import Entry

ROWS = 2048


class Drawn:
    def __init__(self, spec: str, entry: Entry, site: Site):
        self.entry = entry
        self.base: Any = None  # one set of rows for all layers, or
        self.counts: Any = None  # those of each layer
        self.seed = int(variable("SEED", "0")) * 1000003 + (site.rank if site.mode == "dep" else 0) * 7919
        kind, _, value = spec.partition(":")
        if kind == "recorded" and value:
            with open(value) as f:
                counts = torch.tensor(json.load(f)["logical_count"], dtype=torch.float64)
            self.counts = counts.reshape(-1, *counts.shape[-2:]).sum(0)  # over steps, where there are any
            if self.counts.shape[-1] != entry.experts:
                refuse(f"{value}: want counts of {entry.experts} experts, have {self.counts.shape[-1]}")
        elif kind == "file" and value:
            from safetensors import safe_open

            with safe_open(value, framework="pt") as f:
                self.base = f.get_tensor("logits")
            if self.base.shape[-1] != entry.experts or not len(self.base):
                refuse(f"{value}: want logits of {entry.experts} experts, have {list(self.base.shape)}")
        elif kind == "target" and value:
            self.base = self.aim(float(value))
        else:
            refuse(f"unknown router {spec!r}: want perfect, off, target:MAX_OVER_MEAN, recorded:FILE or file:FILE")

    def chooser(self, seed: int) -> Callable[[torch.Tensor], torch.Tensor]:
        e, n = self.entry, ROWS
        uniform = torch.rand(n, e.experts, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        noise = -torch.log(-torch.log(uniform.clamp(1e-12, 1 - 1e-12)))

        def choose(popularity: torch.Tensor) -> torch.Tensor:
            score = popularity + noise
            if e.groups > 1:
                grouped = score.view(n, e.groups, -1)
                best = grouped.topk(min(2, grouped.shape[2])).values.sum(-1).topk(e.keep).indices
                closed = torch.full((n, e.groups), -torch.inf, dtype=score.dtype).scatter_(1, best, 0.0)
                score = (grouped + closed.unsqueeze(-1)).flatten(1)
            return score.topk(e.top_k).indices

        return choose

    def aim(self, target: float) -> torch.Tensor:
        """Rows whose rank max/mean is the target: bisects the advantage of rank 0's experts."""
        e, choose = self.entry, self.chooser(self.seed + 1)
        noise = torch.randn(e.experts, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        shape = (e.owner == 0).double() + 0.3 * noise

        def reached(s: float) -> float:
            load = e.rank_load(choose(s * shape))
            return float(load.max() / load.mean())

        low, high = 0.0, 40.0
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if reached(middle) < target else (low, middle)
        if abs(reached(low) - target) > 0.02:
            refuse(
                f"target:{target}: want a rank max/mean from {reached(0.0):.2f} to {reached(40.0):.2f} "
                f"for {e.ranks} ranks"
            )
        return choose(low * shape)

    def follow(self, counts: torch.Tensor, seed: int) -> torch.Tensor:
        """Rows in which each expert comes as often as counted."""
        e, choose = self.entry, self.chooser(seed)
        want = (counts * e.top_k / counts.sum()).clamp(max=0.999)
        popularity, best, least = torch.log(want + 1e-6), None, torch.inf
        for _ in range(20):
            ids = choose(popularity)
            got = torch.bincount(ids.flatten(), minlength=e.experts) / ROWS
            off = float((got - want).abs().max())
            if off >= least:
                break
            best, least = ids, off
            popularity += 0.7 * torch.log((want + 1 / ROWS) / (got + 1 / ROWS))
        return best

    def rows(self, layer: int) -> torch.Tensor:
        """What a layer's table repeats: the experts of each row, or whole logits."""
        if self.base is not None:
            return self.base if self.base.is_floating_point() else self.level(self.shuffled(layer)[self.base])
        lap, row = divmod(layer, len(self.counts))  # more layers than recorded: again, permuted
        counts = self.counts[row]
        return self.level(self.follow(counts[self.shuffled(lap)] if lap else counts, self.seed + 2 + layer))

    def shuffled(self, layer: int) -> torch.Tensor:
        """A permutation of the experts that keeps ranks and groups together, another one for each layer."""
        e, generator = self.entry, torch.Generator().manual_seed(int(variable("SEED", "0")) + 31 * layer)
        sizes = [e.experts]
        for size in sorted({e.experts // e.groups, e.experts // e.ranks}, reverse=True) + [1]:
            if sizes[-1] % size == 0 and (size != e.experts // e.ranks or e.meta["layout"] == "contiguous"):
                sizes.append(size)
        order = torch.arange(e.experts)
        for outer, inner in itertools.pairwise(sizes):
            blocks = order.view(-1, outer // inner, inner)
            order = torch.stack([b[torch.randperm(len(b), generator=generator)] for b in blocks]).flatten()
        return order

    def level(self, ids: torch.Tensor, first: int = 256) -> torch.Tensor:
        """The same rows, the first ones ordered so that small batches have the ranks' shares as well."""
        e = self.entry
        one = torch.ones_like(ids, dtype=torch.float64)
        load = torch.zeros(len(ids), e.ranks, dtype=torch.float64).scatter_add_(1, e.owner[ids], one)
        share, order = load.mean(0), []
        total, square = torch.zeros(e.ranks, dtype=torch.float64), (load**2).sum(1)
        for t in range(first):  # the row that brings the total nearest to the share
            i = int((square + 2 * load @ (total - (t + 1) * share)).argmin())
            order.append(i)
            square[i] = torch.inf
            total = total + load[i]
        rest = torch.ones(len(ids), dtype=torch.bool)
        rest[order] = False
        return torch.cat([ids[order], ids[rest]])
