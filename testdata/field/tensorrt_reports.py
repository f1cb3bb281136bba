"""What TensorRT-LLM's own report writers write, against what 'moebalance compare' reads of it, and bench_moe's own plans against the floor.

    python3 tensorrt_reports.py MOEBALANCE REPORTING.py BUILDERS.py     # a line of JSON for each case; needs no package and no GPU

The files are tensorrt_llm/bench/dataclasses/reporting.py, whose JSON and printed report are written of made requests, with and without
streaming and drafts, and tests/microbenchmarks/bench_moe/routing/builders.py, whose plans go into a report of bench_moe.
"""
import ast
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import types
import typing

FOLDER = tempfile.mkdtemp()
SHAPES = [(256, 8, 8), (128, 8, 16), (128, 4, 4), (64, 6, 8)]  # experts, top-k, ranks
TOKENS = [1, 3, 8, 33]  # of a rank


def run(path, names, **space):
    """The functions and classes of a file, without what it imports."""
    with open(path) as f:
        tree = ast.parse(f.read())
    space = {"Any": typing.Any, "Dict": dict, "List": list, "Tuple": tuple, "Optional": typing.Optional, "json": json} | space
    for node in tree.body:
        if getattr(node, "name", None) in names:
            exec(compile(ast.unparse(ast.Module([node], [])), path, "exec"), space)
    return space


class Percentiles(dict):
    """Statistics as tensorrt_llm/bench/dataclasses/general.py takes them."""

    def __init__(self, values):
        values = sorted(values)
        super().__init__({f"p{q}": values[int(len(values) * q / 100)] for q in (50, 90, 95, 99)})
        self.update(minimum=values[0], maximum=values[-1], average=sum(values) / len(values))
        self.average = self["average"]

    def model_dump(self, **_):
        return dict(self)


def measured(seed):
    """Made requests: their statistics, in ns, as the writer takes them."""
    drawn = random.Random(seed)
    n, into, out = drawn.randint(20, 200), 1024, drawn.randint(16, 512)
    wall = drawn.uniform(1e9, 1e11)
    latency, first = [drawn.uniform(1e8, 1e9) for _ in range(n)], [drawn.uniform(1e6, 1e8) for _ in range(n)]
    per_token = [(a - b) / (out - 1) for a, b in zip(latency, first)]
    return types.SimpleNamespace(
        num_requests=n, avg_concurrent_requests=sum(latency) / wall, average_input_length=into, average_output_length=out, issue_rate_ns=0.3,
        total_latency_ns=wall, request_throughput_ns=n / wall, output_throughput_tok_ns=n * out / wall,
        total_token_throughput_tok_ns=n * (into + out) / wall, output_throughput_tok_ns_per_user=sum(out / t for t in latency) / n,
        per_user_generation_token_throughput_ns=sum(1 / t for t in per_token) / n, per_user_time_per_output_token_ns=sum(per_token) / n,
        per_user_time_to_first_token_ns=sum(first) / n, request_latency_percentiles=Percentiles(latency), tpot_percentiles=Percentiles(per_token),
        ttft_percentiles=Percentiles(first), generation_tp_percentiles=Percentiles([1 / t for t in per_token]),
        num_draft_tokens_percentiles=Percentiles([3.0] * n), num_accepted_draft_tokens_percentiles=Percentiles([1.5] * n),
        draft_acceptance_rate_percentiles=Percentiles([0.5] * n), acceptance_length_percentiles=Percentiles([2.5] * n))


def written(path, statistics, streaming, drafts, machine):
    """The paths of the two reports of a run."""
    fields = {"dtype": "fp8", "free_gpu_memory_fraction": 0.9}
    cache = type("KvCacheConfig", (), fields)
    none = types.SimpleNamespace(NONE=None)
    writer = run(path, ["ReportUtility"], KvCacheConfig=cache, SpeculativeDecodingMode=none)["ReportUtility"].__new__
    utility = run(path, ["ReportUtility"], KvCacheConfig=cache, SpeculativeDecodingMode=none)["ReportUtility"]
    engine = os.path.join(FOLDER, "engine")
    os.makedirs(engine, exist_ok=True)
    with open(os.path.join(engine, "config.json"), "w") as f:
        json.dump({"build_config": {"max_input_len": 2048, "max_seq_len": 4096},
                   "pretrained_config": {"dtype": "bfloat16", "quantization": {"kv_cache_quant_algo": "FP8", "quant_algo": "FP8"}}}, f)
    self = writer(utility)
    import pathlib
    self.rt_cfg = types.SimpleNamespace(
        model="deepseek-ai/DeepSeek-R1", model_path=None, engine_dir=pathlib.Path(engine), sw_version="1.3.0", backend="tensorrt", decoding_config=None,
        mapping={"tp_size": 8, "pp_size": 1, "moe_ep_size": 8, "world_size": 8},
        settings_config=types.SimpleNamespace(max_batch_size=256, max_num_tokens=8192, scheduler_policy="GUARANTEED_NO_EVICT"))
    self.kwargs = {"speculative_config": types.SimpleNamespace(decoding_type="MTP", max_draft_len=3)} if drafts else {}
    self.statistics, self.streaming = statistics, streaming
    self._query_gpu_info = lambda: machine
    self.dataset_metadata = types.SimpleNamespace(model_dump=lambda **_: {"isl_stats": {}, "num_requests": 7}, get_summary_for_print=lambda: "\nEND\n")
    if not hasattr(self, "get_max_draft_len"):
        self.get_max_draft_len = lambda: 3
    lines = []
    self.logger = types.SimpleNamespace(info=lambda text: lines.append("[11/20/2026-10:00:00] [TRT-LLM] [I] " + text))
    self.report_statistics()
    paths = [os.path.join(FOLDER, name) for name in ("report.json", "report.txt")]
    with open(paths[0], "w") as f:
        json.dump(self.get_statistics_dict(), f, indent=4)
    with open(paths[1], "w") as f:
        f.write("\n".join(lines) + "\n")
    return paths


