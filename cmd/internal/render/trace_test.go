package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// Of 512 ranks, a warning that all have is one note that names them, and so is one that
// differs only in numbers, with those of the first.
func TestNotesOfManyRanks(t *testing.T) {
	trace := &nsys.Trace{}
	for rank := range 512 {
		name := fmt.Sprintf("rank%d.sqlite", rank)
		trace.Exports = append(trace.Exports, nsys.Export{Path: name, Ranks: []int{rank}, Warnings: []router.Warning{{Code: "diagnostic", Subject: name, Text: "events are missing"}}})
		if rank%2 == 0 {
			trace.Warnings = append(trace.Warnings, router.Warning{Code: "few_kernels", Subject: name, Text: fmt.Sprintf("rank %d ended early", rank)})
		}
	}
	notes := traceNotes(trace)
	if len(notes) != 2 || notes[0] != "rank0.sqlite, rank2.sqlite and 254 more: rank 0 ended early (the first of 256 with different numbers)" || notes[1] != "ranks 0 to 511: events are missing" {
		t.Errorf("have %d notes: %q", len(notes), notes)
	}
}

// The headline says that ranks are missing.
func TestHeadlineOfMissingRanks(t *testing.T) {
	if text := traceHeadline(&nsys.Trace{World: 4, Ranks: make([]nsys.Rank, 2)}); !strings.Contains(text, "2 of the run's 4 ranks; no layer") {
		t.Errorf("have %q", text)
	}
	if text := traceHeadline(&nsys.Trace{World: router.None, Ranks: make([]nsys.Rank, 2)}); !strings.HasPrefix(text, "2 ranks; no layer") {
		t.Errorf("have %q", text)
	}
}
