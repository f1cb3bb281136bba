package plots

import (
	"io"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
)

// Results come from files: what they leave out is not drawn, and what they hold is.
func TestPlacementOfAnyResult(t *testing.T) {
	at := place.Plan{Ranks: 2, Redundant: 4}
	more := place.Placement{Plan: at, Judged: 1.2, Learned: 1.1, Baseline: 1.5, Time: &place.TimeChange{Estimate: -0.1,
		Low: -0.2, High: router.Undefined(), Of: "step time"}}
	none := place.Placement{Plan: place.Plan{Ranks: 2}, Judged: router.Undefined(), Learned: 1.3,
		Baseline: router.Undefined()}
	windows := []place.Window{{Name: "a"}, {Name: "b"}}
	cell := []place.Cell{{Plan: at, Learned: "a", Judged: "b", MaxOverMean: 1.2}, {Plan: at, Learned: "x", Judged: "y"}}
	for i, c := range []struct {
		res     place.Result
		figures int
	}{
		{place.Result{}, 0},
		{place.Result{Placements: []place.Placement{more}, Matrix: cell}, 0},
		{place.Result{Placements: []place.Placement{none, more}}, 1},
		{place.Result{Placements: []place.Placement{more}, Matrix: cell, Learned: windows[:1], Judged: windows[1:],
			Layers: []place.Layer{{Plan: at, Layer: 3, BaselineRanks: []router.Number{1.5, 0.5},
				JudgedRanks: []router.Number{1.2}}}}, 1},
		{place.Result{Placements: []place.Placement{none, more}, Matrix: cell, Learned: windows[:1],
			Judged: windows[1:], Layers: []place.Layer{{Plan: at, Layer: 3, BaselineRanks: []router.Number{1.5, 0.5},
				JudgedRanks: []router.Number{1.2, 0.8}}}}, 3},
	} {
		figures, err := Placement(&c.res)
		if err != nil || len(figures) != c.figures {
			t.Errorf("%d: %d figures, %v", i, len(figures), err)
		}
		for _, f := range figures {
			if strings.Contains(f.Caption, "Judged: on 0") {
				t.Errorf("%d: %s", i, f.Caption)
			}
			if err := f.SVG(io.Discard); err != nil || f.Alt == "" {
				t.Error(i, err)
			}
		}
	}
}
