package workload

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/moebalance/moebalance/router"
)

// Run builds the model, runs the warm-up and the timed steps, and returns what
// it measured. It stops between two steps when the context ends.
func Run(ctx context.Context, c Config) (Result, error) {
	l, err := newLaunch(c)
	if err != nil {
		return Result{}, err
	}
	return l.run(ctx)
}

// newLaunch checks the configuration and builds everything a launch needs.
func newLaunch(c Config) (*launch, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	l := &launch{m: m, result: c.emptyResult()}
	for id := range c.Ranks {
		r, err := newRank(id, m)
		if err != nil {
			return nil, err
		}
		l.ranks = append(l.ranks, r)
	}
	return l, nil
}

func (c Config) emptyResult() Result {
	slots := int64(c.Ranks) * int64(c.Tokens) * int64(c.Gate.Shape.TopK)
	res := Result{
		SchemaVersion: 1, Kind: "workload",
		PerfectRouter: c.Balanced != nil, Router: string(c.Gate.Method), Experts: "loop",
		Shape: c.Gate.Shape, Hidden: c.Hidden, Intermediate: c.Intermediate, Layers: c.Layers,
		Ranks: c.Ranks, Clock: clock,
		TokensPerRank: c.Tokens, Steps: c.Steps, Warmup: c.Warmup, Skew: c.Skew, Seed: c.Seed,
		Placement:         cmp.Or(c.Placement, Contiguous),
		InputTokens:       int64(c.Ranks) * int64(c.Tokens) * int64(c.Steps),
		ExpertMaxOverMean: make([]router.Number, c.Layers), RankMaxOverMean: make([]router.Number, c.Layers),
		ExpertFloor: router.Floor(slots, c.Gate.Shape.Experts), RankFloor: router.Floor(slots, c.Ranks),
		RankSlots: make([][]int64, c.Layers),
	}
	for l := range res.RankSlots {
		res.RankSlots[l] = make([]int64, c.Ranks)
	}
	return res
}

// launch is one run of the model: its ranks, and what they find.
type launch struct {
	m      *model
	ranks  []*rank
	result Result
}

// run takes the ranks through all steps, to the last one, an error or the end of ctx.
func (l *launch) run(ctx context.Context) (Result, error) {
	c := l.m.c
	for step := range c.Warmup + c.Steps {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		timed := step >= c.Warmup
		l.together(func(r *rank) { l.m.embed(r.hidden, step, r.id) })
		if timed {
			l.result.StepExpertsMS = append(l.result.StepExpertsMS, nil)
		}
		var sum time.Duration
		for layer := range c.Layers {
			for p := range phases {
				longest, err := l.phase(p, layer, timed)
				if err != nil {
					return Result{}, err
				}
				sum += longest
			}
		}
		if timed {
			l.result.IterationMS = append(l.result.IterationMS, milliseconds(sum))
		}
	}
	l.finish()
	return l.result, ctx.Err()
}

// together runs a part of every rank's work at the same time.
func (l *launch) together(work func(*rank)) {
	var running sync.WaitGroup
	for _, r := range l.ranks {
		running.Go(func() { work(r) })
	}
	running.Wait()
}

// phase takes all ranks through a phase of a layer and returns what the slowest
// one spent in it.
func (l *launch) phase(p phase, layer int, timed bool) (longest time.Duration, err error) {
	l.together(func(r *rank) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		from := r.now()
		switch p {
		case dispatch:
			r.err = errors.Join(r.err, r.dispatch(layer))
		case experts:
			r.run(layer, l.ranks)
		case combine:
			r.combine()
		}
		r.spent = r.now() - from
	})
	for _, r := range l.ranks {
		if r.err != nil {
			return 0, r.err
		}
		longest = max(longest, r.spent)
	}
	if !timed {
		return longest, nil
	}
	if p == dispatch {
		l.count(layer)
	}
	var spent []float64
	for _, r := range l.ranks {
		spent = append(spent, milliseconds(r.spent))
		r.work[p] += r.spent
		r.wait[p] += longest - r.spent
	}
	if steps := l.result.StepExpertsMS; p == experts {
		steps[len(steps)-1] = append(steps[len(steps)-1], spent)
	}
	return longest, nil
}

// count adds a layer's routing of one step to the result.
func (l *launch) count(layer int) {
	load := router.NewLoad(l.m.c.Gate.Shape.Experts)
	var bySource [][]int64
	for _, r := range l.ranks {
		load.Add(r.ids)
		if l.m.c.Record {
			own := router.NewLoad(l.m.c.Gate.Shape.Experts)
			own.Add(r.ids)
			bySource = append(bySource, own.PerExpert)
		}
	}
	l.result.ExpertMaxOverMean[layer] += load.Experts().MaxOverMean
	l.result.RankMaxOverMean[layer] += load.Ranks(l.m.layouts[layer]).MaxOverMean
	for i, n := range l.m.layouts[layer].RankLoad(load.PerExpert) {
		l.result.RankSlots[layer][i] += n
	}
	if l.m.c.Record {
		if layer == 0 {
			l.result.statistics = append(l.result.statistics, nil)
		}
		last := len(l.result.statistics) - 1
		l.result.statistics[last] = append(l.result.statistics[last], bySource)
	}
}

// finish turns sums into means.
func (l *launch) finish() {
	res := &l.result
	for layer := range res.ExpertMaxOverMean {
		res.ExpertMaxOverMean[layer] /= router.Number(res.Steps)
		res.RankMaxOverMean[layer] /= router.Number(res.Steps)
	}
	var total float64
	for _, ms := range res.IterationMS {
		total += ms
	}
	res.StepMS = total / float64(res.Steps)
	res.TokensPerSecond = float64(res.InputTokens) / total * 1e3
	res.times(l.ranks)
}
