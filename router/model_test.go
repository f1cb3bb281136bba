package router

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

func readConfig(name string) []byte {
	return require.Value(presets.ReadFile("presets/" + name + ".json"))
}

// One preset of each kind, typed from its config: experts, top-k,
// groups, method, scale, layers, layers of experts.
const typed = `
deepseek-v2-lite 64 6 - Default 1 27 26
deepseek-v3 256 8 4/8 DeepSeekV3 2.5 61 58
deepseek-v4-flash 256 6 - DeepSeekV4 1.5 43 40
gemma-4-26b-a4b 128 8 - RenormalizeNaive 1 30 30
gpt-oss-120b 128 4 - Renormalize 1 36 36
kimi-k3 896 16 - DeepSeekV3 1 93 92
llama-4-maverick 128 1 - Llama4 1 48 24
minimax-m3 128 4 - MiniMax2 2 60 57
nemotron-3-super 512 22 - DeepSeekV3 5 88 40
`

func TestPresets(t *testing.T) {
	have, names := "\n", modelNames()
	some := regexp.MustCompile(`(?m)^\S+`).FindAllString(typed, -1)
	for i, m := range Models() {
		groups := "-"
		if m.Grouped() {
			groups = fmt.Sprintf("%d/%d", m.TopKGroups, m.Groups)
		}
		if slices.Contains(some, m.Name) {
			have += fmt.Sprintln(m.Name, m.Experts, m.TopK, groups, m.Method, m.Scale, m.Layers, m.MoELayers)
		}
		if _, err := parseConfig(readConfig(m.Name), ""); err != nil || names[i] != m.Name ||
			!strings.HasSuffix(m.Source, "s.json") && !strings.HasSuffix(m.Source, "config.json") {
			t.Errorf("%s of %s: %v", m.Name, m.Source, err)
		}
	}
	if have != typed {
		t.Errorf("presets\n%s\nwant\n%s", have, typed)
	}
}

func TestFindModel(t *testing.T) {
	for _, name := range []string{"deepseek-v3", "DeepSeek-V3", "deepseek-ai/DeepSeek-V3"} {
		if m, err := findModel(name); err != nil || m.Name != "deepseek-v3" {
			t.Errorf("FindModel(%q) = %q, %v", name, m.Name, err)
		}
	}
	for name, near := range map[string]string{"deepseekv3": `"deepseek-v3"`, "gpt-oss-120": `"gpt-oss-120b"`,
		"qwen3-30b": `"qwen3-30b-a3b"`} {
		if _, err := findModel(name); err == nil || !strings.Contains(err.Error(), "did you mean "+near) {
			t.Errorf("FindModel(%q): %v, want a hint at %s", name, err, near)
		}
	}
	if _, err := findModel("zzz"); err == nil || strings.Contains(err.Error(), "did you mean") ||
		!strings.Contains(err.Error(), "'moebalance models'") {
		t.Errorf("FindModel(zzz): %v, want where the list is without a hint", err)
	}
}

