package diff

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// A tenth of the expert time in kernels of one side alone passes, more is refused, on either side; of attention more is
// refused on both.
func TestBackendMarginOfEitherSide(t *testing.T) {
	side := func(name string, experts, attention int64) *arm {
		of := &trace.Trace{}
		for phase, alone := range map[trace.Phase]int64{trace.PhaseExperts: experts, trace.PhaseAttention: attention} {
			for name, ns := range map[string]int64{"both": 1000 - alone, name: alone} {
				k := trace.KernelStat{Name: name, Phase: phase, Placed: phase}
				if k.TotalNS = ns; ns > 0 {
					of.Kernels = append(of.Kernels, k)
				}
			}
		}
		return &arm{trace: of}
	}
	for alone, equal := range map[[4]int64]bool{{}: true, {100, 0}: true, {0, 100}: true, {101, 0}: false, {0, 101}: false,
		{0, 0, 900, 100}: true, {0, 0, 100, 900}: true, {0, 0, 101, 101}: false} {
		c := Comparison{Comparable: true}
		c.judgeWork(arms{side("a", alone[0], alone[2]), side("b", alone[1], alone[3])})
		if c.Comparable != equal {
			t.Errorf("%d of 1000 alone in experts and attention: %+v", alone, c.Work)
		}
	}
}

// Tokens per step differ by a hundredth at most. Compute outside the MoE blocks tells of equal work from a fiftieth of
// all on, in either arm.
func TestTokensAndWhatIsOutside(t *testing.T) {
	side := func(tokens router.Number, outside float64) *arm {
		sums := map[place]imbalance.Sum{{every, trace.PhaseExperts}: {TotalNS: 98}, {every, trace.PhaseOther}: {TotalNS: 2}}
		return &arm{trace: &trace.Trace{}, tokens: tokens, share: 1, outside: []float64{outside, outside}, sums: sums}
	}
	for of, equal := range map[[2]router.Number]bool{{1000, 1009}: true, {1009, 1000}: true, {1000, 1011}: false,
		{1011, 1000}: false, {0, 1000}: true, {1000, 0}: true} {
		c := Comparison{Comparable: true, Builds: gain.Builds{"a", "b"}}
		if c.judgeWork(arms{side(of[0], 3), side(of[1], 9)}); c.Comparable != equal { // builds may compute otherwise
			t.Errorf("%v tokens: %+v", of, c.Work)
		}
	}
	for of, known := range map[[2]float64]bool{{1.99, 1.99}: false, {2, 1.99}: true, {1.99, 2}: true} {
		c := Comparison{Comparable: true}
		if c.judgeOutside(arms{side(0, of[0]), side(0, of[1])}); warned(c, EqualWorkUnknown, "") == known {
			t.Errorf("%v of 100: %v, %+v", of, c.Warnings, c.Work)
		}
	}
	for of, want := range map[[2]router.Number]string{{10, 10}: "ns/token 0.02", {10, 0}: "ns/step 0.02",
		{0, 10}: "ns/step 0.02", {0, 0}: "ns/step 0.0222"} { // of steps of one size noise is allowed for, too
		c, a := Comparison{}, arms{side(of[0], 3), side(of[1], 3)}
		a[0].outside[0] = 3.0067
		c.judgeOutside(a)
		if have := fmt.Sprintf("%s %.3g", c.Work[0].Unit, c.Work[0].Allowed); have != want {
			t.Errorf("%v tokens: have %s, want %s", of, have, want)
		}
	}
}

// A perfect arm beyond 1.1 is refused only if it is more uneven than the normal one; within 1.1 that is a doubt.
func TestBalanceOfThePerfectArm(t *testing.T) {
	for _, c := range []struct {
		normal, perfect float64
		comparable      bool
		warned          string
	}{{1.3, 1.05, true, ""}, {1.3, 1.2, true, "perfect_not_balanced"}, {1.2, 1.2, true, "perfect_not_balanced"},
		{1.15, 1.2, false, ""}, {1.04, 1.05, true, "arms_look_alike"}, {1.05, 1.05, true, ""}, {1.05, 1.04, true, ""}} {
		d := Comparison{Comparable: true, Ranks: []int{0, 1}, Normal: Side{Balancedness: router.Number(1 / c.normal)},
			Perfect: Side{Balancedness: router.Number(1 / c.perfect)}}
		d.judgeBalance(arms{{times: &imbalance.Times{}}, {trace: &trace.Trace{}}})
		if d.Comparable != c.comparable || (len(d.Warnings) > 0) != (c.warned != "") ||
			c.warned != "" && d.Warnings[0].Code != c.warned {
			t.Errorf("%+v: comparable %t, %v", c, d.Comparable, d.Warnings)
		}
		d.Comparable, d.Warnings = true, nil
		slow := &trace.Trace{Speeds: []trace.Speed{{Rank: 0, OverMean: 1.2}, {Rank: 1, OverMean: 0.8}}}
		if d.judgeBalance(arms{{times: &imbalance.Times{}}, {trace: slow}}); !d.Comparable || len(d.Warnings) > 0 {
			t.Errorf("%+v with a slow GPU: %v, %v", c, reasons(d), d.Warnings)
		}
	}
}

