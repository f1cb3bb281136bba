package router

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The names of the fields of a config.json by what they mean. Families name the same thing
// differently; fields of one meaning that contradict each other are refused.
var (
	expertFields = []string{"n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts",
		"num_moe_experts", "num_routed_experts"}
	topKFields = []string{"num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k",
		"moe_top_k", "top_k_experts", "moe_router_topk", "num_selected_experts", "n_activated_experts"}
	groupFields = []string{"n_group", "num_expert_group", "num_expert_groups", "n_expert_groups",
		"moe_router_num_groups"}
	topKGroupFields = []string{"topk_group", "n_limited_groups", "num_expert_groups_per_tok",
		"moe_router_group_topk"}
	scoringFields = []string{"scoring_func", "score_func", "score_function", "moe_router_activation_func",
		"moe_router_activation", "moe_router_score_function", "router_score_function", "expert_selection_fn",
		"moe_gate_act"}
	sigmoidFields = []string{"moe_router_use_sigmoid"} // true or false instead of a name
	biasFields    = []string{"use_routing_bias", "use_expert_bias", "moe_router_enable_expert_bias",
		"use_moe_router_bias", "moe_use_aux_free"}
	normFields  = []string{"norm_topk_prob", "moe_renormalize", "route_norm", "norm_expert_weight"}
	scaleFields = []string{"routed_scaling_factor", "route_scale", "routed_scale", "router_scaling_factor",
		"moe_router_scaling_factor", "moe_routed_scaling_factor", "moe_router_topk_scaling_factor"}

	hiddenFields = []string{"hidden_size", "d_model", "dim"}
	latentFields = []string{"moe_latent_size", "routed_expert_hidden_size", "moe_hidden_size"}
	widthFields  = []string{"moe_intermediate_size", "expert_intermediate_size", "expert_ffn_hidden_size",
		"moe_ffn_hidden_size", "expert_hidden_dim", "moe_inter_dim"} // of experts
	denseWidthFields = []string{"intermediate_size", "ffn_hidden_size", "hidden_dim"} // of all layers
	depthFields      = []string{"num_hidden_layers"}
	otherDepthFields = []string{"n_layers", "num_layers", "n_layer"} // LongCat counts each layer twice in the first

	// textFields hold the language model of a multimodal one, or its experts alone.
	textFields = []string{"text_config", "thinker_config", "language_config", "llm_config", "ffn_config", "moe"}
)

// modelConfig reads the fields of a config.json. The first error is kept.
type modelConfig struct {
	fields map[string]json.RawMessage
	err    error
}

func readFields(text []byte) (*modelConfig, error) {
	c := &modelConfig{}
	if err := json.Unmarshal(finite(text), &c.fields); err != nil {
		return nil, fieldError("the file", text, err)
	}
	outer := maps.Clone(c.fields)
	for c.err == nil {
		i := slices.IndexFunc(textFields, func(name string) bool {
			return c.has(name) && (name == textFields[0] || c.fields[name][0] == '{')
		})
		if i < 0 {
			break
		}
		name, experts, fields := textFields[i], c.number(expertFields...), maps.Clone(c.fields)
		if name == "moe" && !c.has("model_type") { // Mistral's params.json
			c.fields["model_type"] = json.RawMessage(`"mistral"`)
		}
		delete(c.fields, name)
		if err := json.Unmarshal(fields[name], &c.fields); err != nil {
			return nil, fieldError(name, fields[name], err)
		}
		if experts == 0 {
			continue
		}
		if n := c.number(expertFields...); n != experts {
			return nil, fmt.Errorf("%d experts, and %d in %s, contradict each other", experts, n, name)
		}
		c.fields = fields
		break
	}
	if outer["architectures"] != nil {
		c.fields["architectures"] = outer["architectures"]
	}
	if c.text("model_type") == "" && outer["model_type"] != nil {
		c.fields["model_type"] = outer["model_type"]
	}
	return c, nil
}

// has reports whether one of the fields is there, and not null.
func (c *modelConfig) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return c.fields[name] != nil && string(c.fields[name]) != "null"
	})
}

