package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

func (c Comparison) work(quantity string) (w Work, ok bool) {
	i := slices.IndexFunc(c.Work, func(w Work) bool { return w.Quantity == quantity })
	if i < 0 {
		return Work{}, false
	}
	return c.Work[i], true
}

// noGain wants nothing in a comparison that could be read as a gain.
func noGain(t *testing.T, what string, c Comparison) {
	t.Helper()
	numbers := []router.Number{c.Step.Ratio, c.Split.Gain, c.Split.Low}
	for _, k := range c.Kinds {
		numbers = append(numbers, k.Gain, k.Step.Ratio)
	}
	if slices.ContainsFunc(numbers, router.Number.Defined) || c.Comparable || c.Verdict != gain.NotComparable ||
		c.Split.Measured != nil {
		t.Errorf("%s: %v, %q, gains %v", what, c.Comparable, c.Verdict, numbers)
	}
}

// scaled is a trace whose kernels take so much longer, or the kernels of some phases alone.
func scaled(t *trace.Trace, by float64, phases ...trace.Phase) *trace.Trace {
	part := *t
	part.Cells = slices.Clone(t.Cells)
	for i := range part.Cells {
		if c := &part.Cells[i]; len(phases) == 0 || slices.Contains(phases, c.Phase) {
			for _, ns := range []*int64{&c.TotalNS, &c.CollectiveNS, &c.BusyNS, &c.GEMMNS} {
				*ns = int64(by * float64(*ns))
			}
		}
	}
	return &part
}

// A side that did other work is refused, with the two numbers, and wins nothing.
func TestOtherWork(t *testing.T) {
	hf, vllm := "hf-qwen3-ep4-nsys/", "field/results/vllm-qwen3-"
	normal, perfect := matched(t, hf+"normal.*"), matched(t, hf+"perfect.*")
	vllmNormal, vllmPerfect := matched(t, vllm+"normal.rank*"), matched(t, vllm+"perfect.rank*")
	for _, k := range []struct {
		what            string
		normal, perfect *trace.Trace
		reason          string
	}{
		{"half the batch", normal, scaled(perfect, 0.5), "takes 17.6 ms and 8.82 ms per step"},
		{"faster outside", normal, scaled(perfect, 0.9, trace.PhaseAttention, trace.PhaseOther),
			"takes 17.6 ms and 15.9 ms per step"},
		{"all faster", normal, scaled(perfect, 0.9), "takes 17.6 ms and 15.9 ms per step"},
		{"other passes of the same engine", vllmNormal, matched(t, vllm+"balanced.rank*"),
			"8192 and 15872 tokens per step"},
		{"faster per token", vllmNormal, scaled(vllmPerfect, 0.9), "takes 2.54 µs and 2.30 µs per token"},
		{"other model", matched(t, "gptoss-ep4-ranks/normal.*"), perfect, "compute outside MoE blocks"},
		{"another profiler", normal, matched(t, "hf-qwen3-ep4/perfect.*"), "record both alike"},
		{"a loop and a grouped kernel", matched(t, "torch/loop-normal.*"), matched(t, "torch/grouped-perfect.*"),
			"dense GEMMs (cuBLAS) in the normal arm"},
	} {
		c := Compare(AssumeArm(k.normal, gain.Normal), AssumeArm(k.perfect, gain.Perfect), gain.Builds{})
		if !strings.Contains(strings.Join(reasons(c), "; "), k.reason) {
			t.Errorf("%s: %v, want %q", k.what, reasons(c), k.reason)
		}
		noGain(t, k.what, c)
	}
}

// Compute outside the experts that differs by 2 % is not refused for the noise of its steps; by 3 % it is,
// and so is 2 % where steps differ by more than noise.
func TestOutsideMarginAndNoise(t *testing.T) {
	steps := func(ns ...int64) *trace.Trace {
		of := &trace.Trace{}
		for step, outside := range ns {
			for rank := range 2 {
				of.Cells = append(of.Cells, cell(rank, router.OptInt(step), 0, trace.PhaseExperts, 1000, 0),
					cell(rank, router.OptInt(step), 0, trace.PhaseOther, outside, 0))
			}
		}
		return of
	}
	for _, k := range []struct {
		normal, perfect *trace.Trace
		equal           bool
	}{
		{steps(100000, 100100, 99900), steps(102010, 102110, 101910), true},
		{steps(102010, 102110, 101910), steps(100000, 100100, 99900), true},
		{steps(100000, 100100, 99900), steps(103000, 103100, 102900), false},
		{steps(100000, 110000, 90000), steps(102010, 112010, 92010), false},
		{steps(100000, 100240, 99760), steps(102300, 102545, 102055), true}, // noise of 0.00196
		{steps(100000, 100250, 99750), steps(102300, 102556, 102044), false},
	} {
		if w, _ := Compare(k.normal, k.perfect, gain.Builds{}).work("compute outside MoE"); w.Equal != k.equal {
			t.Errorf("%+v", w)
		}
	}
}
