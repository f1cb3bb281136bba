"""One profiled pass of vLLM, without a range of ours: 8 prompts of 1024 tokens, 8 new tokens each.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_ROUTER=target:1.5 python3 trace.py MODEL RANKS TRACES     # torch profiler
    nsys profile -t cuda -s none --cpuctxsw=none --cuda-graph-trace=node -c cudaProfilerApi --capture-range-end=stop \
        python3 trace.py MODEL RANKS                                                           # Nsight Systems
"""
import random
import sys
import time

from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt


def main():
    model, ranks, *traces = sys.argv[1:]
    profiler = {"profiler": "torch", "torch_profiler_dir": traces[0], "torch_profiler_with_stack": False} if traces else {"profiler": "cuda"}
    llm = LLM(model=model, load_format="dummy", skip_tokenizer_init=True, tensor_parallel_size=int(ranks), enable_expert_parallel=True,
              max_model_len=2048, max_num_seqs=64, max_num_batched_tokens=8192, gpu_memory_utilization=0.6, enable_prefix_caching=False,
              compilation_config={"cudagraph_capture_sizes": [1, 8, 16, 32, 64]}, seed=0, profiler_config=profiler)
    draw = random.Random(1)

    def run(requests, tokens):
        prompts = [TokensPrompt(prompt_token_ids=[draw.randrange(1000, 30000) for _ in range(1024)]) for _ in range(requests)]
        start = time.perf_counter()
        llm.generate(prompts, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=tokens, temperature=0.0), use_tqdm=False)
        return time.perf_counter() - start

    run(32, 16)
    run(32, 16)
    plain = min(run(32, 8) for _ in range(3))
    llm.start_profile()
    profiled = run(32, 8)
    llm.stop_profile()
    print(f"32 requests of 1024 tokens, 8 new ones: {plain:.4f} s, profiled {profiled:.4f} s", flush=True)
    time.sleep(1)


if __name__ == "__main__":
    main()
