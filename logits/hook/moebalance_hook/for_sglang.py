"""SGLang: every MoE layer has a TopK, which its model calls, by forward or by a device's method of it."""

import inspect
import os
from collections.abc import Callable
from typing import Any

import torch

from .common import HASH, Gate, Site, expect, named, refuse, refuse_first, variable, wait_for_files
from .hook import HOOK, Layer

HIDDEN = "the experts' kernel chooses them, unseen; SGLang shows them with --moe-runner-backend triton"


def install() -> None:
    from sglang import __version__ as version
    from sglang.srt.entrypoints.engine import Engine
    from sglang.srt.layers.moe.topk import TopK
    from sglang.srt.model_executor.model_runner import ModelRunner

    for owner, method, *parameters in (
        (TopK, "forward_cuda", "hidden_states", "router_logits"),
        (TopK, "forward_native", "hidden_states", "router_logits"),
        (ModelRunner, "forward", "forward_batch"),
        (Engine, "shutdown"),
    ):
        expect("SGLang " + version, owner, method, *parameters)
    for name in [n for n in dir(TopK) if n.startswith("forward")]:
        signature = inspect.signature(getattr(TopK, name))
        if list(signature.parameters)[1:3] == ["hidden_states", "router_logits"]:
            setattr(TopK, name, routed(getattr(TopK, name), version))
    run, shutdown = ModelRunner.forward, Engine.shutdown

    def step(self, forward_batch, *args, **given):
        tokens = len(forward_batch.input_ids)
        with HOOK.running(tokens):
            out = run(self, forward_batch, *args, **given)
        if tokens and HOOK.tables.routes and not hasattr(self, "moebalance_hook"):
            self.moebalance_hook = version
            reached(self.model, version)
        return out

    def close(self):  # SGLang kills its workers, which write when they are idle
        HOOK.write()
        wait_for_files(30)
        return shutdown(self)

    ModelRunner.forward, Engine.shutdown = step, close


def routed(inner: Callable, version: str) -> Callable:
    def forward(self, hidden_states, router_logits, *args, **given):
        idle = router_logits is not None and not len(router_logits)
        if idle or getattr(self, "moebalance_inside", False):  # one device's method calls another's
            return inner(self, hidden_states, router_logits, *args, **given)
        if (
            HOOK.tables.routes and given.get("dynamic_expert_bias") is not None
        ):  # in batches with images, where text has none
            refuse(f"SGLang {version}: want no correction bias of each token, which moves balanced logits: text alone")
        self.moebalance_inside = True
        try:
            layer = getattr(self, "moebalance_layer", None)
            if layer is None:

                def choose(logits: torch.Tensor) -> torch.Tensor | None:
                    return getattr(inner(self, hidden_states, logits, *args, **given), "topk_ids", None)

                layer = self.moebalance_layer = make_layer(self, version, router_logits, given, choose)
                if layer.hidden:
                    layer.hidden = HIDDEN
            with named(f"moebalance layer={layer.index} router"):
                out = inner(self, hidden_states, HOOK.logits(layer, router_logits), *args, **given)
            if variable("COUNTS") and hasattr(out, "topk_ids"):  # not where the experts' kernel chooses, unseen
                HOOK.recorder.seen(layer.slot, out.topk_ids)
            return out
        finally:
            self.moebalance_inside = False

    return forward


def reached(model: torch.nn.Module, version: str) -> None:
    """Whether all routers have come by, after a step with tokens: some kernels choose the experts past TopK."""
    if not HOOK.layers:
        refuse(f"SGLang {version}: no layer of {type(model).__name__} chooses its experts by TopK")
    for name, m in model.named_modules():
        kind = type(m).__name__
        if kind == "HashTopK":
            refuse(f"SGLang {version}: {name} is a hash layer: {HASH}")
        if kind == "TopK" and not hasattr(m, "moebalance_layer"):
            refuse(f"SGLang {version}: {name} does not choose the experts: want a backend or model that calls it")


def make_layer(topk: Any, version: str, learned: torch.Tensor, given: dict[str, Any], choose: Callable) -> Layer:
    from sglang.srt.layers.moe import utils
    from sglang.srt.runtime_context import get_parallel, get_server_args

    p, args, config = get_parallel(), get_server_args(), topk.topk_config
    try:  # since 0.5.23 the arguments as given and as resolved differ
        from sglang.srt.arg_groups.model_override_base import resolving_view

        args = resolving_view(args)
    except ImportError:
        pass
    shared = getattr(config, "num_fused_shared_experts", None)
    shared = getattr(config, "num_shared_topk_slots", 0) if shared is None else shared
    moved = args.enable_eplb or args.ep_num_redundant_experts or args.init_expert_location != "trivial"
    compiled = args.enable_torch_compile or args.cuda_graph_config.prefill.backend == "tc_piecewise"
    bias, replicas = config.correction_bias, p.moe_dp_size > 1 or args.dp_size > 1 and not args.enable_dp_attention
    refuse_first(
        f"SGLang {version}: want",
        (learned is None or given.get("router_logits_partials") is not None, "a layer whose router has logits"),
        (args.speculative_algorithm or getattr(topk, "is_draft", False), "no speculative decoding"),
        (shared, "--disable-shared-experts-fusion"),
        (moved, "no EPLB and no expert location"),
        (p.pp_size > 1, "no pipeline parallelism"),
        (p.attn_cp_size > 1, "no attention context parallelism"),
        (compiled, "no --enable-torch-compile, and --cuda-graph-backend-prefill breakable"),
        (replicas, "one replica, or --enable-dp-attention"),
        (
            HOOK.control and variable("BIAS") and bias is not None and bias.dtype != learned.dtype,
            "no MOEBALANCE_BIAS with MOEBALANCE_CONTROL: the engine keeps a copy of the bias",
        ),
    )
    # Graphs of decode are captured before a prefill is seen. Without an all-to-all backend each rank routes all tokens.
    most = args.dp_size * max(args.chunked_prefill_size, 0) or args.max_prefill_tokens
    os.environ.setdefault("MOEBALANCE_TOKENS", str(most))
    own = not utils.get_moe_a2a_backend().is_none() or utils.should_use_flashinfer_cutlass_moe_fp4_allgather()
    own = own and p.moe_ep_size > 1
    site = Site("sglang", version, p.moe_ep_rank, p.moe_ep_size, "dep" if own else "tep", p.moe_tp_rank == 0)
    name = f"layers.{len(HOOK.layers) if topk.layer_id is None else topk.layer_id}"
    groups = (config.num_expert_group, config.topk_group) if getattr(config, "use_grouped_topk", False) else (0, 0)
    gate = Gate(config.top_k, groups[0], groups[1], bias=bias)
    return HOOK.layer(name, site, learned, gate, choose)
