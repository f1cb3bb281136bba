package diff

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// every stands for all layers.
const every = trace.NoID - 1

// place is a phase of a layer, or of every one.
type place struct {
	layer int
	phase trace.Phase
}

// arm is one arm over the ranks and layers that both arms have, in the steps that count. Its steps are
// its own: steps of different runs do not correspond.
type arm struct {
	trace   *trace.Trace
	run     *replay.Run // of these steps, nil where they cannot be replayed
	times   *imbalance.Times
	sums    map[place]imbalance.Sum // over all ranks and steps
	share   router.Number           // of a rank in a step
	outside []float64               // compute outside the MoE blocks, step by step, mean over ranks
	tokens  router.Number           // mean over steps, 0 where a range does not say
}

// newArm sums an arm up. Without steps all its means are undefined.
func newArm(t *trace.Trace, times *imbalance.Times, ranks []int, cells []trace.Cell) *arm {
	steps := times.StepsOf(imbalance.Counts)
	at := imbalance.Places(steps)
	a := &arm{trace: t, times: times, sums: map[place]imbalance.Sum{}, share: 1 / router.Number(len(ranks)*len(steps)),
		outside: make([]float64, len(steps))}
	if p := t.Replay(); p != nil {
		a.run = p.Of(steps)
	}
	for i := range cells {
		c := &cells[i]
		step, counts := at[int(c.Step)]
		if !counts {
			continue
		}
		if slices.Contains(outsidePhases, c.Phase) {
			a.outside[step] += float64(c.ComputeNS()) / float64(len(ranks))
		}
		for _, layer := range []int{int(c.Layer), every} {
			sum := a.sums[place{layer, c.Phase}]
			sum.Add(&c.Sum)
			a.sums[place{layer, c.Phase}] = sum
		}
	}
	sizes := make([]float64, len(steps))
	for _, s := range t.StepTimes {
		if i, counts := at[int(s.Step)]; counts {
			sizes[i] = float64(s.Batch.Tokens)
		}
	}
	if !slices.Contains(sizes, 0) {
		a.tokens = average(sizes)
	}
	return a
}

// of is the mean time that a rank takes in a step for the work and the collectives of a phase.
func (a *arm) of(layer int, phase trace.Phase) [2]router.Number {
	sum := a.sums[place{layer, phase}]
	return [2]router.Number{router.Number(sum.ComputeNS()) * a.share, router.Number(sum.CollectiveNS) * a.share}
}

// busy is the mean GPU time of a step.
func (a *arm) busy() (ns router.Number) {
	for _, phase := range trace.Phases() {
		ns += router.Number(a.sums[place{every, phase}].BusyNS) * a.share
	}
	return ns
}

// side is what the arm's traces say about themselves.
func (a *arm) side() Side {
	t := a.trace
	s := Side{Arm: t.Arm, Evidence: t.ArmEvidence, Exports: []string{}, Ranks: ranksOf(t), Steps: len(a.outside),
		StepNS: t.StepNS(a.times), Treatment: t.Treatment()}
	for _, e := range t.Exports {
		s.Exports, s.gpus = append(s.Exports, e.Path), append(s.gpus, e.GPU)
	}
	var balance, slowest []float64
	for _, step := range a.times.Steps {
		if b := step.MeanExpertsNS / step.SlowestExpertsNS; step.Excluded == imbalance.Counts && b.Defined() {
			balance, slowest = append(balance, b.Float64()), append(slowest, step.SlowestExpertsNS.Float64())
		}
	}
	s.Balancedness, s.SlowestNS = average(balance), average(slowest)
	return s
}

// average is the mean, undefined for no values.
func average(values []float64) router.Number { return router.Number(stat.Mean(values, nil)) }

// arms are both arms over the same ranks and layers, the normal one first.
type arms [2]*arm

// newArms takes of both traces what both have.
func newArms(sides [2]*trace.Trace, ranks, layers []int) (a arms) {
	alone := func(c trace.Cell) bool {
		return !slices.Contains(ranks, c.Rank) || !slices.Contains(layers, int(c.Layer))
	}
	for i, t := range sides {
		own := slices.DeleteFunc(slices.Clone(t.Cells), alone)
		a[i] = newArm(t, imbalance.New(own), ranks, own)
	}
	return a
}

func ranksOf(t *trace.Trace) []int { return append([]int{}, t.Times().Ranks...) }

// layersOf lists the layers that hold time, trace.NoID first where there is time outside layers.
func layersOf(t *trace.Trace) (layers []int) {
	for _, l := range t.Times().Layers {
		layers = append(layers, int(l.Number))
	}
	return layers
}

// named is the layers without the time outside layers.
func named(layers []int) []int {
	return append([]int{}, slices.DeleteFunc(slices.Clone(layers), func(l int) bool { return l == trace.NoID })...)
}

// phases lists the phases of one layer, or of every one, that have any time.
func (a arms) phases(layer int) []PhaseChange {
	rows := []PhaseChange{}
	for _, phase := range trace.Phases() {
		perfect := a[1].of(layer, phase)
		for i, normal := range a[0].of(layer, phase) {
			if normal > 0 || perfect[i] > 0 {
				rows = append(rows, PhaseChange{router.OptInt(layer), phase, i == 1, changeOf(normal, perfect[i])})
			}
		}
	}
	return rows
}
