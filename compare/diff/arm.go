package diff

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// every stands for all layers.
const every = trace.NoID - 1

// part is a phase of a layer, or of every one. Time in collective kernels, which mostly wait, is a part of
// its own.
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
	ns      map[part]int64 // over all ranks and steps
	busy    int64          // likewise
	share   router.Number  // of a rank in a step; undefined without steps
	outside []float64      // compute outside the MoE blocks, step by step, mean over ranks
	tokens  router.Number  // mean over steps, 0 where a range does not say
}

func newArm(t *trace.Trace, ranks, layers []int) *arm {
	a := &arm{trace: t, replay: t.Replay(), ns: map[part]int64{}, share: router.Undefined()}
	inRanks, inLayers := imbalance.Places(ranks), imbalance.Places(layers)
	shared := func(c *trace.Cell) bool {
		_, ok := inRanks[c.Rank]
		_, too := inLayers[int(c.Layer)]
		return ok && too
	}
	a.times = t.Times(shared)
	steps := a.times.StepsOf(imbalance.Counts)
	at := imbalance.Places(steps)
	a.outside = make([]float64, len(steps))
	for i := range t.Cells {
		c := &t.Cells[i]
		step, counts := at[int(c.Step)]
		if !counts || !shared(c) {
			continue
		}
		a.busy += c.BusyNS
		if slices.Contains(outsidePhases, c.Phase) {
			a.outside[step] += float64(c.ComputeNS()) / float64(len(ranks))
		}
		for _, layer := range []int{int(c.Layer), every} {
			a.ns[part{layer, c.Phase, false}] += c.ComputeNS()
			a.ns[part{layer, c.Phase, true}] += c.CollectiveNS
		}
	}
	sizes := make([]float64, len(steps))
	for _, s := range t.StepTimes {
		if i, counts := at[int(s.Step)]; counts {
			sizes[i] = float64(ranges.BatchOf(s.Range).Tokens)
		}
	}
	if len(steps) == 0 {
		return a
	}
	if a.share = 1 / router.Number(len(ranks)*len(steps)); slices.Min(sizes) > 0 {
		a.tokens = router.Number(stat.Mean(sizes, nil))
	}
	return a
}

// per is the mean over ranks and steps of a time, undefined without steps.
func (a *arm) per(ns int64) router.Number { return router.Number(ns) * a.share }

// of is the mean time of a part.
func (a *arm) of(p part) router.Number { return a.per(a.ns[p]) }

// side is what the arm's traces say about themselves.
func (a *arm) side() Side {
	t := a.trace
	s := Side{Arm: t.Arm, Evidence: t.ArmEvidence, Exports: []string{}, Ranks: ranksOf(t), Steps: len(a.outside),
		StepNS: a.times.StepNS(t.WallTimes()), Treatment: t.Treatment()}
	for _, e := range t.Exports {
		s.Exports = append(s.Exports, e.Path)
	}
	return s
}

// mean is the mean of a value over the steps that count and have it, undefined for none.
func (a *arm) mean(value func(imbalance.Step) router.Number) router.Number {
	var values []float64
	for _, s := range a.times.Steps {
		if v := value(s); s.Excluded == imbalance.Counts && v.Defined() {
			values = append(values, v.Float64())
		}
	}
	return average(values)
}

// average is the mean, undefined for no values.
func average(values []float64) router.Number { return router.Number(stat.Mean(values, nil)) }

func ranksOf(t *trace.Trace) []int { return append([]int{}, t.Times(nil).Ranks...) }

// layersOf lists the layers that hold time, trace.NoID first where there is time outside layers.
func layersOf(t *trace.Trace) (layers []int) {
	for _, l := range t.Times(nil).Layers {
		layers = append(layers, int(l.Number))
	}
	return layers
}

// named is the layers without the time outside layers.
func named(layers []int) []int {
	return append([]int{}, slices.DeleteFunc(slices.Clone(layers), func(l int) bool { return l == trace.NoID })...)
}

// arms are both arms over the same ranks and layers, the normal one first.
type arms [2]*arm

// phases lists the phases of one layer, or of every one, that have any time.
func (a arms) phases(layer int) []PhaseChange {
	rows := []PhaseChange{}
	for _, phase := range trace.Phases() {
		for _, collective := range []bool{false, true} {
			p := part{layer, phase, collective}
			if n, p := a[0].of(p), a[1].of(p); n > 0 || p > 0 {
				rows = append(rows, PhaseChange{phase, collective, changeOf(n, p)})
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
	balancedness := func(s imbalance.Step) router.Number { return s.MeanExpertsNS / s.SlowestExpertsNS }
	c := Ceiling{Of: a[0].times.Of, Balancedness: a[0].mean(balancedness), PerfectBalancedness: a[1].mean(balancedness),
		ExpertShare:    a[0].mean(func(s imbalance.Step) router.Number { return s.SlowestExpertsNS / s.BusyNS }),
		SlowestExperts: changeOf(a[0].mean(slowest), a[1].mean(slowest))}
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
	most, perfect, all, saved := none, map[router.OptInt]router.Number{}, router.Number(0), router.Number(0)
	for _, l := range a[1].times.Judged() {
		perfect[l.Number] = l.Loss()
	}
	judged := a[0].times.Judged()
	for _, l := range judged {
		p, judged := perfect[l.Number]
		if own := l.Loss() - p; judged && own > 0 {
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
