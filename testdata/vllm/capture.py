"""How qwen3-normal.rank?.json.gz was made, with vLLM 0.26.0 and torch 2.11 on 4 H200s:

    NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 VLLM_ALLREDUCE_USE_SYMM_MEM=0 VLLM_USE_FLASHINFER_SAMPLER=0 \
        VLLM_PLUGINS=skew PYTHONPATH=DIR SKEW=normal python3 capture.py MODEL TRACES

MODEL is a folder with the config.json of a Qwen3MoeForCausalLM: hidden_size 2048, 12 layers, 128 experts of 768,
top-8, vocab_size 32000. DIR holds skew.py and skew-0.1.dist-info with the entry point
'[vllm.general_plugins] skew = skew:install'. The weights are dummies, so skew.py replaces the router's logits.
"""
import random
import sys
import time

from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt


def main():
    model, traces = sys.argv[1:]
    llm = LLM(model=model, load_format="dummy", skip_tokenizer_init=True, tensor_parallel_size=4, enable_expert_parallel=True,
              max_model_len=2048, max_num_seqs=64, max_num_batched_tokens=8192, gpu_memory_utilization=0.6, enable_prefix_caching=False,
              compilation_config={"cudagraph_capture_sizes": [1, 8, 16, 32, 64]}, seed=0,
              profiler_config={"profiler": "torch", "torch_profiler_dir": traces, "torch_profiler_with_stack": False})
    draw = random.Random(1)

    def run(requests, tokens):
        prompts = [TokensPrompt(prompt_token_ids=[draw.randrange(1000, 30000) for _ in range(1024)]) for _ in range(requests)]
        llm.generate(prompts, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=tokens, temperature=0.0), use_tqdm=False)

    run(32, 16)
    run(32, 16)
    run(64, 32)
    llm.start_profile()
    run(32, 8)
    llm.stop_profile()
    time.sleep(1)


if __name__ == "__main__":
    main()
