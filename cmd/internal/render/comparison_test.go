package render

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/router"
)

// A table of many layers is cut for people, and whole for programs.
func TestTablesOfManyLayers(t *testing.T) {
	r := diff.Comparison{Comparable: true}
	for layer := range 61 {
		d := router.Number(layer % 40)
		r.Stragglers = append(r.Stragglers, diff.StragglerChange{Layer: router.OptInt(layer),
			Change: diff.Change{NormalNS: d, DifferenceNS: -d}})
	}
	for table, want := range map[output.Format]int{output.Text: 1, output.CSV: 0} {
		var text strings.Builder
		if err := output.Write(&text, output.View{Format: table, Table: "stragglers", Top: output.Page},
			Comparison(r)); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "… and 11 more (largest first"); n != want {
			t.Errorf("%s: cut %d times, want %d:\n%s", table, n, want, text.String())
		}
	}
}
