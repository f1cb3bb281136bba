package recorded

import "slices"

// Uneven reports whether the expert time of ranks or their recorded load in a layer is
// clearly uneven, and a code of why they cannot be of one run; empty where nothing says so, or
// where the counts lack the layer or a rank. Time is by rank, over all steps; steps is
// how many were recorded.
func (c Counts) Uneven(layer, steps int, ranks []int, time []float64) (uneven bool, contradiction string) {
	recorded, known := c.Load[layer]
	layout := c.Layout[layer]
	if !known || layout.Experts() != len(recorded.PerExpert) || slices.Max(ranks) >= layout.Ranks() {
		return false, ""
	}
	all := layout.RankLoad(recorded.PerExpert)
	load := make([]float64, len(ranks))
	for i, rank := range ranks {
		load[i] = float64(all[rank])
	}
	if sum(time) == 0 || sum(load) == 0 {
		return false, ""
	}
	slots := float64(recorded.Total()) / float64(len(recorded.PerExpert)) / float64(max(1, steps))
	return max(excess(time), excess(load)) >= clearlyUneven, contradicts(time, load, slots)
}

// excess is max/mean − 1.
func excess(v []float64) float64 { return slices.Max(v)*float64(len(v))/sum(v) - 1 }

// contradicts is a code of why the recorded load of a layer cannot be that of its measured expert
// time; empty where nothing says so. Both are by rank, over the same ranks; slots is
// the mean number of slots of an expert and step.
func contradicts(time, load []float64, slots float64) string {
	t, l := excess(time), excess(load)
	busiest, loaded := slices.Index(time, slices.Max(time)), slices.Index(load, slices.Max(load))
	switch {
	case max(t, l) < clearlyUneven:
	case t < follows*l && slots >= computeBound:
		return "even_time"
	case l < follows*t:
		return "even_load"
	case min(t, l) > clearlyUneven && load[busiest] < sum(load)/float64(len(load)) &&
		time[loaded] < sum(time)/float64(len(time)):
		return "other_rank"
	}
	return ""
}

const (
	// clearlyUneven is the imbalance from which load and time must go together.
	clearlyUneven = 0.1
	// follows is the least imbalance of one over that of the other. Of the captures in
	// testdata the time of the right counts has 0.29 to 0.86 of the load's imbalance, and that
	// of the other arm's at most 0.06.
	follows = 0.15
	// computeBound is the number of slots per expert and step from which the time of its GEMM
	// follows them; below, it mostly reads weights.
	computeBound = 128
)

func sum(v []float64) (total float64) {
	for _, x := range v {
		total += x
	}
	return total
}
