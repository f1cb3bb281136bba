package workload

import (
	"context"
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

// run runs the ranks until the last step, an error or the end of ctx.
func (l *launch) run(ctx context.Context) (Result, error) {
	var running sync.WaitGroup
	for _, r := range l.ranks {
		running.Go(func() { l.runRank(ctx, r) })
	}
	running.Wait()
	for _, r := range l.ranks {
		if r.err != nil {
			return Result{}, r.err
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	l.finish()
	return l.result, nil
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
	l := &launch{m: m, barrier: newBarrier(c.Ranks), result: c.emptyResult()}
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
		Shape: c.Gate.Shape, Hidden: c.Hidden, Intermediate: c.Intermediate, Activation: c.Activation, Layers: c.Layers,
		Ranks: c.Ranks, RanksPerCore: float64(c.Ranks) / float64(runtime.GOMAXPROCS(0)), Clock: c.Clock,
		TokensPerRank: c.Tokens, Steps: c.Steps, Warmup: c.Warmup, Skew: c.Skew, Seed: c.Seed,
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

// launch is one run of the model: its ranks, where they meet, and what they find.
type launch struct {
	m       *model
	ranks   []*rank
	barrier *barrier
	began   time.Duration // wall time at which the step began
	longest time.Duration // what the slowest rank spent in the phase that just ended
	step    time.Duration // the sum of longest over the step
	over    bool          // set at a barrier, so that all ranks leave after the same step
	result  Result
}

// runRank takes one rank through all steps.
func (l *launch) runRank(ctx context.Context, r *rank) {
	c := l.m.c
	if c.Clock == CPU {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	for step := range c.Warmup + c.Steps {
		timed := step >= c.Warmup
		l.m.embed(r.hidden, step, r.id)
		l.barrier.wait(func() {
			l.over = ctx.Err() != nil
			l.began, l.step = c.Now(), 0
		})
		if l.over {
			return
		}
		for layer := range c.Layers {
			l.layer(r, layer, timed)
		}
		l.barrier.wait(func() { l.endStep(timed) })
		if l.over {
			return
		}
	}
}

// layer takes a rank through the phases of one layer.
func (l *launch) layer(r *rank, layer int, timed bool) {
	for p := range phases {
		from := r.now()
		switch {
		case r.err != nil: // come along to the barriers; the launch ends with this step
		case p == dispatch:
			r.err = r.dispatch(layer)
		case p == experts:
			r.run(layer, l.ranks)
		case p == combine:
			r.combine()
		}
		done := r.now()
		r.spent = done - from
		l.barrier.wait(func() {
			l.endPhase()
			if p == dispatch && timed {
				l.count(layer)
			}
		})
		if !timed {
			continue
		}
		r.work[p] += r.spent
		if l.m.c.Clock == CPU {
			r.wait[p] += l.longest - r.spent
		} else {
			r.wait[p] += r.now() - done
		}
	}
}

// endPhase runs while all ranks wait at the end of a phase.
func (l *launch) endPhase() {
	l.longest = 0
	for _, r := range l.ranks {
		l.longest = max(l.longest, r.spent)
	}
	l.step += l.longest
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
	l.result.RankMaxOverMean[layer] += load.Ranks(l.m.layout).MaxOverMean
	for i, n := range l.m.layout.RankLoad(load.PerExpert) {
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

// endStep runs while all ranks wait at the end of a step.
func (l *launch) endStep(timed bool) {
	if l.m.c.Clock == Wall {
		l.step = l.m.c.Now() - l.began
	}
	if timed {
		l.result.IterationMS = append(l.result.IterationMS, milliseconds(l.step))
	}
	for _, r := range l.ranks {
		l.over = l.over || r.err != nil
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

// barrier is where a fixed number of goroutines wait for each other.
type barrier struct {
	mu      sync.Mutex
	open    *sync.Cond
	parties int
	here    int
	round   int
}

func newBarrier(parties int) *barrier {
	b := &barrier{parties: parties}
	b.open = sync.NewCond(&b.mu)
	return b
}

// wait returns when all parties have called it. The last one to arrive runs
// last first, while all others still wait.
func (b *barrier) wait(last func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.here++
	if b.here == b.parties {
		last()
		b.here = 0
		b.round++
		b.open.Broadcast()
		return
	}
	for round := b.round; round == b.round; {
		b.open.Wait()
	}
}
