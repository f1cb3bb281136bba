package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Trace, compare, figures and report say the same of one capture: which steps count,
// the straggler loss and the imbalance of every layer.
func TestOutputsOfOneCaptureAgree(t *testing.T) {
	run := func(into any, args ...string) {
		t.Helper()
		out, errs, code := invoke(t.Context(), append(args, "--format", "json")...)
		if code != exitDone {
			t.Fatalf("%v: exit %d, %s", args, code, errs)
		}
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir("../..")
	warmUps := 0
	for _, sides := range [][2][]string{
		{{loopNormal}, {loopPerfect}},
		{glob(t, "testdata/deepseek-ep4-ranks/normal.*.sqlite"),
			glob(t, "testdata/deepseek-ep4-ranks/perfect.*.sqlite")},
		{glob(t, "testdata/torch/grouped-normal.*"), glob(t, "testdata/torch/grouped-perfect.*")},
	} {
		name := sides[0][0]
		var traces [2]trace.Trace
		var c diff.Comparison
		for i, side := range sides {
			run(&traces[i], append([]string{"trace"}, side...)...)
		}
		run(&c, "compare", "--trust-arms", strings.Join(sides[0], ","), strings.Join(sides[1], ","))
		for i, arm := range gain.Arms {
			trace := &traces[i]
			excluded := 0
			for _, s := range c.Steps {
				if s.Arm == arm && !s.Compared {
					excluded++
				}
			}
			warmUps += excluded
			if have := trace.Times(nil).StepsOf(imbalance.WarmUp); len(have) != excluded {
				t.Errorf("%s: trace excludes %v as warm-up, compare %d steps", name, have, excluded)
			}
			if len(trace.Stragglers) == 0 || len(c.Stragglers) != len(trace.Stragglers) {
				t.Fatalf("%s: %d layers in trace, %d in compare", name, len(trace.Stragglers), len(c.Stragglers))
			}
			var loss router.Number
			for j, s := range trace.Stragglers {
				loss += s.LossNS
				compared := [2]router.Number{c.Stragglers[j].Change.NormalNS, c.Stragglers[j].Change.PerfectNS}[i]
				if s.Layer != c.Stragglers[j].Layer || s.LossNS != compared {
					t.Errorf("%s, %s arm, layer %d: straggler loss %v by trace, %v by compare", name, arm, s.Layer,
						s.LossNS, compared)
				}
			}
			total := [2]router.Number{c.Ceiling.StragglerLoss.NormalNS, c.Ceiling.StragglerLoss.PerfectNS}[i]
			if math.Abs(float64(loss/total-1)) > 1e-12 {
				t.Errorf("%s, %s arm: straggler loss over layers %v by trace, %v by compare", name, arm, loss, total)
			}
		}
		page := reportOf(t, c, traces[:]...)
		// the same steps of both arms, which may be fewer than count in each
		saved := c.Split.Parts[0].SavedNS
		if of := c.Ceiling.StragglerLoss.NormalNS - c.Ceiling.StragglerLoss.PerfectNS; math.Abs(float64(saved/of-1)) > 0.01 {
			t.Errorf("%s: even ranks save %v, the losses differ by %v", name, saved, of)
		}
		if want := fmt.Sprintf(">%.2f<", saved/1e3); !strings.Contains(page, want) {
			t.Errorf("%s: the report does not say %s", name, want)
		}
	}
	if warmUps == 0 {
		t.Error("no capture has a warm-up step: the test shows nothing about the rule")
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return paths
}

// reportOf is the text of the report on JSON results.
func reportOf(t *testing.T, c diff.Comparison, traces ...trace.Trace) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"report", "-o", filepath.Join(dir, "report.html")}
	for name, result := range map[string]any{"normal": traces[0], "perfect": traces[1], "compared": c} {
		content, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".json")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if _, errs, code := invoke(t.Context(), args...); code != exitDone {
		t.Fatalf("report: exit %d, %s", code, errs)
	}
	content, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("\u00a0", " ", "&nbsp;", " ").Replace(string(content))
}
