package imbalance

import (
	"iter"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
)

// Sample is kernel time of one rank in one layer of one step. Samples of the same
// rank, layer and step add up.
type Sample struct {
	Rank         int
	Step         router.OptInt // undefined outside every step
	Layer        router.OptInt // undefined outside every layer
	Phase        string        // of at most 32
	Experts      bool          // of the phase experts
	TotalNS      int64         // Σ of kernel durations
	CollectiveNS int64         // the part of it in collectives
	BusyNS       int64         // union of the kernels' intervals
	GEMMNS       int64         // the part of TotalNS in GEMMs of routed experts, recognized as such
	GEMMs        int64         // how many of them
	Kind         router.OptInt // of the step, see Kinds; undefined of a step that some rank did not record whole
}

// Times is the compute time of a recording by step, layer and rank.
type Times struct {
	Ranks  []int    // with any kernel, ascending
	Steps  []Step   // all, ascending
	Layers []*Layer // ascending, time outside every layer first
	// Unmarked says that no step is marked: the whole recording stands as one.
	Unmarked bool
	// OutsideShare is the share of kernel time outside every step, which is in no
	// number; undefined without time.
	OutsideShare router.Number
	// Of is what expert time is the time of.
	Of Of
	// Kinds is how many kinds of whole steps there are. Those of one count, the one with
	// most expert time.
	Kinds int
}

// Layer is the time of one layer in the steps that count.
type Layer struct {
	Number  router.OptInt // undefined for time outside every layer
	Ranks   []int         // that have the layer in any step, ascending
	Experts [][]float64   // expert time by step, then by rank: see of
	of      Of
}

// cells are the sums of one layer over all steps, by step and rank.
type cells struct {
	ranks   []int
	experts []float64
	gemm    []float64
	gemms   []int64
	ran     []phaseSet
}

// phaseSet is which phases ran, a bit for each.
type phaseSet uint32

func (c *cells) expertTime(of Of) []float64 {
	if of == OfGEMM {
		return c.gemm
	}
	return c.experts
}

// New adds the samples up and decides which steps count. It reads the sequence
// twice; the order of the samples does not matter. endedEarly are ranks whose recording
// is known to end before their work did.
func New(samples iter.Seq[Sample], endedEarly ...int) *Times {
	t := &Times{}
	ranks, kindOf := map[int]bool{}, map[int]router.OptInt{} // of steps
	ranksOf := map[int]map[int]bool{}                        // by layer
	var outside, all int64
	for s := range samples {
		ranks[s.Rank], kindOf[int(s.Step)] = true, s.Kind
		if ranksOf[int(s.Layer)] == nil {
			ranksOf[int(s.Layer)] = map[int]bool{}
		}
		ranksOf[int(s.Layer)][s.Rank] = true
		all += s.TotalNS
		if !s.Step.Defined() {
			outside += s.TotalNS
		}
	}
	_, anyOutside := kindOf[router.NoID]
	if t.Unmarked = len(kindOf) == 1 && anyOutside; t.Unmarked {
		outside = 0
	} else {
		delete(kindOf, router.NoID)
	}
	t.OutsideShare = router.Number(float64(outside) / float64(all))
	t.Ranks = sorted(ranks)
	for _, number := range slices.Sorted(maps.Keys(kindOf)) {
		none := router.Undefined()
		t.Steps = append(t.Steps, Step{Number: router.OptInt(number), Kind: kindOf[number],
			SlowestExpertsNS: none, MeanExpertsNS: none})
	}
	sums := map[int]*cells{}
	for layer, has := range ranksOf {
		n := len(has) * len(t.Steps)
		of := func() []float64 { return make([]float64, n) }
		sums[layer] = &cells{sorted(has), of(), of(), make([]int64, n), make([]phaseSet, n)}
	}
	present := t.fill(samples, sums)
	t.Of = ofTime(sums)
	t.excludePartial(sums, present, endedEarly)
	t.sumSteps(sums)
	t.excludeOtherKinds(sums)
	excludeWarmUp(t.Steps)
	for _, layer := range slices.Sorted(maps.Keys(sums)) {
		t.Layers = append(t.Layers, t.layer(layer, sums[layer]))
	}
	return t
}

// fill adds the samples up; present is which rank has any kernel in which step.
func (t *Times) fill(samples iter.Seq[Sample], sums map[int]*cells) (present []bool) {
	stepAt, rankAt := map[router.OptInt]int{}, Places(t.Ranks)
	for i, s := range t.Steps {
		stepAt[s.Number] = i
	}
	present = make([]bool, len(t.Steps)*len(t.Ranks))
	rankIn, phaseAt := map[int]map[int]int{}, map[string]phaseSet{}
	for layer, c := range sums {
		rankIn[layer] = Places(c.ranks)
	}
	for s := range samples {
		step, ok := stepAt[s.Step]
		if !ok {
			continue
		}
		present[step*len(t.Ranks)+rankAt[s.Rank]] = true
		c := sums[int(s.Layer)]
		at := step*len(c.ranks) + rankIn[int(s.Layer)][s.Rank]
		if phaseAt[s.Phase] == 0 {
			phaseAt[s.Phase] = 1 << len(phaseAt)
		}
		c.ran[at] |= phaseAt[s.Phase]
		if s.Experts {
			c.experts[at] += float64(s.TotalNS - s.CollectiveNS)
			c.gemm[at] += float64(s.GEMMNS)
			c.gemms[at] += s.GEMMs
		}
		t.Steps[step].BusyNS += router.Number(s.BusyNS)
	}
	return present
}