// A renamed family is read by what its fields mean, whatever they are called.
func TestConfigFieldNames(t *testing.T) {
	sizes := `"hidden_size":16,"num_hidden_layers":6,"moe_intermediate_size":8,`
	for config, want := range map[string]Model{
		`{"model_type":"new",` + sizes + `"num_experts":16,"moe_experts_per_token":4,"moe_router_activation_func":"sigmoid",
			"num_expert_group":4,"topk_group":2,"moe_renormalize":true,"route_scale":2.5,"num_dense_layers":2}`: {
			Shape: Shape{16, 4, 4, 2}, Method: DeepSeekV3, Bias: true, Scale: 2.5, Dense: []int{0, 1}},
		`{"model_type":"new",` + sizes + `"moe_num_experts":16,"moe_top_k":4,"moe_router_use_sigmoid":true,
			"moe_router_enable_expert_bias":true,"route_norm":false,"moe_layers_enum":"3,4,5"}`: {
			Shape: Shape{16, 4, 0, 0}, Method: MiniMax2, Bias: true, Scale: 1, Dense: []int{0, 1, 2}},
		`{"model_type":"new",` + sizes + `"num_experts":16,"moe_k":4,"score_function":"softmax","norm_topk_prob":false,
			"expert_layer_period":2,"expert_layer_offset":1}`: {
			Shape: Shape{16, 4, 0, 0}, Method: Default, Scale: 1, Dense: []int{0, 2, 4}},
		`{"model_type":"new",` + sizes + `"n_routed_experts":16,"moe_topk":4,"n_group":4,"topk_group":2,"topk_method":"greedy",
			"score_func":"softmax","norm_topk_prob":true,"is_moe_layer":[false,true,true,true,true,true]}`: {
			Shape: Shape{16, 4, 0, 0}, Method: RenormalizeNaive, Scale: 1, Dense: []int{0}},
		`{"model_type":"new","architectures":["DeepseekV3ForCausalLM"],` + sizes + `"n_routed_experts":16,"num_experts_per_tok":4,
			"moe_layer_start_index":1,"moe_layer_end_index":4,"moe_layer_interval":2}`: {
			Shape: Shape{16, 4, 0, 0}, Method: DeepSeekV3, Bias: true, Scale: 1, Dense: []int{0, 2, 4, 5}},
		`{"model_type":"omni","thinker_config":{"text_config":{"model_type":"qwen3_omni_moe_text",` + sizes +
			`"num_experts":16,"num_experts_per_tok":4,"mlp_only_layers":[5]}}}`: {
			Shape: Shape{16, 4, 0, 0}, Method: RenormalizeNaive, Scale: 1, Dense: []int{5}},
		`{"model_type":"step3p5",` + sizes + `"n_routed_experts":16,"num_experts_per_tok":4,"num_nextn_predict_layers":1,
			"mlp_layer_types":["dense","sparse","sparse","sparse","sparse","sparse","sparse"]}`: {
			Shape: Shape{16, 4, 0, 0}, Method: MiniMax2, Bias: true, Scale: 1, Dense: []int{0}},
		`{"model_type":"nemotron_h","hidden_size":16,"moe_intermediate_size":8,"moe_latent_size":4,"n_routed_experts":16,
			"num_experts_per_tok":4,"hybrid_override_pattern":"ME*-ME"}`: {
			Shape: Shape{16, 4, 0, 0}, Method: DeepSeekV3, Bias: true, Scale: 1, Dense: []int{0, 2, 3, 4}},
	} {
		m, err := parseConfig([]byte(config), "")
		want.Name, want.LogitsDType = m.Name, m.LogitsDType
		want.Layers, want.Hash = 6, []int{}
		want.MoELayers = 6 - len(want.Dense)
		if err != nil || !reflect.DeepEqual(m, want) {
			t.Errorf("%s:\n%+v, %v; want\n%+v", config, m, err, want)
		}
	}
}

// The ways in which families say which layers have experts, worked by hand.
func TestConfigLayers(t *testing.T) {
	base := `{"model_type":"mixtral","num_local_experts":8,"num_experts_per_tok":2,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":6`
	for extra, dense := range map[string][]int{
		``:                                {},
		`,"moe_start_layer":2`:            {0, 1},
		`,"moe_layer_freq":2`:             {1, 3, 5},
		`,"moe_layer_freq":[0,1,1,1,1,0]`: {0, 5},
		`,"first_k_dense_replace":1,"moe_layer_freq":2`:                                                   {0, 1, 3, 5},
		`,"decoder_sparse_step":1,"mlp_only_layers":[3]`:                                                  {3},
		`,"interleave_moe_layer_step":3`:                                                                  {0, 1, 3, 4},
		`,"interleave_moe_layer_step":2,"moe_layers":[5]`:                                                 {0, 1, 2, 3, 4},
		`,"first_k_dense_replace":3,"mlp_layer_types":["dense","sparse","moe","sparse","sparse","dense"]`: {0, 5},
	} {
		m, err := parseConfig([]byte(base+extra+`}`), "")
		if err != nil || !slices.Equal(m.Dense, dense) || m.MoELayers != 6-len(dense) {
			t.Errorf("%s: dense %v, %d with experts, %v; want %v", extra, m.Dense, m.MoELayers, err, dense)
		}
	}
}

