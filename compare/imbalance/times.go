package imbalance

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// Cell is the kernel time of one rank, step, layer and phase: the grain at which arms are compared
// and imbalance is computed.
type Cell struct {
	Rank         int           `json:"rank"`
	Step         router.OptInt `json:"step"`  // undefined outside every step
	Layer        router.OptInt `json:"layer"` // undefined outside every layer
	Phase        kernel.Phase  `json:"phase"`
	Instances    int64         `json:"instances"`
	TotalNS      int64         `json:"total_ns"`
	CollectiveNS int64         `json:"collective_ns"` // the part of TotalNS in collectives
	BusyNS       int64         `json:"busy_ns"`       // union of the kernels' intervals
	GEMMs        int64         `json:"gemms"`         // recognized GEMMs of routed experts
	GEMMNS       int64         `json:"gemm_ns"`       // the part of TotalNS in them
	Kind         router.OptInt `json:"step_kind"`     // see Kinds; undefined of a step that some rank did not record whole
}

// ComputeNS is the time outside collectives, in which ranks mostly wait for each other.
func (c *Cell) ComputeNS() int64 { return c.TotalNS - c.CollectiveNS }

// Add adds another cell's numbers.
func (c *Cell) Add(o *Cell) {
	c.Instances, c.TotalNS, c.CollectiveNS = c.Instances+o.Instances, c.TotalNS+o.TotalNS, c.CollectiveNS+o.CollectiveNS
	c.BusyNS, c.GEMMs, c.GEMMNS = c.BusyNS+o.BusyNS, c.GEMMs+o.GEMMs, c.GEMMNS+o.GEMMNS
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

// Layer is the expert time of one layer.
type Layer struct {
	Number  router.OptInt // undefined for time outside every layer
	Ranks   []int         // that have the layer in any step, ascending
	Experts [][]float64   // expert time, see Of, by step that counts, then by rank
	of      Of
	parts   [][]part // by step, then by rank
}

// part is what one rank did in a layer of a step.
type part struct {
	experts, gemm float64 // compute of the phase experts, and its recognized GEMMs
	gemms         int64
	ran           phaseSet
}

// phaseSet is which phases ran, a bit for each.
type phaseSet uint32

// New adds the cells up and decides which steps count. It reads the sequence
// twice; the order of the cells does not matter.
func New(cells iter.Seq[*Cell]) *Times {
	t := &Times{}
	ranks, kindOf := map[int]bool{}, map[router.OptInt]router.OptInt{} // of steps
	ranksOf := map[router.OptInt]map[int]bool{}                        // by layer
	var outside, all int64
	for c := range cells {
		ranks[c.Rank], kindOf[c.Step] = true, c.Kind
		if ranksOf[c.Layer] == nil {
			ranksOf[c.Layer] = map[int]bool{}
		}
		ranksOf[c.Layer][c.Rank] = true
		all += c.TotalNS
		if !c.Step.Defined() {
			outside += c.TotalNS
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
	for _, number := range sorted(kindOf) {
		none := router.Undefined()
		t.Steps = append(t.Steps, Step{Number: number, Kind: kindOf[number], SlowestExpertsNS: none, MeanExpertsNS: none})
	}
	for _, layer := range sorted(ranksOf) {
		l := &Layer{Number: layer, Ranks: sorted(ranksOf[layer])}
		for range t.Steps {
			l.parts = append(l.parts, make([]part, len(l.Ranks)))
		}
		t.Layers = append(t.Layers, l)
	}
	present := t.fill(cells)
	t.Of = t.ofTime()
	t.excludePartial(present)
	t.sumSteps()
	t.excludeOtherKinds()
	excludeWarmUp(t.Steps)
	for _, l := range t.Layers {
		for i, s := range t.Steps {
			if s.Excluded == Counts {
				l.Experts = append(l.Experts, l.times(i))
			}
		}
	}
	return t
}

// fill adds the cells up; present is which rank has any kernel in which step.
func (t *Times) fill(cells iter.Seq[*Cell]) (present []bool) {
	stepAt, rankAt, layerAt := map[router.OptInt]int{}, Places(t.Ranks), map[router.OptInt]*Layer{}
	for i, s := range t.Steps {
		stepAt[s.Number] = i
	}
	for _, l := range t.Layers {
		layerAt[l.Number] = l
	}
	present = make([]bool, len(t.Steps)*len(t.Ranks))
	for c := range cells {
		step, ok := stepAt[c.Step]
		if !ok {
			continue
		}
		present[step*len(t.Ranks)+rankAt[c.Rank]] = true
		l := layerAt[c.Layer]
		rank, _ := slices.BinarySearch(l.Ranks, c.Rank)
		p := &l.parts[step][rank]
		p.ran |= 1 << (slices.Index(kernel.Phases, c.Phase) + 1)
		if c.Phase == kernel.PhaseExperts {
			p.experts += float64(c.ComputeNS())
			p.gemm += float64(c.GEMMNS)
			p.gemms += c.GEMMs
		}
		t.Steps[step].BusyNS += router.Number(c.BusyNS)
	}
	return present
}

// sumSteps adds the layers up step by step.
func (t *Times) sumSteps() {
	for _, l := range t.Layers {
		l.of = t.Of
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		s.BusyNS /= router.Number(len(t.Ranks))
		if len(t.Ranks) > 1 {
			s.SlowestExpertsNS, s.MeanExpertsNS = 0, 0
		}
		for _, l := range t.Layers {
			experts := l.times(i)
			s.SlowestExpertsNS += router.Number(slices.Max(experts))
			s.MeanExpertsNS += router.Number(stat.Mean(experts, nil))
		}
	}
}

// times is the expert time of each rank in a step.
func (l *Layer) times(step int) []float64 {
	times := make([]float64, len(l.Ranks))
	for i, p := range l.parts[step] {
		if times[i] = p.experts; l.of == OfGEMM {
			times[i] = p.gemm
		}
	}
	return times
}

// ofTime is OfGEMM where every rank that ran experts in a layer ran recognized GEMMs
// there, in every step.
func (t *Times) ofTime() Of {
	of := OfPhase
	for _, l := range t.Judged() {
		for _, step := range l.parts {
			for _, p := range step {
				switch {
				case p.gemm > 0:
					of = OfGEMM
				case p.experts > 0:
					return OfPhase
				}
			}
		}
	}
	return of
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

// Rows are the rows of the judged layers that have one.
func (t *Times) Rows(threshold float64) (rows []Row) {
	for _, l := range t.Judged() {
		if row, ok := l.Row(threshold); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// Loss is, step by step, the maximum − the mean over ranks of the layer's expert time, in nanoseconds:
// ranks of 30 and 10 ns lose 10. One rank alone does not say who the slowest is: its loss is NaN.
func (l *Layer) Loss() []float64 {
	loss := make([]float64, len(l.Experts))
	for i, step := range l.Experts {
		if loss[i] = slices.Max(step) - stat.Mean(step, nil); len(step) < 2 {
			loss[i] = math.NaN()
		}
	}
	return loss
}

// Means is the expert time of each rank, mean over the steps that count.
func (l *Layer) Means() []float64 {
	means := make([]float64, len(l.Ranks))
	for _, step := range l.Experts {
		floats.AddScaled(means, 1/float64(len(l.Experts)), step)
	}
	return means
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

func sorted[K cmp.Ordered, V any](set map[K]V) []K { return slices.Sorted(maps.Keys(set)) }

// Places is the position of each value in the list.
func Places[T comparable](list []T) map[T]int {
	at := make(map[T]int, len(list))
	for i, v := range list {
		at[v] = i
	}
	return at
}
