package router

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// modelConfig holds the fields of a Hugging Face config.json that say how a
// model routes. Families name the same thing differently.
type modelConfig struct {
	ModelType     string   `json:"model_type"`
	Architectures []string `json:"architectures"`

	NumExperts      same `json:"num_experts"`       // Qwen, OLMoE, Hunyuan
	NumLocalExperts same `json:"num_local_experts"` // Mixtral, GPT-OSS, Llama 4, MiniMax
	RoutedExperts   same `json:"n_routed_experts"`  // DeepSeek, Kimi, GLM
	MoENumExperts   same `json:"moe_num_experts"`   // ERNIE, DBRX

	ExpertsPerTok   same `json:"num_experts_per_tok"`
	ExpertsPerToken same `json:"experts_per_token"` // GPT-OSS beside the usual name
	MoETopK         same `json:"moe_topk"`          // Hunyuan, a number or a list over layers
	MoEK            same `json:"moe_k"`             // ERNIE

	Groups        same     `json:"n_group"`
	TopKGroups    same     `json:"topk_group"`
	ScoringFunc   string   `json:"scoring_func"`
	TopKMethod    string   `json:"topk_method"`
	NormTopKProb  *bool    `json:"norm_topk_prob"`
	RoutingBias   *bool    `json:"use_routing_bias"` // MiniMax
	ScalingFactor *float32 `json:"routed_scaling_factor"`

	Hidden          same `json:"hidden_size"`
	Intermediate    same `json:"intermediate_size"`
	MoEIntermediate same `json:"moe_intermediate_size"`
	Layers          same `json:"num_hidden_layers"`

	FirstDense    int       `json:"first_k_dense_replace"`     // DeepSeek, GLM
	LayerFreq     frequency `json:"moe_layer_freq"`            // DeepSeek: every n-th; MiMo, MiniMax: a list of 0 and 1
	SparseStep    int       `json:"decoder_sparse_step"`       // Qwen: every n-th, the first being layer n−1
	MLPOnly       []int     `json:"mlp_only_layers"`           // Qwen
	Interleave    int       `json:"interleave_moe_layer_step"` // Llama 4: as decoder_sparse_step
	MoELayerIndex []int     `json:"moe_layers"`                // Llama 4: the layers themselves

	Text json.RawMessage `json:"text_config"` // the language model inside a multimodal one
}

// same is a number, or a list over layers whose entries are all that number.
// Absent and null are 0.
type same int

// UnmarshalJSON reads a number, null, or a list of one number repeated.
func (s *same) UnmarshalJSON(b []byte) error {
	var list []int
	if err := json.Unmarshal(b, &list); err != nil {
		return json.Unmarshal(b, (*int)(s))
	}
	for _, n := range list {
		if n != list[0] {
			return fmt.Errorf("layers differ: %d and %d", list[0], n)
		}
		*s = same(n)
	}
	return nil
}

// frequency is every how many layers experts stand, or layer by layer 1 or 0.
type frequency struct {
	every int
	list  []int
}

// UnmarshalJSON reads a number, null or a list.
func (f *frequency) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &f.list); err == nil {
		return nil
	}
	return json.Unmarshal(b, &f.every)
}

// ParseConfig reads how a model routes from its Hugging Face config.json. The
// language model of a multimodal one is found under text_config. Name is the
// config's model_type and Title its architecture; Source is left empty.
//
// A model is refused by name when the config does not tell its routing method
// or names one that this package has not, such as DeepSeek-V2's
// group_limited_greedy or the sparse mixer of Phi.
func ParseConfig(config []byte) (Model, error) {
	var c modelConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return Model{}, fmt.Errorf("model config: %w", fieldError(err))
	}
	if len(c.Text) > 0 && c.experts() == 0 {
		architectures := c.Architectures
		if err := json.Unmarshal(c.Text, &c); err != nil {
			return Model{}, fmt.Errorf("model config: text_config: %w", fieldError(err))
		}
		if len(architectures) > 0 {
			c.Architectures = architectures
		}
	}
	m, err := c.model()
	if err != nil {
		return Model{}, fmt.Errorf("model config of type %q: %w", c.ModelType, err)
	}
	return m, nil
}

