"""Both arms and more within one launch of vLLM over several GPUs, as a server that 'moebalance bench' leads.

    python3 serve.py MODEL RANKS PORT       # GET /health, GET /run?tokens=8192&seed=1, which answers a throughput report
"""
import http.server
import json
import os
import random
import sys
import time
import urllib.parse

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")

from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt

STEPS = {8192: 12, 64: 80}  # of a segment: prefill steps of eight requests, decode steps of 64


def engine(model, ranks, **more):
    return LLM(**{**dict(
        model=model, load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", tensor_parallel_size=ranks, enable_expert_parallel=True,
        moe_backend="triton", max_model_len=2048, max_num_seqs=64, max_num_batched_tokens=8192, enable_prefix_caching=False,
        gpu_memory_utilization=0.8, compilation_config={"cudagraph_capture_sizes": [1, 64]}, seed=0), **more})


def run(llm, tokens, seed, steps=0):
    """Seconds, requests and tokens of so many steps."""
    draw, steps = random.Random(seed), steps or STEPS[tokens]
    requests, prompt, new = (64, 16, steps) if tokens == 64 else (steps * 8, 1024, 1)
    batch = [TokensPrompt(prompt_token_ids=[draw.randrange(1000, 30000) for _ in range(prompt)]) for _ in range(requests)]
    start = time.perf_counter()
    llm.generate(batch, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=new, temperature=0.0), use_tqdm=False)
    return time.perf_counter() - start, requests, requests * (new if tokens == 64 else prompt)


def main(model, ranks, port):
    begun = time.time()
    llm = engine(model, int(ranks))
    for _ in range(2):
        for tokens in STEPS:
            run(llm, tokens, 0)
    print(f"ready after {time.time() - begun:.1f} s", flush=True)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            url = urllib.parse.urlparse(self.path)
            text = b"{}"
            if url.path == "/run":
                asked = dict(urllib.parse.parse_qsl(url.query))
                seconds, requests, tokens = run(llm, int(asked["tokens"]), int(asked["seed"]))
                text = json.dumps({"elapsed_time": seconds, "num_requests": requests, "total_num_tokens": tokens,
                                   "requests_per_second": requests / seconds, "tokens_per_second": tokens / seconds}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    http.server.HTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
