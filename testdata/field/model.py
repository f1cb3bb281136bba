"""Writes what vLLM, SGLang and transformers need of a model whose weights are dummies: config.json, and a tokenizer of words t0, t1, ….

    python3 model.py qwen3-30b-a3b FOLDER [LAYERS [quantized]]     # gpt-oss in MXFP4, deepseek-v3 in FP8
"""
import json
import os
import sys

CONFIGS = {
    "qwen3-30b-a3b": dict(
        architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", hidden_size=2048, num_hidden_layers=48, num_attention_heads=32,
        num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768, intermediate_size=6144,
        norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], vocab_size=151936, max_position_embeddings=40960),
    "gpt-oss": dict(
        architectures=["GptOssForCausalLM"], model_type="gpt_oss", hidden_size=2880, num_hidden_layers=12, num_attention_heads=64,
        num_key_value_heads=8, head_dim=64, num_local_experts=128, num_experts_per_tok=4, experts_per_token=4, intermediate_size=2880,
        sliding_window=128, swiglu_limit=7.0, attention_bias=True, initial_context_length=4096, rope_theta=150000, rope_scaling=dict(
            rope_type="yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, original_max_position_embeddings=4096, truncate=False),
        layer_types=["sliding_attention", "full_attention"] * 6, vocab_size=201088, max_position_embeddings=131072),
    "deepseek-v3": dict(
        architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", hidden_size=7168, num_hidden_layers=7, first_k_dense_replace=1,
        num_attention_heads=128, num_key_value_heads=128, q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
        v_head_dim=128, n_routed_experts=256, num_experts_per_tok=8, n_group=8, topk_group=4, n_shared_experts=1, moe_intermediate_size=2048,
        intermediate_size=18432, routed_scaling_factor=2.5, norm_topk_prob=True, scoring_func="sigmoid", topk_method="noaux_tc",
        num_nextn_predict_layers=0, vocab_size=129280, max_position_embeddings=32768),
    "qwen3-tiny": dict(
        architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, num_experts=32, num_experts_per_tok=4, moe_intermediate_size=128, intermediate_size=512,
        norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], vocab_size=2048, max_position_embeddings=1024),
    "deepseek-tiny": dict(
        architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", hidden_size=256, num_hidden_layers=4, first_k_dense_replace=1, moe_layer_freq=1,
        num_attention_heads=4, num_key_value_heads=4, q_lora_rank=64, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
        v_head_dim=128, n_routed_experts=256, num_experts_per_tok=8, n_group=8, topk_group=4, n_shared_experts=1, moe_intermediate_size=64,
        intermediate_size=512, routed_scaling_factor=2.5, norm_topk_prob=True, scoring_func="sigmoid", topk_method="noaux_tc",
        rope_scaling=dict(type="yarn", factor=4, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0, original_max_position_embeddings=256),
        num_nextn_predict_layers=0, vocab_size=2048, max_position_embeddings=1024),
}

QUANTIZED = {
    "gpt-oss": dict(quant_method="mxfp4", modules_to_not_convert=[
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]),
    "deepseek-v3": dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[128, 128]),
}


def write(name, folder, layers=None, quantized=None):
    config = dict(CONFIGS[name], hidden_act="silu", rms_norm_eps=1e-6, tie_word_embeddings=False, torch_dtype="bfloat16", bos_token_id=0, eos_token_id=1)
    if layers:
        config["num_hidden_layers"] = layers
        if "layer_types" in config:
            config["layer_types"] = config["layer_types"][:layers]
    if quantized:
        config["quantization_config"] = QUANTIZED[name]
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/config.json", "w") as f:
        json.dump(config, f, indent=1)
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    tokenizer = Tokenizer(models.WordLevel({f"t{i}": i for i in range(config["vocab_size"])}, unk_token="t0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    tokenizer.save(f"{folder}/tokenizer.json")
    with open(f"{folder}/tokenizer_config.json", "w") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "t0", "eos_token": "t1", "model_max_length": config["max_position_embeddings"]}, f)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None, *sys.argv[4:])
