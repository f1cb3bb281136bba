"""vLLM: MoERunner hands the router's logits to its experts, in an operator that torch.compile does not look into."""

import inspect
import json
import os
from collections.abc import Callable
from typing import Any

import torch

from .common import HASH, Gate, Site, expect, named, refuse, refuse_first, variable
from .hook import HOOK, Chooser, Layer

HIDDEN = "{}'s kernel chooses the experts, unseen; vLLM shows them with --moe-backend marlin (MXFP4) or triton"


def install() -> None:
    from vllm import __version__ as version
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
    from vllm.v1.worker.worker_base import WorkerBase, WorkerWrapperBase

    if hasattr(MoERunner, "moebalance_hook"):
        return
    expect("vLLM " + version, MoERunner, "_apply_quant_method", "hidden_states", "router_logits")
    expect("vLLM " + version, WorkerBase, "compile_or_warm_up_model")
    MoERunner.moebalance_hook, inner = version, MoERunner._apply_quant_method  # type: ignore[attr-defined]
    signature = inspect.signature(inner)
    os.environ.setdefault("VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS", "30")  # time to write the counts

    def apply(self, *args, **given):
        if torch.compiler.is_compiling():
            refuse("vLLM compiles its MoE layers into the model where there is no GPU: want --enforce-eager")
        if args:
            given = signature.bind(self, *args, **given).arguments
            del given["self"]
        learned = given["router_logits"]
        if learned is None:
            refuse(f"layer {self.layer_name} has no logits: its router is in its experts' kernel")
        layer = HOOK.layers.get(self.layer_name) or make_layer(self, version, given)
        with named(f"moebalance layer={layer.index}"):
            return inner(self, **{**given, "router_logits": HOOK.logits(layer, learned)})

    def warm_up(self, *args, **given):
        out = self.worker.compile_or_warm_up_model(*args, **given)
        if not hasattr(type(self.worker), "moebalance_hook"):
            begin(self.worker, version)
        return out

    MoERunner._apply_quant_method, WorkerWrapperBase.compile_or_warm_up_model = apply, warm_up  # type: ignore


def make_layer(runner: Any, version: str, call: dict[str, Any]) -> Layer:
    c, name, router, routes = runner.moe_config, runner.layer_name, runner.router, HOOK.tables.routes
    eplb = getattr(getattr(c, "moe_parallel_config", None), "enable_eplb", False)
    bias = getattr(router, "e_score_correction_bias", None)
    # A monolithic kernel chooses the experts itself, unseen: it has no counts, and no measured proof.
    kernel = getattr(getattr(runner, "routed_experts", None), "quant_method", None)
    monolithic = getattr(kernel, "is_monolithic", False)
    parallel = f"data parallel {c.dp_size} and expert parallel {c.ep_size}: want all data parallel (dep), or none (tep)"
    simulated = "its own simulation routes: want VLLM_MOE_ROUTING_SIMULATION_STRATEGY unset"
    refuse_first(
        f"vLLM {version}:",
        (c.dp_size > 1 and c.ep_size not in (1, c.dp_size), parallel),
        (getattr(c, "pcp_size", 1) > 1, "prefill context parallelism: want tensor or data parallel"),
        (getattr(c, "is_sequence_parallel", False), "sequence-parallel MoE: want tensor or data parallel"),
        (routes and os.environ.get("VLLM_MOE_ROUTING_SIMULATION_STRATEGY"), simulated),
        (eplb and not variable("PLACEMENT"), "EPLB moves experts: want it off, or MOEBALANCE_PLACEMENT"),
        (routes and getattr(router, "_hash_indices_table", None) is not None, f"layer {name} is a hash layer: {HASH}"),
        (routes and hasattr(router, "zero_expert_type"), f"layer {name} has zero experts, which no logits balance"),
        (
            monolithic and bias is not None and variable("BIAS"),
            f"layer {name} routes in its experts' kernel, which may keep a copy of the bias: want no MOEBALANCE_BIAS",
        ),
    )
    if eplb:
        HOOK.recorder.slots = c.num_experts
    # Quantization methods of the old interface gather the tokens of all ranks before they are routed.
    own = c.dp_size > 1 and c.ep_size > 1 and not getattr(runner, "do_naive_dispatch_combine", False)
    many = c.ep_size > 1
    site = Site("vllm", version, c.ep_rank if many else 0, c.ep_size, "dep" if own else "tep", many or c.tp_rank == 0)
    if not monolithic:
        expect("vLLM " + version, type(router), "select_experts", "hidden_states", "router_logits")
    groups = getattr(router, "num_expert_group", None) if getattr(router, "use_grouped_topk", True) else 0
    scoring = getattr(router, "scoring_func", None)
    gate = Gate(c.experts_per_token, groups, getattr(router, "topk_group", None), scoring, bias)
    choose = HIDDEN.format(type(kernel).__name__) if monolithic else chooser(router, call, eplb)
    layer = HOOK.layer(name, site, call["router_logits"], gate, choose)
    if variable("COUNTS") and not monolithic:
        select = router.select_experts

        def counted(*args, **given):
            chosen = select(*args, **given)
            HOOK.recorder.seen(layer.slot, chosen[1])
            return chosen

        router.select_experts = counted
    return layer


