package output

import (
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/moebalance/moebalance/router/table"
)

// wideTable has columns of every kind, and a row to look at.
func wideTable() Document {
	wide := table.New("t", "Time per layer", "layer:count, basis, long:count=quite a long name, kernel, floor, minor:count, "+
		"imbalance:percent, flagged")
	wide.Rows = [][]any{
		{0, "inferred", 3, "void gemm<float, 128, 64>(long, long, long)", math.NaN(), 7, 0.5, true},
		{1, "inferred", 4, "short", nil, 8, 0.1, false},
	}
	return Document{
		Headline: "rank 1 is slowest\nmore about it",
		Tables:   []table.Table{wide},
		Notes:    []string{"a note"},
	}
}

func drawn(t *testing.T, v View) string {
	t.Helper()
	v.Format = Text
	var b strings.Builder
	if err := Write(&b, v, wideTable()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Whatever the width, nothing but a single long word is wider than the screen, and a table that is
// cut says so.
func TestTablesFitTheScreen(t *testing.T) {
	for width := 20; width <= 130; width++ {
		got := drawn(t, View{Screen: Screen{Width: width}})
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if strings.Contains(line, "cut where") { // prose, which the terminal wraps
				continue
			}
			if text.StringWidth(line) > width && (strings.Contains(strings.TrimSpace(line), " ") ||
				strings.HasPrefix(line, "─")) {
				t.Errorf("width %d: %q", width, line)
			}
		}
		cut, whole := strings.Contains(strings.Join(strings.Fields(got), " "), "cut where the terminal ends"),
			strings.Contains(got, "flagged\n")
		if cut == whole || cut != (width < 108) {
			t.Errorf("width %d:\n%s", width, got)
		}
	}
}

// Color adds escapes and nothing else: without it the same is said.
func TestColorSaysNothingAlone(t *testing.T) {
	plain, colored := drawn(t, View{Screen: Screen{Width: 120}}), drawn(t, View{Screen: Screen{Width: 120, Color: true}})
	if bare := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(colored, ""); bare != plain || colored == plain {
		t.Errorf("%q\n%q", colored, plain)
	}
}

func TestNoScreenBehindAFile(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if s := ScreenOf(f, func(string) string { return "40" }); s != (Screen{}) {
		t.Errorf("%+v", s)
	}
}
