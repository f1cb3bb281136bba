package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/moebalance/moebalance/router"
)

// Config describes an engine.
type Config struct {
	Gate         router.Gate
	Hidden       int // H, width of a hidden state
	Intermediate int // I, width inside an expert
	Layers       int
	Ranks        int
	Tokens       int // T, tokens per rank and step
	// Skew makes some experts popular: the gate's bias falls as −Skew·ln(1+i)
	// over the experts in a random order per layer, which makes the chance of
	// the i-th about (1+i)^−Skew. 0 leaves the load to chance.
	Skew float64
	Seed uint64
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
	size := 12 * int64(c.Layers) * int64(c.Gate.Shape.Experts) * int64(c.Hidden) * int64(c.Intermediate)
	if size > maxWeights {
		return fmt.Errorf("the weights need %d GiB, limit %d GiB: use fewer layers or smaller experts", size>>30,
			maxWeights>>30)
	}
	return nil
}

// maxWeights keeps a typing error from using all memory of the machine.
const maxWeights = 16 << 30

// Engine is a model with its ranks.
type Engine struct {
	m     *model
	ranks []*rank
	// Step is called before each step, between which the router may change; may be nil.
	Step func() error

	statistics statistics // of all timed steps since they were written last
}

// New draws the weights and makes the ranks.
func New(c Config) (*Engine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	e := &Engine{m: m}
	for id := range c.Ranks {
		r, err := newRank(id, m)
		if err != nil {
			return nil, err
		}
		e.ranks = append(e.ranks, r)
	}
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
		timed := step >= warmup
		e.together(func(r *rank) { e.m.embed(r.hidden, prompts, step, r.id) })
		var sum time.Duration
		var experts [][]float64
		if timed {
			e.statistics = append(e.statistics, nil)
		}
		for layer := range e.m.c.Layers {
			for p := range phases {
				longest, spent, err := e.phase(p, layer)
				if err != nil {
					return res, err
				}
				if sum += longest; p == expert {
					experts = append(experts, spent)
				}
			}
			if timed {
				e.count(&res, layer)
			}
		}
		if timed {
			res.IterationMS = append(res.IterationMS, milliseconds(sum))
			res.StepExpertsMS = append(res.StepExpertsMS, experts)
		}
	}
	res.finish(e.ranks[0].balanced != nil)
	return res, ctx.Err()
}

// together runs a part of every rank's work at the same time.
func (e *Engine) together(work func(*rank)) {
	var running sync.WaitGroup
	for _, r := range e.ranks {
		running.Go(func() { work(r) })
	}
	running.Wait()
}

// phase takes all ranks through a phase of a layer, and returns what each one spent in it
// and the slowest.
func (e *Engine) phase(p phase, layer int) (longest time.Duration, spent []float64, err error) {
	e.together(func(r *rank) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		from := r.now()
		switch p {
		case dispatch:
			r.err = errors.Join(r.err, r.dispatch(layer))
		case expert:
			r.run(layer, e.ranks)
		case combine:
			r.combine()
		}
		r.spent = r.now() - from
	})
	for _, r := range e.ranks {
		if r.err != nil {
			return 0, nil, r.err
		}
		longest, spent = max(longest, r.spent), append(spent, milliseconds(r.spent))
	}
	return longest, spent, nil
}

// count adds a layer's routing of one step to the result and the statistics.
func (e *Engine) count(res *Result, layer int) {
	load := router.NewLoad(e.m.c.Gate.Shape.Experts)
	var bySource [][]int64
	for _, r := range e.ranks {
		load.Add(r.ids)
		own := router.NewLoad(e.m.c.Gate.Shape.Experts)
		own.Add(r.ids)
		bySource = append(bySource, own.PerExpert)
	}
	last := len(e.statistics) - 1
	e.statistics[last] = append(e.statistics[last], bySource)
	res.ExpertMaxOverMean[layer] += load.Experts().MaxOverMean / router.Number(res.Steps)
	res.RankMaxOverMean[layer] += load.Ranks(e.m.layout).MaxOverMean / router.Number(res.Steps)
}
