package router

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
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
	KimiTopK        same `json:"num_experts_per_token"`
	MoETopK         same `json:"moe_topk"`        // Hunyuan, a number or a list over layers
	MoEK            same `json:"moe_k"`           // ERNIE
	ZeroExperts     same `json:"zero_expert_num"` // LongCat: behind the routed ones, and without weights

	Groups        same     `json:"n_group"`
	KimiGroups    same     `json:"num_expert_group"`
	TopKGroups    same     `json:"topk_group"`
	ScoringFunc   string   `json:"scoring_func"`
	TopKMethod    string   `json:"topk_method"`
	NormTopKProb  *bool    `json:"norm_topk_prob"`
	RoutingBias   *bool    `json:"use_routing_bias"` // MiniMax
	ExpertBias    *bool    `json:"use_expert_bias"`  // LFM2
	ScalingFactor *float32 `json:"routed_scaling_factor"`
	RouterScaling *float32 `json:"router_scaling_factor"` // HY-V3

	Hidden          same `json:"hidden_size"`
	Intermediate    same `json:"intermediate_size"`
	MoEIntermediate same `json:"moe_intermediate_size"`
	Layers          same `json:"num_hidden_layers"`

	FirstDense    int       `json:"first_k_dense_replace"`     // DeepSeek, GLM
	NumDense      int       `json:"num_dense_layers"`          // LFM2: the first ones
	LayerFreq     frequency `json:"moe_layer_freq"`            // DeepSeek: every n-th; MiMo, MiniMax: a list of 0 and 1
	SparseStep    int       `json:"decoder_sparse_step"`       // Qwen: every n-th, the first being layer n−1
	MLPOnly       []int     `json:"mlp_only_layers"`           // Qwen
	Interleave    int       `json:"interleave_moe_layer_step"` // Llama 4: as decoder_sparse_step
	MoELayerIndex []int     `json:"moe_layers"`                // Llama 4: the layers themselves
	// dense, sparse, moe or hash_moe for each layer; decides alone
	LayerTypes []string `json:"mlp_layer_types"`
	HashLayers *same    `json:"num_hash_layers"` // DeepSeek-V4: the first ones

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
// config's model_type and Title its architecture; Source is left empty. A method, if
// given, stands in the place of the one that the config tells.
//
// A model is refused by name when the config does not tell its routing method
// or names one that this package has not, such as DeepSeek-V2's
// group_limited_greedy or the sparse mixer of Phi.
func ParseConfig(config []byte, method Method) (Model, error) {
	var c modelConfig
	config = finite(config)
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
	c.Groups, c.ScalingFactor = cmp.Or(c.Groups, c.KimiGroups), cmp.Or(c.ScalingFactor, c.RouterScaling)
	m, err := c.model(method)
	if err != nil {
		return Model{}, fmt.Errorf("model config of type %q: %w", c.ModelType, err)
	}
	return m, nil
}

