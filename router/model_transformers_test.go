package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// transformersConfig is a line that testdata/field/transformers_configs.py writes: a
// configuration, and what the model is that transformers builds of it.
type transformersConfig struct {
	ModelType string `json:"model_type"`
	Config    json.RawMessage
	Truth     *struct {
		Layers, Experts int
		TopK            int `json:"top_k"`
		Dense, Hash     []int
		Bias            bool
		Scale, Scaled   float64
		IDs             [][]int32
		Weights         [][]float32
	}
}

// TestTransformersConfigs holds what is read of each of transformers' configurations against
// the model and the router that transformers makes of it.
func TestTransformersConfigs(t *testing.T) {
	text := require.Value(os.ReadFile(filepath.Join("..", "testdata", "transformers-configs.jsonl")))
	right, refused := 0, 0
	for line := range bytes.Lines(text) {
		var c transformersConfig
		require.NoError(t, json.Unmarshal(line, &c))
		if m, err := parseConfig(c.Config, ""); err != nil {
			refused++
		} else if why := c.differs(m); why != "" {
			t.Errorf("%s: %s", c.ModelType, why)
		} else {
			right++
		}
	}
	if right != 66 || refused != 11 {
		t.Errorf("%d right and %d refused, want 66 and 11", right, refused)
	}
}

// differs says in what a model differs from the one that transformers builds and the router
// from its router, "" where in nothing.
func (c transformersConfig) differs(m Model) string {
	want := c.Truth
	switch {
	case want == nil || want.IDs == nil:
		return "transformers makes no router of it"
	case m.Experts != want.Experts || m.TopK != want.TopK:
		return fmt.Sprintf("%s, want %d experts, top-%d", m.Shape, want.Experts, want.TopK)
	case m.Layers != want.Layers || !slices.Equal(m.Dense, want.Dense) || !slices.Equal(m.Hash, want.Hash):
		return fmt.Sprintf("%d layers, dense %v, hash %v, want %d, %v, %v", m.Layers, m.Dense, m.Hash, want.Layers,
			want.Dense, want.Hash)
	case m.Bias != want.Bias || m.Scale != float32(want.Scale):
		return fmt.Sprintf("bias %v, scale %v, want %v, %v", m.Bias, m.Scale, want.Bias, want.Scale)
	}
	g := Gate{Method: m.Method, Shape: m.Shape, Scale: float32(want.Scaled)}
	if m.Bias {
		for e := range m.Experts {
			g.Bias = append(g.Bias, made(1000, e)/16)
		}
	}
	r, err := NewRouter(g)
	if err != nil {
		return err.Error()
	}
	logits, ids, weights := make([]float32, m.Experts), make([]int32, m.TopK), make([]float32, m.TopK)
	for token := range want.IDs {
		for e := range logits {
			logits[e] = made(token, e)
		}
		r.Route(logits, ids, weights)
		if m.Bias { // some models do not divide by the sum
			for _, list := range [][]float32{want.Weights[token], weights} {
				sum := float32(0)
				for _, w := range list {
					sum += w
				}
				for i := range list {
					list[i] /= sum
				}
			}
		}
		for i, id := range want.IDs[token] {
			if at := slices.Index(ids, id); at < 0 || math.Abs(float64(weights[at]/want.Weights[token][i]-1)) > 1e-5 {
				return fmt.Sprintf("token %d: %v with weights %v, want %v with %v", token, ids, weights,
					want.IDs[token], want.Weights[token])
			}
		}
	}
	return ""
}

// made is the number that the script makes for a token and an expert.
func made(token, expert int) float32 {
	v := uint32(token*65537+expert+1) * 2654435761
	v = (v ^ v>>16) * 2246822519
	return float32((v^v>>13)>>8)/(1<<21) - 4
}