// read is the value of the fields of one meaning, and the name of the first that is there;
// "" where none is.
func read[T comparable](c *modelConfig, names ...string) (value T, name string) {
	for _, n := range names {
		if !c.has(n) {
			continue
		}
		var v T
		if err := json.Unmarshal(c.fields[n], &v); err != nil {
			c.fail(fieldError(n, c.fields[n], err))
		} else if name != "" && v != value {
			c.fail(fmt.Errorf("%s %v and %s %v contradict each other", name, value, n, v))
		} else if name == "" {
			value, name = v, n
		}
	}
	return value, name
}

// number is a number, or a list over layers whose entries are all that number; 0 where
// none of the fields is there.
func (c *modelConfig) number(names ...string) int {
	v, _ := read[same](c, names...)
	return int(v)
}

// list is a list of whole numbers; true counts as 1, and a text is one with commas.
func (c *modelConfig) list(name string) (list []int) {
	if !c.has(name) {
		return nil
	}
	var entries []any
	var text string
	if json.Unmarshal(c.fields[name], &text) == nil {
		for _, word := range regexp.MustCompile(`[^,\s]+`).FindAllString(text, -1) {
			entries = append(entries, word)
		}
	} else if err := json.Unmarshal(c.fields[name], &entries); err != nil {
		c.fail(fmt.Errorf("%s: want a list of whole numbers, have %s", name, brief(c.fields[name])))
	}
	for _, entry := range entries {
		n, err := strconv.Atoi(fmt.Sprint(entry))
		switch entry {
		case true:
			n, err = 1, nil
		case false:
			n, err = 0, nil
		}
		if err != nil {
			c.fail(fmt.Errorf("%s: want a list of whole numbers, have %s", name, brief(c.fields[name])))
		}
		list = append(list, n)
	}
	return list
}

// isList reports whether the field holds a list.
func (c *modelConfig) isList(name string) bool { return c.has(name) && c.fields[name][0] == '[' }

// atLeast is a number, which may not be below the least.
func (c *modelConfig) atLeast(name string, least int) int {
	n := c.number(name)
	if c.has(name) && n < least {
		c.fail(fmt.Errorf("want %s of at least %d, have %d", name, least, n))
	}
	return n
}

// text is a text, "" where the field is not there.
func (c *modelConfig) text(name string) string {
	text, _ := read[string](c, name)
	return text
}

// words is a list of texts.
func (c *modelConfig) words(name string) (list []string) {
	if c.has(name) {
		if err := json.Unmarshal(c.fields[name], &list); err != nil {
			c.fail(fmt.Errorf("%s: want a list of texts, have %s", name, brief(c.fields[name])))
		}
	}
	return list
}

func (c *modelConfig) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// same is a number, or a list over layers whose entries are all that number.
type same int

// UnmarshalJSON reads a number, or a list of one number repeated.
func (s *same) UnmarshalJSON(b []byte) error {
	var list []int
	if err := json.Unmarshal(b, &list); err != nil {
		return json.Unmarshal(b, (*int)(s))
	}
	for _, n := range list {
		if n != list[0] {
			return fmt.Errorf("want the same in every layer, have %d and %d", list[0], n)
		}
		*s = same(n)
	}
	return nil
}

