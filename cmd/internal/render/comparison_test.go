package render

import (
	"reflect"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/cmd/internal/output"
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
	var text strings.Builder
	if err := output.Write(&text, output.View{Format: output.Text, Top: output.Page}, Comparison(r)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "… and 49 more (largest first"); n != 2 {
		t.Errorf("%d of 2 long tables cut:\n%s", n, text.String())
	}
	if rows := changedLosses(r).Rows; len(rows) != 61 || reflect.ValueOf(rows[0][0]).Int() != 0 {
		t.Error("the full table was cut or sorted")
	}
}
