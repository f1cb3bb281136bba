package diff

import (
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// every stands for all layers.
const every = trace.NoID - 1

// part is a part of a step: a phase of a layer, or of every one; an empty phase is all phases. Time in
// collective kernels, which mostly wait, is a part of its own.
type part struct {
	layer      int
	phase      trace.Phase
	collective bool
}

// armTimes is one arm over the ranks and layers that both arms have, in the steps
// that count. Its steps are its own: steps of different runs do not correspond.
type armTimes struct {
	steps   []int
	batches []ranges.Batch // of steps, as far as their ranges say
	times   *imbalance.Times
	wall    map[router.OptInt]float64 // of steps
	replay  *trace.Replay             // of these steps, nil where they cannot be replayed
	parts   map[part][]float64        // step by step, mean over ranks
	busy    []float64                 // likewise
}

func newArmTimes(t *trace.Trace, ranks, layers []int) *armTimes {
	a := &armTimes{wall: t.WallTimes(), replay: t.Replay(), parts: map[part][]float64{}}
	rank, layer := imbalance.Places(ranks), imbalance.Places(layers)
	shared := func(c *trace.Cell) bool {
		_, inRanks := rank[c.Rank]
		_, inLayers := layer[int(c.Layer)]
		return inRanks && inLayers
	}
	a.times = t.Times(shared)
	a.steps = a.times.StepsOf(imbalance.Counts)
	a.batches = make([]ranges.Batch, len(a.steps))
	for _, s := range t.StepTimes {
		if i := slices.Index(a.steps, int(s.Step)); i >= 0 {
			a.batches[i] = ranges.BatchOf(s.Range)
		}
	}
	a.busy = make([]float64, len(a.steps))
	step := imbalance.Places(a.steps)
	for i := range t.Cells {
		c := &t.Cells[i]
		s, counts := step[int(c.Step)]
		if !counts || !shared(c) {
			continue
		}
		a.busy[s] += float64(c.BusyNS)
		phase := c.Phase
		if !slices.Contains(phases, phase) {
			phase = trace.PhaseUnknown
		}
		for _, p := range []part{{int(c.Layer), phase, false}, {every, phase, false}, {every, "", false}} {
			a.add(p, s, c.TotalNS-c.CollectiveNS)
			p.collective = true
			a.add(p, s, c.CollectiveNS)
		}
	}
	for _, series := range a.parts {
		floats.Scale(1/float64(len(ranks)), series)
	}
	floats.Scale(1/float64(len(ranks)), a.busy)
	return a
}

func (a *armTimes) add(p part, step int, ns int64) {
	if a.parts[p] == nil {
		a.parts[p] = make([]float64, len(a.steps))
	}
	a.parts[p][step] += float64(ns)
}

// of is the time of a part, step by step.
func (a *armTimes) of(p part) []float64 {
	if a.parts[p] == nil {
		return make([]float64, len(a.steps))
	}
	return a.parts[p]
}

// perStep is the mean of a ratio over the steps that count and have it.
func (a *armTimes) perStep(ratio func(imbalance.Step) router.Number) router.Number {
	var values []float64
	for _, s := range a.times.Steps {
		if v := ratio(s); s.Excluded == imbalance.Counts && v.Defined() {
			values = append(values, v.Float64())
		}
	}
	return average(values)
}

// average is the mean, undefined for no values.
func average(values []float64) router.Number { return router.Number(stat.Mean(values, nil)) }

// phases in the order of every table.
var phases = trace.Phases()