// Routing that takes 0.2 % of a step longer under the switch is told, less is not.
func TestSwitchCost(t *testing.T) {
	for cost, want := range map[router.Number]bool{1900: false, 2100: true, -5000: false} {
		c := Comparison{Step: Change{NormalNS: 1e6, PerfectNS: 9e5}, Phases: []PhaseChange{
			{Phase: trace.PhaseAttention, Change: Change{DifferenceNS: 9e3}}, // which is none of the switch's
			{Phase: trace.PhaseRouter, Collective: true, Change: Change{DifferenceNS: 9e3}},
			{Phase: trace.PhaseRouter, Change: Change{DifferenceNS: cost}}}}
		if c.warnOfLaunches(); warned(c, "switch_cost", "") != want {
			t.Errorf("%v ns: %v", cost, c.Warnings)
		}
		if want && c.Warnings[1].Args["share"] != 2100/9e5 {
			t.Errorf("%v", c.Warnings)
		}
	}
}

// A measured gain below or above the predicted interval of 10 to 20 % does not meet it; at its ends it does.
func TestApart(t *testing.T) {
	s := Split{saved: stats.Interval{Low: 100, High: 200}}
	for of, want := range map[[2]router.Number]bool{{0.05, 0.09}: true, {0.05, 0.1}: false, {0.2, 0.3}: false,
		{0.21, 0.3}: true} {
		if s.apart(gain.Gain{Interval: gain.Interval{Low: of[0], High: of[1]}}, 1000) != want {
			t.Errorf("%v: want %v", of, want)
		}
	}
}

// Intervals are told to be apart where they do not meet over the profiled step, here of 1000 ns, nor over the launches',
// of 2000; of one kind of several steps a campaign's whole gain says nothing.
func TestCampaignApart(t *testing.T) {
	for of, want := range map[[3]router.Number]bool{{0.21, 0.3}: true, {0.21, 0.3, 2}: false, {0.05, 0.09}: false,
		{0.12, 0.13}: false} {
		c := Comparison{Comparable: true, Kinds: make([]KindChange, int(of[2])),
			Split: Split{saved: stats.Interval{Low: 100, High: 200}, PerfectNS: 1000}}
		c.WithCampaign(gain.Result{Head: gain.Head{Metric: gain.Metric{Unit: "tok/s"}},
			Gain:  gain.Gain{Interval: gain.Interval{Low: of[0], High: of[1]}},
			Pairs: []gain.Unit{{Values: gain.Values{Perfect: 1e6, Status: gain.PairComplete}}}}, gain.Run{}, 2)
		if warned(c, CampaignApart, "") != want {
			t.Errorf("%v: %v", of, c.Warnings)
		}
	}
}

// GEMMs of one build are not set against all compute of the other's experts.
func TestExpertTimeOfOneKind(t *testing.T) {
	normal, perfect := alternating()
	for i := range normal.Cells {
		c := &normal.Cells[i]
		c.GEMMs, c.GEMMNS = 1, c.TotalNS/2
	}
	c := Compare(normal, perfect, gain.Builds{"a", "b"})
	if c.Normal.SlowestNS.Defined() || c.Perfect.SlowestNS.Defined() {
		t.Errorf("%v and %v", c.Normal.SlowestNS, c.Perfect.SlowestNS)
	}
}

// Kernel time outside every step is told from a hundredth on.
func TestTimeOutsideSteps(t *testing.T) {
	for share, want := range map[router.Number]bool{0.0099: false, 0.0101: true} {
		c := Comparison{}
		c.warnOfArm("normal", &arm{trace: &trace.Trace{}, times: &imbalance.Times{OutsideShare: share}})
		if warned(c, "outside_steps", "normal") != want {
			t.Errorf("%v: %v", share, c.Warnings)
		}
	}
}

