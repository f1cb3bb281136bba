"""transformers' own MoE classes with its expert parallelism and the hook: every row of every router is compared with the
cache's entry, then three steps are profiled without a range of anybody's.

    python3 transformers_ep.py make qwen3 MODEL
    MOEBALANCE_CACHE=CACHE ENABLE_PERFECT_ROUTER=1 torchrun --nproc-per-node 2 transformers_ep.py run MODEL OUT [BATCH LENGTH]
"""
import inspect
import json
import os
import re
import sys
import time

import torch
import transformers

SHAPES = {
    "qwen3": (transformers.Qwen3MoeConfig, dict(
        hidden_size=2048, moe_intermediate_size=768, num_hidden_layers=3, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True,
        num_attention_heads=32, num_key_value_heads=4, head_dim=128, decoder_sparse_step=1, mlp_only_layers=[])),
    "gpt-oss": (transformers.GptOssConfig, dict(
        hidden_size=2880, intermediate_size=2880, num_hidden_layers=3, num_local_experts=32, num_experts_per_tok=4, num_attention_heads=64,
        num_key_value_heads=8, head_dim=64, sliding_window=128, layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "deepseek": (transformers.DeepseekV3Config, dict(
        hidden_size=4096, moe_intermediate_size=1024, intermediate_size=8192, num_hidden_layers=4, first_k_dense_replace=1, n_routed_experts=64,
        num_experts_per_tok=8, n_group=8, topk_group=4, n_shared_experts=1, num_attention_heads=32, num_key_value_heads=32, q_lora_rank=1536,
        kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, norm_topk_prob=True)),
}


def make(shape, folder, *smaller):
    kind, values = SHAPES[shape]
    config = kind(**dict(values, vocab_size=32000, max_position_embeddings=4096, dtype="bfloat16", **json.loads(smaller[0] if smaller else "{}")))
    torch.manual_seed(7)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda:0" if torch.cuda.is_available() else "cpu"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder, max_shard_size="4GB")


def watch():
    """What every router chooses, by name of the module: of its class, below expert parallelism's forward, which renumbers the experts."""
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
    from transformers.models.gpt_oss import modeling_gpt_oss as gpt_oss
    from transformers.models.qwen3_moe import modeling_qwen3_moe as qwen3
    chosen = {}
    for kind in (deepseek.DeepseekV3TopkRouter, gpt_oss.GptOssTopKRouter, qwen3.Qwen3MoeTopKRouter):
        def forward(self, *args, inner=kind.forward, **named):
            out = inner(self, *args, **named)
            chosen[self] = next(x for x in out if not x.is_floating_point()).detach()
            return out
        kind.forward = forward
    return chosen


def run(folder, out, batch=8, length=1024):
    import torch.distributed as dist
    from transformers.distributed import DistributedConfig

    import moebalance_hook
    rank, ranks, gpu = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), torch.cuda.is_available()
    device = f"cuda:{rank}" if gpu else "cpu"
    if gpu:
        torch.cuda.set_device(rank)
    newer = "ep_size" in inspect.signature(DistributedConfig).parameters  # since 5.18 or so
    expert_parallel = {"ep_size": ranks} if newer else {"enable_expert_parallel": True}
    chosen = watch()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, experts_implementation="grouped_mm",
        distributed_config=DistributedConfig(tp_size=ranks, **expert_parallel)).eval()
    moebalance_hook.transformers(model)
    torch.manual_seed(1)
    tokens = torch.randint(0, 32000, (int(batch), int(length)), device=device)

    @torch.no_grad()
    def step():
        model(tokens, use_cache=False, logits_to_keep=1)
        if gpu:
            torch.cuda.synchronize()

    for _ in range(3):
        step()
    wrong, rows = 0, 0
    if os.environ.get("ENABLE_PERFECT_ROUTER") == "1":
        entry = moebalance_hook.HOOK.tables.entry
        names = {module: name for name, module in model.named_modules()}
        for router, ids in chosen.items():
            layer = int(re.search(r"\.(\d+)\.", names[router])[1])
            want = entry.of_layer(layer, len(ids))
            wrong += int((ids.cpu().sort(-1).values != want.sort(-1).values).any(-1).sum())
            rows += len(ids)
    start = time.perf_counter()
    for _ in range(20):
        step()
    seconds = (time.perf_counter() - start) / 20
    os.makedirs(out, exist_ok=True)
    activities = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if gpu else [])
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(3):
            step()
    profile.export_chrome_trace(f"{out}/rank{rank}.json.gz")
    print(json.dumps({"model": model.config.model_type, "rank": rank, "ranks": ranks, "router": moebalance_hook.HOOK.tables.spec, "routers": len(chosen),
                      "rows_compared": rows, "rows_wrong": wrong, "seconds_per_step": seconds, "torch": torch.__version__,
                      "transformers": transformers.__version__}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    {"make": make, "run": run}[sys.argv[1]](*sys.argv[2:])
