package diff

import (
	"maps"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// phases in the order of every table.
var phases = nsys.Phases()

// amount is kernel time of one cell in nanoseconds. Work is time in kernels
// that compute; collective kernels mostly wait and are kept apart.
type amount struct {
	work, collective, busy, instances int64
}

func (a *amount) add(b amount) {
	a.work += b.work
	a.collective += b.collective
	a.busy += b.busy
	a.instances += b.instances
}

// grid is the cells of one arm over the ranks and layers that both arms have.
// Its steps are its own: steps of different runs do not correspond.
type grid struct {
	ranks, layers, steps []int
	cells                []amount // [step][rank][layer][phase]
	dropped              []int    // steps that some compared rank lacks, or lacks a layer of
	outsideNS, allNS     int64    // kernel time of the compared ranks outside every step, and all of it
	skipped              []int    // start-up
	stepless             bool     // no step is marked: the whole capture stands as one
}

// newGrid lays out the cells of t. A step counts when it is whole on every
// compared rank (see attendance). Where no step is marked at all, the capture is
// one step.
func newGrid(t *nsys.Trace, ranks, layers []int) *grid {
	g := &grid{ranks: ranks, layers: layers}
	compared := places(ranks)
	seen := map[int]attendance{} // by step
	has := attendance{}          // in any step
	for _, c := range t.Cells {
		if _, ok := compared[c.Rank]; !ok {
			continue
		}
		g.allNS += c.TotalNS
		if seen[int(c.Step)] == nil {
			seen[int(c.Step)] = attendance{}
		}
		seen[int(c.Step)].note(c)
		has.note(c)
		if !c.Step.Defined() {
			g.outsideNS += c.TotalNS
		}
	}
	if g.stepless = len(seen) == 1 && seen[nsys.None] != nil; !g.stepless {
		delete(seen, nsys.None)
	} else {
		g.outsideNS = 0
	}
	for _, step := range slices.Sorted(maps.Keys(seen)) {
		if seen[step].whole(has) {
			g.steps = append(g.steps, step)
		} else {
			g.dropped = append(g.dropped, step)
		}
	}
	g.fill(t.Cells)
	return g
}

// attendance is which ranks ran a layer; nsys.None stands for anything at all.
type attendance map[int]map[int]bool

func (a attendance) note(c nsys.Cell) {
	for _, layer := range []int{nsys.None, int(c.Layer)} {
		if a[layer] == nil {
			a[layer] = map[int]bool{}
		}
		a[layer][c.Rank] = true
	}
}

// whole reports whether no rank is missing from a step: all of those that have
// anything ran something, and what any of them ran of a layer ran on all that have
// the layer. One that is missing did not work for no time, its kernels were lost.
func (a attendance) whole(has attendance) bool {
	for layer, ranks := range a {
		if len(ranks) < len(has[layer]) {
			return false
		}
	}
	return true
}

func (g *grid) fill(cells []nsys.Cell) {
	g.cells = make([]amount, len(g.steps)*len(g.ranks)*len(g.layers)*len(phases))
	step, rank, layer, phase := places(g.steps), places(g.ranks), places(g.layers), places(phases)
	for _, c := range cells {
		s, inSteps := step[int(c.Step)]
		r, inRanks := rank[c.Rank]
		l, inLayers := layer[int(c.Layer)]
		p, known := phase[c.Phase]
		if !known {
			p = phase[nsys.PhaseUnknown]
		}
		if inSteps && inRanks && inLayers {
			g.at(s, r, l, p).add(amount{c.TotalNS - c.CollectiveNS, c.CollectiveNS, c.BusyNS, c.Instances})
		}
	}
}

// places is the position of each value in the list.
func places[T comparable](list []T) map[T]int {
	at := make(map[T]int, len(list))
	for i, v := range list {
		at[v] = i
	}
	return at
}

func (g *grid) at(step, rank, layer, phase int) *amount {
	return &g.cells[((step*len(g.ranks)+rank)*len(g.layers)+layer)*len(phases)+phase]
}

// outsideShare is the share of kernel time outside every step.
func (g *grid) outsideShare() router.Number {
	if g.allNS == 0 {
		return router.Undefined()
	}
	return router.Number(float64(g.outsideNS) / float64(g.allNS))
}

// startUpFactor is how much longer than the median of the steps after it a
// leading step must be to count as start-up.
const startUpFactor = 2

// startUp counts the leading steps that are start-up: ranks enter a capture at
// different times, and in their first collectives wait for the last one, often
// for many times the length of a step. Of two steps none counts.
func (g *grid) startUp() int {
	busy := g.mean(block{every, every}, busyOf)
	n := 0
	for len(busy)-n > 2 && busy[n] > startUpFactor*median(busy[n+1:]) {
		n++
	}
	return n
}

// skip leaves out the first n steps, so many that one at least remains, and
// returns the times of all.
func (g *grid) skip(arm gain.Arm, n int) []StepTime {
	n = min(n, max(0, len(g.steps)-1))
	mean := g.mean(block{every, every}, busyOf)
	experts := g.slowest(expertBlock, workOf)
	rows := []StepTime{}
	for s, step := range g.steps {
		rows = append(rows, StepTime{arm, router.Whole(step), s >= n, router.Number(mean[s]), router.Number(experts[s])})
	}
	g.skipped, g.steps = g.steps[:n], g.steps[n:]
	g.cells = g.cells[n*len(g.ranks)*len(g.layers)*len(phases):]
	return rows
}

// every stands for all layers or all phases.
const every = -1

// block is a part of a step: one layer and one phase, or every one of either.
type block struct{ layer, phase int }

// span is the half-open range of places that a block's index stands for.
func span(index, n int) (from, to int) {
	if index == every {
		return 0, n
	}
	return index, index + 1
}

// sum adds up a block of one rank in one step.
func (g *grid) sum(step, rank int, b block) amount {
	var total amount
	first, end := span(b.layer, len(g.layers))
	from, to := span(b.phase, len(phases))
	for layer := first; layer < end; layer++ {
		for phase := from; phase < to; phase++ {
			total.add(*g.at(step, rank, layer, phase))
		}
	}
	return total
}

// measure picks one number of an amount.
type measure func(amount) int64

func workOf(a amount) int64       { return a.work }
func collectiveOf(a amount) int64 { return a.collective }
func busyOf(a amount) int64       { return a.busy }

// mean is, step by step, the mean over ranks of a measure of a block.
func (g *grid) mean(b block, of measure) []float64 {
	means := make([]float64, len(g.steps))
	for s := range g.steps {
		var total int64
		for r := range g.ranks {
			total += of(g.sum(s, r, b))
		}
		means[s] = float64(total) / float64(len(g.ranks))
	}
	return means
}

// slowest is, step by step, the sum over the block's layers of the maximum over
// ranks: what the block takes when the ranks wait for each other after every
// layer. One rank alone does not say who the slowest is: its steps are NaN.
func (g *grid) slowest(b block, of measure) []float64 {
	if len(g.ranks) < 2 {
		return slices.Repeat([]float64{math.NaN()}, len(g.steps))
	}
	slowest := make([]float64, len(g.steps))
	first, end := span(b.layer, len(g.layers))
	for s := range g.steps {
		for layer := first; layer < end; layer++ {
			var most int64
			for r := range g.ranks {
				most = max(most, of(g.sum(s, r, block{layer, b.phase})))
			}
			slowest[s] += float64(most)
		}
	}
	return slowest
}

// loss is, step by step, the straggler loss of a layer or of every one.
func (g *grid) loss(layer int) []float64 {
	b := block{layer, every}
	loss := g.slowest(b, workOf)
	for s, mean := range g.mean(b, workOf) {
		loss[s] -= mean
	}
	return loss
}

// ofRank is, step by step, a measure of a block of one rank.
func (g *grid) ofRank(rank int, b block, of measure) []float64 {
	values := make([]float64, len(g.steps))
	for s := range g.steps {
		values[s] = float64(of(g.sum(s, rank, b)))
	}
	return values
}

// instances is the kernels of a block per step and rank.
func (g *grid) instances(b block) router.Number {
	return average(g.mean(b, func(a amount) int64 { return a.instances }))
}

// average is the mean, undefined for no values.
func average(values []float64) router.Number {
	if len(values) == 0 {
		return router.Undefined()
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	return router.Number(sum / float64(len(values)))
}

// median is the middle value, or the mean of the middle two.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// variance has divisor n−1 and is undefined below two values.
func variance(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	mean := float64(average(values))
	var squares float64
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return squares / float64(len(values)-1)
}
