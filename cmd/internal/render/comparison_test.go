package render

import (
	"reflect"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/router"
)

// A change to nearly nothing is not shown as zero.
func TestChangesAreNeverZeroByRounding(t *testing.T) {
	if have, want := fromTo(1.5e6, 400), "1.50 ms to 400 ns (−100.0 %)"; have != want {
		t.Errorf("%q, want %q", have, want)
	}
}

func TestOverviewOfManyLayers(t *testing.T) {
	r := diff.Comparison{Comparable: true}
	for layer := range 61 {
		d := router.Number(layer % 40)
		r.Stragglers = append(r.Stragglers, diff.StragglerChange{Layer: router.Whole(layer), Change: diff.Change{NormalNS: d, DifferenceNS: -d}})
		r.RankSpeeds = append(r.RankSpeeds, diff.RankSpeed{Rank: layer, Load: 1 - d/100})
	}
	number := func(cell any) int64 { return reflect.ValueOf(cell).Int() }
	cut := 0
	for _, table := range ComparisonOverview(r).Tables {
		switch table.Name {
		case "stragglers", "hardware":
			cut++
			if len(table.Rows) != shownRows || number(table.Rows[0][0]) != 39 || number(table.Rows[1][0]) != 38 || !strings.Contains(table.Title, "12 of 61") {
				t.Errorf("%s: %q %v", table.Name, table.Title, table.Rows)
			}
		}
	}
	if cut != 2 {
		t.Errorf("%d of 2 long tables in the overview", cut)
	}
	if rows := changedLosses(r).Rows; len(rows) != 61 || number(rows[0][0]) != 0 {
		t.Error("the full table was cut or sorted")
	}
}
