package render

import (
	"fmt"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// Of 512 ranks, a warning that all have is one note, and so is one that differs only in
// numbers, with those of the first.
func TestNotesOfManyRanks(t *testing.T) {
	trace := &nsys.Trace{}
	for rank := range 512 {
		name := fmt.Sprintf("rank%d.sqlite", rank)
		trace.Exports = append(trace.Exports, nsys.Export{Path: name, Ranks: []int{rank}, Warnings: []router.Warning{{Code: "diagnostic", Subject: name, Text: "events are missing"}}})
		if rank%2 == 0 {
			trace.Warnings = append(trace.Warnings, router.Warning{Code: "other", Subject: name, Text: fmt.Sprintf("rank %d ended early", rank)})
		}
	}
	notes := Trace(trace, "").Notes
	if len(notes) != 2 || notes[0] != "rank0.sqlite, rank2.sqlite and 254 more: rank 0 ended early (and 255 more like this)" || notes[1] != "rank0.sqlite, rank1.sqlite and 510 more: events are missing" {
		t.Errorf("have %d notes: %q", len(notes), notes)
	}
}
