package trace

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Recorded is what expert statistics say about the same run, by layer. Traces hold no
// counts: without them no time is allocated and no load is judged.
type Recorded struct {
	Layers    map[int]Counted
	Imbalance []imbalance.Row  // of the load, at both levels
	Warnings  []router.Warning // of whoever read it, passed on
	// OnRanks is the same on the ranks of a run, 0 where unknown, of which some are in
	// the trace; nil where the counts record their ranks.
	OnRanks func(run, traced int) (Recorded, error)
}

// Counted are the slots per expert of a layer, and where its experts are: on no rank where nobody knows.
type Counted struct {
	router.Load
	Layout router.Layout
}

// ErrCounts is the error of recorded counts that cannot be of the captured run.
var ErrCounts = errors.New("the recorded counts do not match the trace")

// checkRecorded compares the recorded counts with what the trace shows. It refuses, with an
// error that wraps ErrCounts, counts that contradict the trace:
//
//   - a rank in the trace that they do not have;
//   - a kernel of the gate that is made for another number of experts;
//   - layers numbered otherwise: none in common, or each side has some that the
//     other lacks.
//
// A trace says nothing of the model's top-k and, where one kernel serves all
// experts, nothing of its tokens. What only looks odd is a warning, because counts may be
// of more steps, and a trace of fewer ranks and layers.
func (r *reduction) checkRecorded() (err error) {
	given := &r.options.Recorded
	if len(given.Layers) == 0 {
		return nil
	}
	if given.OnRanks != nil {
		if *given, err = given.OnRanks(int(max(0, r.trace.World)), len(r.ranks)); err != nil {
			return err
		}
	}
	if s := r.trace.Structure; s != nil && !s.Beside {
		r.takeInOrder(s)
	}
	r.trace.Warnings = append(r.trace.Warnings, given.Warnings...)
	last, made := r.ranks[len(r.ranks)-1].Rank.Rank, r.trace.GateExperts()
	for _, layer := range slices.Sorted(maps.Keys(given.Layers)) {
		c := given.Layers[layer]
		switch experts, ranks := len(c.PerExpert), c.Layout.Ranks(); {
		case ranks > 0 && last >= ranks:
			return refuse(quantity.Count(ranks, "rank"), "the trace has rank %d", last)
		case len(made) > 0 && !slices.Contains(made, experts): // of two models, one may draft for the other
			return refuse(quantity.Count(experts, "expert"), "the top-k kernel in the trace is compiled for %s",
				quantity.Ranges(made))
		}
	}
	return r.countedLayers()
}

// refuse is the error of counts that contradict what a trace shows.
func refuse(counts, shows string, args ...any) error {
	return fmt.Errorf("%w: counts of %s, %s", ErrCounts, counts, fmt.Sprintf(shows, args...))
}

// takeInOrder takes the counted layers in their order as the inferred ones, which have no
// other numbers: counts of a model whose first three layers are dense begin at layer 3.
func (r *reduction) takeInOrder(s *Structure) {
	given, counted := &r.options.Recorded, r.options.Recorded.loaded()
	if s.Layers == 0 || len(counted) != int(s.Layers) || counted[len(counted)-1] == len(counted)-1 {
		return
	}
	layers := map[int]Counted{}
	for i, number := range counted {
		layers[i] = given.Layers[number]
	}
	given.Layers, s.Counted = layers, counted
	given.Imbalance = slices.Clone(given.Imbalance)
	for i, row := range given.Imbalance {
		given.Imbalance[i].Layer = router.OptInt(slices.Index(counted, int(row.Layer)))
	}
	r.warn("counts_order", "", "first", counted[0], "last", counted[len(counted)-1], "most", len(counted)-1)
}

// loaded are the layers with any load, ascending: some recorders list the dense ones too.
func (c *Recorded) loaded() (layers []int) {
	for layer, l := range c.Layers {
		if l.Total() > 0 {
			layers = append(layers, layer)
		}
	}
	slices.Sort(layers)
	return layers
}

// CountsLayers is the code of the warning that counts are of more layers than the trace.
const CountsLayers = "counts_layers"

