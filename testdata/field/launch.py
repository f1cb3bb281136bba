"""What the scripts for vLLM share: the engine with dummy weights, prompts of random tokens, and a profiled pass."""
import argparse
import json
import random
import time

import torch
from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt


def arguments(description, *positional):
    parser = argparse.ArgumentParser(description=description)
    for name in ("model", "ranks", *positional):
        parser.add_argument(name)
    parser.add_argument("--engine", type=json.loads, default={}, help="arguments of vllm.LLM, as JSON")
    return parser


class Engine:
    def __init__(self, args, **engine):
        self.llm = LLM(**{**dict(
            model=args.model, load_format="dummy", skip_tokenizer_init=True, tensor_parallel_size=int(args.ranks), enable_expert_parallel=True,
            moe_backend="triton", max_model_len=17000, max_num_seqs=256, max_num_batched_tokens=16384, gpu_memory_utilization=0.7,
            enable_prefix_caching=False, compilation_config={"cudagraph_capture_sizes": [1, 8, 64, 256]}, seed=0,
            worker_extension_cls="moebalance_hook.WorkerExtension"), **engine, **args.engine})
        self.draw, self.before = random.Random(1), 0

    def run(self, requests, prompt, new):
        """Seconds that so many requests take, with prompts and answers of so many tokens."""
        batch = [TokensPrompt(prompt_token_ids=[self.draw.randrange(1000, 30000) for _ in range(prompt)]) for _ in range(requests)]
        start = time.perf_counter()
        self.llm.generate(batch, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=new, temperature=0.0), use_tqdm=False)
        return time.perf_counter() - start

    def set_router(self, spec):
        self.llm.collective_rpc("moebalance_router", args=(spec,))

    def counted(self):
        """Slots per layer and expert since reset."""
        return (self.slots() - self.before).tolist()

    def reset(self):
        self.before = self.slots()

    def slots(self):
        return torch.tensor(self.llm.collective_rpc("moebalance_counts")[0]["counts"])

    def profile(self, *batch):
        """The batch profiled, after three that are not: seconds without and with the profiler."""
        plain = min(self.run(*batch) for _ in range(3))
        self.reset()
        self.llm.start_profile()
        profiled = self.run(*batch)
        self.llm.stop_profile()
        return plain, profiled


def profiler(folder):
    """vLLM's own, or that of nsys, which begins and ends with CUDA's."""
    return {"profiler": "cuda"} if folder == "nsys" else {"profiler": "torch", "torch_profiler_dir": folder, "torch_profiler_with_stack": False}
