package imbalance

import (
	"cmp"
	"maps"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// Cell is the kernel time of one rank, step, layer and phase: the grain at which arms are compared
// and imbalance is computed.
type Cell struct {
	Rank  int           `json:"rank"`
	Step  router.OptInt `json:"step"`  // undefined outside every step
	Layer router.OptInt `json:"layer"` // undefined outside every layer
	Phase kernel.Phase  `json:"phase"`
	Sum
	Kind router.OptInt `json:"step_kind"` // see Kinds; undefined of a step that some rank did not record whole
}

// Sum is the time of any number of kernels, and how many they are.
type Sum struct {
	Instances    int64 `json:"instances"`
	TotalNS      int64 `json:"total_ns"`
	CollectiveNS int64 `json:"collective_ns"` // the part of TotalNS in collectives
	BusyNS       int64 `json:"busy_ns"`       // union of the kernels' intervals
	GEMMs        int64 `json:"gemms"`         // recognized GEMMs of routed experts
	GEMMNS       int64 `json:"gemm_ns"`       // the part of TotalNS in them
}

// ComputeNS is the time outside collectives, in which ranks mostly wait for each other.
func (s *Sum) ComputeNS() int64 { return s.TotalNS - s.CollectiveNS }

// Add adds the kernels of another sum.
func (s *Sum) Add(o *Sum) {
	s.Instances, s.TotalNS, s.CollectiveNS = s.Instances+o.Instances, s.TotalNS+o.TotalNS, s.CollectiveNS+o.CollectiveNS
	s.BusyNS, s.GEMMs, s.GEMMNS = s.BusyNS+o.BusyNS, s.GEMMs+o.GEMMs, s.GEMMNS+o.GEMMNS
}

// Times is the expert time of a recording by step, layer and rank.
type Times struct {
	Ranks  []int    // with any kernel, ascending
	Steps  []Step   // all, ascending
	Layers []*Layer // ascending, time outside every layer first
	// Unmarked says that no step is marked: the whole recording stands as one.
	Unmarked bool
	// OutsideShare is the share of kernel time outside every step, which is in no
	// number; undefined without time.
	OutsideShare router.Number
	Of           Of // the kernels that expert time adds up
	// Kinds is how many kinds of whole steps there are. The steps of one kind count, see OfKind.
	Kinds int

	cells []Cell // in steps, by layer, step and rank
}

// Layer is the expert time of one layer.
type Layer struct {
	Number  router.OptInt // undefined for time outside every layer
	Ranks   []int         // that have the layer in any step, ascending
	Experts [][]float64   // expert time, see Of, by step that counts and in which the layer ran, then by rank
	steps   int           // that count
}

// New adds up cells, whose order does not matter, and decides which steps count.
func New(cells []Cell) *Times {
	t := &Times{cells: slices.SortedFunc(slices.Values(cells), func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank))
	})}
	t.list()
	t.excludePartial()
	t.sumSteps()
	return t.OfKind(router.NoID)
}

// list lists the ranks, steps and layers of the cells.
func (t *Times) list() {
	ranks, kindOf := map[int]bool{}, map[router.OptInt]router.OptInt{}
	var outside, all int64
	for i, c := range t.cells {
		if i == 0 || c.Layer != t.cells[i-1].Layer {
			t.Layers = append(t.Layers, &Layer{Number: c.Layer})
		}
		l := t.Layers[len(t.Layers)-1]
		l.Ranks = append(l.Ranks, c.Rank)
		ranks[c.Rank], kindOf[c.Step] = true, c.Kind
		if all += c.TotalNS; !c.Step.Defined() {
			outside += c.TotalNS
		}
	}
	for _, l := range t.Layers {
		slices.Sort(l.Ranks)
		l.Ranks = slices.Compact(l.Ranks)
	}
	if _, anyOutside := kindOf[router.NoID]; anyOutside && len(kindOf) == 1 {
		t.Unmarked, outside = true, 0
	} else {
		delete(kindOf, router.NoID)
		t.cells = slices.DeleteFunc(t.cells, func(c Cell) bool { return !c.Step.Defined() })
	}
	t.OutsideShare = router.Number(float64(outside) / float64(all))
	t.Ranks = slices.Sorted(maps.Keys(ranks))
	for _, number := range slices.Sorted(maps.Keys(kindOf)) {
		t.Steps = append(t.Steps, Step{Number: number, Kind: kindOf[number]})
	}
}

