package nsys

import (
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
)

func TestBuiltInPatterns(t *testing.T) {
	patterns, err := NewPatterns()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]label{
		"[Executor] _forward_step 12: 3 ctx reqs, 5 gen reqs": {step: 12, layer: None, expert: None, phase: ""},
		"layer_wise_benchmarks layer_idx 5":                   {step: None, layer: 5, expert: None, phase: ""},
		"b=8 s=1 past=128 EP4":                                {step: unnumbered, layer: None, expert: None, phase: ""},
		"layer_wise_benchmarks ignore": {step: None, layer: None, expert: None,
			phase: phaseIgnored},
		"layer 0 router": {step: None, layer: 0, expert: None, phase: PhaseRouter},
		"layer 11 dispatch": {step: None, layer: 11, expert: None,
			phase: PhaseDispatch},
		"layer 2 experts": {step: None, layer: 2, expert: None,
			phase: PhaseExperts},
		"layer 2 expert 31": {step: None, layer: 2, expert: 31, phase: PhaseExperts},
		"layer 2 combine": {step: None, layer: 2, expert: None,
			phase: PhaseCombine},
		"model.layers.3.mlp.experts": {step: None, layer: 3, expert: None,
			phase: PhaseExperts},
		"model.layers.3.mlp.experts.17": {step: None, layer: 3, expert: 17, phase: PhaseExperts},
		"model.layers.10.self_attn": {step: None, layer: 10, expert: None,
			phase: PhaseAttention},
		"model.layers.10.self_attn.qkv_proj": {step: None, layer: 10, expert: None,
			phase: PhaseAttention},
		"model.layers.7.mlp.gate": {step: None, layer: 7, expert: None, phase: PhaseRouter},
		"model.layers.7.mlp":      {step: None, layer: 7, expert: None, phase: ""},
		"{'Module': 'model.layers.4.mlp.experts', 'TrainableParams': {}}": {step: None, layer: 4, expert: None,
			phase: PhaseExperts},
		"DeepseekV3Gate":  {step: None, layer: None, expert: None, phase: PhaseRouter},
		"MLA":             {step: None, layer: None, expert: None, phase: PhaseAttention},
		"FusedMoE":        {step: None, layer: None, expert: None, phase: PhaseExperts},
		"execute_model":   {step: unnumbered, layer: None, expert: None, phase: ""},
		"ProfilerStep#14": {step: 14, layer: None, expert: None, phase: ""},
		"step 3":          {step: 3, layer: None, expert: None, phase: ""},
		"model.layers.7.mlp.shared_experts.gate_proj": {step: None, layer: 7, expert: None, phase: PhaseOther},
		"CutlassFusedMoE":                          {step: None, layer: None, expert: None, phase: PhaseExperts},
		"execute_context_3(384)_generation_16(16)": {step: unnumbered, layer: None, expert: None, phase: ""},
		// not the router
		"model.layers.3.mlp.shared_expert_gate": {step: None, layer: 3, expert: None, phase: PhaseOther},
		"MoE":                                   {step: None, layer: None, expert: None, phase: PhaseExperts},
		"GatedMLP":                              {step: None, layer: None, expert: None, phase: PhaseOther},
		"KimiK3MoEGate":                         {step: None, layer: None, expert: None, phase: PhaseRouter},
		"nn.Module: Qwen3MoeDecoderLayer_5":     {step: None, layer: 5, expert: None, phase: ""},
		"nn.Module: Qwen3MoeAttention_5":        {step: None, layer: None, expert: None, phase: PhaseAttention},
		"nn.Module: FusedMoE_12":                {step: None, layer: None, expert: None, phase: PhaseExperts},
		"nn.Module: Qwen3MoeTopKRouter_3":       {step: None, layer: None, expert: None, phase: PhaseRouter},
		"Layer 3":                               {step: None, layer: 3, expert: None, phase: ""},
		"layer=3":                               {step: None, layer: 3, expert: None, phase: ""},
		"Step 3":                                {step: 3, layer: None, expert: None, phase: ""},
		// not ours
		`layer_wise_benchmarks args {"warmup_times": 20}`: {step: None, layer: None, expert: None, phase: ""},
		"layer_wise_benchmarks ignored":                   {step: None, layer: None, expert: None, phase: ""},
		// shared experts too
		"Deepseekv3MoE":                   {step: None, layer: None, expert: None, phase: ""},
		"nn.Module: Linear_3":             {step: None, layer: None, expert: None, phase: ""},
		"aten::add":                       {step: None, layer: None, expert: None, phase: ""},
		"gate_proj":                       {step: None, layer: None, expert: None, phase: ""},
		"model.layers.3.mlp.gate_proj":    {step: None, layer: 3, expert: None, phase: ""},
		"model.layers.3.mlp.gate_up_proj": {step: None, layer: 3, expert: None, phase: ""},
		"cub::DispatchRadixSort":          {step: None, layer: None, expert: None, phase: ""},
		"investigate":                     {step: None, layer: None, expert: None, phase: ""},
		// no 32-bit number
		"layer 99999999999 router": {step: None, layer: None, expert: None, phase: PhaseRouter},
	} {
		got := patterns.label(name)
		got.module, got.evidence = false, byNothing
		if got != want {
			t.Errorf("%q: want %+v, have %+v", name, want, got)
		}
	}
}