// notFinite matches strings, to pass over them, and the numbers that Python writes and
// JSON has not.
var notFinite = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b`)

// finite has null in the place of the numbers that JSON has not: no field that is read
// here may be one.
func finite(config []byte) []byte {
	return notFinite.ReplaceAllFunc(config, func(b []byte) []byte {
		if b[0] == '"' {
			return b
		}
		return []byte("null")
	})
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

func (c modelConfig) model(method Method) (Model, error) {
	m := Model{
		Name: c.ModelType, Title: c.ModelType, Scale: 1,
		Shape: Shape{Experts: c.experts(), TopK: int(cmp.Or(c.ExpertsPerTok, c.ExpertsPerToken, c.KimiTopK, c.MoETopK,
			c.MoEK))},
		Hidden: int(c.Hidden), Intermediate: int(cmp.Or(c.MoEIntermediate, c.Intermediate)), Layers: int(c.Layers),
	}
	if len(c.Architectures) > 0 {
		m.Title = c.Architectures[0]
	}
	if c.Groups > 1 {
		m.Groups, m.TopKGroups = int(c.Groups), int(c.TopKGroups)
	}
	switch {
	case c.ZeroExperts > 0:
		return m, fmt.Errorf(
			"%d zero experts (zero_expert_num), which take tokens off the routed ones, are not supported",
			c.ZeroExperts)
	case m.Experts == 0:
		return m, fmt.Errorf(
			"no routed experts: want one of n_routed_experts, num_local_experts, num_experts, moe_num_experts")
	case m.Experts > MaxExperts:
		return m, fmt.Errorf("want at most %d routed experts, have %d", MaxExperts, m.Experts)
	case m.TopK == 0:
		return m, fmt.Errorf(
			"no experts per token: want one of num_experts_per_tok, experts_per_token, moe_topk, moe_k")
	case m.Layers < 1 || m.Layers > 1<<14:
		return m, fmt.Errorf("want num_hidden_layers between 1 and %d, have %d", 1<<14, m.Layers)
	case c.Groups < 0:
		return m, fmt.Errorf("want n_group of at least 1, have %d", c.Groups)
	case c.ScalingFactor != nil && !(*c.ScalingFactor > 0):
		return m, fmt.Errorf("want a positive routed_scaling_factor, have %g", *c.ScalingFactor)
	case m.Hidden < 1 || m.Intermediate < 1:
		return m, fmt.Errorf("want positive hidden_size and moe_intermediate_size or intermediate_size, have %d and %d",
			m.Hidden, m.Intermediate)
	}
	if err := m.Validate(); err != nil {
		return m, err
	}
	var err error
	if m.Method, m.Bias, err = c.method(); method != "" {
		m.Method, m.Bias = method, method.Biased() && c.addsBias(true)
	} else if err != nil {
		return m, err
	}
	if m.Grouped() && !m.Method.GroupLimited() {
		return m, fmt.Errorf("%d groups with routing method %s, which has none", m.Groups, m.Method)
	}
	if c.ScalingFactor != nil {
		m.Scale = *c.ScalingFactor
	}
	m.LogitsDType = logitsDType(m.Method)
	m.Dense, m.Hash, err = c.otherLayers()
	m.MoELayers = m.Layers - len(m.Dense) - len(m.Hash)
	return m, err
}

// families are the routing methods of model types, where their configs do not say
// otherwise.
var families = map[string]Method{
	"gpt_oss": Renormalize, "mixtral": Renormalize, "granitemoe": Renormalize, "granitemoeshared": Renormalize,
	"granitemoehybrid": Renormalize, "aria_text": Renormalize,
	"qwen2_moe": Default, "qwen3_moe": Default, "olmoe": Default, "flex_olmo": Default, "deepseek_v2": Default,
	"qwen3_next": RenormalizeNaive, "qwen3_vl_moe_text": RenormalizeNaive, "qwen3_omni_moe_text": RenormalizeNaive,
	"qwen3_5_moe_text": RenormalizeNaive,
	"qwen4_exp_text":   RenormalizeNaive, "hunyuan_v1_moe": RenormalizeNaive, "minimax": RenormalizeNaive,
	"mistral4":            RenormalizeNaive,
	"mistral_large4_text": RenormalizeNaive, "mellum": RenormalizeNaive,
	"llama4": Llama4, "llama4_text": Llama4, "flint": SigmoidRenorm,
	"deepseek_v3": DeepSeekV3, "deepseek_v32": DeepSeekV3, "kimi_k2": DeepSeekV3, "glm4_moe": DeepSeekV3,
	"glm4_moe_lite": DeepSeekV3, "glm4v_moe_text": DeepSeekV3,
	"glm_moe_dsa": DeepSeekV3, "glm5_next_text": DeepSeekV3, "dots1": DeepSeekV3, "dots3_note_text": DeepSeekV3,
	"axk1": DeepSeekV3, "beam": DeepSeekV3,
	"exaone_moe": DeepSeekV3, "solar_open": DeepSeekV3, "hy_v4": DeepSeekV3, "mimo_v2_flash": DeepSeekV3,
	"kimi_linear": DeepSeekV3, "bailing_hybrid": DeepSeekV3,
	"minimax_m2": MiniMax2, "minimax_m3_vl_text": MiniMax2, "hy_v3": MiniMax2, "lfm2_moe": MiniMax2,
	"deepseek_v4": DeepSeekV4,
}

// notOurs names methods that no config field describes.
var notOurs = map[string]string{
	"phimoe":       "the sparse mixer",
	"ernie4_5_moe": "a bias on softmax scores",
}

// addsBias is whether a correction bias is added, as far as the config says.
func (c modelConfig) addsBias(unsaid bool) bool {
	switch {
	case c.RoutingBias != nil:
		return *c.RoutingBias
	case c.ExpertBias != nil:
		return *c.ExpertBias
	case c.TopKMethod != "":
		return c.TopKMethod == "noaux_tc"
	}
	return unsaid
}

// method is how tokens choose their experts, and whether a correction bias has a say.
// What the config spells out comes first; the family fills in the rest.
func (c modelConfig) method() (m Method, bias bool, err error) {
	family := families[c.ModelType]
	scoring := cmp.Or(c.ScoringFunc, family.scoringName())
	bias = c.addsBias(scoring == sqrtSoftplusScores || scoring == family.scoringName() && family.Biased())
	normalized := family == RenormalizeNaive || family.Biased()
	if c.NormTopKProb != nil {
		normalized = *c.NormTopKProb
	}
	what := ""
	switch {
	case notOurs[c.ModelType] != "":
		what = notOurs[c.ModelType]
	case c.TopKMethod == "group_limited_greedy" && c.Groups > 1:
		what = fmt.Sprintf("topk_method %q (groups scored by their best softmax probability)", c.TopKMethod)
	case scoring == softmaxScores && bias:
		what = "a bias on softmax scores"
	case scoring == sigmoidScores && !bias && c.Groups > 1:
		what = "groups of sigmoid scores without a bias"
	case family != "" && family != Default && family != RenormalizeNaive && scoring == family.scoringName() &&
		bias == family.Biased():
		return family, bias, nil
	case scoring == softmaxScores && normalized:
		return RenormalizeNaive, false, nil
	case scoring == softmaxScores:
		return Default, false, nil
	case scoring == sqrtSoftplusScores:
		return DeepSeekV4, bias, nil
	case scoring == sigmoidScores && bias && c.RoutingBias != nil && c.Groups <= 1:
		return MiniMax2, true, nil
	case scoring == sigmoidScores && bias:
		return DeepSeekV3, true, nil
	case scoring == sigmoidScores && normalized:
		return SigmoidRenorm, false, nil
	default:
		return "", false, fmt.Errorf(
			"its routing method is not known, and scoring_func %q with topk_method %q does not tell it: name it with --method", c.ScoringFunc, c.TopKMethod)
	}
	return "", false, fmt.Errorf("routes by %s, which is not supported", what)
}

// The values of scoring_func.
const (
	softmaxScores      = "softmax"
	sigmoidScores      = "sigmoid"
	sqrtSoftplusScores = "sqrtsoftplus"
)

// scoringName is the scoring_func of a method, empty without one.
func (m Method) scoringName() string {
	switch m {
	case Default, Renormalize, RenormalizeNaive:
		return softmaxScores
	case DeepSeekV3, Llama4, MiniMax2, SigmoidRenorm:
		return sigmoidScores
	case DeepSeekV4:
		return sqrtSoftplusScores
	}
	return ""
}

// otherLayers are those without routed experts, and those that find them by a hash of
// the token, whatever its logits.
func (c modelConfig) otherLayers() (dense, hash []int, err error) {
	layers := int(c.Layers)
	if err := c.checkLayers(); err != nil {
		return nil, nil, err
	}
	dense, hash = []int{}, []int{}
	for l := range layers {
		switch {
		case !c.isMoE(l):
			dense = append(dense, l)
		case c.isHash(l):
			hash = append(hash, l)
		}
	}
	if len(dense)+len(hash) == layers {
		return nil, nil, fmt.Errorf("none of its %d layers has routed experts", layers)
	}
	return dense, hash, nil
}

func (c modelConfig) checkLayers() error {
	layers := int(c.Layers)
	if n := len(c.LayerFreq.list); n > 0 && n != layers {
		return fmt.Errorf("moe_layer_freq lists %d layers, num_hidden_layers is %d", n, layers)
	}
	if n := len(c.LayerTypes); n > 0 && n != layers {
		return fmt.Errorf("mlp_layer_types lists %d layers, num_hidden_layers is %d", n, layers)
	}
	for layer, kind := range c.LayerTypes {
		if !slices.Contains([]string{"dense", "sparse", "moe", "hash_moe"}, kind) {
			return fmt.Errorf("mlp_layer_types: want dense, sparse, moe or hash_moe for layer %d, have %q", layer, kind)
		}
	}
	for layer, sparse := range c.LayerFreq.list {
		if sparse != 0 && sparse != 1 {
			return fmt.Errorf("moe_layer_freq: want 1 or 0 for layer %d, have %d", layer, sparse)
		}
	}
	if c.FirstDense < 0 {
		return fmt.Errorf("want first_k_dense_replace of at least 0, have %d", c.FirstDense)
	}
	for _, step := range []int{c.LayerFreq.every, c.SparseStep, c.Interleave} {
		if step < 0 {
			return fmt.Errorf("want moe_layer_freq, decoder_sparse_step and interleave_moe_layer_step of at least 1, have %d", step)
		}
	}
	return nil
}

// isHash reports a layer that chooses experts by token, not by logits. DeepSeek-V4's
// config may leave their number out, which is 3 then.
func (c modelConfig) isHash(layer int) bool {
	switch {
	case len(c.LayerTypes) > 0:
		return c.LayerTypes[layer] == "hash_moe"
	case c.HashLayers != nil:
		return layer < int(*c.HashLayers)
	}
	return c.ModelType == "deepseek_v4" && layer < 3
}

func (c modelConfig) isMoE(layer int) bool {
	switch {
	case len(c.LayerTypes) > 0:
		return c.LayerTypes[layer] != "dense"
	case layer < c.FirstDense, layer < c.NumDense,
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