// countedLayers compares the layers in which experts work with those that have load.
func (r *reduction) countedLayers() error {
	worked := slices.Sorted(maps.Keys(sums(r, func(g group) (int, bool) {
		return int(g.at.Layer), g.at.Phase == PhaseExperts && g.at.Layer != NoID
	})))
	counted := r.options.Recorded.loaded()
	without := slices.DeleteFunc(slices.Clone(worked), func(l int) bool { return slices.Contains(counted, l) })
	idle := slices.DeleteFunc(slices.Clone(counted), func(l int) bool { return slices.Contains(worked, l) })
	switch {
	case len(worked) == 0 || len(counted) == 0 || len(without)+len(idle) == 0:
	case len(without) == len(worked), len(without) > 0 && len(idle) > 0:
		return refuse("layers "+quantity.Ranges(counted), "experts run in layers %s; number both the same way",
			quantity.Ranges(worked))
	case len(without) > 0:
		r.warn(CountsContradict, "", "counted", len(counted), "layers", len(worked))
	default:
		r.warn(CountsLayers, "", "counted", len(counted), "layers", len(worked))
	}
	return nil
}

// loadExperts adds the recorded load to the observed experts, and allocates
// grouped kernels' time where no range shows single experts: the compute time of
// the phase experts of a rank and step is divided over the rank's experts in
// proportion to their recorded slots. That is a model: it says what an expert's
// slots cost at the rank's average price, not what the expert itself took. It refuses counts that do not have
// an expert on the rank on which it ran.
func (r *reduction) loadExperts() error {
	given := &r.options.Recorded
	observed := map[[2]int]bool{} // rank and layer
	for i := range r.trace.Experts {
		e := &r.trace.Experts[i]
		observed[[2]int{e.Rank, int(e.Layer)}] = true
		c, ok := given.Layers[int(e.Layer)]
		if !ok {
			continue
		}
		if e.Expert >= len(c.PerExpert) || e.Expert < c.Layout.Experts() &&
			!slices.Contains(c.Layout.Places(e.Expert), e.Rank) {
			return refuse(quantity.Count(len(c.PerExpert), "expert"), "expert %d of layer %d ran on rank %d", e.Expert,
				e.Layer, e.Rank)
		}
		e.Slots = router.OptInt(c.PerExpert[e.Expert])
	}
	grouped := map[[2]int][]int64{} // compute time per step
	for i := range r.trace.Cells {
		c := &r.trace.Cells[i]
		if key := [2]int{c.Rank, int(c.Layer)}; c.Phase == PhaseExperts && c.Layer.Defined() && !observed[key] {
			grouped[key] = append(grouped[key], c.ComputeNS())
		}
	}
	if len(grouped) > 0 && len(given.Layers) == 0 {
		r.warn("no_expert_times", "")
		grouped = nil
	}
	for key, steps := range grouped {
		r.trace.Experts = append(r.trace.Experts, given.Layers[key[1]].allocate(key[0], key[1], steps)...)
	}
	slices.SortFunc(r.trace.Experts, func(a, b ExpertStat) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Expert, b.Expert), cmp.Compare(a.Rank, b.Rank))
	})
	return nil
}

// allocate divides the times of a rank's steps in a layer over the experts that it holds,
// in proportion to their recorded slots; copies on one rank are one. Nothing where the
// counts lack the layer, or load on the rank.
func (c Counted) allocate(rank, layer int, steps []int64) (parts []ExpertStat) {
	if rank >= c.Layout.Ranks() || c.Layout.Experts() != len(c.PerExpert) {
		return nil
	}
	held := slices.Compact(slices.Sorted(slices.Values(c.Layout.Held(rank))))
	slots := make([]int64, len(held))
	var total int64
	copies := c.Layout.CopyLoad(c.PerExpert)
	for e := range c.PerExpert {
		for _, on := range c.Layout.Places(e) {
			if on == rank {
				slots[slices.Index(held, int32(e))] += copies[0]
				total += copies[0]
			}
			copies = copies[1:]
		}
	}
	if total == 0 {
		return nil
	}
	times := make([][]int64, len(held)) // by step
	for _, ns := range steps {
		for i, part := range apportion(ns, slots, total) {
			times[i] = append(times[i], part)
		}
	}
	for i, e := range held {
		parts = append(parts, ExpertStat{Rank: rank, Layer: router.OptInt(layer), Expert: int(e),
			Basis: imbalance.Allocated, Slots: router.OptInt(slots[i]), Stats: kernel.StatsOf(times[i])})
	}
	return parts
}