def chooser(router: Any, call: dict[str, Any], eplb: bool) -> Chooser:
    """What the layer's router chooses by given logits: logical experts, also where EPLB numbers them otherwise."""
    hidden, tokens = call["hidden_states"], {k: v for k, v in call.items() if k == "input_ids" and v is not None}
    if eplb and hasattr(router, "_compute_routing"):
        return lambda logits: router._compute_routing(hidden, logits, None, **tokens)[1]
    return lambda logits: router.select_experts(hidden_states=hidden, router_logits=logits, **tokens)[1]


def begin(worker: Any, version: str) -> None:
    """After the engine's warm-up: steps are named and counted. Without a GPU no layer may have run yet."""
    kind, drafts = type(worker), worker.vllm_config.speculative_config
    stages, method = worker.parallel_config.pipeline_parallel_size, getattr(drafts, "method", None)
    refuse_first(
        f"vLLM {version}:",
        (stages > 1, "pipeline stages have the same expert-parallel ranks: want pipeline_parallel_size 1"),
        (drafts is not None, f"speculative decoding ({method}) routes drafts in the same steps: want none"),
    )
    if HOOK.layers:
        reached(worker, version)
    for method, parameters in (("execute_model", ["scheduler_output"]), ("execute_dummy_batch", []), ("shutdown", [])):
        expect("vLLM " + version, kind, method, *parameters)
    shutdown = kind.shutdown

    def stepped(inner: Callable, tokens: Callable) -> Callable:  # a dummy batch is another data-parallel rank's step
        def run(self, *args, **given):
            scheduled = tokens(*args, **given)
            if scheduled == 0 and self.parallel_config.distributed_executor_backend != "external_launcher":
                return inner(self, *args, **given)  # of ended requests; a dummy batch follows where others compute
            if not HOOK.placement and variable("PLACEMENT"):
                place(version, getattr(self.model_runner, "eplb_state", None), variable("PLACEMENT"))
            with HOOK.running(scheduled or 0):
                out = inner(self, *args, **given)
            if HOOK.steps.begun == 1:
                reached(self, version)
            return out

        return run

    def close(self, *args, **given):
        HOOK.write()
        return shutdown(self, *args, **given)

    def scheduled(scheduler_output: Any, *_: Any, **__: Any) -> int:
        return scheduler_output.total_num_scheduled_tokens

    kind.moebalance_hook, kind.execute_model = version, stepped(kind.execute_model, scheduled)
    kind.execute_dummy_batch, kind.shutdown = stepped(kind.execute_dummy_batch, lambda *_, **__: None), close


def reached(worker: Any, version: str) -> None:
    """Whether all MoE layers have come by: some kernels route and run the experts in one, past MoERunner."""
    held = worker.vllm_config.compilation_config.static_forward_context
    kinds = {name: type(m).__name__ for name, m in held.items() if name not in HOOK.layers}
    missed = [f"{name} ({kind})" for name, kind in kinds.items() if "MoE" in kind]
    if HOOK.tables.routes and (missed or not HOOK.layers):
        refuse(f"vLLM {version}: {(missed or ['every layer'])[0]} routes past MoERunner: no logits reach it")


class Placed:
    """An EPLB policy that knows one placement: slots [layers, physical experts] is the logical expert of each."""

    def __init__(self, slots: torch.Tensor):
        self.slots = slots

    def rebalance_experts(self, *loads_and_sizes) -> torch.Tensor:
        return self.slots


def place(version: str, state: Any, path: str) -> None:
    """Has vLLM's EPLB move the experts as a file says. Whenever it rebalances later, it finds them in place."""
    if state is None:
        refuse("MOEBALANCE_PLACEMENT: want vLLM with --enable-eplb and VLLM_USE_V2_MODEL_RUNNER=0")
    expect("vLLM " + version, type(state), "rearrange", "is_profile")
    (model,) = state.model_states.values()
    slots = model.physical_to_logical_map.cpu()
    if path != "keep":
        with open(path) as f:
            given = json.load(f)
        if given.get("record_type") != "eplb_initial_mapping":
            refuse(f"{path}: want the file of 'moebalance place --write-vllm'")
        rows, size = given["initial_global_assignments"], list(slots.shape)
        slots = torch.tensor([rows[str(layer)] for layer in range(len(rows))])
        if list(slots.shape) != size:
            refuse(
                f"{path}: want {size} layers and physical experts, have {list(slots.shape)}; set the latter with "
                "--eplb-config '{\"num_redundant_experts\": N}'"
            )
    if (HOOK.tables.spec == "perfect" or HOOK.control) and (path != "keep" or slots.shape[1] > HOOK.tables.experts):
        refuse(
            f"{path}: the balanced logits are made for contiguous experts: want MOEBALANCE_PLACEMENT=keep and no "
            "redundant experts in the perfect arm"
        )
    state.policy, state.is_async = Placed(slots), False
    with torch.inference_mode():
        state.rearrange()
    HOOK.placement = os.path.basename(path)