// Balance saves a fifth of the expert time at most; launches that are late in the normal arm alone, by more than 0.17
// of its step where the other's are by less than 0.05, are no load, nor is one slower rank that no counts explain.
// Nothing is predicted where a replay's law fails. Where launches are late, the interval holds recorded steps that
// change the other way than all of it, but not those that change as a part of it does.
func TestLimitsOfAPrediction(t *testing.T) {
	slower, unit := int64(0), int64(1)                     // rank 1, and of time
	run := func(experts int64, late float64) *replay.Run { // of two ranks, whose experts' launch is late for a share
		by := int64(max(0, late*(136e3+float64(experts))-3e3) / (1 - late)) // launches in time save 3 µs, too
		from := 105e3 + by
		kernels := []replay.Kernel{{Start: 4e3, End: 104e3, Class: replay.Tokens},
			{Start: from, End: from + experts, Launch: max(1e3, from-4e3), Class: replay.Experts},
			{Start: from + experts + 1e3, End: from + experts + 31e3, Launch: 2e3, Class: replay.Fixed}}
		for i := range kernels {
			kernels[i].Waited, kernels[i].Collective = replay.None, replay.None
		}
		kernels[2].Collective, kernels[2].Layer = 0, replay.None
		if by == 0 {
			kernels[1].Launch = 1e3
		}
		other := slices.Clone(kernels)
		other[1].End, other[2].Start = other[1].End+slower, other[2].Start+slower
		kernels[2].End, other[2].End = kernels[2].End+slower, other[2].End+slower
		for i := range kernels {
			for _, k := range []*replay.Kernel{&kernels[i], &other[i]} {
				k.Start, k.End, k.Launch = k.Start*unit, k.End*unit, k.Launch*unit
			}
		}
		step := replay.Step{Ranks: [][]replay.Kernel{kernels, other}, Free: []int64{0, 0}}
		return replay.New([]replay.Step{step, step})
	}
	for _, k := range []struct {
		normal, perfect *replay.Run
		tokens          router.Number
		why             any
	}{
		{run(64e3, 0), run(51.3e3, 0), 0, nil}, {run(64e3, 0), run(51.1e3, 0), 0, "experts"},
		{run(64e3, 0), run(70e3, 0), 2048, nil}, {run(64e3, 0), run(71e3, 0), 2048, "experts"},
		{run(64e3, 0), run(71e3, 0), 2047, nil},
		{run(64e3, 0.169), run(64e3, 0), 0, nil}, {run(64e3, 0.171), run(64e3, 0), 0, "late"},
		{run(64e3, 0.2), run(64e3, 0.049), 0, "late"}, {run(64e3, 0.2), run(64e3, 0.051), 0, nil},
	} {
		c := Comparison{Comparable: true, Ranks: []int{0, 1}, Layers: []int{0}}
		c.predict(arms{{trace: &trace.Trace{}, run: k.normal, tokens: k.tokens}, {trace: &trace.Trace{}, run: k.perfect}})
		if len(c.Refusals) > 0 != (k.why != nil) || k.why != nil && c.Refusals[0].Args["why"] != k.why || k.why == nil && !c.Split.Known() {
			t.Errorf("late by %v and %v: %v, want %v", k.normal.Late(), k.perfect.Late(), c.Refusals, k.why)
		}
	}
	even := run(64e3, 0)
	slower = 9e3
	for _, load := range []imbalance.Row{{}, {Level: router.LevelRank, Quantity: imbalance.Load}} {
		c := Comparison{Comparable: true, Ranks: []int{0, 1}, Layers: []int{0}}
		c.predict(arms{{trace: &trace.Trace{Imbalance: []imbalance.Row{load}}, run: run(64e3, 0)},
			{trace: &trace.Trace{}, run: even}})
		if counted := load.Level == router.LevelRank; c.Split.Known() != counted {
			t.Errorf("with counts %v: %v", counted, c.Refusals)
		}
	}
	slower, unit = 0, 1000
	for _, k := range []struct {
		normal, perfect *replay.Run
		low, high       float64 // ms
	}{
		{run(64e3, 0), run(56e3, 0), 5.2, 10.4}, {run(64e3, 0), run(56e3, 0.2), -29, 10.4},
		{run(64e3, 0.16), run(63e3, 0), -1.9, 3.9}, {run(64e3, 0), run(63e3, 0.2), -1.4, 3.4},
		{run(64e3, 0.2), run(72e3, 0.06), -11.3, 32.8},
	} {
		c := Comparison{Comparable: true, Ranks: []int{0, 1}, Layers: []int{0}}
		c.predict(arms{{trace: &trace.Trace{}, run: k.normal}, {trace: &trace.Trace{}, run: k.perfect}})
		require.Near(t, "low", c.Split.saved.Low/1e6, k.low, 1)
		require.Near(t, "high", c.Split.saved.High/1e6, k.high, 1)
	}
	unit = 1
	lawless := run(64e3, 0)
	lawless.Law = 0.03
	for _, runs := range [][2]*replay.Run{{lawless, run(64e3, 0)}, {run(64e3, 0), lawless}} {
		c := Comparison{Comparable: true, Ranks: []int{0, 1}, Layers: []int{0}}
		c.predict(arms{{trace: &trace.Trace{}, run: runs[0]}, {trace: &trace.Trace{}, run: runs[1]}})
		if c.Split.Known() || len(c.Refusals) > 0 {
			t.Errorf("predicted where the law does not hold: %+v, %v", c.Split, c.Refusals)
		}
	}
}

