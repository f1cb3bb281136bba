package logits

import "slices"

// CommonTokens are the batch sizes, in tokens per rank, that TensorRT-LLM
// prepares when a model with balanced routing starts: 22 of them, 41,215 tokens
// together (tensorrt_llm/_torch/moe/fused_moe/routing.py). The caller owns the slice.
func CommonTokens() []int { return slices.Clone(commonTokens[:]) }

var commonTokens = [...]int{
	1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 640, 768, 1024,
	1536, 2048, 3072, 4096, 5120, 6144, 7168, 8192,
}
