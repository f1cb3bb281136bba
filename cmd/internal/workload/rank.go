package workload

import (
	"math"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/moebalance/moebalance/router"
)

// layer holds weights, which come from Config.Seed and are the same for any number of ranks.
type layer struct {
	gate    []float32 // [E, H]
	bias    []float32 // [E], added to the gate's logits
	experts []weights
}

// weights are the matrices of an expert, a SwiGLU, down·(silu(gate·x) ⊙ up·x), one row per output.
type weights struct {
	up, gate []float32 // [I, H]
	down     []float32 // [H, I]
}

// rng is a random stream of its own for each number of a part of a kind ('g', 'e' or 't').
func (c Config) rng(kind, a, b int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(kind)<<56|uint64(a)<<28|uint64(b)))
}

// newLayer draws a gate whose logits are about standard normal over normalized hidden states, and the bias
// that skews it.
func (c Config) newLayer(l int) layer {
	rng, experts := c.rng('g', l, 0), c.Gate.Shape.Experts
	x := layer{gate: normal(rng, experts*hidden, hidden), bias: make([]float32, experts), experts: make([]weights,
		experts)}
	for i, e := range rng.Perm(experts) {
		x.bias[e] = float32(-c.Skew * math.Log(float64(1+i)))
	}
	return x
}

func (c Config) newExpert(l, e int) weights {
	rng, n := c.rng('e', l, e), intermediate*hidden
	return weights{up: normal(rng, n, hidden), down: normal(rng, n, intermediate), gate: normal(rng, n, hidden)}
}

// normal draws n numbers of variance 1/fanIn.
func normal(rng *rand.Rand, n, fanIn int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(rng.NormFloat64() / math.Sqrt(float64(fanIn)))
	}
	return w
}

// rank is one rank's memory. Others read its tokens and write what comes back in the experts phase.
type rank struct {
	id       int
	router   *router.Router
	balanced []float32 // logits that replace the gate's; nil without

	hidden, normal [][]float32 // by token, as they are and normalized
	ids            []int32     // by slot: the expert
	weights        []float32   // by slot
	returned       [][]float32 // by slot
}

func newRank(id int, c Config) (*rank, error) {
	choice, err := router.NewRouter(c.Gate)
	slots := c.Tokens * c.Gate.Shape.TopK
	return &rank{id: id, router: choice, hidden: make([][]float32, c.Tokens), normal: make([][]float32, c.Tokens),
		ids: make([]int32, slots), weights: make([]float32, slots), returned: make([][]float32, slots)}, err
}

// embed draws the hidden states of the rank's tokens in a step.
func (r *rank) embed(c Config, step int) {
	rng := c.rng('t', step, r.id)
	for t := range r.hidden {
		r.hidden[t] = normal(rng, hidden, 1)
	}
}

// dispatch routes the rank's tokens in a layer.
func (r *rank) dispatch(e *Engine, l int) {
	k, experts := e.Gate.Shape.TopK, e.Gate.Shape.Experts
	for t, state := range r.hidden {
		r.normal[t] = normalized(state)
		logits := product(e.layers[l].gate, r.normal[t])
		for i, b := range e.layers[l].bias {
			logits[i] += b
		}
		if r.balanced != nil {
			copy(logits, r.balanced[t*experts:])
		}
		r.router.Route(logits, r.ids[t*k:(t+1)*k], r.weights[t*k:(t+1)*k])
	}
}

// experts computes the experts this rank owns on the tokens of all ranks.
func (r *rank) experts(e *Engine, l int) {
	for _, held := range e.layout.Held(r.id) {
		for _, from := range e.ranks {
			for slot, id := range from.ids {
				if id == held {
					from.returned[slot] = e.layers[l].experts[id].forward(from.normal[slot/e.Gate.Shape.TopK])
				}
			}
		}
	}
}

// combine adds the weighted rows that came back to the hidden states.
func (r *rank) combine(e *Engine, _ int) {
	for slot, w := range r.weights {
		state := r.hidden[slot/e.Gate.Shape.TopK]
		for i, v := range r.returned[slot] {
			state[i] += w * v
		}
	}
}

// forward runs an expert on a token.
func (x weights) forward(in []float32) []float32 {
	up := product(x.up, in)
	for i, g := range product(x.gate, in) {
		up[i] *= g / (1 + float32(math.Exp(float64(-g))))
	}
	return product(x.down, up)
}

// product is w·x, for w of a row per output, on the calling goroutine alone: gonum's own goes parallel.
func product(w, x []float32) []float32 {
	out, n := make([]float32, len(w)/len(x)), len(x)
	for j := range out {
		out[j] = gonum.Implementation{}.Sdot(n, x, 1, w[j*n:(j+1)*n], 1)
	}
	return out
}

// normalized is a hidden state of root mean square 1 (RMSNorm, ε = 10⁻⁶).
func normalized(in []float32) []float32 {
	squares := gonum.Implementation{}.Sdot(len(in), in, 1, in, 1)
	out := make([]float32, len(in))
	for i, v := range in {
		out[i] = v / float32(math.Sqrt(float64(squares/float32(len(in))+1e-6)))
	}
	return out
}

// processorTime is what the calling thread has used.
func processorTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // a clock that every unix has
	return time.Duration(t.Nano())
}