// Means over steps leave out the ones that do not count, and those without expert time.
func TestBalanceOverSteps(t *testing.T) {
	a := arm{trace: &trace.Trace{}, times: &imbalance.Times{Steps: []imbalance.Step{
		{MeanExpertsNS: 20, SlowestExpertsNS: 40}, {MeanExpertsNS: 90, SlowestExpertsNS: 90, Excluded: imbalance.WarmUp},
		{}, {MeanExpertsNS: 30, SlowestExpertsNS: 30}}}}
	if s := a.side(); s.Balancedness != 0.75 || s.SlowestNS != 35 {
		t.Errorf("%v and %v, want 0.75 and 35", s.Balancedness, s.SlowestNS)
	}
}

// By hand: launches that differ by 0.6 % of 1000 ms and 0.1 ms widen 90 to 120 ms, 0.08 that is lost only below.
func TestIntervalOfOneLaunch(t *testing.T) {
	s := ofLaunches(stats.Interval{Estimate: 100e6, Low: 90e6, High: 120e6}, 900e6)
	require.Near(t, "low", s.Low, 100e6-22.004188e6, 1)
	require.Near(t, "high", s.High, 100e6+23.201960e6, 1)
}

// Kernels of both arms stand in one row by their names, the most time of either arm first; a kernel of one arm alone
// has one, too.
func TestKernelsOfBothArms(t *testing.T) {
	of := func(name string, instances, ns int64) trace.KernelStat {
		return trace.KernelStat{Name: name, Stats: kernel.Stats{Instances: instances, TotalNS: ns}}
	}
	normal := &trace.Trace{Kernels: []trace.KernelStat{of("a", 1, 10), of("b", 2, 20), of("a", 3, 30)}}
	perfect := &trace.Trace{Kernels: []trace.KernelStat{of("c", 4, 50), of("b", 5, 25)}}
	have := ""
	for _, k := range kernelChanges([2]*trace.Trace{normal, perfect}) {
		have += fmt.Sprint(k.Name, k.NormalInstances, k.NormalNS, k.PerfectInstances, k.PerfectNS, ", ")
	}
	if want := "c0 0 4 50, a4 40 0 0, b2 20 5 25, "; have != want {
		t.Errorf("have %s, want %s", have, want)
	}
}

// Experts run in the kernels that a rule of the user, their class or a dense GEMM's place says, and in the kinds of
// steps that are compared.
func TestKernelsOfExperts(t *testing.T) {
	of := func(name string, phase, placed trace.Phase) trace.KernelStat {
		return trace.KernelStat{Name: name, Phase: phase, Placed: placed, Stats: kernel.Stats{TotalNS: 1}}
	}
	const e, other, grouped, dense = trace.PhaseExperts, trace.PhaseOther, "fused_moe_kernel", "nvjet_tst_128x64_TNT"
	x := &trace.Trace{Kernels: []trace.KernelStat{of(grouped, e, e), of(dense, other, e), of(dense, other, other),
		of(dense, other, other), of("mine", e, e)}}
	for _, k := range [][2]string{{"", "fused_moe_kernel (Triton: vLLM, SGLang):1 "}, {"attention", ""},
		{grouped + trace.InGraph, "fused_moe_kernel (Triton: vLLM, SGLang) (CUDA graph):1 "}} {
		if k[0] != "" {
			x.StepKinds = []trace.StepKind{{Kernels: k[:1]}}
		}
		if have, want := fmt.Sprint(expertKernels(x)), "map[dense GEMMs (cuBLAS):1 "+k[1]+"mine:1]"; have != want {
			t.Errorf("steps of %q: have %s, want %s", k[0], have, want)
		}
	}
}
