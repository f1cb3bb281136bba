package workload

import (
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// small is a configuration that runs in milliseconds.
func small() Config {
	return Config{Experts: 12, Layers: 2, Ranks: 3, Tokens: 37, Steps: 2, Skew: 1, Seed: 4}
}

func TestParallelRunEqualsSerialReference(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"plain":    func(*Config) {},
		"one rank": func(c *Config) { c.Ranks = 1 },
		"uneven":   func(c *Config) { c.Ranks = 5 },
		"balanced": func(c *Config) { c.Perfect = true },
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			change(&c)
			l := require.Value(New(c))
			want := reference(l)
			l.step(7)
			for i, v := range slices.Concat(l.hidden...) {
				if d := math.Abs(float64(v) - want[i]); !(d < 1e-3) {
					t.Fatalf("token %d, channel %d: %v, the reference has %v", i/hidden, i%hidden, v, want[i])
				}
			}
		})
	}
}

// reference computes the hidden states after step 7 with one token at a time,
// in double precision, in nested loops, without ranks or buffers.
func reference(l *Engine) (out []float64) {
	choice, _ := router.NewRouter(l.gate())
	for rank := range l.Ranks {
		rng := l.rng('t', 7, rank)
		for token := range l.Tokens {
			h := make([]float64, hidden)
			for i, v := range normal(rng, hidden, 1) {
				h[i] = float64(v)
			}
			for _, layer := range l.layers {
				x := slices.Clone(h)
				logits := make([]float32, l.Experts)
				for e := range logits {
					logits[e] = float32(dot(layer.gate[e*hidden:(e+1)*hidden], x) + float64(layer.bias[e]))
				}
				if l.Perfect {
					copy(logits, l.balanced[rank][token*l.Experts:])
				}
				ids, weights := make([]int32, topK), make([]float32, topK)
				choice.Route(logits, ids, weights)
				for s, e := range ids {
					for i, y := range referenceExpert(layer.experts[e], x) {
						h[i] += float64(weights[s]) * y
					}
				}
			}
			out = append(out, h...)
		}
	}
	return out
}

func referenceExpert(x expert, in []float64) []float64 {
	n := len(in)
	inner := make([]float64, intermediate)
	for i := range inner {
		inner[i] = dot(x.up[i*n:(i+1)*n], in)
		g := dot(x.gate[i*n:(i+1)*n], in)
		inner[i] *= g / (1 + math.Exp(-g))
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = dot(x.down[i*intermediate:(i+1)*intermediate], inner)
	}
	return out
}

func dot(w []float32, x []float64) float64 {
	var sum float64
	for i, v := range w {
		sum += float64(v) * x[i]
	}
	return sum
}
