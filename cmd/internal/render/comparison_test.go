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
		r.LayerTimes = append(r.LayerTimes, diff.LayerChange{Layer: router.OptInt(layer),
			PhaseChange: diff.PhaseChange{Change: diff.Change{NormalNS: d, DifferenceNS: -d}}})
	}
	for _, format := range []output.Format{output.Text, output.CSV} {
		var text strings.Builder
		d := Comparison(r)
		d.Lead = d.Named("layers")
		if err := output.Write(&text, output.View{Format: format, Table: "layers"}, d); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "\n"); n < 62 {
			t.Errorf("%s: %d lines, want all 61 layers:\n%s", format, n, text.String())
		}
		text.Reset()
		if err := output.Write(&text, output.View{Format: output.Text}, d); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), "… and 51 more (largest first; --table layers shows all)") {
			t.Errorf("the lead is not cut:\n%s", text.String())
		}
	}
}