// The names by which modules, classes and annotations usually number layers, and
// names that hold a number of something else.
func TestLayersByTheirUsualNames(t *testing.T) {
	patterns, err := NewPatterns()
	if err != nil {
		t.Fatal(err)
	}
	for layer, names := range map[int32][]string{
		7: {
			// Hugging Face, vLLM, SGLang
			"layers.7", "model.layers.7", "model.layers.7.mlp", "model.layers[7]",
			"model.language_model.layers.7.feed_forward", "model.decoder.layers.7",
			"gpt_neox.layers.7.attention", "transformer.h.7.mlp", "h.7", "backbone.layers.7.mixer",
			"model.layers.7.block_sparse_moe.gate",
			"{'Module': 'model.layers.7.self_attn'}", `{"Module": "model.layers.7"}`, // vLLM's layer-wise ranges
			// Megatron, JAX, llama.cpp, DiTs
			"decoder.layers.7.self_attention", "transformer/layers_7/mlp", "blk.7.ffn_gate_exps", "blocks.7.moe",
			"DecoderLayer_7", "DeepseekV3DecoderLayer_7", "nn.Module: Qwen3MoeDecoderLayer_7", "DecoderLayer 7",
			"TransformerLayer_7", "nn.Module: TransformerLayer_7", "GptOssDecoderLayer[7]",
			"layer 7", "Layer 7", "LAYER 7", "layer_7", "layer7", "layer-7", "layer.7", "layer:7", "layer: 7",
			"layer=7", "Layer #7", "layer[7]", "(layer 7)", "forward layer 7",
			"layer_idx=7", "layer_idx 7", "layer_id: 7", "layer_index=7", "layer_number=7", "layerIdx=7",
			"decoder_layer_7", "transformer_layer_7", "moe_layer_7", "layer_7_experts",
			"layer_7_of_9", // of 9 or not, it is one layer's
		},
		None: {
			"player 7", "Player_7", "multilayer 7", "sublayer 7", "layernorm_7", "layer_norm 7", "layer_type=7",
			"layer_count=7", "post_attention_layernorm 7",
			"num_layers=7", "num_hidden_layers: 7", "n_layer=7", "n_layers 7", "layers=7", "layers 7", "layers 0-7",
			"num_layers_7", "model.moe_layers.7", "model.dense_layers.7",
			"h=7", "h 7", "b=8 h=7", "block 7", "block_7", "kv block 7", "blocks=7", "layer -7", "layer: -7", "layer",
			"layers.", "layer 7th", "layer 7x",
			// counted apart from layers, or not a layer
			"EncoderLayer_7", "Linear_7", "Qwen3MoeSparseMoeBlock_7", "nn.Module: DeepseekV3MoE_7",
			"TransformerBlock_7",
		},
	} {
		for _, name := range names {
			if got := patterns.label(name); got.layer != layer {
				t.Errorf("%q: want layer %d, have %+v", name, layer, got)
			}
		}
	}
}

