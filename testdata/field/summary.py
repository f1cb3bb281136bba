"""What a campaign of serve.py recorded, in two small files: every segment, and the counts of its steps by router and kind.

    python3 summary.py CAMPAIGN SEGMENTS.jsonl COUNTS.jsonl

The floor of a step is the least that whole slots allow: the busiest expert and the busiest rank have their mean, rounded up.
"""
import glob
import json
import os
import sqlite3
import sys

import torch
from safetensors.torch import load_file

KINDS = 64, 256, 8192  # tokens of a step over all ranks


def lines(path, rows):
    with open(path, "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows)


def segment(launch, run, path):
    with open(path + "/out/r.json") as f:
        r = json.load(f)
    tokens = 8192 if r["total_num_tokens"] >= 1024 * r["num_requests"] else r["num_requests"]
    return {"launch": launch, "run": run["number"], "arm": run["arm"], "timed": run["timed"],
            "tokens_per_step": tokens, "tokens_per_second": r["tokens_per_second"]}


def steps(folder):
    """Slots [steps, layers, experts] of a sequence; with data-parallel attention each rank counts its own tokens."""
    files = sorted(glob.glob(folder + "/rank*.safetensors"))
    with open(folder + "/meta_info.json") as f:
        meta = json.load(f)
    total = []
    for path in files if meta["mode"] == "dep" else files[:1]:
        held = load_file(path)
        layers = sorted({int(key.split("_")[1]) for key in held})
        total.append(torch.stack([torch.stack([held[f"{i}_{layer}"] for layer in layers]) for i in range(len(held) // len(layers))]).long())
    least = min(map(len, total))
    return sum(x[:least] for x in total), meta


def counted(folder, kinds=KINDS):
    """By router and kind of step: slots [layers of steps, experts], of all sequences in a launch's counts, and ranks."""
    found, ranks = {}, 0
    for sequence in sorted(glob.glob(folder + "/sequence*")):
        proof = sequence + "/moebalance-hook.rank0.json"
        if not os.path.exists(proof) or not os.path.exists(sequence + "/rank0.safetensors"):
            continue
        with open(proof) as f:
            router = json.load(f)["router"].split("/")[0].removesuffix(":")
        slots, meta = steps(sequence)
        ranks = meta["ep_size"]
        for step, tokens in zip(slots, (slots.sum(-1)[:, 0] // meta["num_experts_per_token"]).tolist()):
            if tokens in kinds:
                found.setdefault((router, tokens), []).append(step)
    return {key: torch.cat(rows) for key, rows in found.items()}, ranks


def balance(slots, ranks):
    loads, sums = slots.view(len(slots), ranks, -1).sum(-1), slots.sum(-1)
    floor = (slots.amax(-1) == -(-sums // slots.shape[1])) & (loads.amax(-1) == -(-sums // ranks))
    return {"layers_of_steps": len(slots), "at_the_floor": int(floor.sum()),
            "rank_max_over_mean": round(float((loads.amax(-1) * ranks / sums).mean()), 4),
            "expert_max_over_mean": round(float((slots.amax(-1) * slots.shape[1] / sums).mean()), 4),
            "active_experts": round(float((slots > 0).sum(-1).double().mean()), 2)}


def main(campaign, segments, counts):
    runs, rows = [], []
    with sqlite3.connect(campaign + "/campaign.sqlite") as stored:
        attempts = [json.loads(text) for text, in stored.execute("SELECT record FROM attempt ORDER BY position, number")]
    for launch, attempt in enumerate(attempts):
        folder = os.path.join(campaign, attempt["folder"])
        paths = [(run, os.path.join(folder, run["folder"])) for run in attempt.get("segments", [])]
        runs += [segment(launch, run, path) for run, path in paths if os.path.exists(path + "/out/r.json")]
        found, ranks = counted(folder + "/out/counts")
        rows += [{"launch": launch, "router": router, "tokens_per_step": tokens, **balance(slots, ranks)}
                 for (router, tokens), slots in sorted(found.items())]
    lines(segments, runs)
    lines(counts, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
