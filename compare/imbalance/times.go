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
	// Kinds is how many kinds of whole steps there are. Those of one count, the one with
	// most expert time.
	Kinds int

	work []work // in steps, by layer, step and rank
}

// Layer is the expert time of one layer.
type Layer struct {
	Number  router.OptInt // undefined for time outside every layer
	Ranks   []int         // that have the layer in any step, ascending
	Experts [][]float64   // expert time, see Of, by step that counts and in which the layer ran, then by rank
	steps   int           // that count
}

// work is what a rank ran in a layer of a step, all phases together. There is one only where anything ran, so there are
// no more than cells.
type work struct {
	Cell
	layer, step int // positions in Layers and Steps
	ran         phaseSet
	expertNS    int64 // compute of the phase experts
}

// phaseSet is which phases ran, a bit for each.
type phaseSet uint32

// New adds up cells, whose order does not matter, and decides which steps count.
func New(cells []Cell) *Times {
	type key struct {
		layer, step router.OptInt
		rank        int
	}
	t, at := &Times{}, map[key]int{}
	for i := range cells {
		c := &cells[i]
		w, known := at[key{c.Layer, c.Step, c.Rank}]
		if !known {
			w, at[key{c.Layer, c.Step, c.Rank}] = len(t.work), len(t.work)
			t.work = append(t.work, work{Cell: Cell{Layer: c.Layer, Step: c.Step, Rank: c.Rank, Kind: c.Kind}})
		}
		own := &t.work[w]
		own.Add(c)
		own.ran |= 1 << (slices.Index(kernel.Phases, c.Phase) + 1)
		if c.Phase == kernel.PhaseExperts {
			own.expertNS += c.ComputeNS()
		}
	}
	t.list()
	t.excludePartial()
	t.sumSteps()
	return t.OfKind(router.NoID)
}

// list puts the work in order, and lists its ranks, steps and layers.
func (t *Times) list() {
	slices.SortFunc(t.work, func(a, b work) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Rank, b.Rank))
	})
	ranks, kindOf := map[int]bool{}, map[router.OptInt]router.OptInt{}
	var outside, all int64
	for i := range t.work {
		w := &t.work[i]
		if i == 0 || w.Layer != t.work[i-1].Layer {
			t.Layers = append(t.Layers, &Layer{Number: w.Layer})
		}
		w.layer = len(t.Layers) - 1
		l := t.Layers[w.layer]
		l.Ranks = append(l.Ranks, w.Rank)
		ranks[w.Rank], kindOf[w.Step] = true, w.Kind
		if all += w.TotalNS; !w.Step.Defined() {
			outside += w.TotalNS
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
		t.work = slices.DeleteFunc(t.work, func(w work) bool { return !w.Step.Defined() })
	}
	t.OutsideShare = router.Number(float64(outside) / float64(all))
	t.Ranks = slices.Sorted(maps.Keys(ranks))
	for _, number := range slices.Sorted(maps.Keys(kindOf)) {
		t.Steps = append(t.Steps, Step{Number: number, Kind: kindOf[number]})
	}
	for i := range t.work {
		w := &t.work[i]
		w.step, _ = slices.BinarySearchFunc(t.Steps, w.Step, func(s Step, n router.OptInt) int { return int(s.Number - n) })
	}
}

// inLayers visits each layer in each step in which any rank ran it, with what the ranks ran.
func (t *Times) inLayers(visit func(*Layer, *Step, []work)) {
	for begin, end := 0, 0; begin < len(t.work); begin = end {
		w := &t.work[begin]
		for end < len(t.work) && t.work[end].layer == w.layer && t.work[end].step == w.step {
			end++
		}
		visit(t.Layers[w.layer], &t.Steps[w.step], t.work[begin:end])
	}
}

// ofTime is OfGEMM where every rank that ran experts in a judged layer ran recognized GEMMs there, in every step.
func (t *Times) ofTime() Of {
	of := OfPhase
	for _, w := range t.work {
		switch {
		case !w.Layer.Defined() && len(t.Layers) > 1:
		case w.GEMMNS > 0:
			of = OfGEMM
		case w.expertNS > 0:
			return OfPhase
		}
	}
	return of
}

// sumSteps adds the layers up step by step.
func (t *Times) sumSteps() {
	t.Of = t.ofTime()
	t.inLayers(func(l *Layer, s *Step, own []work) {
		experts := t.experts(l, own)
		s.SlowestExpertsNS += router.Number(slices.Max(experts))
		s.MeanExpertsNS += router.Number(stat.Mean(experts, nil))
		for _, w := range own {
			s.BusyNS += router.Number(w.BusyNS)
			s.expertNS, s.OutsideNS = s.expertNS+float64(w.expertNS), s.OutsideNS+float64(w.ComputeNS()-w.expertNS)
		}
	})
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.BusyNS /= router.Number(len(t.Ranks)); len(t.Ranks) < 2 {
			s.SlowestExpertsNS, s.MeanExpertsNS = router.Undefined(), router.Undefined()
		}
	}
}

// experts is the expert time of each rank of a layer in a step.
func (t *Times) experts(l *Layer, own []work) []float64 {
	times := make([]float64, len(l.Ranks))
	for _, w := range own {
		rank, _ := slices.BinarySearch(l.Ranks, w.Rank)
		if times[rank] = float64(w.expertNS); t.Of == OfGEMM {
			times[rank] = float64(w.GEMMNS)
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
