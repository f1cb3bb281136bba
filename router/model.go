package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// ErrModel is wrapped by the errors about names of models that are not known.
var ErrModel = errors.New("unknown model")

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

// Sizes is the shape, nil where no model is named.
func (m *Model) Sizes() *Shape {
	if m == nil {
		return nil
	}
	return &m.Shape
}

// Routed are the layers with routed experts, in order; nil where no model is named.
func (m *Model) Routed() (layers []int) {
	if m == nil {
		return nil
	}
	for layer := range m.Layers {
		if !slices.Contains(m.Dense, layer) {
			layers = append(layers, layer)
		}
	}
	return layers
}

// findModel returns the preset of that name. Case does not matter, and neither
// does the owner in front of a Hugging Face name: "openai/gpt-oss-120b" is
// "gpt-oss-120b". The error proposes the nearest name.
func findModel(name string) (Model, error) {
	wanted := strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	names := modelNames()
	if slices.Contains(names, wanted) {
		return preset(wanted), nil
	}
	return Model{}, fmt.Errorf("%w %q: 'moebalance models' lists the presets; any other is read from its config.json, or "+
		"the folder with it%s", ErrModel, name, Near(wanted, names))
}

// mostSettings is the most bytes of a file of settings: a model's, a placement.
const mostSettings = 64 << 20

// ReadModel is the named model: a preset, what a config.json or the folder of a checkpoint says, as
// engines take it, or one that is named by its shape: "e256k8g8-4" → 256 experts, top-8, 4 of 8 groups. A method
// given stands in the place of the config's.
func ReadModel(name string, method Method) (m Model, err error) {
	path := name
	if inside := filepath.Join(name, "config.json"); isFile(inside) {
		path = inside
	}
	switch shape := shapeName.FindStringSubmatch(name); {
	case isFile(path) || strings.HasSuffix(path, ".json"):
	case shape != nil:
		return ofShape(shape)
	default:
		return findModel(name)
	}
	text, err := input.ReadFile(path, mostSettings)
	if err != nil {
		return m, err
	}
	m, err = parseConfig(text, method)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return m, &input.Error{File: path, Expected: "a Hugging Face config.json", Err: syntax,
			Try: "copy it from the checkpoint again"}
	} else if err != nil {
		return m, &input.Error{File: path, Err: err}
	}
	m.Source = path
	return m, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// shapeName is the name of a model that is known by its shape alone.
var shapeName = regexp.MustCompile(`^e(\d{1,6})k(\d{1,6})(?:g(\d{1,6})-(\d{1,6}))?$`)

func ofShape(parts []string) (Model, error) {
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(parts[i+1]) // "" is none
	}
	m := Model{Name: parts[0], Scale: 1, LogitsDType: "bf16", Method: Renormalize, Shape: Shape{n[0], n[1], n[2], n[3]}}
	if m.Grouped() {
		m.Method, m.LogitsDType = DeepSeekV3, "f32"
	}
	if err := m.Validate(); err != nil {
		return m, fmt.Errorf("%w %q: %w", ErrModel, m.Name, err)
	}
	return m, nil
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
