package router

import (
	"fmt"
	"slices"
	"strings"
)

// Model is how a published model routes.
type Model struct {
	Name string `json:"name"` // as --model takes it: "deepseek-v3"
	Shape
	Method Method `json:"method"`
	// routed scaling factor on the combine weights; 1 where there is none
	Scale       float32 `json:"scale"`
	Bias        bool    `json:"bias"`         // a learned correction bias is added to the scores to select
	Layers      int     `json:"layers"`       // all decoder layers
	MoELayers   int     `json:"moe_layers"`   // those with experts that logits choose
	Dense       []int   `json:"dense_layers"` // those without experts, in order; never nil
	Hash        []int   `json:"hash_layers"`  // those with experts that a hash of the token chooses; never nil
	LogitsDType string  `json:"logits_dtype"` // in which engines keep the router logits: "f32" or "bf16"
	Source      string  `json:"source"`       // the published config.json
}

// Routed are the layers with routed experts, in order.
func (m Model) Routed() (layers []int) {
	for layer := range m.Layers {
		if !slices.Contains(m.Dense, layer) {
			layers = append(layers, layer)
		}
	}
	return layers
}

// FindModel returns the preset of that name. Case does not matter, and neither
// does the owner in front of a Hugging Face name: "openai/gpt-oss-120b" is
// "gpt-oss-120b". The error proposes the nearest name.
func FindModel(name string) (Model, error) {
	wanted := strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	names := ModelNames()
	if slices.Contains(names, wanted) {
		return preset(wanted), nil
	}
	return Model{}, fmt.Errorf(
		"unknown model %q: 'moebalance models' lists the presets; any other is read from its config.json, or the folder "+
			"with it%s",
		name, Near(wanted, names))
}

// Near is "; did you mean X?" for the name that differs from a mistyped one in the fewest
// letters, or begins with it; "" where none is near.
func Near(typed string, names []string) string {
	near, least := "", (len(typed)+1)/3+1
	for _, name := range names {
		d := unlike(typed, name)
		if len(typed) > 2 && strings.HasPrefix(name, typed) {
			d = min(d, 1)
		}
		if d < least {
			near, least = fmt.Sprintf("; did you mean %q?", name), d
		}
	}
	return near
}

// unlike is how many letters of two names, of the longer one, stand between the letters that both begin with and the
// letters that both end with: "deepseekv3", "deepseek-v3" → 1.
func unlike(a, b string) int {
	first, last, most := 0, 0, min(len(a), len(b))
	for first < most && a[first] == b[first] {
		first++
	}
	for first+last < most && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	return max(len(a), len(b)) - first - last
}
