"""What routes in place of the learned logits: a table for each layer, which keeps its memory while routers change."""

import dataclasses
import re
from collections.abc import Callable

import torch

from .common import Gate, Site, capturing, persistent, refuse, variable
from .entry import Cache, Entry

MOST_LAYERS = 512
Chooser = Callable[[torch.Tensor], torch.Tensor | None]  # the engine's own choice by given logits, if it can be seen


@dataclasses.dataclass
class Layer:
    name: str
    index: int
    slot: int
    bias: torch.Tensor | None
    hidden: str = ""  # what hides its choices, and what shows them
    captured: bool = False
    proved: bool = False
    learned_bias: torch.Tensor | None = None  # where it is set to zero in other arms than the learned one
    # By type: DeepSeek-V3's gate in vLLM has float32, in large batches bfloat16.
    tables: dict[torch.dtype, torch.Tensor] = dataclasses.field(default_factory=dict)


class Tables:
    def __init__(self, spec: str, switched: bool):
        self.spec, self.switched = spec, switched  # the router that is on; whether the learned one can be as well
        self.layers: dict[str, Layer] = {}
        self.cache: Cache = None  # type: ignore # until the first layer, and where none routes
        self.entry: Entry = None  # type: ignore # likewise: of the router that is on, or comes
        self.flag: torch.Tensor | None = None  # where switched, on the GPU: tables rather than the learned logits
        self.experts, self.bias = 0, set[str]()

    @property
    def routes(self) -> bool:
        """Whether this launch may replace logits."""
        return self.spec != "off" or self.switched

    def add(self, name: str, site: Site, learned: torch.Tensor, gate: Gate, choose: Chooser | str) -> Layer:
        """The state of a layer at its first call, which must be eager. In the place of the engine's choice a text says
        what hides it."""
        experts, number = learned.shape[-1], re.search(r"\.(\d+)\.", name + ".")
        if self.experts not in (0, experts):
            refuse(f"layer {name} has {experts} experts, others {self.experts}")
        if capturing():
            refuse(f"layer {name} is first called in a CUDA graph: want a batch without graphs before")
        if len(self.layers) >= MOST_LAYERS:
            refuse(f"want at most {MOST_LAYERS} layers")
        self.experts = experts
        if self.cache is None and self.routes:
            if self.switched and self.spec == "perfect":
                refuse("MOEBALANCE_CONTROL changes the router: want ENABLE_PERFECT_ROUTER unset")
            self.cache = Cache(variable("CACHE"), site, experts, gate)
            self.entry = self.cache.entry("perfect" if self.spec == "off" else self.spec)
        elif self.cache:
            self.cache.expect(f"layer {name} routes otherwise than others: {self.cache.folder}", site, experts, gate)
        index, taken = int(number[1]) if number else len(self.layers), {layer.index for layer in self.layers.values()}
        layer = Layer(name, max(taken) + 1 if index in taken else index, len(self.layers), gate.bias)
        self.bias.add(self.judge(layer))
        if isinstance(choose, str):
            layer.hidden = choose
        elif self.entry:
            layer.proved = self.prove_choice(layer, learned, choose)
        self.set_bias(layer)
        self.layers[name] = layer
        return layer

    def judge(self, layer: Layer) -> str:
        """What becomes of a correction bias: read once."""
        if layer.bias is None:
            return "none"
        if variable("BIAS") == "zero":
            layer.learned_bias = layer.bias.detach().clone()
            layer.bias.data.zero_()
            return "zeroed"
        if self.cache is None:
            return "learned"
        self.tolerate(layer, self.entry)
        return "tolerated"

    def tolerate(self, layer: Layer, entry: Entry) -> None:
        """Refuses a bias that outweighs the logits."""
        if layer.bias is None or layer.learned_bias is not None:
            return
        values = layer.bias.detach().float()
        spread = float(values.max() - values.min())
        if spread and not spread < entry.tolerates:
            refuse(
                f"layer {layer.name}: the correction bias spreads over {spread:g}, the logits tolerate less than "
                f"{entry.tolerates:g}: set MOEBALANCE_BIAS=zero in both arms"
            )

    def set_bias(self, layer: Layer) -> None:
        if layer.bias is not None and layer.learned_bias is not None and self.switched:
            layer.bias.data.copy_(layer.learned_bias if self.spec == "off" else torch.zeros_like(layer.learned_bias))

    def prove_choice(self, layer: Layer, learned: torch.Tensor, choose: Chooser) -> bool:
        """Given the entry's logits, the engine's own router must choose its experts. False: that is unseen."""
        cache, path, tokens = self.cache, self.entry.path, learned.numel() // self.experts
        want = self.entry.of_layer(layer.index, tokens)
        balanced = torch.full((tokens, self.experts), cache.low, dtype=learned.dtype, device=learned.device)
        chosen = choose(balanced.scatter_(1, want.to(learned.device), cache.high).view(learned.shape))
        if chosen is None:
            layer.hidden = "its experts' kernel chooses them"
            return False
        got = chosen.reshape(tokens, -1).long().cpu()
        if got.shape[1] != cache.top_k:
            refuse(f"layer {layer.name}: the engine chooses {got.shape[1]} experts a token, {path} {cache.top_k}")
        seen = (got >= 0).all(-1)  # -1 is padding
        wrong = (got.sort(-1).values != want.sort(-1).values).any(-1) & seen
        if wrong.any():
            row = int(wrong.nonzero()[0, 0])
            refuse(
                f"layer {layer.name}: its router is not that of {path} ({cache.method}): of {int(seen.sum())} "
                f"tokens {int(wrong.sum())} go to other experts than the entry's, token {row} to "
                f"{got[row].tolist()} in the place of {want[row].tolist()}"
            )
        return bool(seen.any())

    def logits(self, layer: Layer, learned: torch.Tensor) -> torch.Tensor:
        """What routes: a view of the layer's table, the learned logits, or where switched one of them by the flag."""
        if not self.routes:
            return learned
        tokens, captured, table = learned.numel() // self.experts, capturing(), layer.tables.get(learned.dtype)
        if table is None or tokens > len(table):
            if captured or layer.captured and table is not None:
                refuse(
                    f"layer {layer.name}: {tokens} tokens, more than before CUDA graphs were captured: set "
                    "MOEBALANCE_TOKENS to the engine's largest batch (vLLM: max_num_batched_tokens)"
                )
            rows = max(tokens, int(variable("TOKENS", "0")), *map(len, layer.tables.values()))
            table = persistent(torch.empty, rows, self.experts, like=learned, dtype=learned.dtype)
            layer.tables[learned.dtype] = table
            self.fill(layer, table)
            if self.switched and self.flag is None:
                self.flag = persistent(torch.full, (1,), self.spec != "off", like=learned)
        layer.captured = layer.captured or captured
        view = table[:tokens].view(learned.shape)
        return torch.where(self.flag, view, learned) if self.switched else view

    def fill(self, layer: Layer, table: torch.Tensor) -> None:
        """Repeats the rows of the router that is on."""
        rows = self.entry.of_layer(layer.index, len(table)).to(table.device)
        table.fill_(self.cache.low).scatter_(1, rows, self.cache.high)

    def set_router(self, spec: str) -> None:
        """Another router in the same tables, also for CUDA graphs already captured. One refused changes nothing."""
        if spec == self.spec:
            return
        if not self.switched and "off" in (spec, self.spec):
            refuse(f"cannot change from {self.spec} to {spec} within a launch: start it with MOEBALANCE_CONTROL")
        if self.cache and spec != "off":
            entry = self.cache.entry(spec)
            for layer in self.layers.values():
                self.tolerate(layer, entry)
            self.entry = entry
        self.spec = spec
        for layer in self.layers.values():
            for table in layer.tables.values() if spec != "off" else ():
                self.fill(layer, table)
            self.set_bias(layer)
        if self.flag is not None:
            self.flag.fill_(spec != "off")
