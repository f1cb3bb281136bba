package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const module = "github.com/moebalance/moebalance/"

// imports is every arrow between our packages. They only run down: what a package
// imports stands below it.
var imports = map[string][]string{}

func init() {
	for line := range strings.Lines(strings.ReplaceAll(drawing, "\n    ", " ")) {
		pkg, below, _ := strings.Cut(line, ":")
		imports[strings.TrimSpace(pkg)] = strings.Fields(below)
	}
	delete(imports, "")
}

// drawing has a line for each package, "package: what it imports"; lines that go on are indented.
const drawing = `
cmd/internal/flags: router/input
cmd/internal/output: compare/answer router router/shown router/table
cmd/internal/progress: cmd/internal/output router/quantity router/shown
cmd/internal/render: cmd/internal/output cmd/internal/progress compare/answer compare/bench compare/bench/launch
    compare/counts compare/diff compare/gain compare/imbalance compare/trace
    compare/place compare/source logits router router/plan router/quantity router/table
cmd/internal/target: cmd/internal/flags router/draft
cmd/internal/workload: logits router
cmd/moebalance: cmd/internal/flags cmd/internal/output cmd/internal/progress cmd/internal/render cmd/internal/target
    cmd/internal/workload compare/answer compare/answer/caveat compare/bench compare/bench/control
    compare/bench/dataset compare/bench/launch compare/bench/metrics compare/bench/points compare/counts compare/diff
    compare/gain compare/imbalance compare/kernel compare/trace compare/place compare/source logits logits/hook plots
    plots/page router router/input router/placement router/plan router/quantity router/shown testdata
compare/answer: compare/answer/caveat compare/bench/launch compare/counts compare/diff compare/gain compare/imbalance
    compare/trace compare/place logits router router/placement router/quantity
compare/answer/caveat: router router/quantity
compare/bench: compare/bench/control compare/bench/evidence compare/bench/launch
    compare/bench/metrics compare/bench/points compare/bench/proof compare/gain router router/input
    router/quantity router/shown
compare/bench/control: router/draft router/input
compare/bench/dataset:
compare/bench/evidence: compare/gain router router/input router/shown
compare/bench/launch: router router/input router/shown
compare/bench/metrics: compare/gain compare/stats router router/input router/quantity
compare/bench/points:
compare/bench/proof: compare/bench/evidence compare/bench/metrics compare/gain router router/quantity
compare/counts: compare/counts/tensor compare/imbalance router router/chance router/input router/placement
    router/quantity
compare/counts/tensor: logits/safetensors
compare/diff: compare/gain compare/imbalance compare/trace compare/kernel compare/kernel/ranges
    compare/replay compare/stats router router/quantity
compare/gain: compare/stats router router/quantity
compare/imbalance: compare/kernel compare/stats router
compare/replay: compare/stats router
compare/trace: compare/imbalance compare/capture compare/replay compare/steps compare/kernel compare/kernel/ranges
    compare/stats router router/input router/quantity
compare/capture: compare/capture/rows router/input
compare/capture/rows:
compare/steps:
compare/kernel: compare/steps router
compare/kernel/ranges: compare/kernel router
compare/place: compare/counts compare/gain compare/imbalance compare/replay compare/trace router router/input router/placement
    router/quantity
compare/source: compare/bench compare/bench/launch compare/bench/metrics
    compare/bench/proof compare/counts compare/diff compare/gain compare/imbalance compare/trace compare/capture
    compare/kernel compare/kernel/ranges compare/place logits router router/input router/placement router/shown
compare/stats:
logits: logits/safetensors router router/draft router/input router/plan router/quantity
logits/hook:
logits/safetensors: router/input router/quantity
plots: compare/gain compare/imbalance compare/trace compare/place router router/quantity router/shown
plots/page: compare/answer compare/bench/launch compare/diff compare/gain compare/source plots router router/quantity
    router/shown router/table
router: router/input
router/chance: router
router/draft:
router/input:
router/placement: router router/quantity
router/plan: router
router/quantity:
router/shown:
router/table: router/quantity router/shown
`

func TestArrowsAreThoseDrawn(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go list")
	}
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}:{{join .Imports \" \"}}",
		module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		pkg, list, _ := strings.Cut(strings.TrimSpace(line), ":")
		pkg = strings.TrimPrefix(pkg, module)
		var have []string
		for _, path := range strings.Fields(list) {
			if ours, ok := strings.CutPrefix(path, module); ok {
				have = append(have, ours)
			}
		}
		slices.Sort(have)
		want, drawn := imports[pkg]
		slices.Sort(want)
		if !drawn || !slices.Equal(have, want) {
			t.Errorf("%s imports %v: the drawing has %v (in it: %v)", pkg, have, want, drawn)
		}
	}
}

// A line of code has 120 columns at most, of which a tab is one.
func TestLinesFit(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		n := 0
		for line := range strings.Lines(string(text)) {
			if n++; utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 120 {
				t.Errorf("%s:%d: wider than 120 columns", path, n)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
