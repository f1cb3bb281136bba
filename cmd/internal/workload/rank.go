package workload

import (
	"cmp"
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

// weights are the matrices of an expert, a SwiGLU, down·(silu(gate·x) ⊙ up·x). It holds its matrices the way they are
// multiplied: one row per output.
type weights struct {
	up, gate []float32 // [I, H]
	down     []float32 // [H, I]
}

// rng is a random stream of its own for each number of a part of a kind ('g', 'e' or 't').
func (c Config) rng(kind, a, b int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(kind)<<56|uint64(a)<<28|uint64(b)))
}

// newLayer draws a gate whose logits are about standard normal over normalized
// hidden states, and the bias that skews it.
func (c Config) newLayer(l int) layer {
	rng, experts := c.rng('g', l, 0), c.Gate.Shape.Experts
	x := layer{gate: normal(rng, experts*c.Hidden, c.Hidden), bias: make([]float32, experts),
		experts: make([]weights, experts)}
	for i, e := range rng.Perm(experts) {
		x.bias[e] = float32(-c.Skew * math.Log(float64(1+i)))
	}
	return x
}

func (c Config) newExpert(l, e int) weights {
	rng, n := c.rng('e', l, e), c.Intermediate*c.Hidden
	return weights{up: normal(rng, n, c.Hidden), down: normal(rng, n, c.Intermediate), gate: normal(rng, n, c.Hidden)}
}

// normal draws n weights of variance 1/fanIn.
func normal(rng *rand.Rand, n, fanIn int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(rng.NormFloat64() / math.Sqrt(float64(fanIn)))
	}
	return w
}

// embed draws the hidden states of a rank's tokens in a step on prompts of that number.
func (c Config) embed(hidden []float32, prompts uint64, step, rank int) {
	c.Seed += prompts * 0x9e3779b97f4a7c15
	copy(hidden, normal(c.rng('t', step, rank), len(hidden), 1))
}

// rank is one rank's memory. Others read its tokens and write into its
// returned rows in the experts phase.
type rank struct {
	id       int
	router   *router.Router
	balanced []float32 // logits that replace the gate's; nil without

	hidden   []float32 // [T, H]
	normal   []float32 // [T, H], normalized
	logits   []float32 // [T, E]
	ids      []int32   // [T, k]
	weights  []float32 // [T, k]
	returned []float32 // [T·k, H]: what comes back
	up, gate []float32 // [I], scratch of an expert

	spent time.Duration // in the phase that is ending
	err   error
}

func newRank(id int, c Config) (*rank, error) {
	choice, err := router.NewRouter(c.Gate)
	slots := c.Tokens * c.Gate.Shape.TopK
	return &rank{
		id: id, router: choice,
		hidden: make([]float32, c.Tokens*c.Hidden), normal: make([]float32, c.Tokens*c.Hidden),
		logits: make([]float32, c.Tokens*c.Gate.Shape.Experts),
		ids:    make([]int32, slots), weights: make([]float32, slots), returned: make([]float32, slots*c.Hidden),
		up: make([]float32, c.Intermediate), gate: make([]float32, c.Intermediate),
	}, err
}

// now is the processor time of the rank's own thread, which calls it.
func (r *rank) now() time.Duration {
	var t unix.Timespec
	r.err = cmp.Or(r.err, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t))
	return time.Duration(t.Nano())
}

// row is the i-th of rows that are so wide.
func row(of []float32, i, width int) []float32 { return of[i*width : (i+1)*width] }

// dispatch routes the rank's tokens in a layer.
func (r *rank) dispatch(e *Engine, l int) error {
	h, k, experts := e.c.Hidden, e.c.Gate.Shape.TopK, e.c.Gate.Shape.Experts
	for t := range e.c.Tokens {
		x, logits := row(r.normal, t, h), row(r.logits, t, experts)
		normalize(x, row(r.hidden, t, h))
		product(logits, x, e.layers[l].gate)
		for i, b := range e.layers[l].bias {
			logits[i] += b
		}
		if r.balanced != nil {
			copy(logits, row(r.balanced, t, experts))
		}
		r.router.Route(logits, r.ids[t*k:(t+1)*k], row(r.weights, t, k))
	}
	return nil
}

// experts computes the experts this rank owns on the tokens of all ranks.
func (r *rank) experts(e *Engine, l int) error {
	h, k := e.c.Hidden, e.c.Gate.Shape.TopK
	for _, held := range e.layout.Held(r.id) {
		for _, from := range e.ranks {
			for slot, id := range from.ids {
				if id == held {
					e.layers[l].experts[id].forward(row(from.returned, slot, h), row(from.normal, slot/k, h), r.up, r.gate)
				}
			}
		}
	}
	return nil
}

// combine adds the weighted rows that came back to the hidden states.
func (r *rank) combine(e *Engine, _ int) error {
	h, k := e.c.Hidden, e.c.Gate.Shape.TopK
	for slot, w := range r.weights {
		state := row(r.hidden, slot/k, h)
		for i, v := range row(r.returned, slot, h) {
			state[i] += w * v
		}
	}
	return nil
}

// product is out = w·x, for w of a row per output, on the calling goroutine alone: gonum's own goes parallel.
func product(out, x, w []float32) {
	for j := range out {
		out[j] = gonum.Implementation{}.Sdot(len(x), x, 1, row(w, j, len(x)), 1)
	}
}

// forward runs an expert on a token; up and gate are scratch.
func (x weights) forward(out, in, up, gate []float32) {
	product(up, in, x.up)
	product(gate, in, x.gate)
	for i, g := range gate {
		up[i] *= g / (1 + float32(math.Exp(float64(-g))))
	}
	product(out, up, x.down)
}

// normalize writes a hidden state of root mean square 1 (RMSNorm, ε = 10⁻⁶).
func normalize(out, in []float32) {
	var squares float32
	for _, v := range in {
		squares += v * v
	}
	scale := 1 / float32(math.Sqrt(float64(squares/float32(len(in))+1e-6)))
	for i, v := range in {
		out[i] = v * scale
	}
}
