package diff

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// captured reads one arm of a recorded capture.
func captured(t *testing.T, capture, arm string) *nsys.Trace {
	t.Helper()
	return matched(t, filepath.Join(capture, arm+".*"))
}

// matched reads the captures of testdata that a pattern names.
func matched(t *testing.T, pattern string) *nsys.Trace {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no exports of %s: %v", pattern, err)
	}
	trace, err := nsys.Read(context.Background(), paths, nsys.Options{Threshold: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// Nsight Systems and PyTorch's profiler tell other things of a kernel, so its phase can
// differ between them.
func TestProfilersDoNotCompare(t *testing.T) {
	c := Compare(captured(t, "hf-qwen3-ep4-nsys", "normal"), captured(t, "hf-qwen3-ep4", "perfect"))
	if c.Comparable || c.Prediction.Gain.Defined() {
		t.Errorf("compared: %+v", c.Prediction)
	}
}

// The grouped GEMMs of the DeepSeek capture take 16.7, 15.0, 19.5 and 16.3 ms on
// ranks 0 to 3 in the four normal steps and 13.0 to 13.2 ms in the perfect ones
// (summed from the exports with SQL). The experts phase holds them and the
// element-wise kernels between them.
func TestCompareDeepSeekCapture(t *testing.T) {
	c := Compare(captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect"))
	if !c.Comparable {
		t.Fatalf("not comparable: %v", reasons(c))
	}
	gemm := []struct{ normal, perfect float64 }{{16.658757, 13.205402}, {14.99585, 13.048643}, {19.483815, 13.142301},
		{16.327135, 13.00629}}
	experts := slices.DeleteFunc(slices.Clone(c.RankTimes),
		func(r RankChange) bool { return r.Phase != nsys.PhaseExperts || r.Collective })
	if len(experts) != len(gemm) {
		t.Fatalf("have %d ranks, want %d", len(experts), len(gemm))
	}
	var elsewhere [2][]float64
	for r, want := range gemm {
		elsewhere[0] = append(elsewhere[0], 4*float64(experts[r].NormalNS)/1e6-want.normal)
		elsewhere[1] = append(elsewhere[1], 4*float64(experts[r].PerfectNS)/1e6-want.perfect)
	}
	for arm, ms := range elsewhere {
		for rank, v := range ms {
			if v < 0.5 || v > 1.5 {
				t.Errorf("%s, rank %d: %.2f ms of expert work beside the grouped GEMMs, want about 1", gain.Arms[arm],
					rank, v)
			}
		}
	}
	// Both first steps wait for ranks to enter the capture and are left out;
	// then the step falls by about as much as in the unprofiled campaign.
	if !warned(c, "start_up", "normal") || !warned(c, "start_up", "perfect") || c.Normal.Steps != 3 {
		t.Errorf("start-up kept: %+v", c.Steps)
	}
	checkNear(t, "step gain", float64(c.Ceiling.StepGain), 0.21, 0.03)
	if !(c.Ceiling.StepGain > c.Ceiling.GainBound) {
		t.Error("the gain exceeds what moving load explains")
	}
	checkNear(t, "layer 0 loss, of all",
		float64(c.Stragglers[0].Change.DifferenceNS/c.Ceiling.StragglerLoss.DifferenceNS), 0.83, 0.02)
}

func TestCompareGptOssCaptures(t *testing.T) {
	for _, capture := range []string{"gptoss-ep4-loop", "gptoss-ep4-ranks"} {
		normal, perfect := captured(t, capture, "normal"), captured(t, capture, "perfect")
		c := Compare(normal, perfect)
		if !c.Comparable || len(c.Ranks) != 4 || len(c.Layers) != 3 {
			t.Fatalf("%s: comparable %v %v, ranks %v, layers %v", capture, c.Comparable, reasons(c), c.Ranks, c.Layers)
		}
		if loss := c.Ceiling.StragglerLoss; !(loss.PerfectNS < loss.NormalNS/20) {
			t.Errorf("%s: straggler loss %v to %v", capture, loss.NormalNS, loss.PerfectNS)
		}
		if !(c.Ceiling.Balancedness < 0.83 && c.Ceiling.PerfectBalancedness > 0.99) {
			t.Errorf("%s: balancedness %v and %v", capture, c.Ceiling.Balancedness, c.Ceiling.PerfectBalancedness)
		}
		for _, a := range c.Active {
			if a.Perfect != 32 {
				t.Errorf("%s: %d of 32 experts active in layer %d of the perfect arm", capture, a.Perfect, a.Layer)
			}
		}
		conserved(t, capture, normal, c)
		if swapped := Compare(perfect, normal); swapped.Comparable {
			t.Errorf("%s: swapped sides accepted", capture)
		}
		if same := Compare(normal, normal); same.Comparable {
			t.Errorf("%s: twice the same side accepted", capture)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
	}
}

// Two models, one of them by one rank of four.
func TestCapturesOfTwoModelsDoNotCompare(t *testing.T) {
	normal, perfect := captured(t, "gptoss-ep4-loop", "normal"), captured(t, "deepseek-ep4-ranks", "perfect")
	c := Compare(normal, perfect)
	if c.Comparable || len(reasons(c)) != 1 || !warned(c, "other_kernels", "perfect") {
		t.Errorf("layers 0 to 2 against 0 and 1: %v, warnings %+v", reasons(c), c.Warnings)
	}
	for i := range perfect.Cells {
		perfect.Cells[i].Rank *= 4
	}
	if c = Compare(normal, perfect); c.Comparable || len(reasons(c)) != 2 {
		t.Errorf("one rank in common: %v", reasons(c))
	}
}

// conserved holds the rows of phases, layers and ranks against the sum of the
// cells they were made from.
func conserved(t *testing.T, capture string, normal *nsys.Trace, c Comparison) {
	t.Helper()
	compared := map[router.OptInt]bool{}
	for _, s := range c.Steps {
		if s.Arm == gain.Normal && s.Compared {
			compared[s.Step] = true
		}
	}
	var want, byPhase, byLayer, byRank float64
	for _, cell := range normal.Cells {
		if compared[cell.Step] {
			want += float64(cell.TotalNS) / float64(len(c.Ranks)*c.Normal.Steps)
		}
	}
	for _, p := range c.Phases {
		byPhase += float64(p.NormalNS)
	}
	for _, l := range c.LayerTimes {
		byLayer += float64(l.NormalNS)
	}
	for _, r := range c.RankTimes {
		byRank += float64(r.NormalNS) / float64(len(c.Ranks))
	}
	for what, have := range map[string]float64{"phases": byPhase, "layers": byLayer, "ranks": byRank} {
		checkNear(t, capture+" "+what, have/want, 1, 1e-9)
	}
}

// Steps, ranks and layers of a capture may come in any order.
func TestCompareTracesDoesNotDependOnOrder(t *testing.T) {
	normal, perfect := captured(t, "gptoss-ep4-loop", "normal"), captured(t, "gptoss-ep4-loop", "perfect")
	want := Compare(normal, perfect)
	for i, j := 0, len(normal.Cells)-1; i < j; i, j = i+1, j-1 {
		normal.Cells[i], normal.Cells[j] = normal.Cells[j], normal.Cells[i]
	}
	have, _ := json.Marshal(Compare(normal, perfect))
	if before, _ := json.Marshal(want); string(have) != string(before) {
		t.Error("the result depends on the order of the cells")
	}
}

// A large run: 64 ranks, 61 layers, 20 steps.
func BenchmarkCompareTraces(b *testing.B) {
	arm := func(name string, hot int64) *nsys.Trace {
		t := &nsys.Trace{Arm: name}
		for rank := range 64 {
			for step := range router.OptInt(20) {
				for layer := range router.OptInt(61) {
					for _, phase := range []nsys.Phase{nsys.PhaseRouter, nsys.PhaseDispatch, nsys.PhaseExperts,
						nsys.PhaseCombine} {
						t.Cells = append(t.Cells, cell(rank, step, layer, phase, 1000+hot*int64(rank), 100))
					}
				}
			}
		}
		return t
	}
	normal, perfect := arm("normal", 10), arm("perfect", 0)
	b.ReportAllocs()
	for b.Loop() {
		Compare(normal, perfect)
	}
}

// The waiting behind the experts and its host lateness in µs, by arm and layer, and the
// kernels of one arm: worked out by Python from the tables. In layer 0 of the normal arm
// the others wait for the expert load of rank 2, in the perfect arm for late launches.
func TestCompareWaits(t *testing.T) {
	c := Compare(captured(t, "deepseek-ep4-ranks", "normal"), captured(t, "deepseek-ep4-ranks", "perfect"))
	want := []struct {
		arm        gain.Arm
		layer      router.OptInt
		last       int
		wait, host float64
	}{{gain.Normal, 0, 2, 626.7, -100.7}, {gain.Perfect, 0, 2, 93.3, 89.9}, {gain.Normal, 1, 2, 146.5, -10.9},
		{gain.Perfect, 1, 0, 148.4, 139.0}}
	if len(c.Waits) != len(want) {
		t.Fatalf("have %+v", c.Waits)
	}
	for i, w := range want {
		have := c.Waits[i]
		if have.Arm != w.arm || have.Layer != w.layer || have.LastRank != w.last {
			t.Errorf("have %+v, want %+v", have, w)
		}
		checkNear(t, "wait", float64(have.WaitNS)/1e3, w.wait, 0.06)
		checkNear(t, "host", float64(have.Parts.HostNS)/1e3, w.host, 0.06)
	}
	normal, perfect := c.waiting()
	checkNear(t, "normal", float64(normal)/1e3, 773.2, 0.1)
	checkNear(t, "perfect", float64(perfect)/1e3, 241.7, 0.1)
	k := c.Kernels[0]
	if k.Arm != gain.Normal || k.Phase != nsys.PhaseExperts || k.Instances != 16 || len(k.Names) != 1 || !k.Elsewhere {
		t.Errorf("have %+v", k)
	}
	checkNear(t, "a launch of the variant", float64(k.MeanNS), 1113565.6875, 1e-3)
	checkNear(t, "one of the family in the other arm", float64(k.OtherMeanNS), 818791.1875, 1e-3)
}
