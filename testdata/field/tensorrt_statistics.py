"""TensorRT-LLM's own expert statistics, from its file alone, against what 'moebalance counts' reads of them.

    python3 tensorrt_statistics.py EXPERT_STATISTIC.py MOEBALANCE FOLDER     # a line of JSON for each case; needs torch and safetensors, no GPU

The file is tensorrt_llm/_torch/moe/expert_statistic.py (before 2026 in tensorrt_llm/_torch). Each case plays an engine of 4 ranks whose tokens choose
random experts, the first ones more often: all tokens at once, in chunks, with rows of padding, with a layer that runs twice in an iteration.
"""
import importlib.util
import json
import os
import subprocess
import sys
import types

import safetensors.torch  # noqa: F401, which the file takes for granted
import torch

EXPERTS, TOP_K, RANKS, LAYERS, FIRST, LAST = 32, 4, 4, [3, 4, 5], 100, 103


def load(path):
    for name, content in {"tensorrt_llm": {}, "tensorrt_llm.logger": {"logger": types.SimpleNamespace(info=lambda text: None)}}.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(content)
    spec = importlib.util.spec_from_file_location("expert_statistic", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ExpertStatistic


def play(statistic, folder, chunk, padding, twice):
    """Runs the engine and returns the slots of each layer and rank in the recorded iterations."""
    os.environ.update(EXPERT_STATISTIC_ITER_RANGE=f"{FIRST}-{LAST}", EXPERT_STATISTIC_PATH=folder)
    loads = torch.zeros(len(LAYERS), RANKS, dtype=torch.int64)
    for rank in range(RANKS):  # one process each
        statistic.create(rank)
        for iteration in range(FIRST - 2, LAST + 2):
            statistic.set_iter(iteration)
            for at, layer in enumerate(LAYERS):
                statistic.set_layer(layer)
                for _ in range(1 + twice):
                    ids = torch.rand(50, EXPERTS).pow(torch.linspace(1, 3, EXPERTS)).topk(TOP_K).indices
                    ids[50 - padding:] = -1
                    for part in ids.split(chunk):
                        statistic.maybe_add_info(EXPERTS, part)
                    if FIRST <= iteration < LAST:
                        loads[at] += torch.bincount(ids[ids >= 0] // (EXPERTS // RANKS), minlength=RANKS)
    return loads


def main(path, program, folder):
    torch.manual_seed(1)
    for name, case in {"whole": (50, 0, 0), "chunks": (16, 0, 0), "padding": (50, 7, 0), "a layer twice": (50, 0, 1)}.items():
        where = os.path.join(folder, name.replace(" ", "-"))
        try:
            loads = play(load(path), where, *case)
        except RuntimeError as error:  # later versions count no rows of padding
            print(json.dumps({"case": name, "engine": str(error)}))
            continue
        read = json.loads(subprocess.run([program, "counts", "--ep", str(RANKS), "--format", "json", where], capture_output=True, text=True, check=True).stdout)
        rows = {row["layer"]: row for row in read["imbalance"] if row["level"] == "rank"}
        worst = [int(load.argmax()) for load in loads]
        print(json.dumps({"case": name, "layers": sorted(rows), "busiest_rank": worst == [rows[layer]["worst"] for layer in LAYERS],
                          "max_over_mean": [round(float(load.max() / load.float().mean()), 4) for load in loads],
                          "read": [round(rows[layer]["max_over_mean"], 4) for layer in LAYERS]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
