package workload

import (
	"math"
	"math/rand/v2"
	"sync"

	"github.com/moebalance/moebalance/router"
)

// vocabulary is the number of different tokens a step draws from.
const vocabulary = 4096

// model holds the weights. Everything in it comes from Config.Seed and is the
// same for any number of ranks.
type model struct {
	c         Config
	layout    router.Layout
	embedding []float32 // [vocabulary, H]
	layers    []layer
}

type layer struct {
	gate    []float32 // [E, H]
	bias    []float32 // [E], added to the gate's logits
	experts []weights
}

// weights are those of an expert, a SwiGLU, down·(silu(gate·x) ⊙ up·x). It holds its matrices the way they are
// multiplied: one row per output.
type weights struct {
	up, gate []float32 // [I, H]
	down     []float32 // [H, I]
}

// The random streams, so that no part's size shifts another part's numbers.
const (
	embeddingStream = iota
	gateStream
	expertStream
	tokenStream
)

func (c Config) rng(stream, a, b int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(stream)<<56|uint64(a)<<28|uint64(b)))
}

func newModel(c Config) (*model, error) {
	layout, err := router.Contiguous(c.Gate.Shape.Experts, c.Ranks)
	if err != nil {
		return nil, err
	}
	m := &model{c: c, layout: layout, layers: make([]layer, c.Layers)}
	m.embedding = make([]float32, vocabulary*c.Hidden)
	rng := c.rng(embeddingStream, 0, 0)
	for i := range m.embedding {
		m.embedding[i] = float32(rng.NormFloat64())
	}
	for l := range m.layers {
		m.layers[l] = m.c.newGate(l)
	}
	var owners sync.WaitGroup
	for r := range c.Ranks {
		owners.Go(func() {
			for l := range m.layers {
				for _, e := range layout.Held(r) {
					m.layers[l].experts[e] = c.newExpert(l, int(e))
				}
			}
		})
	}
	owners.Wait()
	return m, nil
}

// newGate draws a gate whose logits are about standard normal over normalized
// hidden states, and the bias that skews it.
func (c Config) newGate(l int) layer {
	rng := c.rng(gateStream, l, 0)
	g := layer{
		gate:    make([]float32, c.Gate.Shape.Experts*c.Hidden),
		bias:    make([]float32, c.Gate.Shape.Experts),
		experts: make([]weights, c.Gate.Shape.Experts),
	}
	scale := 1 / math.Sqrt(float64(c.Hidden))
	for i := range g.gate {
		g.gate[i] = float32(rng.NormFloat64() * scale)
	}
	for i, e := range rng.Perm(c.Gate.Shape.Experts) {
		g.bias[e] = float32(-c.Skew * math.Log(float64(1+i)))
	}
	return g
}

func (c Config) newExpert(l, e int) weights {
	rng := c.rng(expertStream, l, e)
	return weights{
		up:   uniform(rng, c.Intermediate*c.Hidden, c.Hidden),
		down: uniform(rng, c.Hidden*c.Intermediate, c.Intermediate),
		gate: uniform(rng, c.Intermediate*c.Hidden, c.Hidden),
	}
}

// uniform draws n weights of variance 1/fanIn.
func uniform(rng *rand.Rand, n, fanIn int) []float32 {
	w := make([]float32, n)
	width := float32(2 * math.Sqrt(3/float64(fanIn)))
	for i := range w {
		w[i] = (rng.Float32() - 0.5) * width
	}
	return w
}

// embed fills the hidden states of a rank's tokens in a step on prompts of that number.
func (m *model) embed(hidden []float32, prompts uint64, step, rank int) {
	c := m.c
	c.Seed += prompts * 0x9e3779b97f4a7c15
	rng := c.rng(tokenStream, step, rank)
	h := m.c.Hidden
	for t := range m.c.Tokens {
		id := rng.IntN(vocabulary)
		copy(hidden[t*h:(t+1)*h], m.embedding[id*h:(id+1)*h])
	}
}
