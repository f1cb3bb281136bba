package workload

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
)

// Config describes an engine and its run, by the flags of the verb.
type Config struct {
	Perfect bool `json:"perfect_router"` // routes by balanced logits in the place of the gate's
	Experts int  `json:"-" flag:"experts" preset:"32"`
	Layers  int  `json:"layers" flag:"layers" preset:"4"`
	Ranks   int  `json:"ranks" flag:"ranks" preset:"4"`
	Tokens  int  `json:"tokens_per_rank" flag:"tokens" preset:"128"` // of each step
	Steps   int  `json:"steps" flag:"steps" preset:"16"`             // timed; warmup steps come before
	// Skew makes some experts popular: the gate's bias falls as −Skew·ln(1+i) over the experts in a random
	// order per layer, which makes the chance of the i-th about (1+i)^−Skew. 0 leaves the load to chance.
	Skew float64 `json:"skew" flag:"skew" preset:"1.5"`
	Seed uint64  `json:"seed" flag:"seed"`
}

const (
	topK         = 4
	hidden       = 128        // width of a hidden state
	intermediate = 2 * hidden // width inside an expert
	warmup       = 2          // steps that are not timed
)

// Result is the measurement of a run; the command prints it as one JSON line. Times are the processor time of each
// rank. Loads are over all ranks together, of the timed steps.
type Result struct {
	SchemaVersion int          `json:"schema_version"`
	Kind          string       `json:"kind"` // "workload"
	Shape         router.Shape `json:"shape"`
	Config
	Clock           string    `json:"clock"`             // "cpu"
	InputTokens     int64     `json:"input_tokens"`      // Ranks·Tokens·Steps
	TokensPerSecond float64   `json:"tokens_per_second"` // InputTokens over the sum of IterationMS
	IterationMS     []float64 `json:"iteration_ms"`      // every timed step

	// Per layer, the mean over the timed steps of max/mean in a step.
	ExpertMaxOverMean []router.Number `json:"expert_max_over_mean"`
	RankMaxOverMean   []router.Number `json:"rank_max_over_mean"`
	// What the best assignment could reach in a step.
	ExpertFloor router.Number `json:"expert_floor"`
	RankFloor   router.Number `json:"rank_floor"`
}

// check finds contradictions before any memory is taken.
func (c Config) check() error {
	for name, n := range map[string][3]float64{"layers": {float64(c.Layers), 1, 1 << 7},
		"ranks": {float64(c.Ranks), 1, float64(c.Experts)}, "tokens": {float64(c.Tokens), 1, 1 << 16},
		"steps": {float64(c.Steps), 1, 1 << 20}, "skew": {c.Skew, 0, 100},
		"experts of all layers": {float64(c.Layers * c.Experts), 1, 1 << 15}} { // 12 GiB of weights
		if !(n[0] >= n[1] && n[0] <= n[2]) {
			return fmt.Errorf("want %s between %.10g and %.10g, have %.10g", name, n[1], n[2], n[0])
		}
	}
	return c.gate().Validate()
}

// gate routes each token to topK of the experts.
func (c Config) gate() router.Gate {
	return router.Gate{Method: router.Renormalize, Shape: router.Shape{Experts: c.Experts, TopK: topK}}
}

// Engine is a model with its ranks. Rank r has the tokens from r·Tokens on, and the slots from r·Tokens·topK on.
type Engine struct {
	Config
	layout   router.Layout
	layers   []layer
	balanced [][]float32 // by rank: logits that replace the gate's; nil without

	hidden   [][]float32 // by token: its state
	ids      []int32     // by slot: the expert
	weights  []float32   // by slot
	returned [][]float32 // by slot: what the expert made of the token
}

// New draws the weights and makes the ranks.
func New(c Config) (*Engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	tokens := c.Ranks * c.Tokens
	e := &Engine{Config: c, balanced: make([][]float32, c.Ranks), hidden: make([][]float32, tokens),
		ids: make([]int32, tokens*topK), weights: make([]float32, tokens*topK), returned: make([][]float32, tokens*topK)}
	for l := range c.Layers {
		e.layers = append(e.layers, c.newLayer(l))
	}
	e.layout, _ = router.Contiguous(c.Experts, c.Ranks) // of the ranks that check allows
	var err error
	if c.Perfect {
		spec := logits.Spec{Model: "workload", Gate: c.gate(), Layout: e.layout, Mode: router.DEP}
		e.balanced, err = logits.Rows(spec, c.Tokens)
	}
	return e, err
}

// Run takes all ranks through the steps.
func (e *Engine) Run(ctx context.Context) (Result, error) {
	perStep := int64(len(e.hidden))
	r := Result{SchemaVersion: 1, Kind: "workload", Shape: e.gate().Shape, Config: e.Config, Clock: "cpu",
		InputTokens: perStep * int64(e.Steps), ExpertMaxOverMean: make([]router.Number, e.Layers),
		RankMaxOverMean: make([]router.Number, e.Layers), ExpertFloor: router.Floor(perStep*topK, e.Experts),
		RankFloor: router.Floor(perStep*topK, e.Ranks)}
	for step := range warmup + e.Steps {
		took, loads := e.step(step)
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		if step < warmup {
			continue
		}
		r.IterationMS = append(r.IterationMS, float64(took)/float64(time.Millisecond))
		for l, load := range loads {
			r.ExpertMaxOverMean[l] += load.Experts().MaxOverMean / router.Number(e.Steps)
			r.RankMaxOverMean[l] += load.Ranks(e.layout).MaxOverMean / router.Number(e.Steps)
		}
	}
	r.TokensPerSecond = float64(r.InputTokens) / floats.Sum(r.IterationMS) * 1e3
	return r, nil
}

// step takes all ranks through all layers. It takes what the slowest rank of each phase spends, and returns the load
// of each layer.
func (e *Engine) step(number int) (took time.Duration, loads []router.Load) {
	for rank := range e.Ranks {
		rng := e.rng('t', number, rank)
		for t := range e.Tokens {
			e.hidden[rank*e.Tokens+t] = normal(rng, hidden, 1)
		}
	}
	for l := range e.layers {
		for _, work := range []func(e *Engine, l, rank int){(*Engine).dispatch, (*Engine).experts, (*Engine).combine} {
			took += e.phase(func(rank int) { work(e, l, rank) })
		}
		load := router.NewLoad(e.Experts)
		load.Add(e.ids)
		loads = append(loads, load)
	}
	return took, loads
}

// phase takes all ranks through a phase of a layer, and returns what the slowest spent in it.
func (e *Engine) phase(work func(rank int)) time.Duration {
	spent := make([]time.Duration, e.Ranks)
	var running sync.WaitGroup
	for rank := range e.Ranks {
		running.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			from := processorTime()
			work(rank)
			spent[rank] = processorTime() - from
		})
	}
	running.Wait()
	return slices.Max(spent)
}

// processorTime is what the calling thread has used.
func processorTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // a clock that every unix has
	return time.Duration(t.Nano())
}
