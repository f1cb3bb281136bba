package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Of 512 ranks, a warning that all have is one note, and so is one that differs only in
// numbers, with the least and the most.
func TestNotesOfManyRanks(t *testing.T) {
	traced := &trace.Trace{}
	for rank := range 512 {
		name := fmt.Sprintf("rank%d.sqlite", rank)
		traced.Exports = append(traced.Exports, trace.Export{Path: name, Ranks: []int{rank},
			Warnings: []router.Warning{{Code: "diagnostic", Subject: name, Text: "events are missing"}}})
		if rank%2 == 0 {
			traced.Warnings = append(traced.Warnings, router.Warn("lost_kernels", name, "lost", 40+rank/100,
				"launches", 90))
		}
	}
	notes := Trace(traced, "").Notes
	if len(notes) != 2 || !strings.HasPrefix(notes[0], "doubt: rank0.sqlite, rank2.sqlite and 254 more: ") ||
		notes[1] != "rank0.sqlite, rank1.sqlite and 510 more: events are missing" {
		t.Errorf("have %d notes: %q", len(notes), notes)
	}
}
