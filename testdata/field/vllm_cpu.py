"""vLLM's CPU build on one rank, without a GPU: every row that its MoE layers route is compared with the cache.

    MOEBALANCE_CACHE=CACHE ENABLE_PERFECT_ROUTER=1 MOEBALANCE_COUNTS=COUNTS python3 vllm_cpu.py MODEL     # a line of JSON

vLLM 0.26 routes inside its CPU kernel's wrapper, which the hook does not count; 0.32 has a router object.
"""
import json
import os
import random
import sys

import numpy
import torch
from vllm import LLM, SamplingParams, __version__
from vllm.inputs import TokensPrompt


def record(chosen):
    """Keeps what the engine itself routed, outside of the hook."""
    if __version__.startswith("0.26."):
        import vllm.model_executor.layers.fused_moe.cpu_fused_moe as place
        name, owner = "select_experts", place
    else:
        from vllm.model_executor.layers.fused_moe.router.cpu_router import CPURouter
        name, owner = "_compute_routing", CPURouter
    inner = getattr(owner, name)

    def seen(*args, **named):
        out = inner(*args, **named)
        chosen.append(out[1].sort().values.numpy().copy())
        return out
    setattr(owner, name, seen)


def main():
    chosen = []
    record(chosen)
    llm = LLM(model=sys.argv[1], load_format="dummy", skip_tokenizer_init=True, max_model_len=256, max_num_seqs=16,
              max_num_batched_tokens=512, enforce_eager=True, enable_prefix_caching=False)
    draw = random.Random(1)
    for _ in range(2):
        prompts = [TokensPrompt(prompt_token_ids=[draw.randrange(2, 2000) for _ in range(48)]) for _ in range(16)]
        llm.generate(prompts, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=8), use_tqdm=False)
    llm.llm_engine.engine_core.shutdown()
    from moebalance_hook import HOOK
    layers = [layer.index for layer in HOOK.layers.values()]
    proved = sum(layer.proved for layer in HOOK.layers.values())
    if proved:  # at its first call each layer routed twice: the hook's test came first
        chosen = chosen[1:2 * len(layers):2] + chosen[2 * len(layers):]
    wrong = 0
    for i, rows in enumerate(chosen):
        want = HOOK.tables.entry.of_layer(layers[i % len(layers)], len(rows)).sort().values.numpy()
        wrong += int((rows != want).any(1).sum())
    experts, differ = HOOK.tables.experts, None
    if HOOK.recorder.counts is not None:
        slots = [numpy.bincount(numpy.concatenate(chosen[i::len(layers)]).ravel(), minlength=experts) for i in range(len(layers))]
        differ = int(numpy.abs(numpy.array(slots) - numpy.array(HOOK.totals()["counts"])).sum())
    print(json.dumps({"vllm": __version__, "torch": torch.__version__, "model": json.load(open(sys.argv[1] + "/config.json"))["model_type"], "ranks": 1,
                      "layers": len(layers), "layers_proved": proved, "experts": experts, "rows_compared": sum(map(len, chosen)), "rows_wrong": wrong,
                      "counts_differ": differ}), flush=True)


if __name__ == "__main__":
    main()
