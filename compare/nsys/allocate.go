package nsys

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Recorded is what expert statistics say about the same run. Traces hold no
// counts: without them no time is allocated and no load is judged.
type Recorded struct {
	Load      map[int]router.Load   // slots per expert, by layer
	Layout    map[int]router.Layout // which rank owns which expert, by layer
	Imbalance []imbalance.Row       // of the load, at both levels
	Warnings  []router.Warning      // of whoever read it, passed on
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
			e.Slots, e.Known = l.PerExpert[e.Expert], true
		}
	}
	grouped := map[[2]int][]int64{} // compute time per step
	var order [][2]int
	for _, c := range r.trace.Cells {
		key := [2]int{c.Rank, int(c.Layer)}
		if c.Phase != PhaseExperts || !c.Layer.Defined() || observed[key] {
			continue
		}
		if grouped[key] == nil {
			order = append(order, key)
		}
		grouped[key] = append(grouped[key], c.TotalNS-c.CollectiveNS)
	}
	if len(order) > 0 && len(r.options.Recorded.Load) == 0 {
		r.warn("no_expert_times", "", "one grouped kernel runs all experts of a rank, so no time is measured per expert; pass recorded counts ('trace --counts DIR') to allocate it by load")
		return
	}
	slices.SortFunc(order, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	missing := 0
	for _, key := range order {
		if !r.allocate(key[0], key[1], grouped[key]) {
			missing++
		}
	}
	if missing > 0 {
		r.warn("no_load", "", fmt.Sprintf("the recorded counts lack %d of %s of rank and layer: no time is allocated there", missing, quantity.Count(len(order), "pair")))
	}
}

// allocate splits the steps of one rank and layer.
func (r *reduction) allocate(rank, layer int, steps []int64) bool {
	load, ok := r.options.Recorded.Load[layer]
	layout, placed := r.options.Recorded.Layout[layer]
	if !ok || !placed || rank >= layout.Ranks() || layout.Experts() != len(load.PerExpert) {
		return false
	}
	held := slices.Compact(slices.Sorted(slices.Values(layout.Held(rank)))) // copies on one rank are one row
	slots := make([]int64, len(held))
	var total int64
	for i, e := range held {
		places := layout.Places(int(e))
		for _, at := range places {
			if at.Rank == rank {
				slots[i] += load.PerExpert[e] / int64(len(places))
			}
		}
		total += slots[i]
	}
	if total == 0 {
		return false
	}
	times := make([][]int64, len(held))
	for _, ns := range steps {
		for i, part := range apportion(ns, slots, total) {
			times[i] = append(times[i], part)
		}
	}
	for i, e := range held {
		r.trace.Experts = append(r.trace.Experts, ExpertStat{
			Rank: rank, Layer: router.Whole(layer), Expert: int(e), Basis: imbalance.Allocated, Slots: slots[i], Known: true, Stats: kernel.StatsOf(times[i]),
		})
	}
	return true
}

// apportion divides ns in proportion to the weights, whole nanoseconds that add up
// to ns: each part's end is rounded down, so that rounding never accumulates.
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