def read(program, metric, *paths):
    """The values of a metric in two reports."""
    command = [program, "compare", "--trust-arms", "--format", "json"] + (["--metric", metric] if metric else []) + list(paths)
    out = subprocess.run(command, capture_output=True, text=True)
    if not out.stdout.startswith("{"):
        raise SystemExit(out.stderr)
    return json.loads(out.stdout)


def reports(program, path):
    for name, (streaming, drafts, machine) in {"plain": (False, False, None), "streaming": (True, False, {"name": "NVIDIA H200", "memory.total": 139.8, "clocks.mem": 3.2}),
                                               "drafts": (True, True, None)}.items():
        s = measured(name)
        per, ms = 1e9, 1e-6
        truth = {"output_throughput": per * s.output_throughput_tok_ns, "request_throughput": per * s.request_throughput_ns, "duration": ms * s.total_latency_ns,
                 "total_throughput": per * s.total_token_throughput_tok_ns, "user_throughput": per * s.output_throughput_tok_ns_per_user,
                 "request_latency_p99": ms * s.request_latency_percentiles["p99"], "request_latency_mean": ms * s.request_latency_percentiles["average"]}
        if streaming:
            truth |= {"ttft_p50": ms * s.ttft_percentiles["p50"], "ttft_mean": ms * s.per_user_time_to_first_token_ns, "tpot_max": ms * s.tpot_percentiles["maximum"],
                      "tpot_mean": ms * s.per_user_time_per_output_token_ns, "user_speed_p90": per * s.generation_tp_percentiles["p90"]}
        paths = written(path, s, streaming, drafts, machine)
        wrong = []
        for metric, want in truth.items():
            have = read(program, metric, *paths)["pairs"][0]
            wrong += [metric for arm in ("normal", "perfect") if not math.isclose(have[arm], want, rel_tol=1e-3)]
        print(json.dumps({"report": name, "metrics": len(truth), "forms": 2, "wrong": wrong}))


def plans(program, path):
    found = run(path, ["_largest_remainder_split", "_aggregate_dispatch_source_tokens", "_build_dispatch_matrix", "_build_expert_histogram"],
                _parse_comm_pattern=lambda pattern: pattern, _parse_expert_pattern=lambda pattern: pattern)
    cases, even, worst, wrong = 0, 0, 1.0, 0
    for experts, top_k, ranks in SHAPES:
        for tokens in TOKENS:
            files = []
            for pattern in ("receiver_hotspot", {"rank": 0, "hotness": 0.3}), ("balanced_alltoall", {}):
                matrix = found["_build_dispatch_matrix"](pattern, [tokens] * ranks, top_k, ranks, True)
                histogram = found["_build_expert_histogram"](("balanced", {}), matrix, experts // ranks, ranks)
                loads = [sum(row) for row in histogram]
                files.append(os.path.join(FOLDER, pattern[0] + ".json"))
                with open(files[-1], "w") as f:
                    json.dump({"benchmark": "bench_moe", "environment": {"world_size": ranks}, "model": {"name": "made", "top_k": top_k}, "results": [
                        {"workload": {"num_tokens": tokens * ranks}, "actual_config": {"backend": "CUTLASS"}, "status": "success", "latency_ms": {"score": 1.0 + len(files)},
                         "routing_control": {"actual": {"enable_perfect_router": pattern[0] != "receiver_hotspot",
                                                        "observed_dispatch_matrix_summary": {"col_sums": loads}}}}], "rankings": []}, f)
            uneven, floor = max(loads) * ranks / sum(loads), math.ceil(sum(loads) / ranks) * ranks / sum(loads)
            cases, even, worst = cases + 1, even + (uneven == floor), max(worst, uneven / floor)
            told = read(program, None, *files)["proof"]
            wrong += not any(p["arm"] == "perfect" and f"max/mean {uneven:.3f} over ranks" in p["evidence"] for p in told)
    print(json.dumps({"plan": "bench_moe, balanced_alltoall", "cases": cases, "as_even_as_slots_allow": even, "worst_over_floor": round(worst, 2), "wrongly_read": wrong}))


if __name__ == "__main__":
    reports(*sys.argv[1:3])
    plans(sys.argv[1], sys.argv[3])
