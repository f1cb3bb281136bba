"""The switch under CUDA graphs, on one GPU with transformers: what it does and what it costs, in some four minutes.

    PYTHONPATH=HOOK python3 switch.py MOEBALANCE OUT        # lines of JSON; exit 1 if a check fails

A Qwen3-MoE of random weights runs prefill and decode as CUDA graphs (without a GPU: as they are, and smaller), once as it
is, once with the hook and learned logits, once with the switch, once with the switch and counts. Checked are the output of
learned segments against the model without the hook, and in every recorded step of every layer the slots per expert: at the
floor in balanced segments, in learned ones those of the model without the hook.
"""
import glob
import json
import os
import pathlib
import subprocess
import sys
import time

import torch
import transformers

GPU = torch.cuda.is_available()
SHAPE = dict(hidden_size=2048, moe_intermediate_size=768, num_hidden_layers=8, num_attention_heads=32, num_key_value_heads=4, head_dim=128, vocab_size=32000)
SMALL = dict(hidden_size=128, moe_intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32, vocab_size=1000)
POINTS = {"prefill:8192": (8, 1024), "decode:64": (64, 1), "decode:16": (16, 1)} if GPU else {"prefill:96": (2, 48), "decode:7": (7, 1)}
REPLAYS = {"prefill": 10, "decode": 100} if GPU else {"prefill": 3, "decode": 5}
BLOCKS = 6 if GPU else 50  # of four segments
KINDS = ("none", "off", "switch", "counted")  # without the hook; with it, switched off; with the switch; and with counts
EXPERTS, TOP_K = 128, 8


def config():
    return transformers.Qwen3MoeConfig(**(SHAPE if GPU else SMALL), num_experts=EXPERTS, num_experts_per_tok=TOP_K, norm_topk_prob=True,
                                       decoder_sparse_step=1, mlp_only_layers=[])


def batch(model, size):
    """Tokens with their positions and mask, so that nothing is left to be made while a graph is captured."""
    length = torch.arange(size[1])
    return {"input_ids": torch.randint(0, model.config.vocab_size, size), "position_ids": length.expand(size),
            "attention_mask": (length.view(-1, 1) >= length).expand(size[0], 1, size[1], size[1]).contiguous(), "use_cache": False}


def sync():
    if GPU:
        torch.cuda.synchronize()


def learned_counts(model, batches):
    """Slots per layer and expert of each batch, by the routers' own outputs."""
    counts = {}
    for point, given in batches.items():
        rows = []
        handles = [m.register_forward_hook(lambda _, __, out: rows.append(torch.bincount(out[2].flatten().cpu(), minlength=EXPERTS)))
                   for m in model.modules() if type(m).__name__.endswith("TopKRouter")]
        model.model(**given)
        for handle in handles:
            handle.remove()
        counts[point] = torch.stack(rows)
    return counts


def graphs(model, batches):
    """For each batch, what runs it again, and its output."""
    again = {}
    for point, given in batches.items():
        if not GPU:
            out = [None]

            def run(given=given, out=out):
                out[0] = model.model(**given).last_hidden_state
            again[point] = (run, out)
            continue
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                model.model(**given)
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(graph):
            out = model.model(**given).last_hidden_state
        again[point] = (graph.replay, [out])
    return again


@torch.no_grad()
def run(kind, out):
    device = "cuda" if GPU else "cpu"
    torch.manual_seed(7)
    torch.set_default_dtype(torch.bfloat16 if GPU else torch.float32)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config(), experts_implementation="grouped_mm").eval()
        batches = {point: batch(model, size) for point, size in POINTS.items()}
    before, plain = learned_counts(model, batches), {}
    for point, (again, result) in graphs(model, batches).items():
        again()
        sync()
        plain[point] = result[0].clone()
    import moebalance_hook
    if kind != "none":
        moebalance_hook.transformers(model)
        with moebalance_hook.step(0):
            for given in batches.values():  # the largest first, eager: each layer's choice is compared with the cache
                model.model(**given)
    replayed = graphs(model, batches)

    def measure():
        """Milliseconds per step of each point."""
        took = {}
        for point, (again, _) in replayed.items():
            sync()
            start, n = time.perf_counter(), REPLAYS[point.partition(":")[0]]
            for _ in range(n):
                with moebalance_hook.step(batches[point]["input_ids"].numel()):
                    again()
            sync()
            took[point] = (time.perf_counter() - start) / n * 1e3
        return took
    if kind in ("none", "off"):
        if kind == "none":
            moebalance_hook.HOOK.step = lambda *_: None
            moebalance_hook.HOOK.finish = lambda: None
        measure()
        runs = [measure() for _ in range(2 * BLOCKS)]
        print(json.dumps({"kind": kind, "ms_per_step": {"learned": median(runs)}}), flush=True)
        return
    record = moebalance_hook.alternate(measure, blocks=BLOCKS)
    by_arm = {arm: [s["value"] for b in record["blocks"] for s in b["segments"] if s["arm"] == arm] for arm in ("normal", "perfect")}
    line = {"kind": kind, "ms_per_step": {"learned": median(by_arm["normal"]), "balanced": median(by_arm["perfect"])},
            "layers": len(moebalance_hook.HOOK.layers), "layers_proved": sum(layer.proved for layer in moebalance_hook.HOOK.layers.values())}
    while moebalance_hook.HOOK.spec != "off":  # alternate has asked for it
        measure()
    measure()
    line["learned_output_differs_by"] = max(float((result[0] - plain[point]).abs().max()) for point, (_, result) in replayed.items())
    if kind == "counted":
        moebalance_hook.HOOK.write()
        line.update(judge(out, before, batches))
    print(json.dumps(line), flush=True)


