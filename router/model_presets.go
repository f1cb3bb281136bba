package router

// Models lists the presets, family by family. The numbers are those of each
// model's published config.json; the methods are the ones TensorRT-LLM assigns
// to the families (tensorrt_llm/_torch/modules/fused_moe/routing.py). Each call
// makes new ones.
func Models() []Model {
	return []Model{
		preset("gpt-oss-20b", "GPT-OSS 20B", "openai/gpt-oss-20b", Shape{Experts: 32, TopK: 4}, Renormalize, 2880, 2880,
			24),
		preset("gpt-oss-120b", "GPT-OSS 120B", "openai/gpt-oss-120b", Shape{Experts: 128, TopK: 4}, Renormalize, 2880,
			2880, 36),
		preset("deepseek-v3", "DeepSeek-V3", "deepseek-ai/DeepSeek-V3", deepSeekV3Shape, DeepSeekV3, 7168, 2048,
			61).scaled(2.5).dense(layers(3, 1)),
		preset("deepseek-r1", "DeepSeek-R1", "deepseek-ai/DeepSeek-R1", deepSeekV3Shape, DeepSeekV3, 7168, 2048,
			61).scaled(2.5).dense(layers(3, 1)),
		preset("deepseek-v3.2", "DeepSeek-V3.2", "deepseek-ai/DeepSeek-V3.2", deepSeekV3Shape, DeepSeekV3, 7168, 2048,
			61).scaled(2.5).dense(layers(3, 1)),
		preset("deepseek-v2-lite", "DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V2-Lite", Shape{Experts: 64, TopK: 6},
			Default, 2048, 1408, 27).dense(layers(1, 1)),
		preset("kimi-k2", "Kimi-K2", "moonshotai/Kimi-K2-Instruct", Shape{Experts: 384, TopK: 8}, DeepSeekV3, 7168,
			2048, 61).scaled(2.827).dense(layers(1, 1)),
		preset("qwen3-30b-a3b", "Qwen3-30B-A3B", "Qwen/Qwen3-30B-A3B", Shape{Experts: 128, TopK: 8}, RenormalizeNaive,
			2048, 768, 48),
		preset("qwen3-235b-a22b", "Qwen3-235B-A22B", "Qwen/Qwen3-235B-A22B", Shape{Experts: 128, TopK: 8},
			RenormalizeNaive, 4096, 1536, 94),
		preset("qwen3-next", "Qwen3-Next-80B-A3B", "Qwen/Qwen3-Next-80B-A3B-Instruct", Shape{Experts: 512, TopK: 10},
			RenormalizeNaive, 2048, 512, 48),
		preset("glm-4.5", "GLM-4.5", "zai-org/GLM-4.5", Shape{Experts: 160, TopK: 8}, DeepSeekV3, 5120, 1536,
			92).scaled(2.5).dense(layers(3, 1)),
		preset("glm-4.6", "GLM-4.6", "zai-org/GLM-4.6", Shape{Experts: 160, TopK: 8}, DeepSeekV3, 5120, 1536,
			92).scaled(2.5).dense(layers(3, 1)),
		preset("mixtral-8x7b", "Mixtral 8x7B", "mistralai/Mixtral-8x7B-Instruct-v0.1", Shape{Experts: 8, TopK: 2},
			Renormalize, 4096, 14336, 32),
		preset("mixtral-8x22b", "Mixtral 8x22B", "mistralai/Mixtral-8x22B-Instruct-v0.1", Shape{Experts: 8, TopK: 2},
			Renormalize, 6144, 16384, 56),
		preset("llama-4-scout", "Llama 4 Scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct",
			Shape{Experts: 16, TopK: 1}, Llama4, 5120, 8192, 48),
		preset("llama-4-maverick", "Llama 4 Maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
			Shape{Experts: 128, TopK: 1}, Llama4, 5120, 8192, 48).dense(layers(48, 2)),
		preset("minimax-m2", "MiniMax-M2", "MiniMaxAI/MiniMax-M2", Shape{Experts: 256, TopK: 8}, MiniMax2, 3072, 1536,
			62),
	}
}

var deepSeekV3Shape = Shape{Experts: 256, TopK: 8, Groups: 8, TopKGroups: 4}

// preset is a model all of whose layers have experts and whose combine weights
// are not scaled.
func preset(name, title, repository string, s Shape, m Method, hidden, intermediate, depth int) Model {
	return Model{
		Name: name, Title: title, Source: repository + " config.json",
		Shape: s, Method: m, Scale: 1, Bias: m.Biased(), LogitsDType: logitsDType(m),
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

func (m Model) scaled(factor float32) Model {
	m.Scale = factor
	return m
}

// dense takes the routed experts off some layers.
func (m Model) dense(layers []int) Model {
	m.Dense, m.MoELayers = layers, m.Layers-len(layers)
	return m
}

// layers are 0, step, 2·step, … below n.
func layers(n, step int) (list []int) {
	for l := 0; l < n; l += step {
		list = append(list, l)
	}
	return list
}
