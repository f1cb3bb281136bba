package workload

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/moebalance/moebalance/router"
)

// Config describes an engine.
type Config struct {
	Gate         router.Gate `json:"-"`
	Hidden       int         `json:"hidden"`       // H, width of a hidden state
	Intermediate int         `json:"intermediate"` // I, width inside an expert
	Layers       int         `json:"layers"`
	Ranks        int         `json:"ranks"`
	Tokens       int         `json:"tokens_per_rank"` // T, of each step
	// Skew makes some experts popular: the gate's bias falls as −Skew·ln(1+i)
	// over the experts in a random order per layer, which makes the chance of
	// the i-th about (1+i)^−Skew. 0 leaves the load to chance.
	Skew float64 `json:"skew"`
	Seed uint64  `json:"seed"`
}

// Validate finds contradictions before any memory is taken.
func (c Config) Validate() error {
	if err := c.Gate.Validate(); err != nil {
		return err
	}
	for _, n := range []struct {
		name        string
		value, most int
	}{
		{"hidden", c.Hidden, 1 << 12}, {"layers", c.Layers, 1 << 7}, {"ranks", c.Ranks, c.Gate.Shape.Experts},
		{"tokens", c.Tokens, 1 << 16}, {"intermediate", c.Intermediate, 1 << 13},
	} {
		if n.value < 1 || n.value > n.most {
			return fmt.Errorf("want %s between 1 and %d, have %d", n.name, n.most, n.value)
		}
	}
	if !(c.Skew >= 0 && c.Skew <= 100) {
		return fmt.Errorf("want skew between 0 and 100, have %g", c.Skew)
	}
	const most = 16 << 30 // a typing error must not use all memory of the machine
	if size := 12 * int64(c.Layers) * int64(c.Gate.Shape.Experts) * int64(c.Hidden) * int64(c.Intermediate); size > most {
		return fmt.Errorf("the weights need %d GiB, limit %d GiB: use fewer layers or smaller experts", size>>30, most>>30)
	}
	return nil
}

// Engine is a model with its ranks.
type Engine struct {
	c      Config
	layout router.Layout
	layers []layer
	ranks  []*rank
	// Step is called before each step, between which the router may change; may be nil.
	Step func() error

	statistics statistics // of all timed steps since they were written last
}

// New draws the weights and makes the ranks.
func New(c Config) (*Engine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	layout, err := router.Contiguous(c.Gate.Shape.Experts, c.Ranks)
	if err != nil {
		return nil, err
	}
	e := &Engine{c: c, layout: layout, layers: make([]layer, c.Layers)}
	for l := range e.layers {
		e.layers[l] = c.newLayer(l)
	}
	for id := range c.Ranks {
		r, err := newRank(id, c)
		if err != nil {
			return nil, err
		}
		e.ranks = append(e.ranks, r)
	}
	e.together(func(r *rank) {
		for l := range e.layers {
			for _, x := range layout.Held(r.id) {
				e.layers[l].experts[x] = c.newExpert(l, int(x))
			}
		}
	})
	return e, nil
}

// Balance routes by logits in the place of the gate's, row-major [Tokens, Experts] for each
// rank; nil gives the gate back.
func (e *Engine) Balance(rows [][]float32) {
	for i, r := range e.ranks {
		if r.balanced = nil; rows != nil {
			r.balanced = rows[i]
		}
	}
}

// Run takes all ranks through steps, of which the first warmup are not timed, on tokens
// drawn for the prompts' number.
func (e *Engine) Run(ctx context.Context, warmup, steps int, prompts uint64) (Result, error) {
	if steps < 1 || steps > 1<<20 || warmup < 0 {
		return Result{}, fmt.Errorf("want steps between 1 and %d, have %d", 1<<20, steps)
	}
	res := e.empty(steps)
	for step := range warmup + steps {
		if err := ctx.Err(); err != nil {
			return res, err
		}
		if e.Step != nil {
			if err := e.Step(); err != nil {
				return res, err
			}
		}
		e.together(func(r *rank) { e.c.embed(r.hidden, prompts, step, r.id) })
		timed := step >= warmup
		if timed {
			e.statistics = append(e.statistics, nil)
		}
		var sum time.Duration
		for l := range e.c.Layers {
			for _, work := range phases {
				longest, err := e.phase(work, l)
				if err != nil {
					return res, err
				}
				sum += longest
			}
			if timed {
				e.count(&res, l)
			}
		}
		if timed {
			res.IterationMS = append(res.IterationMS, milliseconds(sum))
		}
	}
	res.finish(e.ranks[0].balanced != nil)
	return res, ctx.Err()
}

// phases are the parts of a rank's work in a layer; after each it waits for the others.
var phases = []func(*rank, *Engine, int) error{(*rank).dispatch, (*rank).experts, (*rank).combine}

// together runs a part of every rank's work at the same time.
func (e *Engine) together(work func(*rank)) {
	var running sync.WaitGroup
	for _, r := range e.ranks {
		running.Go(func() { work(r) })
	}
	running.Wait()
}

// phase takes all ranks through a phase of a layer, and returns what the slowest spent in it.
func (e *Engine) phase(work func(*rank, *Engine, int) error, layer int) (longest time.Duration, err error) {
	e.together(func(r *rank) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		from := r.now()
		r.err = work(r, e, layer)
		r.spent = r.now() - from
	})
	for _, r := range e.ranks {
		longest, err = max(longest, r.spent), cmp.Or(err, r.err)
	}
	return longest, err
}
