"""What the engines' own code assigns under their switches for benchmarks, against what 'moebalance logits plans' says.

    python3 peers.py MOEBALANCE FILE…     # a line of JSON for each plan; needs torch and triton, no GPU

The files are single ones of releases: tensorrt_llm/_torch/modules/fused_moe/routing.py (before and after April 2026),
sglang/srt/layers/moe/topk.py (0.5.16, 0.5.19, 0.5.23: one of each generation), and
vllm/model_executor/layers/fused_moe/router/routing_simulator_router.py. Their functions are run, kernels by Triton's interpreter.
"""
import ast
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import types
import typing

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

SHAPES = [(256, 8, 8), (128, 8, 16), (128, 4, 4), (64, 6, 8)]  # experts, top-k, ranks
GROUPED = [(256, 8, 8, 8, 4), (256, 8, 16, 8, 4), (64, 6, 4, 8, 3), (160, 6, 8, 8, 3)]  # and groups, of which a token takes so many
FOLDER = tempfile.TemporaryDirectory()
TOKENS, DRAWS = [1, 3, 8, 33], 24


def functions(path, names):
    """The named functions and classes of a file, without what it imports."""
    with open(path) as f:
        tree = ast.parse(f.read())
    body = [n for n in tree.body if getattr(n, "name", None) in names or isinstance(n, ast.Assign) and getattr(n.targets[0], "id", None) in names]
    parts = os.path.join(FOLDER.name, os.path.basename(path))  # a file, as Triton reads the sources of its kernels
    with open(parts, "w") as f:
        f.write("from __future__ import annotations\n" + ast.unparse(ast.Module(body, [])))
    space = {"torch": torch, "triton": triton, "tl": tl, "Optional": typing.Optional, "Any": typing.Any, "ABC": object, "abstractmethod": lambda m: m,
             "dataclass": dataclasses.dataclass}
    with open(parts) as f:
        exec(compile(f.read(), parts, "exec"), space)
    return {n: space[n] for n in names if n in space}


def sglang(path):
    """The plan's name, and the ids of one rank by SGLang."""
    found = functions(path, ["_make_round_robin_expert_ids", "_simulate_balanced_routing", "_simulate_balanced_routing_kernel", "_simulate_uniform_seed"])
    if simple := found.get("_make_round_robin_expert_ids"):
        return "sglang-gen1", lambda e, k, ranks, rank, tokens: simple(tokens, k, e, device="cpu", dtype=torch.int32, layer_id=0)
    simulate = found["_simulate_balanced_routing"]
    dealt = "num_ranks" in simulate.__code__.co_varnames

    def ids(e, k, ranks, rank, tokens):
        out, weights = torch.zeros(tokens, k, dtype=torch.int32), torch.zeros(tokens, k)
        simulate(out, weights, e, random=False, layer_id=0, token_shard_rank=rank, num_token_shards=ranks, **({"num_ranks": ranks} if dealt else {}))
        return out
    return "sglang-gen3" if dealt else "sglang-gen2", ids