// step is the step of a number.
func (t *Times) step(number router.OptInt) *Step {
	i, _ := slices.BinarySearchFunc(t.Steps, number, func(s Step, n router.OptInt) int { return int(s.Number - n) })
	return &t.Steps[i]
}

// inLayers visits each layer in each step in which any rank ran it, with what the ranks ran.
func (t *Times) inLayers(visit func(*Layer, *Step, []Cell)) {
	layers := t.Layers
	for begin, end := 0, 0; begin < len(t.cells); begin = end {
		c := &t.cells[begin]
		for end < len(t.cells) && t.cells[end].Layer == c.Layer && t.cells[end].Step == c.Step {
			end++
		}
		for layers[0].Number != c.Layer {
			layers = layers[1:]
		}
		visit(layers[0], t.step(c.Step), t.cells[begin:end])
	}
}

// ofTime is OfGEMM where every rank that ran experts in a judged layer ran recognized GEMMs there, in every step.
func (t *Times) ofTime() Of {
	of := OfPhase
	for _, c := range t.cells {
		switch {
		case !c.Layer.Defined() && len(t.Layers) > 1:
		case c.GEMMNS > 0:
			of = OfGEMM
		case c.expertNS() > 0:
			return OfPhase
		}
	}
	return of
}

// sumSteps adds the layers up step by step.
func (t *Times) sumSteps() {
	t.Of = t.ofTime()
	t.inLayers(func(l *Layer, s *Step, own []Cell) {
		experts := t.experts(l, own)
		s.SlowestExpertsNS += router.Number(slices.Max(experts))
		s.MeanExpertsNS += router.Number(stat.Mean(experts, nil))
		for _, c := range own {
			s.BusyNS += router.Number(c.BusyNS)
			if s.expertNS += float64(c.expertNS()); l.Number.Defined() || len(t.Layers) == 1 {
				s.outsideNS += float64(c.ComputeNS() - c.expertNS())
			}
		}
	})
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.BusyNS /= router.Number(len(t.Ranks)); len(t.Ranks) < 2 {
			s.SlowestExpertsNS, s.MeanExpertsNS = router.Undefined(), router.Undefined()
		}
	}
}

// expertNS is compute of the phase experts.
func (c *Cell) expertNS() int64 {
	if c.Phase != kernel.PhaseExperts {
		return 0
	}
	return c.ComputeNS()
}

// experts is the expert time of each rank of a layer in a step.
func (t *Times) experts(l *Layer, own []Cell) []float64 {
	times := make([]float64, len(l.Ranks))
	for _, c := range own {
		rank, _ := slices.BinarySearch(l.Ranks, c.Rank)
		if t.Of == OfGEMM {
			times[rank] += float64(c.GEMMNS)
		} else {
			times[rank] += float64(c.expertNS())
		}
	}
	return times
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
		var steps []router.Balance
		for _, step := range l.Experts {
			steps = append(steps, router.BalanceOf(step))
		}
		row := Row{Layer: l.Number, Level: router.LevelRank, Quantity: Time, Basis: Observed, Of: t.Of}
		if row = row.Over(steps, l.Ranks, threshold); len(l.Ranks) > 1 && row.Steps > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// Loss is the maximum − the mean over ranks of the expert time in nanoseconds, added over layers, of which it takes
// the Rows, mean over steps that count: ranks of 30 and 10 ns in one layer and of 6 and 14 in another lose 10 + 4. It
// is undefined without a layer that two ranks have, and where none is named, for busy ranks of different layers cancel.
func (t *Times) Loss(rows []Row) (loss router.Number) {
	if t.Unmarked || len(rows) == 0 || !rows[0].Layer.Defined() {
		return router.Undefined()
	}
	for _, r := range rows {
		loss += r.Imbalance * r.MeanNS * router.Number(r.Steps)
	}
	return loss / router.Number(len(t.StepsOf(Counts)))
}

// Means is the expert time of each rank, mean over the steps that count.
func (l *Layer) Means() []float64 {
	means := make([]float64, len(l.Ranks))
	for _, step := range l.Experts {
		floats.AddScaled(means, 1/float64(l.steps), step)
	}
	return means
}

// Places is the position of each value in the list.
func Places[T comparable](list []T) map[T]int {
	at := make(map[T]int, len(list))
	for i, v := range list {
		at[v] = i
	}
	return at
}
