package router

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// parseConfig reads how a model routes from its Hugging Face config.json: by its fields and
// what they mean, by the family that its model_type or architecture names where they do not
// say. The language model of a multimodal one is found under text_config and its like. Name
// is the config's model_type; Source is left empty. A method, if
// given, stands in the place of the one that the config tells.
//
// A model is refused by name when the config does not tell its routing method, names one
// that this package has not, such as DeepSeek-V2's group_limited_greedy, or has experts that
// no router logits choose.
func parseConfig(config []byte, method Method) (Model, error) {
	c, err := readFields(config)
	m, err := c.model(method, err)
	if err != nil {
		return Model{}, fmt.Errorf("model config of type %q: %w", m.Name, err)
	}
	return m, nil
}

// model is the model of the fields, of which one may be wrong.
func (c modelConfig) model(method Method, wrong error) (m Model, err error) {
	m.Name = c.ModelType
	if beyond, err := c.alien(); err != nil && (beyond || method == "") {
		return m, err
	}
	if err := cmp.Or(wrong, c.sizes(&m)); err != nil {
		return m, err
	}
	if err := c.setMethod(&m); err != nil && method == "" {
		return m, err
	}
	if method != "" {
		m.Method, m.Bias = method, method.Biased() && !is(c.saysBias(), false)
	}
	if m.Grouped() && !m.Method.groupLimited() {
		return m, fmt.Errorf("%d groups with routing method %s, which has none", m.Groups, m.Method)
	}
	m.LogitsDType = logitsDType(m.Method)
	m.Dense, m.Hash, err = c.otherLayers(m)
	m.MoELayers = m.Layers - len(m.Dense) - len(m.Hash)
	return m, err
}

// sizes fills the shape, the layers and the scale in.
func (c modelConfig) sizes(m *Model) error {
	m.Experts, m.TopK = int(c.Experts), int(c.TopK)
	m.Layers = cmp.Or(int(c.Depth), int(c.OtherDepth), len(c.blocks()))
	groups := int(c.Groups)
	if c.TopKMethod == "greedy" || c.GroupedTopK != nil && !*c.GroupedTopK { // they ignore the groups that a config has
		groups = min(groups, 1)
	}
	if groups < 0 || groups > 1 {
		m.Groups, m.TopKGroups = groups, int(c.TopKGroups)
	}
	if m.Scale = 1; c.Scale != nil {
		m.Scale = float32(*c.Scale)
	} else if c.family() == "openaiprivacyfilter" && m.TopK > 0 { // GPT-OSS with weights that are divided by k
		m.Scale = 1 / float32(m.TopK)
	}
	switch {
	case m.Experts == 0 || m.TopK == 0:
		return errors.New("no routed experts: want num_experts and num_experts_per_tok, or other names for them")
	case m.Experts > MaxExperts:
		return fmt.Errorf("want at most %d routed experts, have %d", MaxExperts, m.Experts)
	case m.Layers < 1 || m.Layers > 1<<14:
		return fmt.Errorf("want num_hidden_layers between 1 and %d, have %d", 1<<14, m.Layers)
	case !(m.Scale > 0) || math.IsInf(float64(m.Scale), 0):
		return fmt.Errorf("want a positive routed_scaling_factor, have %g", m.Scale)
	}
	return m.Validate()
}