func TestConfigMethods(t *testing.T) {
	base := `"num_experts":8,"num_experts_per_tok":2,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":2`
	for extra, want := range map[string]Method{
		// the family's default is not to normalize
		`"model_type":"qwen3_moe"`:                                                        Default,
		`"model_type":"bailing_moe"`:                                                      RenormalizeNaive,
		`"model_type":"hunyuan_v1_moe","moe_topk":[2,2]`:                                  RenormalizeNaive,
		`"model_type":"new","scoring_func":"sigmoid","topk_method":"noaux_tc"`:            DeepSeekV3,
		`"model_type":"new","scoring_func":"sqrtsoftplus"`:                                DeepSeekV4,
		`"model_type":"glm4_moe","n_group":1,"topk_group":1,"routed_scaling_factor":null`: DeepSeekV3,
		// one group limits nothing
		`"model_type":"deepseek_v2","topk_method":"group_limited_greedy","n_group":1`:                    Default,
		`"model_type":"deepseek_v3","scoring_func":"softmax"`:                                            RenormalizeNaive,
		`"model_type":"qwen3_moe","scoring_func":"sigmoid","norm_topk_prob":true`:                        SigmoidRenorm,
		`"model_type":"new","scoring_func":"sigmoid","use_routing_bias":true`:                            MiniMax2,
		`"model_type":"new","scoring_func":"sigmoid","use_routing_bias":true,"n_group":4,"topk_group":2`: DeepSeekV3,
		`"model_type":"pangu_ultra_moe","router_enable_expert_bias":true`:                                MiniMax2,
		`"model_type":"minimax_m2","use_routing_bias":false,"n_group":1`:                                 SigmoidRenorm,
		`"model_type":"kimi_linear","num_expert_group":4,"topk_group":2,"use_grouped_topk":true`:         DeepSeekV3,
		`"model_type":"kimi_linear","num_expert_group":4,"topk_group":3,"use_grouped_topk":false`:        DeepSeekV3,
	} {
		m, err := parseConfig([]byte(`{`+extra+`,`+base+`}`), "")
		if err != nil || m.Method != want || m.Scale != 1 || m.Bias != want.Biased() ||
			m.Grouped() != strings.Contains(extra, `group":2`) {
			t.Errorf("%s: method %q, scale %v, %v; want %q", extra, m.Method, m.Scale, err, want)
		}
	}
}