// sumSteps adds the layers up step by step.
func (t *Times) sumSteps(sums map[int]*cells) {
	layers := slices.Sorted(maps.Keys(sums)) // in order, for sums of fractions depend on it
	for i := range t.Steps {
		s := &t.Steps[i]
		s.BusyNS /= router.Number(len(t.Ranks))
		if len(t.Ranks) > 1 {
			s.SlowestExpertsNS, s.MeanExpertsNS = 0, 0
		}
		for _, layer := range layers {
			c := sums[layer]
			from, to := i*len(c.ranks), (i+1)*len(c.ranks)
			experts := c.expertTime(t.Of)[from:to]
			s.SlowestExpertsNS += router.Number(slices.Max(experts))
			s.MeanExpertsNS += router.Number(stat.Mean(experts, nil))
		}
	}
}

// layer takes the steps that count.
func (t *Times) layer(number int, c *cells) *Layer {
	l := &Layer{Number: router.OptInt(number), Ranks: c.ranks, of: t.Of}
	experts := c.expertTime(t.Of)
	for i, s := range t.Steps {
		if from, to := i*len(c.ranks), (i+1)*len(c.ranks); s.Excluded == Counts {
			l.Experts = append(l.Experts, experts[from:to])
		}
	}
	return l
}

// ofTime is OfGEMM where every rank that ran experts in a layer ran recognized GEMMs
// there, in every step.
func ofTime(sums map[int]*cells) Of {
	recognized := false
	for layer, c := range sums {
		if layer == router.NoID && len(sums) > 1 {
			continue
		}
		for i, ns := range c.experts {
			if ns > 0 && c.gemm[i] == 0 {
				return OfPhase
			}
			recognized = recognized || c.gemm[i] > 0
		}
	}
	if recognized {
		return OfGEMM
	}
	return OfPhase
}

// Judged are the layers whose imbalance is judged: all that are named, or, without
// any name, all time as one layer.
func (t *Times) Judged() []*Layer {
	if len(t.Layers) > 1 && !t.Layers[0].Number.Defined() {
		return t.Layers[1:]
	}
	return t.Layers
}

// Row is the imbalance of expert time over ranks; not ok where fewer than two ranks
// have the layer, or none ran experts in a step that counts.
func (l *Layer) Row(threshold float64) (r Row, ok bool) {
	if len(l.Ranks) < 2 {
		return r, false
	}
	m := NewLayerMean(l.Number, router.LevelRank, Time, Observed)
	for _, step := range l.Experts {
		m.AddTime(step)
	}
	r = m.Row(threshold, NoNull(), l.Ranks)
	r.Of = l.of
	return r, r.Steps > 0
}

// Loss is, step by step, the loss of the layer in nanoseconds: the maximum − the mean over ranks of expert
// time. One rank alone does not say who the slowest is: its loss is NaN.
func (l *Layer) Loss() []float64 { return lossOf(l.Experts) }

func lossOf(steps [][]float64) []float64 {
	loss := make([]float64, len(steps))
	for i, step := range steps {
		if loss[i] = slices.Max(step) - stat.Mean(step, nil); len(step) < 2 {
			loss[i] = math.NaN()
		}
	}
	return loss
}

// ExpertsByRank is the expert time of each rank that has a judged layer, in the steps
// that count, and the sum.
func (t *Times) ExpertsByRank() (byRank map[int]float64, sum float64) {
	byRank = map[int]float64{}
	for _, l := range t.Judged() {
		for _, step := range l.Experts {
			for i, ns := range step {
				byRank[l.Ranks[i]] += ns
				sum += ns
			}
		}
	}
	return byRank, sum
}

// lossAndMean are the mean over steps of (max − mean over ranks) and of the mean;
// undefined without time.
func lossAndMean(steps [][]float64) (loss, mean router.Number) {
	for _, step := range steps {
		mean += router.Number(stat.Mean(step, nil) / float64(len(steps)))
	}
	if mean == 0 {
		return router.Undefined(), router.Undefined()
	}
	return router.Number(stat.Mean(lossOf(steps), nil)), mean
}

func sorted(set map[int]bool) []int { return slices.Sorted(maps.Keys(set)) }

// Places is the position of each value in the list.
func Places[T comparable](list []T) map[T]int {
	at := make(map[T]int, len(list))
	for i, v := range list {
		at[v] = i
	}
	return at
}
