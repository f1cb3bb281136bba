package ranges

import (
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/testdata/require"
)

func TestBuiltInPatterns(t *testing.T) {
	patterns := require.Value(NewPatterns())
	is := func(step, layer, expert int32, phase kernel.Phase) Label {
		return Label{Location: Location{Step: step, Layer: layer, Expert: expert, Phase: phase}}
	}
	for name, want := range map[string]Label{
		"[Executor] _forward_step 12: 3 ctx reqs, 5 gen reqs":               is(12, NoID, NoID, ""),
		"[Executor] _forward_step: 3 ctx reqs, 5 gen reqs":                  is(unnumbered, NoID, NoID, ""),
		"[Executor] _forward_step 9: 0 ctx reqs, 0 ctx tokens, 32 gen reqs": is(9, NoID, NoID, ""),
		// SGLang's and vLLM's hooks of modules
		"{'Module': 'top.model.layers.3.mlp.gate', 'TrainableParams': {}}":  is(NoID, 3, NoID, kernel.PhaseRouter),
		"{'Module': 'top.model.layers.3.mlp.experts', 'Inputs': [[17, 8]]}": is(NoID, 3, NoID, kernel.PhaseExperts),
		"{'Module': 'top.model.layers.2.mlp.shared_experts.down_proj'}":     is(NoID, 2, NoID, kernel.PhaseOther),
		"layer_wise_benchmarks layer_idx 5":                                 is(NoID, 5, NoID, ""),
		"moebalance step=12 tokens=8192 sequence=3 arm=layer 3 expert 1":    is(12, NoID, NoID, ""),
		"moebalance layer=3":                       is(NoID, 3, NoID, ""),
		"moebalance layer=3 router":                is(NoID, 3, NoID, kernel.PhaseRouter),
		"b=8 s=1 past=128 EP4":                     is(unnumbered, NoID, NoID, ""),
		"layer_wise_benchmarks ignore":             is(NoID, NoID, NoID, PhaseIgnored),
		"layer 2 expert 31":                        is(NoID, 2, 31, kernel.PhaseExperts),
		"execute_model":                            is(unnumbered, NoID, NoID, ""),
		"ProfilerStep#14":                          is(14, NoID, NoID, ""),
		"execute_context_3(384)_generation_16(16)": is(unnumbered, NoID, NoID, ""),
		"execute_new_1_cached_15":                  is(unnumbered, NoID, NoID, ""),
		"execute_new_0_cached_0":                   is(NoID, NoID, NoID, ""),
		"step[IDLE bs=0]":                          is(unnumbered, NoID, NoID, ""),
		// not the router
		"model.layers.3.mlp.shared_expert_gate": is(NoID, 3, NoID, kernel.PhaseOther),
		"KimiK3MoEGate":                         is(NoID, NoID, NoID, kernel.PhaseRouter),
		// not ours
		`layer_wise_benchmarks args {"warmup_times": 20}`: is(NoID, NoID, NoID, ""),
		// shared experts too
		"model.layers.3.mlp.gate_proj": is(NoID, 3, NoID, ""),
		"cub::DispatchRadixSort":       is(NoID, NoID, NoID, ""),
		// no 32-bit number
		"layer 99999999999 router": is(NoID, NoID, NoID, kernel.PhaseRouter),
	} {
		got := patterns.Label(name)
		got.Name, got.Module = "", false
		if got != want {
			t.Errorf("%q: want %+v, have %+v", name, want, got)
		}
	}
}

// The names by which modules, classes and annotations usually number layers and experts and
// name phases, and names that hold a number of something else.
func TestUsualNames(t *testing.T) {
	patterns := require.Value(NewPatterns())
	check := func(names []string, what string, right func(Label) bool) {
		for _, name := range names {
			if have := patterns.Label(name); !right(have) {
				t.Errorf("%q: want %s, have %+v", name, what, have)
			}
		}
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
		NoID: {
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
		check(names, fmt.Sprint("layer ", layer), func(l Label) bool { return l.Layer == layer })
	}
	for expert, names := range map[int32][]string{
		7: {
			"experts.7", "model.layers.3.mlp.experts.7", "model.layers.3.mlp.experts.7.down_proj", "mlp.experts[7]",
			"model.layers.3.block_sparse_moe.experts.7.w1", "{'Module': 'model.layers.3.mlp.experts.7'}",
			"expert 7", "Expert 7", "expert_7", "expert7", "expert:7", "expert=7", "expert #7", "expert[7]",
			"expert_id=7", "expert_idx 7", "layer_3_expert_7", "layer 3, expert 7", "routed_expert_7",
			"moe_expert_7",
		},
		NoID: {
			"num_experts=7", "n_experts 7", "experts=7", "experts 7", "local_experts.7",
			"decoder.layers.3.mlp.experts.local_experts.7", "local_expert_7", "num_expert_7", "n_expert=7",
			"shared_expert_7", "shared_experts.7", "mlp.shared_experts.7", "expert_parallel_7", "expert parallel 7",
			"experts", "inexpert 7", "expert 7x",
		},
	} {
		check(names, fmt.Sprint("expert ", expert), func(l Label) bool {
			return l.Expert == expert && (expert == NoID || l.Phase == kernel.PhaseExperts)
		})
	}
	for phase, names := range map[kernel.Phase][]string{
		kernel.PhaseExperts: {"model.layers.3.mlp.experts", "model.layers.3.feed_forward.experts",
			"nn.Module: GptOssExperts_3", "Qwen3MoeExperts", "decoder.layers.3.mlp.experts.local_experts.7"},
		kernel.PhaseRouter: {"model.layers.3.mlp.router", "model.layers.3.block_sparse_moe.gate",
			"model.layers.3.feed_forward.router", "nn.Module: GptOssTopKRouter_3", "TopKGate_3",
			"DeepseekV3TopkRouter"},
		kernel.PhaseAttention: {"model.layers.3.self_attn", "model.layers.3.linear_attn", "gpt_neox.layers.3.attention",
			"decoder.layers.3.self_attention", "nn.Module: GptOssAttention_3"},
		kernel.PhaseOther: {"model.layers.3.mlp.shared_experts", "nn.Module: DeepseekSharedExperts_3", "mlp(B)", "mlp(W)",
			"dispatch(B)", "backward", "experts backward",
			"autograd::engine::evaluate_function: GroupedMmBackward0", "GroupedMmBackward0, seq = 12", "backward_step"},
		kernel.PhaseDispatch: {"dispatch(F)"},
		"": {"model.layers.3.mlp", "model.layers.3.post_attention_layernorm",
			"model.layers.3.input_layernorm", "model.layers.3.mlp.gate_up_proj", "nn.Module: MixtralSparseMoeBlock_3",
			"attention_mask", "forward", "mlp(F)", "BackwardHook"},
	} {
		check(names, fmt.Sprint("phase ", phase), func(l Label) bool { return l.Phase == phase })
	}
}

func TestUserPatternsComeFirst(t *testing.T) {
	patterns := require.Value(NewPatterns(`^L(?P<layer>\d+)$`, `^layer (?P<expert>\d+) router$`))
	if got := patterns.Label("L7"); got.Layer != 7 {
		t.Errorf("have %+v", got)
	}
	if got := patterns.Label("layer 3 router"); got.Expert != 3 || got.Layer != 3 || got.Phase != kernel.PhaseRouter {
		t.Errorf("each group by its first pattern: have %+v", got)
	}
	for _, bad := range []string{`(`, `layer (\d+)`, `(?P<rank>\d+)`} {
		if _, err := NewPatterns(bad); err == nil {
			t.Errorf("%q: want an error", bad)
		}
	}
}
