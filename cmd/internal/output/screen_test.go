package output

import (
	"math"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/moebalance/moebalance/router/table"
	"github.com/moebalance/moebalance/testdata/require"
)

// wideTable has columns of every kind, and a row to look at.
func wideTable() Document {
	wide := made("t", "Time per layer", "layer:count, basis, long:count=quite a long name, kernel, floor, minor:count, "+
		"imbalance:percent, flagged",
		[]any{0, "inferred", 3, "void gemm<float, 128, 64>(long, long, long)", math.NaN(), 7, 0.5, true},
		[]any{1, "inferred", 4, "short", nil, 8, 0.1, false})
	return Document{
		Headline: "rank 1 is slowest",
		Tables:   []table.Table{wide},
		Notes:    []string{"a note"},
	}
}

func drawn(t *testing.T, width int) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Write(&b, View{Format: Text, Width: width}, wideTable()))
	return b.String()
}

// Whatever the width, no line of a table is wider than the screen, and a cut one ends in a sign.
func TestTablesFitTheScreen(t *testing.T) {
	for width := 20; width <= 130; width++ {
		got := drawn(t, width)
		for line := range strings.Lines(got) {
			if wide := text.StringWidthWithoutEscSequences(strings.TrimSuffix(line, "\n")); wide > width {
				t.Errorf("width %d: %q", width, line)
			}
		}
		if cut, whole := strings.Contains(got, "…\n"), strings.Contains(got, "flagged\n"); cut == whole || cut != (width < 108) {
			t.Errorf("width %d:\n%s", width, got)
		}
	}
}
