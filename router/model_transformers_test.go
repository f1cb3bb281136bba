package router

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of configurations anew")

// transformersConfig is a line that testdata/field/transformers_configs.py writes: a
// configuration, and what the model is that transformers builds of it.
type transformersConfig struct {
	Transformers string
	ModelType    string `json:"model_type"`
	Filled       map[string]any
	Config       json.RawMessage
	Router       string
	Truth        *struct {
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
	text, err := os.ReadFile(filepath.Join("..", "testdata", "transformers-configs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]string{{"model_type", "router", "verdict", "method", "experts", "top_k", "groups", "bias", "scale",
		"moe_layers", "layers", "filled", "why"}}
	counts := map[string]int{}
	for line := range bytes.Lines(text) {
		var c transformersConfig
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		m, err := ParseConfig(c.Config, "")
		verdict, why := "right", ""
		if err != nil {
			_, why, _ = strings.Cut(err.Error(), `": `)
			verdict, m = "refused", Model{}
		} else if why = c.differs(m); why != "" {
			verdict = "wrong"
			t.Errorf("%s: %s", c.ModelType, why)
		}
		counts[verdict]++
		row := []string{c.ModelType, c.Router, verdict}
		for _, v := range []any{m.Method, m.Experts, m.TopK, max(m.Groups, 1), m.Bias, m.Scale, m.MoELayers, m.Layers} {
			if text := fmt.Sprint(v); verdict == "refused" {
				row = append(row, "")
			} else {
				row = append(row, text)
			}
		}
		rows = append(rows, append(row, strings.Join(slices.Sorted(maps.Keys(c.Filled)), " "), why))
	}
	if t.Log(counts); counts["right"] < 60 {
		t.Errorf("%v: want 60 right", counts)
	}
	var table bytes.Buffer
	if err := csv.NewWriter(&table).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("..", "testdata", "transformers-configs.csv")
	if *update {
		if err := os.WriteFile(golden, table.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(want, table.Bytes()) {
		t.Errorf("%v: the table of configurations is another; run with -update and look at it", err)
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
			at := slices.Index(ids, id)
			if at < 0 || math.Abs(float64(weights[at]/want.Weights[token][i]-1)) > 1e-5 {
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
