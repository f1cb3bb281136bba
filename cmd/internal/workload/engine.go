package workload

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
)

// Config describes an engine and its run.
type Config struct {
	Gate    router.Gate `json:"-"`
	Perfect bool        `json:"perfect_router"` // routes by balanced logits in the place of the gate's
	Layers  int         `json:"layers"`
	Ranks   int         `json:"ranks"`
	Tokens  int         `json:"tokens_per_rank"` // of each step
	Steps   int         `json:"steps"`           // timed; Warmup steps come before
	// Skew makes some experts popular: the gate's bias falls as −Skew·ln(1+i) over the experts in a random
	// order per layer, which makes the chance of the i-th about (1+i)^−Skew. 0 leaves the load to chance.
	Skew float64 `json:"skew"`
	Seed uint64  `json:"seed"`
}

const (
	hidden       = 128        // width of a hidden state
	intermediate = 2 * hidden // width inside an expert
	warmup       = 2          // steps that are not timed
)

// Validate finds contradictions before any memory is taken.
func (c Config) Validate() error {
	if err := c.Gate.Validate(); err != nil {
		return err
	}
	for _, n := range []struct {
		name        string
		value, most int
	}{
		{"layers", c.Layers, 1 << 7}, {"ranks", c.Ranks, c.Gate.Shape.Experts}, {"tokens", c.Tokens, 1 << 16},
		{"steps", c.Steps, 1 << 20},
		{"experts of all layers", c.Layers * c.Gate.Shape.Experts, 1 << 15}, // 12 GiB of weights
	} {
		if n.value < 1 || n.value > n.most {
			return fmt.Errorf("want %s between 1 and %d, have %d", n.name, n.most, n.value)
		}
	}
	if !(c.Skew >= 0 && c.Skew <= 100) {
		return fmt.Errorf("want skew between 0 and 100, have %g", c.Skew)
	}
	return nil
}

// Engine is a model with its ranks.
type Engine struct {
	Config
	layout router.Layout
	layers []layer
	ranks  []*rank
	routed []counts // by timed step
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
	e := &Engine{Config: c, layout: layout}
	for l := range c.Layers {
		e.layers = append(e.layers, c.newLayer(l))
	}
	for id := range c.Ranks {
		r, err := newRank(id, c)
		if err != nil {
			return nil, err
		}
		e.ranks = append(e.ranks, r)
	}
	e.each(func(r *rank) {
		for l := range e.layers {
			for _, x := range layout.Held(r.id) {
				e.layers[l].experts[x] = c.newExpert(l, int(x))
			}
		}
	})
	if c.Perfect {
		err = e.balance()
	}
	return e, err
}

// balance gives each rank its rows of balanced logits, [Tokens, Experts].
func (e *Engine) balance() error {
	spec := logits.Spec{Model: "workload", Gate: e.Gate, Layout: e.layout, Mode: router.DEP}
	rows, err := logits.Rows(spec, e.Tokens)
	if err != nil {
		return fmt.Errorf("balanced logits: %w", err)
	}
	for i, r := range e.ranks {
		r.balanced = rows[i]
	}
	return nil
}

// Run takes all ranks through the steps.
func (e *Engine) Run(ctx context.Context) (Result, error) {
	var times []float64
	e.routed = nil
	for step := range warmup + e.Steps {
		took, chosen := e.step(step)
		if step >= warmup {
			times, e.routed = append(times, float64(took)/float64(time.Millisecond)), append(e.routed, chosen)
		}
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
	}
	return e.result(times), nil
}

// step takes all ranks through all layers. It takes what the slowest rank of each phase spends.
func (e *Engine) step(number int) (took time.Duration, chosen counts) {
	for _, r := range e.ranks {
		r.embed(e.Config, number)
	}
	for l := range e.layers {
		for _, work := range []func(*rank, *Engine, int){(*rank).dispatch, (*rank).experts, (*rank).combine} {
			took += e.phase(work, l)
		}
		var loads []router.Load
		for _, r := range e.ranks {
			load := router.NewLoad(e.Gate.Shape.Experts)
			load.Add(r.ids)
			loads = append(loads, load)
		}
		chosen = append(chosen, loads)
	}
	return took, chosen
}

// each runs a part of every rank's work at the same time.
func (e *Engine) each(work func(*rank)) {
	var running sync.WaitGroup
	for _, r := range e.ranks {
		running.Go(func() { work(r) })
	}
	running.Wait()
}

// phase takes all ranks through a phase of a layer, and returns what the slowest spent in it.
func (e *Engine) phase(work func(*rank, *Engine, int), layer int) time.Duration {
	spent := make([]time.Duration, len(e.ranks))
	e.each(func(r *rank) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		from := processorTime()
		work(r, e, layer)
		spent[r.id] = processorTime() - from
	})
	return slices.Max(spent)
}
