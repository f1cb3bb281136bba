"""SGLang with expert parallelism and dummy weights, on GPUs or its CPU engine: every row that its MoE layers route is compared
with the cache, on the device and in CUDA graphs too, and what the hook counted with what was chosen. One line of JSON.

    MOEBALANCE_CACHE=CACHE MOEBALANCE_COUNTS=COUNTS ENABLE_PERFECT_ROUTER=1 python3 sglang_ep.py MODEL RANKS ROUTED

ROUTED is an empty folder for what each process chose. Variables: PREFILLS, DECODES, and ENGINE, arguments of sglang.Engine as JSON.
"""
import functools
import glob
import json
import os
import random
import sys
import threading
import time

import sglang
import torch
from safetensors.torch import load_file

GPU = os.environ.get("SGLANG_USE_CPU_ENGINE") != "1"
TOKENS, REQUESTS = (8192, 64) if GPU else (128, 16)
PREFILLS = int(os.environ.get("PREFILLS", 6 if GPU else 2))
DECODES = int(os.environ.get("DECODES", 100 if GPU else 8))


class Seen:
    """What the engine itself routed, outside of the hook: slots per layer and expert, rows, and rows unlike the cache's."""

    def __init__(self, folder):
        from sglang.srt.layers.moe import topk
        from sglang.srt.model_executor.model_runner import ModelRunner

        self.folder, self.table, self.began, self.tested, inner, run = folder, None, False, set(), topk.select_experts, ModelRunner.forward

        def choose(*args, **named):
            out = inner(*args, **named)
            self.add(named["layer_id"], out.topk_ids)
            return out

        @functools.wraps(run)  # the hook looks at its parameters
        def forward(runner, *args, **named):
            if not self.began:
                self.began = True
                if self.table is not None:  # what was before is the engine's warm-up and its captures
                    self.slots.zero_(), self.rows.zero_()
                threading.Thread(target=self.write, daemon=True).start()
            return run(runner, *args, **named)

        topk.select_experts, ModelRunner.forward = choose, forward

    def add(self, layer, ids):
        if self.table is None:
            import moebalance_hook

            tables = moebalance_hook.HOOK.tables
            with torch.inference_mode(False):
                rows = tables.entry.ids[0].sort().values
                self.experts, self.period, self.length = tables.experts, tables.entry.period, len(rows)
                self.slots = torch.zeros(128, self.experts + 1, dtype=torch.int64, device=ids.device)
                self.rows = torch.zeros(128, 2, dtype=torch.int64, device=ids.device)
                self.table = rows.repeat(-(-(4 * TOKENS) // len(rows)) + 2, 1).to(ids)
        if layer not in self.tested:  # the hook's own test of the engine's router
            self.tested.add(layer)
            return
        at = layer * self.period % self.length
        real = (ids >= 0).all(-1)  # -1 is padding
        unlike = (ids.sort(-1).values != self.table[at : at + len(ids)]).any(-1) & real
        self.rows[layer] += torch.stack((real.sum(), unlike.sum()))
        flat = ids.reshape(-1).long()
        self.slots[layer].scatter_add_(0, flat.masked_fill(flat < 0, self.experts), torch.ones_like(flat))

    def write(self):
        """When the engine is idle."""
        import moebalance_hook

        last = 0
        while True:
            time.sleep(1.5)
            if moebalance_hook.HOOK.steps.begun == last > 0:
                if GPU:
                    torch.cuda.synchronize()
                layers = max(self.tested) + 1
                said = {"rows": self.rows[:layers].tolist(), "slots": self.slots[:layers, : self.experts].tolist()}
                with open(f"{self.folder}/{os.getpid()}.new", "w") as f:
                    json.dump(said, f)
                os.replace(f.name, f"{self.folder}/{os.getpid()}.json")
            last = moebalance_hook.HOOK.steps.begun


Seen(sys.argv[3])  # SGLang's worker processes import this file too


class Engine:
    def __init__(self, model, ranks):
        begun, n = time.time(), int(ranks)
        gpu = dict(dtype="bfloat16", attention_backend="triton", moe_runner_backend="triton", disable_custom_all_reduce=True,
                   disable_flashinfer_autotune=True, enforce_disable_flashinfer_allreduce_fusion=True, disable_prefill_cuda_graph=True,
                   cuda_graph_bs_decode=[REQUESTS], mem_fraction_static=0.8)
        both = dict(model_path=model, load_format="dummy", tp_size=n, ep_size=n, skip_tokenizer_init=True, context_length=TOKENS + 256,
                    max_running_requests=REQUESTS, chunked_prefill_size=TOKENS, max_prefill_tokens=TOKENS,
                    max_total_tokens=16 * TOKENS, disable_radix_cache=True, grammar_backend="none", sampling_backend="pytorch", random_seed=0,
                    log_level="warning")
        given = json.loads(os.environ.get("ENGINE", "{}"))
        self.engine = sglang.Engine(**{**both, **(gpu if GPU else {"device": "cpu"}), **given})
        self.draw = random.Random(1)
        print(f"ready after {time.time() - begun:.1f} s", file=sys.stderr, flush=True)

    def run(self, requests, prompt, new):
        """Seconds that so many requests take, with prompts and answers of so many tokens."""
        prompts = [[self.draw.randrange(2, 2000) for _ in range(prompt)] for _ in range(requests)]
        start = time.perf_counter()
        self.engine.generate(input_ids=prompts, sampling_params={"max_new_tokens": new, "ignore_eos": True, "temperature": 0})
        return time.perf_counter() - start

    def measure(self):
        """Tokens per second: steps of TOKENS of one prompt each, and decode of REQUESTS requests."""
        prefill = PREFILLS * TOKENS / self.run(PREFILLS, TOKENS, 1)
        return {"prefill": round(prefill, 1), "decode": round(REQUESTS * DECODES / self.run(REQUESTS, 16, DECODES), 1)}


def balance(folder, ranks):
    """Of the steps that the hook counted: layers, layers at the floor, and means of busiest expert and rank over the mean."""
    rows = list(load_file(folder + "/rank0.safetensors").values())
    floor = sum(int(row.max()) == -(-int(row.sum()) // len(row)) for row in rows)
    most = lambda parts: round(sum(float(p.max() / p.double().mean()) for p in parts) / len(parts), 3)
    return {"layers_of_steps": len(rows), "at_floor": floor, "busiest_expert": most(rows),
            "busiest_rank": most([row.reshape(ranks, -1).sum(1) for row in rows])}


def about(model, ranks):
    return {"sglang": sglang.__version__, "torch": torch.__version__, "device": torch.cuda.get_device_name() if GPU else "cpu",
            "model": json.load(open(model + "/config.json"))["model_type"], "tensor_parallel": ranks, "expert_parallel": ranks}


def check(model, ranks, routed):
    engine, ranks = Engine(model, ranks), int(ranks)
    speeds = [engine.measure() for _ in range(2)]
    time.sleep(6)  # the processes write when they are idle
    engine.engine.shutdown()
    files = [json.load(open(path)) for path in glob.glob(routed + "/*.json")]
    counts = [load_file(path) for path in sorted(glob.glob(os.environ["MOEBALANCE_COUNTS"] + "/rank*.safetensors"))]
    differ, layers = 0, len(files[0]["slots"]) if files else 0
    for counted in counts[:1]:
        hook = torch.zeros(layers, len(next(iter(counted.values()))), dtype=torch.int64)
        for name, row in counted.items():
            hook[int(name.split("_")[1])] += row
        differ = sum(int(abs(torch.tensor(file["slots"]) - hook).sum()) for file in files)
    print(json.dumps({**about(model, ranks), "processes": len(files), "layers": layers,
                      "rows_compared": sum(row[0] for file in files for row in file["rows"]),
                      "rows_wrong": sum(row[1] for file in files for row in file["rows"]), "counts_differ": differ,
                      "ranks_that_counted": len(counts), **balance(os.environ["MOEBALANCE_COUNTS"], ranks), "tokens_per_second": speeds}), flush=True)


if __name__ == "__main__":
    check(*sys.argv[1:])
