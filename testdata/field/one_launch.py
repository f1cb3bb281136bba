"""Both arms within one launch of vLLM's LLM, or one arm with 0 blocks, on one GPU (on a CPU: smaller).

    MOEBALANCE_CACHE=CACHE MOEBALANCE_CONTROL=FRESH MOEBALANCE_COUNTS=COUNTS PYTHONPATH=HOOK \\
        python3 one_launch.py MODEL LAYERS BLOCKS >record.json

MODEL is a folder with a config.json; weights are dummies. A segment is PREFILLS steps of 8,192 prompt tokens, then
DECODES steps of 64 requests, each point timed by itself. The last line is the record of moebalance_hook.alternate; with 0
blocks, of one arm, {"values": [...]}, which ENABLE_PERFECT_ROUTER=1 sets and MOEBALANCE_CONTROL must not.
"""
import json
import os
import random
import sys
import time

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # alternate runs where the model runs

import torch
from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt

GPU = torch.cuda.is_available()
TOKENS, LENGTH, REQUESTS = (8192, 1024, 64) if GPU else (96, 24, 7)
PREFILLS = int(os.environ.get("PREFILLS", 6 if GPU else 2))
DECODES = int(os.environ.get("DECODES", 100 if GPU else 4))
MEASUREMENTS = int(os.environ.get("MEASUREMENTS", 4))  # of a launch with one arm


def main():
    model, layers, blocks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    begun = time.time()
    llm = LLM(model=model, load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16" if GPU else "float32",
              max_model_len=2048 if GPU else 64, max_num_seqs=REQUESTS, max_num_batched_tokens=TOKENS,
              enable_prefix_caching=False, gpu_memory_utilization=0.92, enforce_eager=not GPU,
              hf_overrides={"num_hidden_layers": layers})
    print(f"ready after {time.time() - begun:.1f} s", file=sys.stderr, flush=True)
    import moebalance_hook
    draw = random.Random(7)

    def prompts(n, length):
        """New ones in each segment, of the same lengths."""
        return [TokensPrompt(prompt_token_ids=[draw.randrange(2, 2000) for _ in range(length)]) for _ in range(n)]

    def run(given, tokens):
        start = time.perf_counter()
        llm.generate(given, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=tokens), use_tqdm=False)
        return time.perf_counter() - start

    def measure():
        """Tokens per second of each point."""
        prefill, decode = prompts(PREFILLS * TOKENS // LENGTH, LENGTH), prompts(REQUESTS, 16)
        seconds = run(prefill, 1)
        return {"prefill": PREFILLS * TOKENS / seconds, "decode": REQUESTS * DECODES / run(decode, DECODES)}

    measure()
    begun = time.time()
    if blocks:
        moebalance_hook.alternate(measure, blocks=blocks)
    else:
        measure()
        arm = "perfect" if os.environ.get("ENABLE_PERFECT_ROUTER") == "1" else "normal"
        print(json.dumps({"arm": arm, "values": [measure() for _ in range(MEASUREMENTS)]}), flush=True)
    print(f"measured in {time.time() - begun:.1f} s", file=sys.stderr, flush=True)
    moebalance_hook.HOOK.write()


if __name__ == "__main__":
    main()
