"""Captures of models whose layers are unlike: hybrids of linear and full attention, experts in every second layer, drafts by MTP,
chunked prompts beside decode. One GPU, dummy weights, few layers. Each trace is in FOLDER/out, and beside it what the engine scheduled.

    python3 structures.py prepare FOLDER
    VLLM_ALLOW_INSECURE_SERIALIZATION=1 VLLM_ENABLE_V1_MULTIPROCESSING=0 python3 structures.py NAME FOLDER
"""
import fcntl
import glob
import json
import os
import random
import shutil
import sys
import time

from serve import filled

WORDS = 20000
COMMON = dict(vocab_size=WORDS, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GDN = dict(gdn_prefill_backend="triton", attention_config={"backend": "TRITON_ATTN"})  # FlashAttention 3 of sm_90 alone has no heads of 256
# name: (config class, architecture, number of layers with experts, options of the config, options of the engine)
MODELS = {
    "qwen3next-mtp": ("Qwen3NextConfig", "Qwen3NextForCausalLM", 8, dict(
        num_hidden_layers=8, head_dim=128, num_experts=128, num_nextn_predict_layers=1), dict(GDN, speculative_config={"method": "mtp", "num_speculative_tokens": 1})),
    "qwen3next": ("Qwen3NextConfig", "Qwen3NextForCausalLM", 12, dict(num_hidden_layers=12, num_experts=128), GDN),
    "glm4-mtp": ("Glm4MoeConfig", "Glm4MoeForCausalLM", 7, dict(
        num_hidden_layers=8, head_dim=128, num_nextn_predict_layers=1, n_routed_experts=64), dict(speculative_config={"method": "mtp", "num_speculative_tokens": 2})),
    "llama4": ("Llama4TextConfig", "Llama4ForCausalLM", 5, dict(
        num_hidden_layers=10, interleave_moe_layer_step=2, hidden_size=2560, num_attention_heads=20, num_key_value_heads=4, intermediate_size=4096, intermediate_size_mlp=8192), {}),
    "nemotronh": ("nemotron", "NemotronHForCausalLM", 7, dict(
        num_hidden_layers=17, max_position_embeddings=8192, hybrid_override_pattern="MEMEM*EMEMEM*EMEM", hidden_size=2688, num_attention_heads=32, num_key_value_heads=2, head_dim=128,
        attention_head_dim=128, intermediate_size=1856, mamba_num_heads=64, mamba_head_dim=64, n_groups=8, ssm_state_size=128, n_routed_experts=64, num_experts_per_tok=6, n_shared_experts=1,
        moe_intermediate_size=1856, moe_shared_expert_intermediate_size=3712, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, mlp_hidden_act="relu2"), {}),
    "kimilinear": ("kimi", "KimiLinearForCausalLM", 11, dict(
        num_hidden_layers=12, hidden_size=2304, intermediate_size=9216, num_attention_heads=32, num_key_value_heads=32, head_dim=72, moe_intermediate_size=1024, num_experts=64,
        num_experts_per_token=8, num_shared_experts=1, routed_scaling_factor=2.446, first_k_dense_replace=1, q_lora_rank=None, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
        v_head_dim=128, mla_use_nope=True, linear_attn_config={"full_attn_layers": [4, 8, 12], "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11], "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4}), {}),
    "jamba": ("JambaConfig", "JambaForCausalLM", 8, dict(num_hidden_layers=16, hidden_size=2048, intermediate_size=5632, num_attention_heads=16, mamba_dt_rank=128), {}),
    "granite4": ("GraniteMoeHybridConfig", "GraniteMoeHybridForCausalLM", 10, dict(
        num_hidden_layers=10, hidden_size=1536, intermediate_size=512, num_attention_heads=12, num_key_value_heads=4, shared_intermediate_size=1024, num_local_experts=64, num_experts_per_tok=6,
        mamba_n_heads=48, mamba_d_head=64, mamba_d_state=128, layer_types=["mamba"] * 4 + ["attention"] + ["mamba"] * 5, position_embedding_type="nope", max_position_embeddings=8192), {}),
    "lfm2": ("Lfm2MoeConfig", "Lfm2MoeForCausalLM", 14, dict(
        num_hidden_layers=16, layer_types=["conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv"] * 2), {}),
    "qwen3-w4a16": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", 10, dict(
        num_hidden_layers=10, quantization_config={"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}), {}),
    "mixtral-fp8": ("MixtralConfig", "MixtralForCausalLM", 8, dict(
        num_hidden_layers=8, intermediate_size=7168, quantization_config={"quant_method": "fp8", "activation_scheme": "dynamic"}), {}),
    "qwen3-mixed": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", 8, dict(num_hidden_layers=8), dict(max_num_batched_tokens=1024)),
    "qwen3next-mixed": ("Qwen3NextConfig", "Qwen3NextForCausalLM", 8, dict(num_hidden_layers=8, num_experts=128), dict(GDN, max_num_batched_tokens=1024)),
    "qwen3-eager": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", 9, dict(num_hidden_layers=12, mlp_only_layers=[0, 5, 6]), dict(enforce_eager=True)),
}


def prepare(folder):
    import transformers
    from vllm.transformers_utils.configs.kimi_linear import KimiLinearConfig
    from vllm.transformers_utils.configs.nemotron_h import NemotronHConfig
    own = {"kimi": KimiLinearConfig, "nemotron": NemotronHConfig}
    for name, (cls, architecture, _, options, _) in MODELS.items():
        try:
            config = (own.get(cls) or getattr(transformers, cls))(architectures=[architecture], dtype="bfloat16", **{**COMMON, **options})
            os.makedirs(f"{folder}/{name}", exist_ok=True)
            d = config.to_dict()
            d.update({k: v for k, v in options.items() if k not in d}, architectures=[architecture])
            with open(f"{folder}/{name}/config.json", "w") as f:
                json.dump(d, f, default=str)
        except Exception as e:
            print("prepare", name, repr(e)[:300], flush=True)


def main(name, folder):
    from vllm import LLM, SamplingParams
    from vllm.inputs import TokensPrompt
    filled()
    _, _, experts, _, more = MODELS[name]
    traces = f"{folder}/{name}.traces"
    begun = time.time()
    llm = LLM(**{**dict(
        model=f"{folder}/{name}", load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", max_model_len=4200, max_num_seqs=64, max_num_batched_tokens=4096,
        enable_prefix_caching=False, gpu_memory_utilization=0.3, kv_cache_memory_bytes=6 << 30, compilation_config={"cudagraph_capture_sizes": [1, 64, 128, 192]}, seed=0,
        profiler_config={"profiler": "torch", "torch_profiler_dir": traces, "torch_profiler_with_stack": False}), **more})
    scheduled = []

    def count(worker):
        execute = worker.execute_model

        def step(output, *args, **given):
            if output.total_num_scheduled_tokens:
                scheduled.append(output.total_num_scheduled_tokens)
            return execute(output, *args, **given)
        worker.execute_model = step

    llm.collective_rpc(count)
    draw = random.Random(1)

    def run(requests, prompt, new):
        batch = [TokensPrompt(prompt_token_ids=[draw.randrange(100, WORDS) for _ in range(prompt)]) for _ in range(requests)]
        start = time.perf_counter()
        llm.generate(batch, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=new, temperature=0.0), use_tqdm=False)
        return time.perf_counter() - start

    def mixed():
        """Prompts of 20 to 2,000 tokens in chunks of 1,024, beside requests that already decode."""
        sizes = random.Random(7)
        batch = [TokensPrompt(prompt_token_ids=[draw.randrange(100, WORDS) for _ in range(sizes.randrange(20, 2000))]) for _ in range(24)]
        params = [SamplingParams(ignore_eos=True, detokenize=False, max_tokens=sizes.randrange(2, 24), temperature=0.0) for _ in batch]
        llm.generate(batch, params, use_tqdm=False)

    for _ in range(2):
        mixed() if name.endswith("mixed") else None
        run(2, 4096, 1)
        run(64, 1, 6)
    print(f"{name} ready after {time.time() - begun:.0f} s", flush=True)
    with open(f"{folder}/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        seconds = {"prefill": run(5, 4096, 1), "decode": run(64, 1, 10)}
        scheduled.clear()
        llm.start_profile()
        if name.endswith("mixed"):
            mixed()
        else:
            run(5, 4096, 1)
            run(64, 1, 10)
        llm.stop_profile()
        time.sleep(1)
    found = glob.glob(f"{traces}/*.json*")
    os.makedirs(f"{folder}/out", exist_ok=True)
    for path in found:
        shutil.copy(path, f"{folder}/out/{name}." + ("json.gz" if path.endswith("gz") else "json"))
    with open(f"{folder}/out/{name}.truth.json", "w") as f:
        json.dump({"name": name, "expert_layers": experts, "draft_passes": more.get("speculative_config", {}).get("num_speculative_tokens", 0), "tokens": scheduled, "seconds": seconds}, f)
    print(f"{name} done after {time.time() - begun:.0f} s", flush=True)
    os._exit(0)


if __name__ == "__main__":
    prepare(sys.argv[2]) if sys.argv[1] == "prepare" else main(sys.argv[1], sys.argv[2])
