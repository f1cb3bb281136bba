"""Data-parallel attention with unequal requests: prefill steps in which rank 0 has three quarters of the tokens, and with equal
requests, each under recorded and under balanced routing, within one launch; timed, then profiled without the hook's ranges.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_CONTROL=FRESH torchrun --nproc-per-node 2 unequal.py MODEL TRACES ROUTER

The captures are in TRACES/unequal-normal, TRACES/equal-normal, TRACES/unequal-perfect, TRACES/equal-perfect; seconds of a step in
TRACES.segments.jsonl.
"""
import contextlib
import os
import random
import sys
import time

from vllm import SamplingParams
from vllm.inputs import TokensPrompt

from serve import RANK, agreed, engine, noted, profiled

TOKENS = {"equal": (4096, 4096), "unequal": (6144, 2048)}  # of the request that each rank has in a step


def run(llm, requests, seed, steps=8):
    """Seconds of a step."""
    draw = random.Random(seed * 2 + RANK)
    batch = [TokensPrompt(prompt_token_ids=[draw.randrange(1000, 30000) for _ in range(TOKENS[requests][RANK])]) for _ in range(steps)]
    agreed(None)
    start = time.perf_counter()
    llm.generate(batch, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=1, temperature=0.0), use_tqdm=False)
    agreed(None)
    return (time.perf_counter() - start) / steps


def main(model, traces, router):
    llm = engine(model, 2, enforce_eager=True, compilation_config={}, max_num_seqs=1, max_num_batched_tokens=6144,
                 profiler_config={"profiler": "torch", "torch_profiler_dir": traces, "torch_profiler_with_stack": False})
    from driver import Driver
    from moebalance_hook import for_vllm, hook
    driver = Driver(os.environ["MOEBALANCE_CONTROL"], 2) if RANK == 0 else None
    os.makedirs(traces, exist_ok=True)

    def change(arm, to):
        if driver:
            driver.set(arm, to)
        while not agreed(driver.acknowledged() if driver else None):
            run(llm, "equal", 1, 2)

    for_vllm.named = hook.named = lambda _: contextlib.nullcontext()
    for profiling in False, True:
        for arm, to in ("normal", router), ("perfect", "perfect"), ("perfect", "perfect"), ("normal", router):
            if profiling and os.path.exists(f"{traces}/unequal-{arm}"):
                continue
            change(arm, to)
            for requests in TOKENS:
                run(llm, requests, 2)
                if profiling:
                    llm.start_profile()
                    run(llm, requests, 3, 4)
                    profiled(llm, traces, f"{requests}-{arm}")
                    continue
                took = [run(llm, requests, 4) for _ in range(3)]
                noted(traces, requests=requests, arm=arm, router=to, seconds_per_step=took)
    change("normal", "off")
    if driver:
        driver.over.set()
    run(llm, "equal", 7)
    time.sleep(2)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
