package diff

import (
	"maps"
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

// arm is one arm over the ranks and layers that both arms have, in the steps that count. Its steps are
// its own: steps of different runs do not correspond.
type arm struct {
	trace   *trace.Trace
	replay  *trace.Replay // of these steps, nil where they cannot be replayed
	times   *imbalance.Times
	steps   []int
	batches []ranges.Batch     // of steps, as far as their ranges say
	parts   map[part][]float64 // step by step, mean over ranks
	busy    []float64          // likewise
}

func newArm(t *trace.Trace, ranks, layers []int) *arm {
	a := &arm{trace: t, replay: t.Replay(), parts: map[part][]float64{}}
	rank, layer := imbalance.Places(ranks), imbalance.Places(layers)
	shared := func(c *trace.Cell) bool {
		_, inRanks := rank[c.Rank]
		_, inLayers := layer[int(c.Layer)]
		return inRanks && inLayers
	}
	a.times = t.Times(shared)
	a.steps = a.times.StepsOf(imbalance.Counts)
	step := imbalance.Places(a.steps)
	a.batches, a.busy = make([]ranges.Batch, len(a.steps)), make([]float64, len(a.steps))
	for _, s := range t.StepTimes {
		if i, counts := step[int(s.Step)]; counts {
			a.batches[i] = ranges.BatchOf(s.Range)
		}
	}
	share := 1 / float64(len(ranks))
	for i := range t.Cells {
		c := &t.Cells[i]
		s, counts := step[int(c.Step)]
		if !counts || !shared(c) {
			continue
		}
		a.busy[s] += float64(c.BusyNS) * share
		phase := c.Phase
		if !slices.Contains(trace.Phases(), phase) {
			phase = trace.PhaseUnknown
		}
		for _, p := range []part{{int(c.Layer), phase, false}, {every, phase, false}, {every, "", false}} {
			a.of(p)[s] += float64(c.TotalNS-c.CollectiveNS) * share
			p.collective = true
			a.of(p)[s] += float64(c.CollectiveNS) * share
		}
	}
	return a
}

// of is the time of a part, step by step.
func (a *arm) of(p part) []float64 {
	if a.parts[p] == nil {
		a.parts[p] = make([]float64, len(a.steps))
	}
	return a.parts[p]
}

// compute is the time of phases in all layers, step by step, without collectives.
func (a *arm) compute(phases ...trace.Phase) []float64 {
	sum := make([]float64, len(a.steps))
	for _, phase := range phases {
		floats.Add(sum, a.of(part{layer: every, phase: phase}))
	}
	return sum
}

// side is what the arm's traces say about themselves.
func (a *arm) side(ranks []int) Side {
	t := a.trace
	s := Side{Arm: t.Arm, Evidence: t.ArmEvidence, Exports: []string{}, Ranks: ranks, Steps: len(a.steps),
		StepNS: a.times.StepNS(t.WallTimes()), Treatment: t.Treatment()}
	for _, e := range t.Exports {
		s.Exports = append(s.Exports, e.Path)
	}
	return s
}

// perStep gives a value of each step that counts and has it.
func (a *arm) perStep(value func(imbalance.Step) router.Number) (values []float64) {
	for _, s := range a.times.Steps {
		if v := value(s); s.Excluded == imbalance.Counts && v.Defined() {
			values = append(values, v.Float64())
		}
	}
	return values
}

// average is the mean, undefined for no values.
func average(values []float64) router.Number { return router.Number(stat.Mean(values, nil)) }

func ranksOf(t *trace.Trace) []int {
	return ofCells(t, func(c *trace.Cell) int { return c.Rank })
}

// layersOf lists the layers that hold time, trace.NoID first where there is time outside layers.
func layersOf(t *trace.Trace) []int {
	return ofCells(t, func(c *trace.Cell) int { return int(c.Layer) })
}

// ofCells are the numbers of all cells, each once and sorted; an empty list for none.
func ofCells(t *trace.Trace, number func(*trace.Cell) int) []int {
	seen := map[int]bool{}
	for i := range t.Cells {
		seen[number(&t.Cells[i])] = true
	}
	return append([]int{}, slices.Sorted(maps.Keys(seen))...)
}

// named is the layers without the time outside layers.
func named(layers []int) []int {
	return slices.DeleteFunc(slices.Clone(layers), func(l int) bool { return l == trace.NoID })
}

// arms are both arms over the same ranks and layers, the normal one first.
type arms [2]*arm

// phases lists the phases of one layer, or of every one, that have any time.
func (a arms) phases(layer int) []PhaseChange {
	rows := []PhaseChange{}
	for _, phase := range trace.Phases() {
		for _, collective := range []bool{false, true} {
			p := part{layer, phase, collective}
			row := PhaseChange{phase, collective, changeOf([2][]float64{a[0].of(p), a[1].of(p)})}
			if row.NormalNS > 0 || row.PerfectNS > 0 {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// Ceiling relates the load that the traces show to the throughput that a campaign measures. Numbers
// about the slowest rank are undefined where fewer than two ranks are compared.
type Ceiling struct {
	// Of is what expert time is here: of expert GEMMs where they are recognized in both arms, else of
	// all compute of the phase experts.
	Of imbalance.Of `json:"of"`
	// ExpertShare is f of the normal arm: expert time of the slowest rank of each layer over the GPU
	// time of the step, mean over steps, in [0, 1].
	ExpertShare router.Number `json:"expert_share"`
	// Balancedness is b of the normal arm: per step the mean rank's expert time over the slowest
	// rank's, both added over layers, mean over steps, in (0, 1].
	Balancedness router.Number `json:"balancedness"`
	// PerfectBalancedness is the same of the perfect arm: below 1 by uneven hardware and noise.
	PerfectBalancedness router.Number `json:"perfect_balancedness"`
	GainBound           router.Number `json:"gain_bound"` // 1/(1 − f + f·b) − 1, see router.GainBound
	// SlowestExperts is the expert time of the slowest rank of each layer, added over layers.
	SlowestExperts Change `json:"experts_slowest"`
}

func (a arms) ceiling() Ceiling {
	slowest := func(s imbalance.Step) router.Number { return s.SlowestExpertsNS }
	share := func(s imbalance.Step) router.Number { return s.SlowestExpertsNS / s.BusyNS }
	balancedness := func(s imbalance.Step) router.Number { return s.MeanExpertsNS / s.SlowestExpertsNS }
	c := Ceiling{Of: a[0].times.Of, ExpertShare: average(a[0].perStep(share)),
		Balancedness:        average(a[0].perStep(balancedness)),
		PerfectBalancedness: average(a[1].perStep(balancedness)),
		SlowestExperts:      changeOf([2][]float64{a[0].perStep(slowest), a[1].perStep(slowest)})}
	c.GainBound = router.GainBound(float64(c.ExpertShare), float64(c.Balancedness))
	return c
}

// MostLoss is the layer with most of the loss by uneven expert time that the perfect arm does not have, and
// its share; undefined without such a layer, and of one alone.
type MostLoss struct {
	Layer router.OptInt `json:"layer"`
	Share router.Number `json:"share"`
}

func (a arms) mostLoss() MostLoss {
	none := MostLoss{trace.NoID, router.Undefined()}
	most, perfect := none, map[router.OptInt]router.Number{}
	for _, l := range a[1].times.Judged() {
		perfect[l.Number] = average(l.Loss())
	}
	all, saved, judged := router.Number(0), router.Number(0), a[0].times.Judged()
	for _, l := range judged {
		if own := average(l.Loss()) - perfect[l.Number]; own > 0 {
			if all += own; own > saved {
				saved, most.Layer = own, l.Number
			}
		}
	}
	if most.Share = saved / all; len(judged) < 2 || !most.Layer.Defined() {
		return none
	}
	return most
}