def median(runs):
    return {point: sorted(r[point] for r in runs)[len(runs) // 2] for point in runs[0]}


def judge(out, before, batches):
    """The recorded steps of all sequences against the floor, or against the model without the hook."""
    from safetensors.torch import load_file
    tokens = {given["input_ids"].numel() * TOP_K: point for point, given in batches.items()}
    said = {"balanced_rows": 0, "balanced_rows_off_floor": 0, "learned_rows": 0, "learned_slots": 0, "learned_slots_elsewhere": 0}
    for folder in sorted(glob.glob(f"{out}/counts/sequence*")):
        proof = json.loads(pathlib.Path(folder, "moebalance-hook.rank0.json").read_text())
        for name, row in load_file(folder + "/rank0.safetensors").items():
            slots, layer = int(row.sum()), int(name.partition("_")[2])
            if slots not in tokens:  # the step that is no batch: the eager calls
                continue
            if proof["router"] == "perfect":
                said["balanced_rows"] += 1
                said["balanced_rows_off_floor"] += int(row.max()) != -(-slots // EXPERTS)
            else:
                said["learned_rows"] += 1
                said["learned_slots"] += slots
                said["learned_slots_elsewhere"] += int((row - before[tokens[slots]][layer]).abs().sum()) // 2
    return said


def main(program, out):
    os.makedirs(out, exist_ok=True)
    pathlib.Path(out, "config.json").write_text(config().to_json_string(use_diff=False))
    subprocess.run([program, "logits", "generate", "--model", out + "/config.json", "--ep", "1", "--mode", "tep", "--cache", out + "/cache"],
                   check=True, stdout=subprocess.DEVNULL)
    lines = {}
    for kind in KINDS:
        variables = {name: value for name, value in os.environ.items() if not name.startswith("MOEBALANCE_") and name != "ENABLE_PERFECT_ROUTER"}
        if kind != "none":
            variables["MOEBALANCE_CACHE"] = out + "/cache"
        if kind in ("switch", "counted"):
            os.makedirs(f"{out}/control.{kind}", exist_ok=True)
            variables["MOEBALANCE_CONTROL"] = f"{out}/control.{kind}"
        if kind == "counted":
            variables["MOEBALANCE_COUNTS"] = out + "/counts"
        done = subprocess.run([sys.executable, __file__, "run", kind, out], env=variables, stdout=subprocess.PIPE, text=True, check=True)
        lines[kind] = json.loads(done.stdout.splitlines()[-1])
        print(json.dumps(lines[kind]), flush=True)
    base = lines["none"]["ms_per_step"]["learned"]
    counted = lines["counted"]
    summary = {"gpu": torch.cuda.get_device_name() if GPU else None, "torch": torch.__version__, "transformers": transformers.__version__,
               "cost_percent": {kind: {point: round(100 * (lines[kind]["ms_per_step"]["learned"][point] / ms - 1), 2) for point, ms in base.items()}
                                for kind in KINDS[1:]}}
    good = (counted["layers_proved"] == counted["layers"] and counted["balanced_rows"] > 0 and counted["balanced_rows_off_floor"] == 0
            and counted["learned_rows"] > 0 and counted["learned_slots_elsewhere"] <= 0.03 * counted["learned_slots"])
    print(json.dumps({**summary, "passed": good}), flush=True)
    sys.exit(not good)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
