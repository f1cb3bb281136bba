package output

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/moebalance/moebalance/router/table"
)

// wideTable has columns of every rank: without a value, of one value, minor, and others.
func wideTable() Document {
	return Document{
		Headline: "rank 1 is slowest: 12.5 % more time than the mean over all of the ranks of this run\nmore about it",
		Tables: []table.Table{table.Table{Name: "t", Title: "Time per layer", Columns: []table.Column{
			{Name: "layer", Kind: table.Count}, {Name: "basis"}, {Name: "quite a long name", Kind: table.Count},
			{Name: "kernel"}, {Name: "floor", Kind: table.Ratio},
			{Name: "minor", Kind: table.Count}, {Name: "imbalance", Kind: table.Percent},
			{Name: "flagged", Alarm: []string{"yes"}},
		}, Rows: [][]any{
			{0, "inferred", 3, "void gemm<float, 128, 64>(long, long, long)", math.NaN(), 7, 0.5, true},
			{1, "inferred", 4, "short", nil, 8, 0.1, false},
		}}.Least("minor")},
		Notes: []string{"a note that is longer than the screen is wide, and has a path: /a/very/long/path/without/any/space/in/it.sqlite"},
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

// Whatever the width, nothing but a single long word is wider than the screen, the first
// column stays, and every column is there or named as hidden, with its value if it has one
// alone.
func TestTablesFitTheScreen(t *testing.T) {
	for width := 20; width <= 130; width++ {
		got := drawn(t, View{Screen: Screen{Width: width}})
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if text.StringWidth(line) > width && (strings.Contains(strings.TrimSpace(line), " ") ||
				strings.HasPrefix(line, "─")) {
				t.Errorf("width %d: %q", width, line)
			}
		}
		words := strings.Join(strings.Fields(got), " ")
		for _, c := range []string{"layer", "basis", "kernel", "floor", "minor", "imbalance", "flagged"} {
			if !strings.Contains(words, c) {
				t.Errorf("width %d: column %s is gone:\n%s", width, c, got)
			}
		}
		if strings.Contains(words, "hidden:") != strings.Contains(words, "--wide shows all") ||
			!strings.Contains(words, "inferred") {
			t.Errorf("width %d:\n%s", width, got)
		}
	}
	for width, want := range map[int]string{
		75: "… 1 column hidden: floor (--wide shows all)", 65: "… 2 columns hidden: basis = inferred, floor (--wide",
		55: "hidden: basis = inferred, floor, minor (--wide", 45: "basis = inferred, floor, minor, flagged (",
	} {
		if got := strings.Join(strings.Fields(drawn(t, View{Screen: Screen{Width: width}})),
			" "); !strings.Contains(got, want) {
			t.Errorf("width %d: want %q in\n%s", width, want, got)
		}
	}
}

func TestWideIsWhatAPipeGets(t *testing.T) {
	piped := drawn(t, View{})
	wide := drawn(t, View{Wide: true, Screen: Screen{Width: 130}})
	if narrow := drawn(t, View{Wide: true, Screen: Screen{Width: 30}}); strings.Contains(narrow, "hidden") ||
		wide != piped || strings.Contains(piped, "\x1b") {
		t.Errorf("piped\n%s\nwide\n%s\nwide on 30 columns\n%s", piped, wide, narrow)
	}
}

// Color adds escapes and nothing else: without it the same is said.
func TestColorSaysNothingAlone(t *testing.T) {
	plain, colored := drawn(t, View{Screen: Screen{Width: 60}}), drawn(t, View{Screen: Screen{Width: 60, Color: true}})
	if bare := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(colored, ""); bare != plain || colored == plain {
		t.Errorf("%q\n%q", colored, plain)
	}
	lines := strings.Split(colored, "\n")
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "\x1b[33m50.0 %\x1b[0m") }) ||
		strings.Contains(colored, "\x1b[33m10.0 %") {
		t.Errorf("the flagged row alone stands out:\n%q", colored)
	}
}

// Numbers keep their units where lines are broken, and words their letters.
func TestProseIsBrokenBetweenWords(t *testing.T) {
	s := Screen{Width: 12}
	for in, want := range map[string]string{
		"it takes 3.5 ms more": "it takes\n  3.5 ms\n  more", "a gain +12.5 % in": "a gain\n  +12.5 % in",
		"a/very/long/word b": "a/very/long/word\n  b", "": "", "ten µs": "ten µs",
	} {
		if got := s.prose(in, "  "); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Names end a line between their parts, and are cut only where a part is too long.
func TestNamesAreBrokenBetweenParts(t *testing.T) {
	for cell, want := range map[string]string{
		"only_one_difference and": "only_one_\ndifference\nand", "runs/of_a_day/x": "runs/of_a_\nday/x",
		"abcdefghijklmn": "abcdefghijkl\nmn", "a b": "a b",
	} {
		c := shownColumn{table.Shown{Cells: []string{cell}}}
		if c.narrow(12); c.Cells[0] != want {
			t.Errorf("%q: %q, want %q", cell, c.Cells[0], want)
		}
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
