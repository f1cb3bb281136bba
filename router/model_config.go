package router

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

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

// groups is how many groups limit a token: topk_method greedy and use_grouped_topk false
// ignore the groups that a config has.
func (c *modelConfig) groups() int {
	grouped, said := read[bool](c, "use_grouped_topk")
	if c.text("topk_method") == "greedy" || said != "" && !grouped {
		return min(c.number(groupFields...), 1)
	}
	return c.number(groupFields...)
}
