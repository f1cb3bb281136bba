"""Dose and response within one launch of vLLM: the same batch with routers of different rank max/mean, in an order drawn
anew for every repetition. A router is another content of the hook's tables, so CUDA graphs and everything else stay.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_ROUTER=target:1.2 python3 dose.py MODEL RANKS RESULT.jsonl ROUTER…

ROUTER is perfect, target:1.5, recorded:FILE or file:TABLE; a suffix @8 keeps it to the decode batches of 8. One JSON line
per measurement: the point, tokens per step, the router, seconds per step, and the rank max/mean that was counted.
"""
import json
import random
import sys
import time

from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt

# name, requests, prompt tokens, new tokens, repeats of the batch in one measurement
POINTS = [("decode", 8, 16, 128, 1), ("decode", 64, 16, 128, 1), ("decode", 256, 16, 96, 1), ("prefill", 2, 1024, 1, 12), ("prefill", 8, 1024, 1, 6)]
REPETITIONS = 5


def main():
    model, ranks, result, *routers = sys.argv[1:]
    llm = LLM(model=model, load_format="dummy", skip_tokenizer_init=True, tensor_parallel_size=int(ranks), enable_expert_parallel=True,
              max_model_len=2048, max_num_seqs=256, max_num_batched_tokens=8192, gpu_memory_utilization=0.7, enable_prefix_caching=False,
              compilation_config={"cudagraph_capture_sizes": [1, 8, 64, 256]}, seed=0, worker_extension_cls="moebalance_hook.WorkerExtension")
    draw = random.Random(1)

    def run(requests, prompt, new, repeats):
        batches = [[TokensPrompt(prompt_token_ids=[draw.randrange(1000, 30000) for _ in range(prompt)]) for _ in range(requests)] for _ in range(repeats)]
        start = time.perf_counter()
        for batch in batches:
            llm.generate(batch, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=new, temperature=0.0), use_tqdm=False)
        return (time.perf_counter() - start) / (repeats * new)

    def imbalance():
        counted = llm.collective_rpc("moebalance_counts")[0]["counts"]
        shares = []
        for row in counted:
            per = len(row) // int(ranks)
            load = [sum(row[r * per:(r + 1) * per]) for r in range(int(ranks))]
            shares.append(max(load) * len(load) / sum(load) if sum(load) else 1)
        return sum(shares) / len(shares)

    for point in POINTS:
        run(*point[1:])
    with open(result, "w") as out:
        for repetition in range(REPETITIONS):
            for name, requests, prompt, new, repeats in POINTS:
                for router in draw.sample(routers, len(routers)):
                    spec, _, only = router.partition("@")
                    if only and (name, str(requests)) != ("decode", only):
                        continue
                    llm.collective_rpc("moebalance_router", args=(spec,))
                    run(requests, prompt, min(new, 4), 1)
                    llm.collective_rpc("moebalance_counts_reset")
                    seconds = run(requests, prompt, new, repeats)
                    tokens = requests * (prompt if new == 1 else 1)
                    print(json.dumps({"repetition": repetition, "point": name, "tokens_per_step": tokens, "router": spec,
                                      "seconds_per_step": seconds, "rank_max_over_mean": imbalance()}), file=out, flush=True)


if __name__ == "__main__":
    main()
