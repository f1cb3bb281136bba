package main

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Trace and compare say the same of one capture: which steps count and the straggler loss of every
// layer; and even ranks save what the losses of the arms differ by.
func TestOutputsOfOneCaptureAgree(t *testing.T) {
	warmUps := 0
	for _, files := range [][2]string{
		{"../../" + loopNormal, "../../" + loopPerfect},
		{"../../testdata/deepseek-ep4-ranks/normal.rank?.sqlite", "../../testdata/deepseek-ep4-ranks/perfect.rank?.sqlite"},
		{"../../testdata/torch/grouped-normal.*", "../../testdata/torch/grouped-perfect.*"},
	} {
		var c diff.Comparison
		fieldJSON(t, &c, "compare", "--trust-arms", files[0], files[1])
		for i, arm := range gain.Arms {
			var traced trace.Trace
			fieldJSON(t, &traced, "trace", files[i])
			excluded := 0
			for _, s := range c.Steps {
				if s.Arm == arm && !s.Compared {
					excluded++
				}
			}
			warmUps += excluded
			if have := traced.Times(nil).StepsOf(imbalance.WarmUp); len(have) != excluded {
				t.Errorf("%s: trace excludes %v as warm-up, compare %d steps", files[i], have, excluded)
			}
			if len(traced.Stragglers) == 0 || len(c.Stragglers) != len(traced.Stragglers) {
				t.Fatalf("%s: %d layers in trace, %d in compare", files[i], len(traced.Stragglers), len(c.Stragglers))
			}
			var loss router.Number
			for j, s := range traced.Stragglers {
				loss += s.LossNS
				change := c.Stragglers[j].Change
				if compared := [2]router.Number{change.NormalNS, change.PerfectNS}[i]; s.LossNS != compared {
					t.Errorf("%s, layer %d: straggler loss %v by trace, %v by compare", files[i], s.Layer, s.LossNS, compared)
				}
			}
			total := [2]router.Number{c.Ceiling.StragglerLoss.NormalNS, c.Ceiling.StragglerLoss.PerfectNS}[i]
			if math.Abs(float64(loss/total-1)) > 1e-12 {
				t.Errorf("%s: straggler loss over layers %v by trace, %v by compare", files[i], loss, total)
			}
		}
	}
	if warmUps == 0 {
		t.Error("no capture has a warm-up step: the test shows nothing about the rule")
	}
}
