"""moebalance's routers in PyTorch engines: vLLM and SGLang by themselves, transformers by one call.

Inert unless MOEBALANCE_CACHE names a folder that 'moebalance logits generate' filled. The learned gate is computed as
always; its logits are then replaced by a view of a persistent table, which adds no kernel and no synchronization, and
which CUDA graphs capture. Whatever the engine's release, each layer's own router is given the balanced logits once and
must choose the entry's experts; what is not as expected is refused by name.

    MOEBALANCE_CACHE=DIR        the cache: for every rank an entry of each router, for any number of tokens
    ENABLE_PERFECT_ROUTER=1     balanced logits; without it MOEBALANCE_ROUTER decides
    MOEBALANCE_ROUTER=SPEC      off (the learned logits, the default), target:1.5 (the cache's entry of generate
                                --plan target:1.5: rank max/mean 1.5), or recorded:FILE (of --plan recorded:FILE)
    MOEBALANCE_CONTROL=DIR      a fresh folder, through which a driver changes the router within the launch: control.py
    MOEBALANCE_COUNTS=DIR       record slots per step, layer and expert, for 'moebalance counts' and 'bench --counts'
    MOEBALANCE_PROOF=DIR        one JSON file per rank that says what was done (default: MOEBALANCE_COUNTS)
    MOEBALANCE_BIAS=zero        set correction biases to zero, in whatever arm but a learned one of MOEBALANCE_CONTROL
    MOEBALANCE_PLACEMENT=FILE   with vLLM's --enable-eplb: move the experts before the first step as 'moebalance place
                                --write-vllm' wrote, or keep (balanced logits: keep, and no redundant experts), and
                                leave them there. Counts are then by physical expert
    MOEBALANCE_TOKENS=N         the engine's largest batch, where CUDA graphs are captured before it is seen
    MOEBALANCE_STEPS=2048       most steps to record

vLLM and SGLang find their entry points by themselves with this folder in PYTHONPATH. In a transformers driver, after
the model is made:

    import moebalance_hook; moebalance_hook.transformers(model)

A step is a call of the model. Where a graph of the driver's own replays it, the driver says so:

    with moebalance_hook.step(tokens): graph.replay()
"""

import sys
from typing import Any

from .common import refuse, variable
from .hook import HOOK

__all__ = ["HOOK", "WorkerExtension", "set_router", "sglang", "step", "transformers", "vllm"]
step = HOOK.running


def vllm() -> None:
    """The entry point, which vLLM calls in every process before it builds the model."""
    if variable("CACHE"):
        from .for_vllm import install

        install()


def sglang() -> None:
    """The entry point, which SGLang calls in every process. It would log an exception and go on without the hook."""
    try:
        if variable("CACHE"):
            from .for_sglang import install

            install()
    except Exception as e:
        sys.exit(str(e))


def transformers(model: Any, rank: int | None = None, ranks: int | None = None, mode: str = "tep") -> Any:
    """Hooks every router of a transformers model. Rank and ranks come from torch.distributed; its own
    expert parallelism is tep."""
    if variable("CACHE"):
        from .for_transformers import install

        install(model, rank, ranks, mode)
    return model


def set_router(spec: str) -> None:
    """perfect, target:1.2, recorded:FILE from the next step on, and off with MOEBALANCE_CONTROL; a launch without that
    begins with MOEBALANCE_ROUTER set."""
    HOOK.set_router(spec)


class WorkerExtension:
    """LLM(..., worker_extension_cls="moebalance_hook.WorkerExtension")
    llm.collective_rpc("moebalance_router", args=("perfect",))"""

    model_runner: Any  # of the worker that this extends

    def moebalance_router(self, spec: str) -> None:
        HOOK.set_router(spec)

    def moebalance_placement(self, path: str) -> None:
        from .for_vllm import place

        if HOOK.site is None:
            refuse("no layer has run yet")
        place(HOOK.site.engine_version, self.model_runner.eplb_state, path)

    def moebalance_counts(self) -> dict:
        return HOOK.totals()
