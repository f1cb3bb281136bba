package recorded

import "slices"

// Part is what an expert of a rank gets of the rank's time.
type Part struct {
	Expert int
	Slots  int64   // recorded on the rank
	NS     []int64 // by step
}

// Allocate divides the times of a rank's steps in a layer over the experts that it holds,
// in proportion to their recorded slots; copies on one rank are one. Nothing where the
// counts lack the layer, or load on the rank.
func (c Counts) Allocate(rank, layer int, steps []int64) (parts []Part) {
	load, ok := c.Load[layer]
	layout, placed := c.Layout[layer]
	if !ok || !placed || rank >= layout.Ranks() || layout.Experts() != len(load.PerExpert) {
		return nil
	}
	held := slices.Compact(slices.Sorted(slices.Values(layout.Held(rank))))
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
		parts = append(parts, Part{Expert: int(e), Slots: slots[i]})
	}
	if total == 0 {
		return nil
	}
	for _, ns := range steps {
		for i, part := range apportion(ns, slots, total) {
			parts[i].NS = append(parts[i].NS, part)
		}
	}
	return parts
}

// Held are the experts that any layout puts on one of the ranks.
func (c Counts) Held(ranks []int) map[int]bool {
	held := map[int]bool{}
	for _, layout := range c.Layout {
		for _, rank := range ranks {
			if rank < layout.Ranks() {
				for _, e := range layout.Held(rank) {
					held[int(e)] = true
				}
			}
		}
	}
	return held
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
