"""Whether the hook finds what it needs in a release of vLLM or SGLang whose kernels are not here: by import and signature.

    PYTHONPATH=HOOK:RELEASE MOEBALANCE_CACHE=any ENABLE_PERFECT_ROUTER=1 python3 signatures.py vllm|sglang     # a line of JSON

RELEASE is the release's unpacked wheel.
"""
import importlib
import inspect
import json
import sys

import moebalance_hook

engine = sys.argv[1]
getattr(moebalance_hook, engine)()
said = {engine: importlib.import_module(engine).__version__, "installed": True}
if engine == "vllm":
    from vllm.model_executor.layers.fused_moe.router.base_router import BaseRouter
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
    from vllm.v1.worker.gpu_worker import Worker
    from vllm.v1.worker.worker_base import WorkerWrapperBase
    said["hooked"] = [owner.__module__ for owner in (MoERunner._apply_quant_method, WorkerWrapperBase.compile_or_warm_up_model)]
    for owner, names in ((BaseRouter, ("select_experts", "_compute_routing")),
                         (Worker, ("compile_or_warm_up_model", "execute_model", "execute_dummy_batch", "shutdown"))):
        said[owner.__name__] = {name: list(inspect.signature(getattr(owner, name)).parameters) for name in names}
else:
    from sglang.srt.layers.moe.topk import TopK, TopKConfig
    said["hooked"] = [name for name in dir(TopK) if getattr(getattr(TopK, name), "__module__", "") == "moebalance_hook.for_sglang"]
    said["gate"] = {name: hasattr(TopKConfig, name) or name in getattr(TopKConfig, "__annotations__", {}) for name in (
        "top_k", "use_grouped_topk", "num_expert_group", "topk_group", "correction_bias", "num_fused_shared_experts", "num_shared_topk_slots")}
print(json.dumps(said))