// notFinite matches strings, to pass over them, and the numbers that Python writes and
// JSON has not.
var notFinite = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b`)

// finite has texts in the place of the numbers that JSON has not: no field that is read
// here may be one.
func finite(config []byte) []byte {
	return notFinite.ReplaceAllFunc(config, func(b []byte) []byte {
		if b[0] == '"' {
			return b
		}
		return []byte(strconv.Quote(string(b)))
	})
}

// fieldError names the field of a wrong type without the words of Go.
func fieldError(name string, value []byte, err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Float64: "a number",
			reflect.String: "a text", reflect.Bool: "true or false", reflect.Map: "an object"}[wrong.Type.Kind()]
		return fmt.Errorf("%s: want %s, have %s", name, want, brief(value))
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// brief is the beginning of a value, as it stands in the file.
func brief(value []byte) string {
	if len(value) > 40 {
		return strings.ToValidUTF8(string(value[:40]), "") + "…"
	}
	return string(value)
}

// ParseConfig reads how a model routes from its Hugging Face config.json: by its fields and
// what they mean, by the family that its model_type or architecture names where they do not
// say. The language model of a multimodal one is found under text_config and its like. Name
// is the config's model_type and Title its architecture; Source is left empty. A method, if
// given, stands in the place of the one that the config tells.
//
// A model is refused by name when the config does not tell its routing method, names one
// that this package has not, such as DeepSeek-V2's group_limited_greedy, or has experts that
// no router logits choose.
func ParseConfig(config []byte, method Method) (Model, error) {
	c, err := readFields(config)
	if err != nil {
		return Model{}, fmt.Errorf("model config: %w", err)
	}
	m, err := c.model(method)
	if err != nil {
		return Model{}, fmt.Errorf("model config of type %q: %w", m.Name, err)
	}
	return m, nil
}

func (c *modelConfig) model(method Method) (m Model, err error) {
	m.Name = c.text("model_type")
	m.Title, m.Scale = m.Name, 1
	if names := c.words("architectures"); len(names) > 0 {
		m.Title = names[0]
	}
	alien, beyond := c.alien(m)
	if alien != "" && (beyond || method == "") {
		return m, fmt.Errorf("routes by %s, which is not supported", alien)
	}
	if err := c.sizes(&m); err != nil {
		return m, err
	}
	if err := c.setMethod(&m); err != nil && method == "" {
		return m, err
	}
	if method != "" {
		m.Method, m.Unnormalized = method, false
		m.Bias = method.Biased() && c.saysBias() != no
	}
	if m.Grouped() && !m.Method.GroupLimited() {
		return m, fmt.Errorf("%d groups with routing method %s, which has none", m.Groups, m.Method)
	}
	m.LogitsDType = logitsDType(m.Method)
	m.Dense, m.Hash, err = c.otherLayers(m)
	m.MoELayers = m.Layers - len(m.Dense) - len(m.Hash)
	return m, cmp.Or(c.err, err)
}

// sizes fills the shape, the widths, the layers and the scale in.
func (c *modelConfig) sizes(m *Model) error {
	m.Experts, m.TopK = c.number(expertFields...), c.number(topKFields...)
	m.Hidden, m.Latent = c.number(hiddenFields...), c.number(latentFields...)
	if m.Latent == m.Hidden {
		m.Latent = 0
	}
	m.Intermediate = cmp.Or(c.number(widthFields...), c.number(denseWidthFields...))
	m.Layers = cmp.Or(c.number(depthFields...), c.number(otherDepthFields...), len(c.blocks()))
	groups := c.groups()
	if groups > 1 {
		m.Groups, m.TopKGroups = groups, c.number(topKGroupFields...)
	}
	scale, scaled := read[float64](c, scaleFields...)
	if scaled != "" {
		m.Scale = float32(scale)
	} else if familyOf(*m) == "openaiprivacyfilter" && m.TopK > 0 { // GPT-OSS with weights that are divided by k
		m.Scale = 1 / float32(m.TopK)
	}
	switch {
	case c.err != nil:
		return c.err
	case m.Experts == 0:
		return fmt.Errorf("no routed experts: want one of %s", strings.Join(expertFields, ", "))
	case m.Experts > MaxExperts:
		return fmt.Errorf("want at most %d routed experts, have %d", MaxExperts, m.Experts)
	case m.TopK == 0:
		return fmt.Errorf("no experts per token: want one of %s", strings.Join(topKFields, ", "))
	case m.Layers < 1 || m.Layers > 1<<14:
		return fmt.Errorf("want num_hidden_layers between 1 and %d, have %d", 1<<14, m.Layers)
	case groups < 0:
		return fmt.Errorf("want n_group of at least 1, have %d", groups)
	case groups > 1 && m.TopKGroups == 0:
		return fmt.Errorf("%d groups, and no groups per token: want one of %s", groups,
			strings.Join(topKGroupFields, ", "))
	case !(m.Scale > 0) || math.IsInf(float64(m.Scale), 0):
		return fmt.Errorf("want a positive %s, have %g", scaled, scale)
	case m.Hidden < 1 || m.Intermediate < 1:
		return fmt.Errorf("want positive hidden_size and moe_intermediate_size or intermediate_size, have %d and %d",
			m.Hidden, m.Intermediate)
	}
	return m.Validate()
}

// groups are those that limit a token: topk_method greedy and use_grouped_topk false ignore
// those that there are.
func (c *modelConfig) groups() int {
	grouped, said := read[bool](c, "use_grouped_topk")
	if c.text("topk_method") == "greedy" || said != "" && !grouped {
		return min(c.number(groupFields...), 1)
	}
	return c.number(groupFields...)
}
