package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/moebalance/moebalance/router"
)

// layer holds weights, which come from Config.Seed and are the same for any number of ranks.
type layer struct {
	gate    []float32 // [E, H]
	bias    []float32 // [E], added to the gate's logits
	experts []expert
}

// expert is the matrices of a SwiGLU, down·(silu(gate·x) ⊙ up·x), one row per output.
type expert struct {
	up, gate []float32 // [I, H]
	down     []float32 // [H, I]
}

// rng is a random stream of its own for each number of a part of a kind ('g', 'e' or 't').
func (c Config) rng(kind, a, b int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(kind)<<56|uint64(a)<<28|uint64(b)))
}

// newLayer draws experts, a gate whose logits are about standard normal over the hidden states, and the bias that
// skews it.
func (c Config) newLayer(l int) layer {
	rng := c.rng('g', l, 0)
	x := layer{gate: normal(rng, c.Experts*hidden, hidden), bias: make([]float32, c.Experts)}
	for i, e := range rng.Perm(c.Experts) {
		x.bias[e] = float32(-c.Skew * math.Log(float64(1+i)))
	}
	for e := range c.Experts {
		rng, n := c.rng('e', l, e), intermediate*hidden
		x.experts = append(x.experts, expert{up: normal(rng, n, hidden), down: normal(rng, n, intermediate),
			gate: normal(rng, n, hidden)})
	}
	return x
}

// normal draws n numbers of variance 1/fanIn.
func normal(rng *rand.Rand, n, fanIn int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(rng.NormFloat64() / math.Sqrt(float64(fanIn)))
	}
	return w
}

// dispatch routes the rank's tokens in a layer.
func (e *Engine) dispatch(l, rank int) {
	choice, _ := router.NewRouter(e.gate()) // which New has checked
	for i := range e.Tokens {
		t := rank*e.Tokens + i
		logits := product(e.layers[l].gate, e.hidden[t])
		gonum.Implementation{}.Saxpy(e.Experts, 1, e.layers[l].bias, 1, logits, 1)
		if e.Perfect {
			copy(logits, e.balanced[rank][i*e.Experts:])
		}
		choice.Route(logits, e.ids[t*topK:(t+1)*topK], e.weights[t*topK:(t+1)*topK])
	}
}

// experts computes the experts that the rank owns on the tokens of all ranks.
func (e *Engine) experts(l, rank int) {
	for _, held := range e.layout.Held(rank) {
		for slot, id := range e.ids {
			if id == held {
				e.returned[slot] = e.layers[l].experts[id].forward(e.hidden[slot/topK])
			}
		}
	}
}

// combine adds the weighted rows that came back to the hidden states of the rank's tokens.
func (e *Engine) combine(_, rank int) {
	for slot := rank * e.Tokens * topK; slot < (rank+1)*e.Tokens*topK; slot++ {
		gonum.Implementation{}.Saxpy(hidden, e.weights[slot], e.returned[slot], 1, e.hidden[slot/topK], 1)
	}
}

// forward runs an expert on a token.
func (e expert) forward(in []float32) []float32 {
	up := product(e.up, in)
	for i, g := range product(e.gate, in) {
		up[i] *= g / (1 + float32(math.Exp(float64(-g))))
	}
	return product(e.down, up)
}

// product is w·x, for w of a row per output, on the calling goroutine alone.
func product(w, x []float32) []float32 {
	out := make([]float32, len(w)/len(x))
	gonum.Implementation{}.Sgemv(blas.NoTrans, len(out), len(x), 1, w, len(x), x, 1, 0, out, 1)
	return out
}