// fieldError names the field of a wrong type without the words of Go.
func fieldError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%s: want a value of another type, have a JSON %s", cmp.Or(wrong.Field, "the file"), wrong.Value)
}

func (c modelConfig) experts() int {
	return int(cmp.Or(c.RoutedExperts, c.NumLocalExperts, c.NumExperts, c.MoENumExperts))
}

func (c modelConfig) model() (Model, error) {
	m := Model{
		Name: c.ModelType, Title: c.ModelType, Scale: 1,
		Shape:  Shape{Experts: c.experts(), TopK: int(cmp.Or(c.ExpertsPerTok, c.ExpertsPerToken, c.MoETopK, c.MoEK))},
		Hidden: int(c.Hidden), Intermediate: int(cmp.Or(c.MoEIntermediate, c.Intermediate)), Layers: int(c.Layers),
	}
	if len(c.Architectures) > 0 {
		m.Title = c.Architectures[0]
	}
	if c.Groups > 1 {
		m.Groups, m.TopKGroups = int(c.Groups), int(c.TopKGroups)
	}
	switch {
	case m.Experts == 0:
		return m, fmt.Errorf("no routed experts: want one of n_routed_experts, num_local_experts, num_experts, moe_num_experts")
	case m.Experts > MaxExperts:
		return m, fmt.Errorf("want at most %d routed experts, have %d", MaxExperts, m.Experts)
	case m.TopK == 0:
		return m, fmt.Errorf("no experts per token: want one of num_experts_per_tok, experts_per_token, moe_topk, moe_k")
	case m.Layers < 1 || m.Layers > 1<<14:
		return m, fmt.Errorf("want num_hidden_layers between 1 and %d, have %d", 1<<14, m.Layers)
	case c.Groups < 0:
		return m, fmt.Errorf("want n_group of at least 1, have %d", c.Groups)
	case c.ScalingFactor != nil && !(*c.ScalingFactor > 0):
		return m, fmt.Errorf("want a positive routed_scaling_factor, have %g", *c.ScalingFactor)
	case m.Hidden < 1 || m.Intermediate < 1:
		return m, fmt.Errorf("want positive hidden_size and moe_intermediate_size or intermediate_size, have %d and %d", m.Hidden, m.Intermediate)
	}
	if err := m.Validate(); err != nil {
		return m, err
	}
	var err error
	if m.Method, err = c.method(); err != nil {
		return m, err
	}
	if m.Grouped() && !m.Method.GroupLimited() {
		return m, fmt.Errorf("%d groups with routing method %s, which has none", m.Groups, m.Method)
	}
	if c.ScalingFactor != nil {
		m.Scale = *c.ScalingFactor
	}
	m.Bias, m.LogitsDType = m.Method.Biased() && (c.RoutingBias == nil || *c.RoutingBias), logitsDType(m.Method)
	m.Dense, err = c.denseLayers()
	m.MoELayers = m.Layers - len(m.Dense)
	return m, err
}

// methodOf is the routing method of the families whose configs do not spell it
// out.
var methodOf = map[string]Method{
	"gpt_oss": Renormalize, "mixtral": Renormalize, "granitemoe": Renormalize,
	"llama4": Llama4, "llama4_text": Llama4,
	"deepseek_v3": DeepSeekV3, "deepseek_v32": DeepSeekV3, "kimi_k2": DeepSeekV3, "glm4_moe": DeepSeekV3, "glm_moe_dsa": DeepSeekV3, "dots1": DeepSeekV3,
	"minimax_m2": MiniMax2, "deepseek_v4": DeepSeekV4,
}

