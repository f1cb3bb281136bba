package wait

import (
	"fmt"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Part is one part of a Wait by its name for people, with its interval.
type Part struct {
	Name, Key string // Key is that of JSON
	NS        router.Number
	Interval  Interval
}

// List is the parts in the order in which tables show them; together they are WaitNS.
func (w Wait) List() []Part {
	return []Part{
		{"expert load", "expert_ns", w.Parts.ExpertNS, w.Intervals.Expert},
		{"other compute", "other_compute_ns", w.Parts.OtherNS, w.Intervals.Other},
		{"different kernels", "kernels_ns", w.Parts.KernelsNS, w.Intervals.Kernels},
		{"host lateness", "host_ns", w.Parts.HostNS, w.Intervals.Host},
		{"not explained", "unexplained_ns", w.Parts.UnexplainedNS, w.Intervals.Unexplained},
	}
}

// All is the whole, and then its parts.
func (w Wait) All() []Part {
	return append([]Part{{"wait", "mean_wait_ns", w.WaitNS, w.Intervals.Wait}}, w.List()...)
}

// Sentence says who waits for whom in a layer, and names the part that is more than
// half of the waiting.
func (w Wait) Sentence(layer string) string {
	text := fmt.Sprintf("%s: %s per step, ", layer, quantity.Duration(w.WaitNS))
	whom := fmt.Sprintf("for rank %d in %d of %s", w.LastRank, w.LastSteps, quantity.Count(w.Steps, "step"))
	if 2*w.LastSteps <= w.Steps && w.Steps > 1 {
		whom = "for different ranks"
	}
	text += whom
	for _, p := range w.List() {
		if 2*p.NS > w.WaitNS {
			text += ", mostly " + p.Name
			break
		}
	}
	if !w.Agrees {
		text += fmt.Sprintf("; rank %d has most expert time there", w.MostExpertRank)
	}
	return text
}
