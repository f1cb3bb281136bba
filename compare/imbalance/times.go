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
	parts   [][]Cell // by step, then by rank: of the phase experts
	ran     [][]phaseSet
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
		if all += c.TotalNS; !c.Step.Defined() {
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
	none := router.Undefined()
	for _, number := range sorted(kindOf) {
		t.Steps = append(t.Steps, Step{Number: number, Kind: kindOf[number], SlowestExpertsNS: none, MeanExpertsNS: none})
	}
	for _, layer := range sorted(ranksOf) {
		l := &Layer{Number: layer, Ranks: sorted(ranksOf[layer])}
		for range t.Steps {
			l.parts, l.ran = append(l.parts, make([]Cell, len(l.Ranks))), append(l.ran, make([]phaseSet, len(l.Ranks)))
		}
		t.Layers = append(t.Layers, l)
	}
	t.fill(cells)
	t.excludePartial()
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

// fill adds the cells up.
func (t *Times) fill(cells iter.Seq[*Cell]) {
	stepAt, layerAt := map[router.OptInt]int{}, map[router.OptInt]*Layer{}
	for i, s := range t.Steps {
		stepAt[s.Number] = i
	}
	for _, l := range t.Layers {
		layerAt[l.Number] = l
	}
	for c := range cells {
		step, ok := stepAt[c.Step]
		if !ok {
			continue
		}
		l := layerAt[c.Layer]
		rank, _ := slices.BinarySearch(l.Ranks, c.Rank)
		l.ran[step][rank] |= 1 << (slices.Index(kernel.Phases, c.Phase) + 1)
		if c.Phase == kernel.PhaseExperts {
			l.parts[step][rank].Add(c)
		}
		t.Steps[step].BusyNS += router.Number(c.BusyNS)
	}
}

// sumSteps adds the layers up step by step.
func (t *Times) sumSteps() {
	t.Of = t.ofTime()
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
	for i := range times {
		p := &l.parts[step][i]
		if times[i] = float64(p.ComputeNS()); l.of == OfGEMM {
			times[i] = float64(p.GEMMNS)
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
			for i := range step {
				switch p := &step[i]; {
				case p.GEMMNS > 0:
					of = OfGEMM
				case p.ComputeNS() > 0:
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

// Rows are the imbalance of expert time over ranks of the judged layers that two ranks have, and in which any ran
// experts in a step that counts.
func (t *Times) Rows(threshold float64) (rows []Row) {
	for _, l := range t.Judged() {
		if row := l.row(threshold); len(l.Ranks) > 1 && row.Steps > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

func (l *Layer) row(threshold float64) Row {
	var steps []router.Balance
	for _, step := range l.Experts {
		steps = append(steps, router.BalanceOf(step))
	}
	return Row{Layer: l.Number, Level: router.LevelRank, Quantity: Time, Basis: Observed, Of: l.of}.Mean(steps, l.Ranks,
		threshold)
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

func sorted[K cmp.Ordered, V any](set map[K]V) []K { return slices.Sorted(maps.Keys(set)) }

// Places is the position of each value in the list.
func Places[T comparable](list []T) map[T]int {
	at := make(map[T]int, len(list))
	for i, v := range list {
		at[v] = i
	}
	return at
}
