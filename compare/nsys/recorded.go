package nsys

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/nsys/export"
	"github.com/moebalance/moebalance/compare/nsys/recorded"
	"github.com/moebalance/moebalance/router"
	"gonum.org/v1/gonum/floats"
)

// Recorded is what expert statistics say about the same run. Traces hold no
// counts: without them no time is allocated and no load is judged.
type Recorded struct {
	recorded.Counts
	Imbalance []imbalance.Row  // of the load, at both levels
	Warnings  []router.Warning // of whoever read it, passed on
	// OnRanks is the same on the ranks of a run, 0 where unknown, of which some are in
	// the trace; nil where the counts record their ranks.
	OnRanks func(run, traced int) (Recorded, error)
}

// ErrCounts is the error of recorded counts that cannot be of the captured run.
var ErrCounts = recorded.ErrMismatch

// checkRecorded holds the recorded counts against what the trace shows.
func (r *reduction) checkRecorded() (err error) {
	if len(r.options.Recorded.Load) == 0 {
		return nil
	}
	if onRanks := r.options.Recorded.OnRanks; onRanks != nil {
		if r.options.Recorded, err = onRanks(int(max(0, r.trace.World)), len(r.ranks)); err != nil {
			return err
		}
	}
	if s := r.trace.Structure; s != nil && !s.Beside {
		r.takeInOrder(s)
	}
	seen := recorded.Trace{Ranks: r.rankNumbers(), Export: r.ranks[len(r.ranks)-1].Rank.Export,
		World: int(max(0, r.trace.World)), Experts: r.observedExperts(), Layers: map[recorded.Pair]bool{}}
	for _, k := range r.trace.Kernels {
		seen.Kernels = append(seen.Kernels, k.Name)
	}
	for _, c := range r.trace.Cells {
		if c.Phase == PhaseExperts && c.Layer.Defined() {
			seen.Layers[recorded.Pair{Rank: c.Rank, Layer: int(c.Layer)}] = true
		}
	}
	for _, e := range r.trace.Exports {
		seen.SingleLayers = seen.SingleLayers ||
			slices.ContainsFunc(e.Warnings, func(w router.Warning) bool { return w.Code == export.SingleLayers })
	}
	warnings, err := r.options.Recorded.Check(seen)
	r.trace.Warnings = append(append(r.trace.Warnings, r.options.Recorded.Warnings...), warnings...)
	return err
}

// takeInOrder takes the counted layers in their order as the inferred ones, which have no
// other numbers: counts of a model whose first layers are dense begin at a later one.
func (r *reduction) takeInOrder(s *Structure) {
	counts, counted := r.options.Recorded.InOrder(int(s.Layers))
	if counted == nil {
		return
	}
	given := &r.options.Recorded
	given.Counts, s.Counted = counts, counted
	given.Imbalance = slices.Clone(given.Imbalance)
	for i, row := range given.Imbalance {
		given.Imbalance[i].Layer = router.OptInt(slices.Index(counted, int(row.Layer)))
	}
	r.warn("counts_order", "", "first", counted[0], "last", counted[len(counted)-1], "most", len(counted)-1)
}

// rankNumbers are the numbers of the ranks, ascending.
func (r *reduction) rankNumbers() (numbers []int) {
	for _, p := range r.ranks {
		numbers = append(numbers, p.Rank.Rank)
	}
	return numbers
}

// observedExperts lists the experts with kernels of their own, each once, in order.
func (r *reduction) observedExperts() []recorded.Expert {
	seen := map[recorded.Expert]bool{}
	for i, p := range r.ranks {
		for j, ns := range r.sums[i] {
			if at := &p.of.Places[j]; ns > 0 && at.Expert != NoID && at.Layer != NoID {
				seen[recorded.Expert{Layer: int(at.Layer), Expert: int(at.Expert), Rank: p.Rank.Rank}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b recorded.Expert) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Expert, b.Expert), cmp.Compare(a.Rank, b.Rank))
	})
}

// loadExperts adds the recorded load to the observed experts, and allocates
// grouped kernels' time where no range shows single experts: the compute time of
// the phase experts of a rank and step is divided over the rank's experts in
// proportion to their recorded slots. That is a model: it says what an expert's
// slots cost at the rank's average price, not what the expert itself took.
func (r *reduction) loadExperts() {
	observed := map[[2]int]bool{} // rank and layer
	for i := range r.trace.Experts {
		e := &r.trace.Experts[i]
		observed[[2]int{e.Rank, int(e.Layer)}] = true
		if l, ok := r.options.Recorded.Load[int(e.Layer)]; ok && e.Expert < len(l.PerExpert) {
			e.Slots, e.Known = router.OptInt(l.PerExpert[e.Expert]), true
		}
	}
	grouped := map[[2]int][]int64{} // compute time per step
	for _, c := range r.trace.Cells {
		if key := [2]int{c.Rank, int(c.Layer)}; c.Phase == PhaseExperts && c.Layer.Defined() && !observed[key] {
			grouped[key] = append(grouped[key], c.TotalNS-c.CollectiveNS)
		}
	}
	if len(grouped) > 0 && len(r.options.Recorded.Load) == 0 {
		r.warn("no_expert_times", "")
		return
	}
	byRank := func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }
	missing := 0
	for _, key := range slices.SortedFunc(maps.Keys(grouped), byRank) {
		parts := r.options.Recorded.Allocate(key[0], key[1], grouped[key])
		if len(parts) == 0 {
			missing++
		}
		for _, p := range parts {
			r.trace.Experts = append(r.trace.Experts, ExpertStat{
				Rank: key[0], Layer: router.OptInt(key[1]), Expert: p.Expert, Basis: imbalance.Allocated,
				Slots: router.OptInt(p.Slots), Known: true, Stats: kernel.StatsOf(p.NS),
			})
		}
	}
	if missing > 0 {
		r.warn("no_load", "", "missing", missing, "pairs", len(grouped))
	}
}

// checkLoadFits warns of counts whose load contradicts the expert time in most of the
// layers in which either is uneven: they are of the other arm, or of another run.
func (r *reduction) checkLoadFits() {
	steps := map[int]int{}
	for _, row := range r.options.Recorded.Imbalance {
		steps[int(row.Layer)] = max(row.Steps, steps[int(row.Layer)])
	}
	uneven, against, reason, at := 0, 0, "", 0
	for _, l := range r.times.Judged() {
		if len(l.Experts) == 0 || len(l.Ranks) < 2 {
			continue
		}
		time, layer := make([]float64, len(l.Ranks)), int(l.Number)
		for _, step := range l.Experts {
			floats.Add(time, step)
		}
		clearly, why := r.options.Recorded.Uneven(layer, steps[layer], l.Ranks, time)
		if clearly {
			uneven++
		}
		if why != "" {
			if against++; against == 1 {
				reason, at = why, layer
			}
		}
	}
	if against > 0 && 2*against > uneven {
		r.warn(CountsContradict, "", "why", reason, "layer", at)
	}
}

// CountsContradict is the code of the warning of counts that cannot be of the trace.
const CountsContradict = "counts_contradict"
