"""SGLang's CPU build, without a GPU: every row that its MoE layers route is compared with the cache.

    MOEBALANCE_CACHE=CACHE ENABLE_PERFECT_ROUTER=1 MOEBALANCE_COUNTS=COUNTS python3 sglang_cpu.py MODEL ROUTED [TP]     # a line of JSON

ROUTED is an empty folder for what the engine itself chose, a file for each process.
"""
import collections
import glob
import json
import os
import random
import sys

import numpy
import sglang
import torch
from safetensors import safe_open
from safetensors.numpy import load_file
from sglang.srt.layers.moe import topk


def record(folder):
    """Keeps what the engine itself routed, outside of the hook. SGLang's worker processes import this file too."""
    inner = topk.select_experts

    def seen(*args, **named):
        out = inner(*args, **named)
        with open(f"{folder}/{os.getpid()}.npy", "ab") as f:
            numpy.save(f, named["layer_id"])
            numpy.save(f, out.topk_ids.sort().values.numpy())
        return out
    topk.select_experts = seen


record(sys.argv[2])


def chosen(file):
    """Layers and their rows, without each layer's first: the hook's own test of the engine's router."""
    tested = set()
    with open(file, "rb") as f:
        while f.peek(1):
            layer, rows = int(numpy.load(f)), numpy.load(f)
            if layer in tested:
                yield layer, rows
            tested.add(layer)


def main():
    ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    engine = sglang.Engine(model_path=sys.argv[1], load_format="dummy", device="cpu", tp_size=ranks, skip_tokenizer_init=True, context_length=256,
                           max_running_requests=16, chunked_prefill_size=512, max_total_tokens=4096, disable_radix_cache=True,
                           grammar_backend="none", sampling_backend="pytorch", log_level="warning")
    draw = random.Random(1)
    for _ in range(2):
        prompts = [[draw.randrange(2, 2000) for _ in range(48)] for _ in range(16)]
        engine.generate(input_ids=prompts, sampling_params={"max_new_tokens": 8, "ignore_eos": True})
    engine.shutdown()
    path, = glob.glob(os.environ["MOEBALANCE_CACHE"] + "/*_tany_*.safetensors")
    with safe_open(path, "pt") as f:
        ids, meta = f.get_tensor("expert_ids").sort().values.numpy(), f.metadata()
    files, slots, compared, wrong = glob.glob(sys.argv[2] + "/*.npy"), collections.Counter(), 0, 0
    for file in files:
        for layer, rows in chosen(file):
            want = ids[(numpy.arange(len(rows)) + layer * int(meta["period"])) % len(ids)]
            compared, wrong = compared + len(rows), wrong + int((rows != want).any(1).sum())
            slots.update((layer, expert) for expert in rows.ravel().tolist())
    counted = collections.Counter()
    for name, row in load_file(os.environ["MOEBALANCE_COUNTS"] + "/rank0.safetensors").items():
        for expert, count in enumerate(row.tolist()):
            counted[int(name.split("_")[1]), expert] += len(files) * count  # all ranks route the same rows, and one writes
    differ = sum(abs(slots[key] - counted[key]) for key in slots | counted)
    print(json.dumps({"sglang": sglang.__version__, "torch": torch.__version__, "model": json.load(open(sys.argv[1] + "/config.json"))["model_type"],
                      "tensor_parallel": len(files), "layers": len({layer for layer, _ in slots}), "experts": int(meta["experts"]),
                      "rows_compared": compared, "rows_wrong": wrong, "counts_differ": differ}), flush=True)


if __name__ == "__main__":
    main()
