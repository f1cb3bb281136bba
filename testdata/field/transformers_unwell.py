"""transformers' Qwen3-MoE (3 layers, random weights) with its own expert parallelism: learned and balanced routing on healthy GPUs,
beside a rank whose GPU also runs other work, and with a rank whose host launches late. Each case is timed without the profiler
(learned and balanced in the order ABBA BAAB, a JSON line), then captured by it, with the experts that the routers chose.

    python3 transformers_unwell.py model
    CASE=healthy|slow-gpu|late-host BATCH=8 LENGTH=1024 LATE=0.004 torchrun --nproc-per-node 2 transformers_unwell.py OUT
    python3 transformers_unwell.py burn 45 &      # before a healthy case: another process on the second GPU ("shared")
"""
import json
import os
import sys
import threading
import time

import torch

EXPERTS, TOP_K = 128, 8


def write_model():
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(7)
    torch.set_default_dtype(torch.bfloat16)
    config = Qwen3MoeConfig(
        hidden_size=4096, moe_intermediate_size=2048, num_hidden_layers=3, num_experts=EXPERTS, num_experts_per_tok=TOP_K,
        norm_topk_prob=True, num_attention_heads=32, num_key_value_heads=4, head_dim=128, vocab_size=32000, mlp_only_layers=[],
        max_position_embeddings=4096, dtype="bfloat16")
    with torch.device("cuda:0"):
        model = Qwen3MoeForCausalLM(config)
    for i, layer in enumerate(model.model.layers):
        gate = layer.mlp.gate.weight
        scale = torch.exp(0.5 * torch.randn(EXPERTS, 1, device=gate.device))
        if i != 1:
            scale[32:64] *= 1.6  # the first rank's experts are the busier ones
        with torch.no_grad():
            gate.mul_(scale.to(gate.dtype) * 2)
    model.save_pretrained("model", max_shard_size="4GB")


def burn(seconds):
    torch.cuda.set_device(1)
    a = torch.randn(2048, 2048, device="cuda:1", dtype=torch.bfloat16)
    end = time.time() + seconds
    while time.time() < end:
        for _ in range(4):
            a @ a
        torch.cuda.synchronize()
        time.sleep(0.0003)


def run(out):
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.profiler import ProfilerActivity, profile
    from transformers import AutoModelForCausalLM
    from transformers.distributed import DistributedConfig

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    model = AutoModelForCausalLM.from_pretrained(
        "model", experts_implementation="grouped_mm", dtype=torch.bfloat16,
        distributed_config=DistributedConfig(tp_size=ranks, enable_expert_parallel=True)).eval()
    layers, linear = model.model.layers, F.linear
    batch, length = int(os.environ.get("BATCH", 8)), int(os.environ.get("LENGTH", 1024))
    device, tokens = f"cuda:{rank}", batch * length
    chosen = (torch.arange(tokens * TOP_K, device=device) % EXPERTS).view(tokens, TOP_K)
    balanced = torch.full((tokens, EXPERTS), -8.0, device=device, dtype=torch.bfloat16).scatter_(1, chosen, 8.0)
    counts = torch.zeros(len(layers), EXPERTS, dtype=torch.int64, device=device)
    case = os.environ["CASE"]
    late = float(os.environ.get("LATE", 0.004)) if case == "late-host" and rank == 1 else 0.0
    state = {"balanced": False, "burning": False}

    def wrap(i, layer):
        gate, attend = layer.mlp.gate.forward, layer.self_attn.forward

        def route(x):
            if state["balanced"]:
                def instead(*given):
                    linear(*given)  # the gate's own work, as in the learned arm
                    return balanced
                F.linear = instead
            try:
                routed = gate(x)
            finally:
                F.linear = linear
            ids = torch.topk(routed[0], TOP_K, dim=-1).indices.reshape(-1)
            counts[i].index_add_(0, ids, torch.ones_like(ids))
            return routed

        def attention(*args, **options):
            end = time.perf_counter() + late
            while time.perf_counter() < end:
                pass
            return attend(*args, **options)

        layer.mlp.gate.forward, layer.self_attn.forward = route, attention

    for i, layer in enumerate(layers):
        wrap(i, layer)
    torch.manual_seed(1)
    ids = torch.randint(0, 32000, (batch, length), device=device)

    @torch.no_grad()
    def steps(n):
        for _ in range(n):
            model.model(ids, use_cache=False)

    def meet():
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()

    def timed(n=12):
        steps(3)
        meet()
        start = time.perf_counter()
        steps(n)
        meet()
        return (time.perf_counter() - start) / n * 1e3

    def other_work():
        stream = torch.cuda.Stream(device=device)
        a = torch.randn(3072, 3072, device=device, dtype=torch.bfloat16)
        with torch.cuda.stream(stream):
            while state["burning"]:
                for _ in range(4):
                    a @ a
                stream.synchronize()

    steps(4)
    worker = None
    if case == "slow-gpu" and rank == 1:
        state["burning"], worker = True, threading.Thread(target=other_work)
        worker.start()
    times = {"normal": [], "perfect": []}
    for arm in ("normal", "perfect", "perfect", "normal", "perfect", "normal", "normal", "perfect"):
        state["balanced"] = arm == "perfect"
        times[arm].append(round(timed(), 3))
    if rank == 0:
        print(json.dumps({"case": case, "tokens": tokens, "normal_ms": times["normal"], "perfect_ms": times["perfect"]}), flush=True)
    for arm in times:
        state["balanced"] = arm == "perfect"
        steps(2)
        counts.zero_()
        meet()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            steps(3)
            torch.cuda.synchronize()
        os.makedirs(out, exist_ok=True)
        p.export_chrome_trace(f"{out}/{arm}.rank{rank}.json.gz")
        if rank == 0:
            with open(f"{out}/{arm}.counts.json", "w") as f:
                json.dump({"logical_count": counts.cpu().tolist()}, f)
    if worker:
        state["burning"] = False
        worker.join()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    {"model": lambda: write_model(), "burn": lambda: burn(float(sys.argv[2]))}.get(sys.argv[1], lambda: run(sys.argv[1]))()
