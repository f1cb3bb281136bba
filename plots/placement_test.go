package plots

import (
	"io"
	"slices"
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
	for i, c := range []struct {
		res     place.Result
		figures int
	}{
		{place.Result{}, 0},
		{place.Result{Placements: []place.Placement{more}}, 0},
		{place.Result{Placements: []place.Placement{none, more}}, 1},
		{place.Result{Placements: []place.Placement{more}, Learned: windows[:1], Judged: windows[1:],
			Layers: []place.Layer{{Plan: at, Layer: 3, BaselineRanks: []router.Number{1.5, 0.5},
				JudgedRanks: []router.Number{1.2}}}}, 0},
		{place.Result{Placements: []place.Placement{none, more}, Learned: windows[:1],
			Judged: windows[1:], Layers: []place.Layer{{Plan: at, Layer: 3, Baseline: 1.5, Judged: 1.2}}}, 2},
	} {
		figures, err := Placement(&c.res)
		if err != nil || len(figures) != c.figures {
			t.Errorf("%d: %d figures, %v", i, len(figures), err)
		}
		for _, f := range figures {
			if strings.Contains(f.Caption, "Judged: on 0") {
				t.Errorf("%d: %s", i, f.Caption)
			}
			if err := f.SVG(io.Discard); err != nil || f.Title == "" {
				t.Error(i, err)
			}
		}
	}
}

// The load over time has what ran, the moves where they were, and no line of what is not drawn.
func TestFiguresOfMovesAndTime(t *testing.T) {
	at := place.Plan{Ranks: 2}
	served := func(way string, moved ...router.Number) (list []place.Served) {
		for i, m := range moved {
			list = append(list, place.Served{Plan: at, Way: way, Learns: place.PlanEPLB, MaxOverMean: 1 + router.Number(i)/10,
				MovedShare: m})
		}
		return list
	}
	best := place.Placement{Plan: at, Judged: 1.2, Learned: 1.1, Baseline: 1.5}
	res := place.Result{Placements: []place.Placement{best}, Rebalance: &place.Rebalance{Windows: 4,
		Ways:   []place.Way{{Name: place.Never, MaxOverMean: 1.4}, {Name: "every 2", Learns: place.PlanEPLB, MaxOverMean: 1.2, Chosen: true}},
		Served: append(served(place.Never, 0, 0, 0, 0), served("every 2", 0, 0.5, 0, 0.25)...)},
		Curve: []place.Point{{Plan: at, Learned: 1.5, Judged: router.Undefined()}, {Plan: at, MovedShare: 0.1, Learned: 1.2,
			Judged: router.Undefined(), Knee: true}, {Plan: at, MovedShare: 0.9, Learned: 1.1, Judged: router.Undefined(), Afresh: true}}}
	figures, err := Placement(&res)
	if err != nil || len(figures) != 2 {
		t.Fatal(len(figures), err)
	}
	for i, want := range [][]string{{"never", "every 2", "experts move"}, {"learned windows", "learned afresh", "knee: 10.0 %"}} {
		var labels []string
		for _, k := range figures[i].legend {
			labels = append(labels, k.label)
		}
		if !slices.Equal(labels, want) {
			t.Errorf("%s: %v, want %v", figures[i].Name, labels, want)
		}
		var svg strings.Builder
		if err := figures[i].SVG(&svg); err != nil || figures[i].Title == "" {
			t.Error(err)
		}
		if i == 0 && strings.Count(svg.String(), "#9C3F6B") != 3 { // two moves and their key
			t.Error("the moves are not marked")
		}
	}
	// one chosen among those drawn anyhow is drawn once, and a result without ways not at all
	res.Rebalance.Ways[0].Chosen, res.Rebalance.Ways[1].Chosen = true, false
	if f, err := overTime(&res); err != nil || len(f.legend) != 1 {
		t.Errorf("%+v, %v", f.legend, err)
	}
}

// A sweep without judged windows has no key of their line; two points of a curve no band.
func TestLegendsOfWhatIsDrawn(t *testing.T) {
	none := place.Placement{Plan: place.Plan{Ranks: 2}, Judged: router.Undefined(), Learned: 1.3, Baseline: router.Undefined()}
	more := none
	more.Redundant = 2
	f, err := replication(&place.Result{Placements: []place.Placement{none, more}})
	if err != nil || len(f.legend) != 1 || f.legend[0].label != "learned, EP2" {
		t.Errorf("%+v, %v", f.legend, err)
	}
	g := &series{}
	g.bounded(1, 1, 0, 2)
	g.bounded(2, 1, nan, nan)
	if keys := intervalKey(g); len(keys) != 1 || keys[0].width != swatchWidth {
		t.Errorf("%+v", keys)
	}
	g.low[0], g.high[0] = nan, nan
	if keys := intervalKey(g); len(keys) != 0 {
		t.Errorf("%+v", keys)
	}
}