// apportion divides ns in proportion to the weights, whole nanoseconds that add up
// to ns: each part's end is rounded down, so that rounding never accumulates. For example,
// 10 by weights 1, 1, 1 is 3, 3, 4.
func apportion(ns int64, weights []int64, total int64) []int64 {
	out := make([]int64, len(weights))
	var sum, given int64
	for i, w := range weights {
		sum += w
		upTo := int64(float64(ns) * (float64(sum) / float64(total)))
		if sum == total {
			upTo = ns
		}
		out[i] = upTo - given
		given = upTo
	}
	return out
}

// LoadWithoutTime is the code of the warning that the load is uneven, and the time of experts is not.
const LoadWithoutTime = "load_without_time"

// checkLoadFits warns of counts whose load contradicts the expert time in most of the
// layers in which either is uneven: they are of the other arm, or of another run.
func (r *reduction) checkLoadFits() {
	steps := map[int]int{}
	for _, row := range r.options.Recorded.Imbalance {
		steps[int(row.Layer)] = max(row.Steps, steps[int(row.Layer)])
	}
	uneven, layers := 0, map[string][]int{} // by code
	for _, l := range r.times.Judged() {
		if len(l.Experts) == 0 || len(l.Ranks) < 2 {
			continue
		}
		time, layer := l.Means(), int(l.Number)
		load, slots := r.options.Recorded.Layers[layer].onRanks(steps[layer], l.Ranks)
		if load == nil || floats.Sum(time) == 0 {
			continue
		}
		if max(excess(time), excess(load)) >= clearlyUneven {
			uneven++
		}
		code := contradicts(time, load, slots)
		layers[code] = append(layers[code], layer)
	}
	for _, code := range []string{CountsContradict, LoadWithoutTime} {
		if at := layers[code]; 2*len(at) > uneven {
			r.warn(code, "", "layer", at[0])
			return
		}
	}
}

// onRanks is the recorded load of ranks, and the mean number of slots of an expert
// and step; nil where the counts lack a rank, or hold no load there.
func (c Counted) onRanks(steps int, ranks []int) (load []float64, slots float64) {
	if c.Layout.Experts() != len(c.PerExpert) || slices.Max(ranks) >= c.Layout.Ranks() {
		return nil, 0
	}
	all := c.Layout.RankLoad(c.PerExpert)
	for _, rank := range ranks {
		load = append(load, float64(all[rank]))
	}
	if floats.Sum(load) == 0 {
		return nil, 0
	}
	return load, float64(c.Total()) / float64(len(c.PerExpert)) / float64(max(1, steps))
}

// excess is max/mean − 1.
func excess(v []float64) float64 { return slices.Max(v)*float64(len(v))/floats.Sum(v) - 1 }

// contradicts is the code of the warning that the recorded load of a layer does not fit its measured expert
// time; empty where nothing says so. Both are by rank, over the same ranks; slots is
// the mean number of slots of an expert and step.
func contradicts(time, load []float64, slots float64) string {
	t, l := excess(time), excess(load)
	busiest, loaded := floats.MaxIdx(time), floats.MaxIdx(load)
	n := float64(len(time))
	switch {
	case max(t, l) < clearlyUneven:
	case t < follows*l && slots >= computeBound:
		return LoadWithoutTime
	case l < follows*t, // even load, or another rank's
		min(t, l) > clearlyUneven && load[busiest] < floats.Sum(load)/n && time[loaded] < floats.Sum(time)/n:
		return CountsContradict
	}
	return ""
}

const (
	// clearlyUneven is the imbalance from which load and time must go together.
	clearlyUneven = 0.1
	// follows is the least imbalance of one over the imbalance of the other. Of the captures in
	// testdata the time of the right counts has 0.29 to 0.86 of the load's imbalance, and that
	// of the other arm's at most 0.06.
	follows = 0.15
	// computeBound is the number of slots per expert and step from which the time of its GEMM
	// follows them; below, it mostly reads weights.
	computeBound = 128
)
