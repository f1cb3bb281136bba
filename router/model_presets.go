package router

import (
	"path"
	"strings"
)

// Models lists the presets, family by family. The numbers are those of each
// model's published config.json; the methods are the ones TensorRT-LLM assigns
// to the families (tensorrt_llm/_torch/moe/fused_moe/routing.py). Each call
// makes new ones.
func Models() []Model {
	return []Model{
		preset("gpt-oss-20b", "openai/gpt-oss-20b", 32, 4, Renormalize, 2880, 2880, 24),
		preset("gpt-oss-120b", "openai/gpt-oss-120b", 128, 4, Renormalize, 2880, 2880, 36),
		preset("deepseek-v3", "deepseek-ai/DeepSeek-V3", 256, 8, DeepSeekV3, 7168, 2048, 61).
			grouped(8, 4).scaled(2.5).first(3),
		preset("deepseek-r1", "deepseek-ai/DeepSeek-R1", 256, 8, DeepSeekV3, 7168, 2048, 61).
			grouped(8, 4).scaled(2.5).first(3),
		preset("deepseek-v3.2", "deepseek-ai/DeepSeek-V3.2", 256, 8, DeepSeekV3, 7168, 2048, 61).
			grouped(8, 4).scaled(2.5).first(3),
		preset("deepseek-v4-flash", "deepseek-ai/DeepSeek-V4-Flash", 256, 6, DeepSeekV4, 4096, 2048, 43).
			scaled(1.5).hashed(3),
		preset("deepseek-v4-pro", "deepseek-ai/DeepSeek-V4-Pro", 384, 6, DeepSeekV4, 7168, 3072, 61).
			scaled(2.5).hashed(3),
		preset("deepseek-v2-lite", "deepseek-ai/DeepSeek-V2-Lite", 64, 6, Default, 2048, 1408, 27).first(1),
		preset("kimi-k2", "moonshotai/Kimi-K2-Instruct", 384, 8, DeepSeekV3, 7168, 2048, 61).scaled(2.827).first(1),
		preset("kimi-k2.5", "moonshotai/Kimi-K2.5", 384, 8, DeepSeekV3, 7168, 2048, 61).scaled(2.827).first(1),
		preset("kimi-k3", "moonshotai/Kimi-K3", 896, 16, DeepSeekV3, 7168, 3072, 93).latent(3584).first(1),
		preset("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", 128, 8, RenormalizeNaive, 2048, 768, 48),
		preset("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", 128, 8, RenormalizeNaive, 4096, 1536, 94),
		preset("qwen3-coder-480b-a35b", "Qwen/Qwen3-Coder-480B-A35B-Instruct", 160, 8, RenormalizeNaive, 6144, 2560, 62),
		preset("qwen3-next", "Qwen/Qwen3-Next-80B-A3B-Instruct", 512, 10, RenormalizeNaive, 2048, 512, 48),
		preset("qwen3.5-35b-a3b", "Qwen/Qwen3.5-35B-A3B", 256, 8, RenormalizeNaive, 2048, 512, 40),
		preset("qwen3.5-122b-a10b", "Qwen/Qwen3.5-122B-A10B", 256, 8, RenormalizeNaive, 3072, 1024, 48),
		preset("qwen3.5-397b-a17b", "Qwen/Qwen3.5-397B-A17B", 512, 10, RenormalizeNaive, 4096, 1024, 60),
		preset("glm-4.5", "zai-org/GLM-4.5", 160, 8, DeepSeekV3, 5120, 1536, 92).scaled(2.5).first(3),
		preset("glm-4.6", "zai-org/GLM-4.6", 160, 8, DeepSeekV3, 5120, 1536, 92).scaled(2.5).first(3),
		preset("glm-5", "zai-org/GLM-5", 256, 8, DeepSeekV3, 6144, 2048, 78).scaled(2.5).first(3),
		preset("glm-5.2", "zai-org/GLM-5.2", 256, 8, DeepSeekV3, 6144, 2048, 78).scaled(2.5).first(3),
		preset("mixtral-8x7b", "mistralai/Mixtral-8x7B-Instruct-v0.1", 8, 2, Renormalize, 4096, 14336, 32),
		preset("mixtral-8x22b", "mistralai/Mixtral-8x22B-Instruct-v0.1", 8, 2, Renormalize, 6144, 16384, 56),
		preset("mistral-large-3", "mistralai/Mistral-Large-3-675B-Instruct-2512", 128, 4, RenormalizeNaive, 7168, 4096, 61).
			first(3).from("params.json"),
		preset("llama-4-scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct", 16, 1, Llama4, 5120, 8192, 48),
		preset("llama-4-maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct", 128, 1, Llama4, 5120, 8192, 48).
			blocks(strings.Repeat("-E", 24)),
		preset("minimax-m2", "MiniMaxAI/MiniMax-M2", 256, 8, MiniMax2, 3072, 1536, 62),
		preset("minimax-m2.5", "MiniMaxAI/MiniMax-M2.5", 256, 8, MiniMax2, 3072, 1536, 62),
		preset("minimax-m3", "MiniMaxAI/MiniMax-M3", 128, 4, MiniMax2, 6144, 3072, 60).scaled(2).first(3),
		preset("mimo-v2-flash", "XiaomiMiMo/MiMo-V2-Flash", 256, 8, DeepSeekV3, 4096, 2048, 48).first(1),
		preset("gemma-4-26b-a4b", "google/gemma-4-26B-A4B", 128, 8, RenormalizeNaive, 2816, 704, 30),
		preset("nemotron-3-nano", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 128, 6, DeepSeekV3, 2688, 1856, 52).
			scaled(2.5).blocks("MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"),
		preset("nemotron-3-super", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 512, 22, DeepSeekV3, 4096, 2688, 88).
			latent(1024).scaled(5).blocks("MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME"),
		preset("nemotron-3-ultra", "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 512, 22, DeepSeekV3, 8192, 5120, 108).
			latent(2048).scaled(5).blocks("MEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"),
	}
}

// preset is a model all of whose layers have experts and whose combine weights
// are not scaled.
func preset(name, repository string, experts, topK int, m Method, hidden, intermediate, depth int) Model {
	return Model{
		Name: name, Title: path.Base(repository), Source: repository + " config.json",
		Shape: Shape{Experts: experts, TopK: topK}, Method: m, Scale: 1, Bias: m.Biased(), LogitsDType: logitsDType(m),
		Hidden: hidden, Intermediate: intermediate, Layers: depth, MoELayers: depth, Dense: []int{}, Hash: []int{},
	}
}

// logitsDType is float32 for the methods that score by sigmoid or softplus and
// add a bias, whose engines compute the gate in float32, and bfloat16 elsewhere.
func logitsDType(m Method) string {
	if m.Biased() || m == SigmoidRenorm {
		return "f32"
	}
	return "bf16"
}

func (m Model) grouped(groups, limit int) Model {
	m.Groups, m.TopKGroups = groups, limit
	return m
}

// from names another file than config.json.
func (m Model) from(file string) Model {
	m.Source = path.Dir(m.Source) + "/" + m.Title + " " + file
	return m
}

func (m Model) scaled(factor float32) Model {
	m.Scale = factor
	return m
}

// latent is a model whose experts work on a narrower copy of the token.
func (m Model) latent(width int) Model {
	m.Latent = width
	return m
}

// hashed are the first layers, which choose experts by a hash.
func (m Model) hashed(n int) Model {
	for l := range n {
		m.Hash = append(m.Hash, l)
	}
	m.MoELayers -= n
	return m
}

// first are the first layers, without experts.
func (m Model) first(n int) Model { return m.blocks(strings.Repeat("-", n)) }

// blocks takes the experts off the layers whose letter is not E.
func (m Model) blocks(pattern string) Model {
	for l, letter := range pattern {
		if letter != 'E' {
			m.Dense = append(m.Dense, l)
		}
	}
	m.MoELayers -= len(m.Dense)
	return m
}