// normalizes says whether the softmax families divide the chosen probabilities
// by their sum when the config does not say.
var normalizes = map[string]bool{
	"qwen2_moe": false, "qwen3_moe": false, "olmoe": false, "deepseek_v2": false,
	"qwen3_next": true, "qwen3_vl_moe_text": true, "qwen3_5_moe_text": true, "hunyuan_v1_moe": true,
}

// notOurs names methods that no config field describes.
var notOurs = map[string]string{
	"phimoe":       "the sparse mixer",
	"ernie4_5_moe": "a bias on softmax scores",
}

func (c modelConfig) method() (Method, error) {
	if what, ok := notOurs[c.ModelType]; ok {
		return "", fmt.Errorf("routes by %s, which is not supported", what)
	}
	if c.TopKMethod == "group_limited_greedy" && c.Groups > 1 {
		return "", fmt.Errorf("topk_method %q (groups scored by their best softmax probability) is not supported", c.TopKMethod)
	}
	if m, ok := methodOf[c.ModelType]; ok {
		return m, nil
	}
	normalized, softmax := normalizes[c.ModelType]
	if c.NormTopKProb != nil {
		normalized = *c.NormTopKProb
	}
	switch {
	case softmax || c.ScoringFunc == "softmax":
		if normalized {
			return RenormalizeNaive, nil
		}
		return Default, nil
	case c.ScoringFunc == "sqrtsoftplus":
		return DeepSeekV4, nil
	case c.ScoringFunc == "sigmoid" && c.TopKMethod == "noaux_tc":
		return DeepSeekV3, nil
	case c.ScoringFunc == "sigmoid" && normalized:
		return SigmoidRenorm, nil
	}
	known := slices.AppendSeq(slices.Collect(maps.Keys(methodOf)), maps.Keys(normalizes))
	slices.Sort(known)
	return "", fmt.Errorf("its routing method is not known and scoring_func %q with topk_method %q does not tell it: known model types are %s", c.ScoringFunc, c.TopKMethod, strings.Join(known, ", "))
}

// denseLayers are the layers without routed experts.
func (c modelConfig) denseLayers() ([]int, error) {
	layers := int(c.Layers)
	if n := len(c.LayerFreq.list); n > 0 && n != layers {
		return nil, fmt.Errorf("moe_layer_freq lists %d layers, num_hidden_layers is %d", n, layers)
	}
	for layer, sparse := range c.LayerFreq.list {
		if sparse != 0 && sparse != 1 {
			return nil, fmt.Errorf("moe_layer_freq: want 1 or 0 for layer %d, have %d", layer, sparse)
		}
	}
	if c.FirstDense < 0 {
		return nil, fmt.Errorf("want first_k_dense_replace of at least 0, have %d", c.FirstDense)
	}
	for _, step := range []int{c.LayerFreq.every, c.SparseStep, c.Interleave} {
		if step < 0 {
			return nil, fmt.Errorf("want moe_layer_freq, decoder_sparse_step and interleave_moe_layer_step of at least 1, have %d", step)
		}
	}
	dense := []int{}
	for l := range layers {
		if !c.isMoE(l) {
			dense = append(dense, l)
		}
	}
	if len(dense) == layers {
		return nil, fmt.Errorf("none of its %d layers has routed experts", layers)
	}
	return dense, nil
}

func (c modelConfig) isMoE(layer int) bool {
	switch {
	case layer < c.FirstDense,
		slices.Contains(c.MLPOnly, layer),
		c.LayerFreq.every > 0 && layer%c.LayerFreq.every != 0,
		len(c.LayerFreq.list) > 0 && c.LayerFreq.list[layer] == 0,
		c.SparseStep > 0 && (layer+1)%c.SparseStep != 0:
		return false
	case len(c.MoELayerIndex) > 0:
		return slices.Contains(c.MoELayerIndex, layer)
	}
	return c.Interleave == 0 || (layer+1)%c.Interleave == 0
}
