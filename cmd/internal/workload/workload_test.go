package workload

import (
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// small is a configuration that runs in milliseconds.
func small() Config {
	return Config{
		Gate:   router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: 12, TopK: 3}},
		Layers: 2, Ranks: 3, Tokens: 37, Steps: 2, Skew: 1, Seed: 4,
	}
}

// useFlat balances by the simplest plan: slot n of rank r goes to rank
// n+r mod R, and on that rank to the experts in turn.
func useFlat(e *Engine) {
	c := e.Config
	for rank := range c.Ranks {
		own := c.Gate.Shape.Experts / c.Ranks
		out := make([]float32, c.Tokens*c.Gate.Shape.Experts)
		for i := range out {
			out[i] = -10
		}
		for n := range c.Tokens * c.Gate.Shape.TopK {
			to := (n + rank) % c.Ranks
			e := to*own + n/c.Ranks%own
			out[n/c.Gate.Shape.TopK*c.Gate.Shape.Experts+e] = 10
		}
		e.ranks[rank].balanced = out
	}
}

func TestParallelRunEqualsSerialReference(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"plain":    func(*Config) {},
		"one rank": func(c *Config) { c.Ranks = 1 },
		"uneven":   func(c *Config) { c.Ranks = 5 },
		"balanced": func(*Config) {},
		"grouped": func(c *Config) {
			c.Gate.Method, c.Gate.Shape = router.DeepSeekV3, router.Shape{Experts: 12, TopK: 3, Groups: 4,
				TopKGroups: 2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			change(&c)
			l, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if name == "balanced" {
				useFlat(l)
			}
			want := reference(t, l)
			l.step(7)
			for r, rank := range l.ranks {
				for i, v := range slices.Concat(rank.hidden...) {
					if d := math.Abs(float64(v) - want[r][i]); !(d < 1e-3) {
						t.Fatalf("rank %d, token %d, channel %d: %v, the reference has %v", r, i/hidden, i%hidden,
							v, want[r][i])
					}
				}
			}
		})
	}
}

// reference computes the hidden states after step 7 with one token at a time,
// in double precision, in nested loops, without ranks or buffers.
func reference(t *testing.T, l *Engine) [][]float64 {
	c := l.Config
	out := make([][]float64, c.Ranks)
	for r := range out {
		l.ranks[r].embed(c, 7)
		for _, state := range l.ranks[r].hidden {
			token := len(out[r]) / hidden
			h := make([]float64, hidden)
			for i := range h {
				h[i] = float64(state[i])
			}
			for _, layer := range l.layers {
				x := referenceNorm(h)
				logits := make([]float32, c.Gate.Shape.Experts)
				for e := range logits {
					logits[e] = float32(dot(layer.gate[e*hidden:(e+1)*hidden], x) + float64(layer.bias[e]))
				}
				if l.ranks[r].balanced != nil {
					copy(logits, l.ranks[r].balanced[token*c.Gate.Shape.Experts:])
				}
				ids, weights := make([]int32, c.Gate.Shape.TopK), make([]float32, c.Gate.Shape.TopK)
				l.ranks[r].router.Route(logits, ids, weights)
				for s, e := range ids {
					for i, y := range referenceExpert(layer.experts[e], x, intermediate) {
						h[i] += float64(weights[s]) * y
					}
				}
			}
			out[r] = append(out[r], h...)
		}
	}
	return out
}

func referenceNorm(h []float64) []float64 {
	var squares float64
	for _, v := range h {
		squares += v * v
	}
	x := make([]float64, len(h))
	for i, v := range h {
		x[i] = v / math.Sqrt(squares/float64(len(h))+1e-6)
	}
	return x
}

func referenceExpert(x weights, in []float64, intermediate int) []float64 {
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

func TestOnlyBalancedLogitsReachTheFloor(t *testing.T) {
	c := small() // 37·3·3 = 333 slots: 27.75 per expert, 111 per rank
	ran := func(perfect bool) Result {
		c.Perfect = perfect
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	normal, perfect := ran(false), ran(true)
	for l := range c.Layers {
		if normal.RankMaxOverMean[l] < 1.05 || normal.ExpertMaxOverMean[l] < 2 {
			t.Errorf("normal arm, layer %d: ranks %.3f, experts %.3f: too even", l, normal.RankMaxOverMean[l],
				normal.ExpertMaxOverMean[l])
		}
		if perfect.RankMaxOverMean[l] != perfect.RankFloor || perfect.RankFloor != 1 {
			t.Errorf("perfect arm, layer %d: ranks %.3f, floor %.3f", l, perfect.RankMaxOverMean[l], perfect.RankFloor)
		}
	}
}

func TestEngineRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no experts": func(c *Config) { c.Gate.Shape.Experts = 0 },
		"more ranks": func(c *Config) { c.Ranks = 13 },
		"no tokens":  func(c *Config) { c.Tokens = 0 },
		"no steps":   func(c *Config) { c.Steps = 0 },
		"skew":       func(c *Config) { c.Skew = math.NaN() },
		"method":     func(c *Config) { c.Gate.Method = "coin" },
		"too large":  func(c *Config) { c.Gate.Shape.Experts, c.Layers = 1024, 1<<6 },
	} {
		c := small()
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