// Likewise for experts; those that are named are of the phase experts.
func TestExpertsByTheirUsualNames(t *testing.T) {
	patterns, err := NewPatterns()
	if err != nil {
		t.Fatal(err)
	}
	for expert, names := range map[int32][]string{
		7: {
			"experts.7", "model.layers.3.mlp.experts.7", "model.layers.3.mlp.experts.7.down_proj", "mlp.experts[7]",
			"model.layers.3.block_sparse_moe.experts.7.w1", "{'Module': 'model.layers.3.mlp.experts.7'}",
			"expert 7", "Expert 7", "expert_7", "expert7", "expert:7", "expert=7", "expert #7", "expert[7]",
			"expert_id=7", "expert_idx 7", "layer_3_expert_7", "layer 3, expert 7", "routed_expert_7",
			"moe_expert_7",
		},
		None: {
			"num_experts=7", "n_experts 7", "experts=7", "experts 7", "local_experts.7",
			"decoder.layers.3.mlp.experts.local_experts.7", "local_expert_7", "num_expert_7", "n_expert=7",
			"shared_expert_7", "shared_experts.7", "mlp.shared_experts.7", "expert_parallel_7", "expert parallel 7",
			"experts", "inexpert 7", "expert 7x",
		},
	} {
		for _, name := range names {
			got := patterns.label(name)
			if got.expert != expert || expert != None && got.phase != PhaseExperts {
				t.Errorf("%q: want expert %d, have %+v", name, expert, got)
			}
		}
	}
}

// Modules and classes whose phase is known by name.
func TestPhasesByTheirUsualNames(t *testing.T) {
	patterns, err := NewPatterns()
	if err != nil {
		t.Fatal(err)
	}
	for phase, names := range map[Phase][]string{
		PhaseExperts: {"model.layers.3.mlp.experts", "model.layers.3.feed_forward.experts",
			"nn.Module: GptOssExperts_3", "Qwen3MoeExperts", "decoder.layers.3.mlp.experts.local_experts.7"},
		PhaseRouter: {"model.layers.3.mlp.router", "model.layers.3.block_sparse_moe.gate",
			"model.layers.3.feed_forward.router", "nn.Module: GptOssTopKRouter_3", "TopKGate_3",
			"DeepseekV3TopkRouter"},
		PhaseAttention: {"model.layers.3.self_attn", "model.layers.3.linear_attn", "gpt_neox.layers.3.attention",
			"decoder.layers.3.self_attention", "nn.Module: GptOssAttention_3"},
		PhaseOther: {"model.layers.3.mlp.shared_experts", "nn.Module: DeepseekSharedExperts_3", "mlp(B)", "mlp(W)",
			"dispatch(B)", "backward", "experts backward",
			"autograd::engine::evaluate_function: GroupedMmBackward0", "GroupedMmBackward0, seq = 12", "backward_step"},
		PhaseDispatch: {"dispatch(F)"},
		"": {"model.layers.3.mlp", "model.layers.3.post_attention_layernorm",
			"model.layers.3.input_layernorm", "model.layers.3.mlp.gate_up_proj", "nn.Module: MixtralSparseMoeBlock_3",
			"attention_mask", "forward", "mlp(F)", "BackwardHook"},
	} {
		for _, name := range names {
			if got := patterns.label(name); got.phase != phase {
				t.Errorf("%q: want phase %q, have %+v", name, phase, got)
			}
		}
	}
}

func TestUserPatternsComeFirst(t *testing.T) {
	patterns, err := NewPatterns(`^L(?P<layer>\d+)$`, `^layer (?P<expert>\d+) router$`)
	if err != nil {
		t.Fatal(err)
	}
	if got := patterns.label("L7"); got.layer != 7 {
		t.Errorf("have %+v", got)
	}
	if got := patterns.label("layer 3 router"); got.expert != 3 || got.layer != 3 || got.phase != PhaseRouter {
		t.Errorf("each group by its first pattern: have %+v", got)
	}
	for _, bad := range []string{`(`, `layer (\d+)`, `(?P<rank>\d+)`} {
		if _, err := NewPatterns(bad); err == nil {
			t.Errorf("%q: want an error", bad)
		}
	}
}

// Labels never hold numbers that no range can mean, whatever the name.
func FuzzLabel(f *testing.F) {
	patterns, err := NewPatterns(`x(?P<step>.*)y(?P<phase>.*)`)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"layer 0 expert 3", "[Executor] _forward_step 1: 2 ctx reqs",
		"model.layers.3.mlp.experts.1", "x-1y\xff", "b=1 s=2 EP3"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		l := patterns.label(name)
		if l.step < unnumbered || l.layer < None || l.expert < None || l.phase != "" &&
			kernel.PhaseOf(string(l.phase)) == "" && l.phase != PhaseOther && l.phase != phaseIgnored {
			t.Errorf("%q: %+v", name, l)
		}
	})
}
