package diff

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// phases in the order of every table.
var phases = trace.Phases()

// cellTime is kernel time of one cell in nanoseconds. Work is time in kernels
// that compute; collective kernels mostly wait and are kept apart.
type cellTime struct {
	work, collective, busy int64
}

func (a *cellTime) add(b cellTime) {
	a.work += b.work
	a.collective += b.collective
	a.busy += b.busy
}

// armTimes is one arm over the ranks and layers that both arms have, in the steps
// that count. Its steps are its own: steps of different runs do not correspond.
type armTimes struct {
	ranks, layers, steps []int
	batches              []ranges.Batch // of steps, as far as their ranges say
	times                *imbalance.Times
	wall                 map[router.OptInt]float64 // of steps
	replay               *trace.Replay             // of these steps, nil where they cannot be replayed
	cells                []cellTime                // [step][rank][layer][phase]
}

func newArmTimes(t *trace.Trace, ranks, layers []int) *armTimes {
	a := &armTimes{ranks: ranks, layers: layers, wall: t.WallTimes(), replay: t.Replay()}
	rank, layer, phase := imbalance.Places(ranks), imbalance.Places(layers), imbalance.Places(phases)
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
	a.cells = make([]cellTime, len(a.steps)*len(ranks)*len(layers)*len(phases))
	step := imbalance.Places(a.steps)
	for i := range t.Cells {
		c := &t.Cells[i]
		s, counts := step[int(c.Step)]
		if !counts || !shared(c) {
			continue
		}
		p, known := phase[c.Phase]
		if !known {
			p = phase[trace.PhaseUnknown]
		}
		a.at(s, rank[c.Rank], layer[int(c.Layer)], p).add(cellTime{c.TotalNS - c.CollectiveNS, c.CollectiveNS, c.BusyNS})
	}
	return a
}

// withoutGEMMs is the trace with expert time of the phase alone.
func withoutGEMMs(t *trace.Trace) *trace.Trace {
	cells := slices.Clone(t.Cells)
	for i := range cells {
		cells[i].GEMMs, cells[i].GEMMNS = 0, 0
	}
	return t.WithCells(cells)
}

func (a *armTimes) at(step, rank, layer, phase int) *cellTime {
	return &a.cells[((step*len(a.ranks)+rank)*len(a.layers)+layer)*len(phases)+phase]
}

// stepTimes are the complete steps, those excluded as warm-up among them.
func (a *armTimes) stepTimes(arm gain.Arm) (rows []StepTime) {
	for _, s := range a.times.Steps {
		if s.Excluded != imbalance.Incomplete {
			wall := router.Undefined()
			if ns, ok := a.wall[s.Number]; ok {
				wall = router.Number(ns)
			}
			rows = append(rows, StepTime{arm, s.Number, s.Excluded == imbalance.Counts, s.BusyNS, s.SlowestExpertsNS,
				wall})
		}
	}
	return rows
}

// every stands for all layers or all phases.
const every = -1

// scope is a part of a step: one layer and one phase, or every one of either.
type scope struct{ layer, phase int }

// expertScope is expert compute over all layers.
var expertScope = scope{every, slices.Index(phases, trace.PhaseExperts)}

// indices is the half-open range that an index of a scope stands for.
func indices(index, n int) (from, to int) {
	if index == every {
		return 0, n
	}
	return index, index + 1
}

// sum adds up a scope of one rank in one step.
func (a *armTimes) sum(step, rank int, in scope) cellTime {
	var total cellTime
	first, end := indices(in.layer, len(a.layers))
	from, to := indices(in.phase, len(phases))
	for layer := first; layer < end; layer++ {
		for phase := from; phase < to; phase++ {
			total.add(*a.at(step, rank, layer, phase))
		}
	}
	return total
}

// measure picks one number of a cell.
type measure func(cellTime) int64

func workOf(c cellTime) int64       { return c.work }
func collectiveOf(c cellTime) int64 { return c.collective }
func busyOf(c cellTime) int64       { return c.busy }

// mean is, step by step, the mean over ranks of a measure.
func (a *armTimes) mean(in scope, of measure) []float64 {
	means := make([]float64, len(a.steps))
	for s := range a.steps {
		var total int64
		for r := range a.ranks {
			total += of(a.sum(s, r, in))
		}
		means[s] = float64(total) / float64(len(a.ranks))
	}
	return means
}

// slowest is, step by step, the work of the slowest rank, added over the layers of
// the scope: its length when the ranks wait for each other after every layer. One
// rank alone does not say who the slowest is: its steps are NaN.
func (a *armTimes) slowest(in scope) []float64 {
	if len(a.ranks) < 2 {
		return slices.Repeat([]float64{math.NaN()}, len(a.steps))
	}
	slowest := make([]float64, len(a.steps))
	first, end := indices(in.layer, len(a.layers))
	for s := range a.steps {
		for layer := first; layer < end; layer++ {
			var most int64
			for r := range a.ranks {
				most = max(most, a.sum(s, r, scope{layer, in.phase}).work)
			}
			slowest[s] += float64(most)
		}
	}
	return slowest
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