// The method that a user names stands, but for what it cannot do.
func TestConfigMethodGiven(t *testing.T) {
	sizes := `"num_experts_per_tok":2,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":2`
	m, err := parseConfig([]byte(`{"model_type":"new","num_experts":8,`+sizes+`}`), DeepSeekV3)
	if err != nil || m.Method != DeepSeekV3 || !m.Bias || m.LogitsDType != "f32" {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err = parseConfig([]byte(`{"model_type":"deepseek_v3","num_experts":8,`+sizes+`}`), Default); err != nil ||
		m.Method != Default || m.Bias {
		t.Errorf("%+v, %v", m, err)
	}
	for config, want := range map[string]string{
		`{"num_experts":8,"zero_expert_num":4,` + sizes + `}`:        "4 zero experts",
		`{"num_experts":8,"n_group":2,"topk_group":1,` + sizes + `}`: "which has none",
	} {
		if _, err := parseConfig([]byte(config), Default); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

// Python writes numbers that JSON has not. They are read over, and no text is touched.
func TestConfigInfinity(t *testing.T) {
	m, err := parseConfig([]byte(`{"model_type":"qwen3_moe","time_step_limit":[0.0, Infinity, -Infinity],"x":NaN,"architectures":["a: NaN, \" Infinity"],
		"num_experts":8,"num_experts_per_tok":2,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":2}`), "")
	if err != nil || m.Name != "qwen3_moe" || m.Layers != 2 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestConfigRefusals(t *testing.T) {
	base := `"num_experts":8,"num_experts_per_tok":2,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":2`
	for config, want := range map[string]string{
		``:                                       "unexpected end",
		`{"model_type":"llama","hidden_size":4}`: "no routed experts",
		`{"model_type":"mixtral","num_local_experts":8,"num_experts_per_tok":9,"hidden_size":4,"intermediate_size":4,"num_hidden_layers":2}`: "top-k between 1 and 8",
		`{"model_type":"new","norm_topk_prob":true,` + base + `}`:                                                                            "routing method is not known",
		`{"model_type":"new","norm_topk_prob":false,` + base + `}`:                                                                           "routing method is not known",
		`{"model_type":"new","scoring_func":"softmax",` + base + `}`:                                                                         "routing method is not known",
		`{"model_type":"phimoe",` + base + `}`:                                                                                               "sparse mixer",
		`{"model_type":"deepseek_v3","scoring_func":"softmax","topk_method":"noaux_tc",` + base + `}`:                                        "a bias on softmax scores",
		`{"model_type":"deepseek_v3","scoring_func":"tanh",` + base + `}`:                                                                    "\"tanh\"",
		`{"model_type":"deepseek_v3","topk_method":"greedy","n_group":2,"topk_group":1,` + base + `}`:                                        "groups of sigmoid scores without a bias",
		`{"model_type":"mixtral","mlp_layer_types":["sparse","odd"],` + base + `}`:                                                           "for layer 1, have \"odd\"",
		`{"model_type":"deepseek_v2","topk_method":"group_limited_greedy","n_group":2,"topk_group":1,` + base + `}`:                          "group_limited_greedy",
		`{"model_type":"mixtral","n_group":2,"topk_group":1,` + base + `}`:                                                                   "which has none",
		`{"model_type":"hunyuan_v1_moe","moe_topk":[2,3],` + base + `}`:                                                                      "want the same in every layer, have 2 and 3",
		`{"model_type":"mixtral","moe_layer_freq":[1,2],` + base + `}`:                                                                       "want 1 or 0 for layer 1, have 2",
		`{"model_type":"mixtral","routed_scaling_factor":0,` + base + `}`:                                                                    "positive routed_scaling_factor",
		`{"model_type":"new","scoring_func":"sigmoid","norm_topk_prob":false,` + base + `}`:                                                  "routing method is not known",
		`{"model_type":"new","scoring_func":"sigmoid","use_routing_bias":false,` + base + `}`:                                                "routing method is not known",
		`{"model_type":"zaya",` + base + `}`:                                                                                                 "skip expert",
		`{"model_type":"laguna","moe_router_logit_softcapping":30.0,` + base + `}`:                                                           "capped at 30",
		`{"model_type":"mixtral","n_routed_experts":16,` + base + `}`:                                                                        "n_routed_experts 16 and num_experts 8 contradict each other",
		`{"model_type":"new","text_config":{"model_type":"mixtral","num_experts":16},` + base + `}`:                                          "8 experts, and 16 in text_config, contradict each other",
		`{"model_type":"mixtral","text_config":"x",` + base + `}`:                                                                            `text_config: want an object, have "x"`,
		`{"model_type":"deepseek_v3","n_group":-4,` + base + `}`:                                                                             "want 0 or more groups, have -4",
		strings.Replace(`{"model_type":"mixtral",`+base+`}`, `8`, `65537`, 1):                                                                "at most 65536 routed experts",
		`{"model_type":"mixtral","n_routed_experts":"8",` + base + `}`:                                                                       `n_routed_experts: want a whole number, have "8"`,
		`{"model_type":"deepseek_v3","n_group":4,` + base + `}`:                                                                              "between 1 and 4 groups per token, have 0",
		`{"model_type":"deepseek_v3","routed_scaling_factor":NaN,` + base + `}`:                                                              `want a number, have "NaN"`,
		`{"model_type":"mixtral","moe_layer_freq":["a"],` + base + `}`:                                                                       `want a list of whole numbers, have ["a"]`,
	} {
		if m, err := parseConfig([]byte(config), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want an error with %q", config, m, err, want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, m := range Models() {
		f.Add(readConfig(m.Name))
	}
	f.Add([]byte(`{"text_config":{"text_config":{}}}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		m, err := parseConfig(config, "")
		if err != nil {
			return
		}
		if err := m.Validate(); err != nil || m.MoELayers < 1 || m.MoELayers+len(m.Dense)+len(m.Hash) != m.Layers ||
			m.Method == "" {
			t.Errorf("accepted %+v: %v", m, err)
		}
	})
}