def tensorrt_llm(path):
    """The plan's name, the shapes that it takes, and the ids of one rank by TensorRT-LLM, flat or limited to groups."""
    flat, grouped, base = "FlatTopKPerfectRouterPlanner", "DeepSeekV3PerfectRouterPlanner", "BasePerfectRouterPlanner"
    found = functions(path, [base, flat, grouped, "_TokenGroupBeamState", "PerfectRouterRequest", "create_renormalize_expert_load_balanced_logits"])
    if create := found.get("create_renormalize_expert_load_balanced_logits"):
        return "trtllm-gen1", SHAPES, lambda e, k, ranks, rank, tokens: create(tokens, e, k, ranks, "cpu").topk(k).indices

    def ids(e, k, ranks, rank, tokens, groups=0, chosen=0):
        method = types.SimpleNamespace(routing_impl=types.SimpleNamespace(n_group=groups, topk_group=chosen))
        request = found["PerfectRouterRequest"](tokens, e, k, ranks, rank, "cpu", torch.float32)
        logits = found[grouped if groups else flat]().create_logits(method, request)
        if groups:  # the two best of a group decide whether it is taken
            best = logits.sigmoid().view(tokens, groups, -1).topk(2).values.sum(-1).topk(chosen).indices
            keep = torch.zeros(tokens, groups, dtype=torch.bool).scatter_(1, best, True)
            logits = logits.masked_fill(~keep.repeat_interleave(e // groups, 1), -torch.inf)
        return logits.topk(k).indices
    return "trtllm-gen2", SHAPES + GROUPED, ids


def counted(e, ranks, each):
    """What the certificate counts, of the ids of each rank."""
    load = torch.bincount(torch.cat(each).flatten().long(), minlength=e)
    rank = load.reshape(ranks, -1).sum(1)
    twice = sum(len(row) - len(set(row)) for rows in each for row in rows.tolist())
    return {"rank": int(rank.max()), "expert": int(load.max()), "active": int((load > 0).sum()), "twice": twice}


def ours(program, plan, e, k, ranks, seed=None, groups=()):
    model = f"e{e}k{k}" + "".join(groups and f"g{groups[0]}-{groups[1]}")
    command = [program, "logits", "plans", "--model", model, "--ep", ranks, "--tokens", ",".join(map(str, TOKENS)), "--plans", plan,
               "--format", "json"] + (["--seed", seed] if seed is not None else [])
    cases = json.loads(subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout)["plans"]
    return [{"rank": c["rank"]["max"], "expert": c["expert"]["max"], "active": c["active_experts"], "twice": c["duplicates"]}
            for c in (case["certificate"] for case in cases)]


def compare(plan, cases):
    """Prints in how many cases what we count is what their ids give."""
    same = [have == want for have, want in cases]
    print(json.dumps({"plan": plan, "same": sum(same), "different": len(same) - sum(same)}))


def main(program, *paths):
    for path in paths:
        with open(path) as f:
            text = f.read()
        if "DistributionBasedRouting" in text:
            drawn(program, path)
        elif "_simulate_balanced_routing" in text or "_make_round_robin_expert_ids" in text:
            plan, ids = sglang(path)
            compare(plan, [(have, counted(e, ranks, [ids(e, k, ranks, r, tokens) for r in range(ranks)]))
                           for e, k, ranks in SHAPES
                           for tokens, have in zip(TOKENS, ours(program, plan, e, k, ranks))])
        else:
            plan, shapes, ids = tensorrt_llm(path)
            compare(plan, [(have, counted(e, ranks, [ids(e, k, ranks, r, tokens, *groups) for r in range(ranks)]))
                           for e, k, ranks, *groups in shapes
                           for tokens, have in zip(TOKENS, ours(program, plan, e, k, ranks, groups=groups))])


def drawn(program, path):
    """Compares the means of what vLLM and we draw."""
    routing = functions(path, ["RoutingStrategy", "DistributionBasedRouting"])["DistributionBasedRouting"]
    for plan, distribution in ("vllm-uniform", "uniform"), ("vllm-normal", "normal"):
        strategy, worst = routing(distribution), 0
        for e, k, ranks in SHAPES:
            mine = [ours(program, plan, e, k, ranks, seed) for seed in range(DRAWS)]
            for i, tokens in enumerate(TOKENS):
                theirs = [counted(e, ranks, [strategy.route_tokens(torch.zeros(tokens, 1), torch.zeros(tokens, e), k)[1] for _ in range(ranks)]) for _ in range(DRAWS)]
                for key in theirs[0]:  # the means of equal distributions differ by a few standard errors
                    a, b = torch.tensor([float(d[i][key]) for d in mine]), torch.tensor([float(d[key]) for d in theirs])
                    error = ((a.var() + b.var()) / DRAWS).sqrt()
                    if a.mean() != b.mean():
                        worst = max(worst, float((a.mean() - b.mean()).abs() / error))
        print(json.dumps({"plan": plan, "standard_errors_at_most": round(worst, 2), "compared": len(SHAPES) * len(TOKENS) * 5}))


if __name__ == "__main__":
    torch.manual_seed(1)
    main(*sys.argv[1:])
