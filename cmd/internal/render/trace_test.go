package render

import (
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// Of 512 ranks, a warning that all have is one note, and so is one that differs only in
// numbers, with the least and the most.
func TestNotesOfManyRanks(t *testing.T) {
	trace := &nsys.Trace{}
	for rank := range 512 {
		name := fmt.Sprintf("rank%d.sqlite", rank)
		trace.Exports = append(trace.Exports, nsys.Export{Path: name, Ranks: []int{rank},
			Warnings: []router.Warning{{Code: "diagnostic", Subject: name, Text: "events are missing"}}})
		if rank%2 == 0 {
			trace.Warnings = append(trace.Warnings, router.Warn("few_kernels", name, "why", "layer", "rank", rank,
				"kernels", 40+rank/100, "median", 90))
		}
	}
	notes := Trace(trace, "").Notes
	if len(notes) != 2 ||
		notes[0] != "doubt: rank0.sqlite, rank2.sqlite and 254 more: ranks 0, 2, 4, 6, 8, 10, 12, 14, …: 40 to 45 kernels per layer, the median rank 90; kernels were lost" || notes[1] != "rank0.sqlite, rank1.sqlite and 510 more: events are missing" {
		t.Errorf("have %d notes: %q", len(notes), notes)
	}
}

// What steps differ in is said by the worst of them alone: the answer has the mean.
func TestNoteOnStepsHasNoSecondMean(t *testing.T) {
	over := imbalance.OverSteps{Step: imbalance.SpreadOf([]float64{1e6, 1e6, 2e6}),
		Experts: imbalance.SpreadOf([]float64{3e3, 4e3, 9e3}), Loss: imbalance.SpreadOf([]float64{5e3, 5e3, 5e3})}
	notes := overSteps(over)
	if len(notes) != 1 || notes[0] != "steps differ: profiled step time up to 2.00 ms (the worst of 3 steps)" {
		t.Errorf("have %q", notes)
	}
}
