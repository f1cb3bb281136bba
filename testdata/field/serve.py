"""Both arms and more within one launch of vLLM over several GPUs, as a server that 'moebalance bench' leads.

    python3 serve.py MODEL RANKS PORT                                  # tensor-parallel attention; port 0: warm up and end
    torchrun --nproc-per-node RANKS serve.py MODEL RANKS PORT          # data-parallel attention

More arguments of vllm.LLM come as JSON in ENGINE: '{"moe_backend": "marlin"}'.

GET /health, and GET /run?tokens=8192&seed=1, which answers a throughput report. Tokens are those of a step over all ranks.
"""
import glob
import http.server
import json
import os
import queue
import random
import signal
import sys
import threading
import time
import urllib.parse

import torch
from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt

STEPS = {8192: int(os.environ.get("PREFILLS", 12)), 64: int(os.environ.get("DECODES", 80))}  # of a segment
RANK, REPLICAS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))  # of data-parallel attention


def filled():
    """Has vLLM's dummy weights of quantized models be numbers: its own are zeros in FP8, and whatever was there in bytes."""
    from vllm.model_executor.model_loader import weight_utils
    single, done = weight_utils.initialize_single_dummy_weight, set()

    def fill(param, *args, **given):
        key = param.data_ptr(), param.shape
        if key in done:  # a layer within a layer comes once for each
            return
        done.add(key)
        single(param, *args, **given)
        if param.dtype == torch.uint8:
            param.data.random_(118, 129)
        elif param.dtype == torch.float8_e4m3fn:
            for part in param.data.split(64):
                part.copy_(torch.randn(part.shape, dtype=torch.bfloat16, device=part.device))

    weight_utils.initialize_single_dummy_weight = fill  # the workers are forks of this process


def engine(model, ranks, **more):
    filled()
    parallel = dict(tensor_parallel_size=ranks) if REPLICAS == 1 else dict(
        tensor_parallel_size=1, data_parallel_size=ranks, distributed_executor_backend="external_launcher")
    sizes = [tokens // REPLICAS for tokens in STEPS]  # graphs for prefill too, so that launching its layers cannot hold the GPUs up
    return LLM(**{**dict(
        model=model, load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", enable_expert_parallel=True, moe_backend="triton",
        max_model_len=8200, max_num_seqs=min(sizes), max_num_batched_tokens=8192 // REPLICAS, enable_prefix_caching=False,
        gpu_memory_utilization=0.8, kv_cache_memory_bytes=8 << 30, compilation_config={"cudagraph_capture_sizes": [1, *sorted(sizes)]}, seed=0, **parallel), **json.loads(os.environ.get("ENGINE", "{}")), **more})


def agreed(value):
    """The first replica's, once all have come."""
    if REPLICAS == 1:
        return value
    from vllm.distributed.parallel_state import get_world_group
    said = [None] * REPLICAS
    torch.distributed.all_gather_object(said, value, group=get_world_group().cpu_group)
    return said[0]


def run(llm, tokens, seed, steps=0):
    """Seconds, requests and tokens of so many steps."""
    draw, steps = random.Random(seed * REPLICAS + RANK), steps or STEPS[tokens]
    requests, prompt, new = (steps * REPLICAS, 8192 // REPLICAS, 1) if tokens == 8192 else (tokens, 1, steps)
    batch = [TokensPrompt(prompt_token_ids=[draw.randrange(1000, 30000) for _ in range(prompt)]) for _ in range(requests // REPLICAS)]
    agreed(None)
    start = time.perf_counter()
    llm.generate(batch, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=new, temperature=0.0), use_tqdm=False)
    return time.perf_counter() - start, requests, requests * (prompt if tokens == 8192 else new)


def profiled(llm, traces, name):
    """Ends a profile; its traces are in TRACES/NAME."""
    llm.stop_profile()
    time.sleep(3)
    agreed(None)
    if RANK == 0:
        os.makedirs(f"{traces}/{name}")
        for path in glob.glob(f"{traces}/*.json*"):
            os.rename(path, f"{traces}/{name}/{os.path.basename(path)}")
    agreed(None)


def noted(traces, **segment):
    """Adds a segment that was timed without the profiler to TRACES.segments.jsonl."""
    if RANK == 0:
        with open(f"{traces}.segments.jsonl", "a") as f:
            f.write(json.dumps(segment) + "\n")


def listen(port):
    """Orders that come by HTTP, and where their answers go."""
    orders, answers = queue.Queue(), queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            url = urllib.parse.urlparse(self.path)
            text = b"{}"
            if url.path == "/run":
                asked = dict(urllib.parse.parse_qsl(url.query))
                orders.put((int(asked["tokens"]), int(asked["seed"])))
                seconds, requests, tokens = answers.get()
                text = json.dumps({"elapsed_time": seconds, "num_requests": requests, "total_num_tokens": tokens,
                                   "requests_per_second": requests / seconds, "tokens_per_second": tokens / seconds}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    threading.Thread(target=http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever, daemon=True).start()
    return orders, answers


def main(model, ranks, port):
    begun = time.time()
    llm = engine(model, int(ranks))
    for _ in range(2):
        for tokens in STEPS:
            run(llm, tokens, 0)
    print(f"ready after {time.time() - begun:.1f} s", flush=True)
    if port == "0":
        return
    if REPLICAS > 1:  # the hook writes where this process ends; vLLM's own workers end by themselves
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    orders, answers = listen(int(port)) if RANK == 0 else (None, None)
    while True:
        try:
            order = orders.get(timeout=0.01) if orders else None
        except queue.Empty:
            order = None
        if order := agreed(order):
            answer = run(llm, *order)
            if answers:
                answers.put(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
