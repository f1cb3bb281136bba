"""transformers: each MoE block has a router, class ...TopKRouter, with logits by F.linear and a choice by topk."""

import contextlib
import re
from collections.abc import Callable
from typing import Any

import torch

from .common import Gate, Site, capturing, named, place_in_world, refuse, variable
from .hook import HOOK


class ReplaceLinear(torch.overrides.TorchFunctionMode):
    """Replaces what F.linear with the router's weight returns, once it has run, and keeps what the last top-k chose:
    behind it transformers' expert parallelism renumbers the experts by rank."""

    def __init__(self, experts: int, replace: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.experts, self.replace, self.chosen = experts, replace, None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func in (torch.topk, torch.Tensor.topk):
            self.chosen = out.indices
        if func is torch.nn.functional.linear and self.replace and out.shape[-1] == self.experts:
            replace, self.replace = self.replace, None
            return replace(out)
        return out


def install(model: Any, rank: int | None, ranks: int | None, mode: str) -> None:
    import transformers as engine

    here, world = place_in_world()
    version = "transformers " + engine.__version__
    site = Site("transformers", engine.__version__, here if rank is None else rank, ranks or world, mode, True)
    spread = getattr(getattr(model, "config", None), "distributed_config", None)
    if rank is None and (getattr(spread, "ep_size", None) or 1) > max(1, getattr(spread, "tp_size", None) or 1):
        refuse(f"{version}: expert-parallel ranks with tokens of their own: want rank, ranks and mode='dep'")
    routers = {name: m for name, m in model.named_modules() if re.search(r"(Top[kK]|Llama4)Router$", type(m).__name__)}
    if not routers:
        refuse(f"{version}: no module of {type(model).__name__} is a ...TopKRouter")
    for name, block in model.named_modules() if HOOK.tables.routes else ():
        if hasattr(block, "experts") and not any(router.startswith(name + ".") for router in routers):
            kinds = sorted({type(m).__name__ for m in block.children()} - {type(block.experts).__name__})
            refuse(
                f"{version}: layer {name} ({', '.join(kinds)}) has no ...TopKRouter: a hash layer, or another "
                "kind of router, whose logits are out of reach"
            )
    for name, router in routers.items():
        router.forward = routed(site, name, router)

    @torch.compiler.disable
    def begin(_: Any, args: tuple, given: dict[str, Any]) -> None:
        if not capturing():
            HOOK.step(tokens_of(args, given))

    @torch.compiler.disable
    def end(*_: Any) -> None:
        if not capturing():
            HOOK.finish()
            missed = [name for name in routers if name not in HOOK.layers]
            if HOOK.tables.routes and missed:
                refuse(f"{version}: router {missed[0]} was not called in a step: hook the part of the model that runs")

    model.register_forward_pre_hook(begin, with_kwargs=True)
    model.register_forward_hook(end)


def tokens_of(args: tuple, given: dict[str, Any]) -> int:
    """As many as there are numbers, or embedded ones."""
    ids, embedded = args[0] if args else given.get("input_ids"), given.get("inputs_embeds")
    return ids.numel() if isinstance(ids, torch.Tensor) else embedded[..., 0].numel() if embedded is not None else 0


def routed(site: Site, name: str, router: torch.nn.Module) -> Callable:
    inner, kind, counts = router.forward, f"router {name} ({type(router).__name__})", bool(variable("COUNTS"))
    experts, keys = len(router.get_parameter("weight")), ("top_k", "num_group", "topk_group", "e_score_correction_bias")
    top_k, groups, keep, bias = (getattr(router, key, None) for key in keys)
    gate = Gate(top_k, groups, keep, bias=bias)

    @torch.compiler.disable
    def forward(*args, **given):
        def by(replace: Callable[[torch.Tensor], torch.Tensor]) -> tuple[Any, torch.Tensor | None]:
            with ReplaceLinear(experts, replace) as swap:
                out = inner(*args, **given)
            if swap.replace:
                refuse(f"{kind} computes its logits without F.linear")
            return out, swap.chosen

        def replace(learned: torch.Tensor) -> torch.Tensor:
            return HOOK.logits(HOOK.layer(name, site, learned, gate, lambda logits: by(lambda _: logits)[1]), learned)

        layer = HOOK.layers.get(name)
        with named(f"moebalance layer={layer.index} router") if layer else contextlib.nullcontext():
            if layer and not (HOOK.tables.routes or counts):
                return inner(*args, **given)
            out, chosen = by(replace)
        if counts:
            if chosen is None:
                refuse(f"{kind} chooses without topk: its experts cannot be counted")
            HOOK.recorder.seen(HOOK.layers[name].slot, chosen)
        return out

    return forward
