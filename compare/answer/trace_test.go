package answer

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
)

// traced is a trace of two ranks whose one layer is so uneven, with this floor.
func traced(maxOverMean, floor router.Number, flagged bool) *nsys.Trace {
	t := &nsys.Trace{Ranks: []nsys.Rank{{Rank: 0}, {Rank: 1}}}
	t.Imbalance = []imbalance.Row{{Layer: 2, Level: router.LevelRank, Quantity: imbalance.Time, Parts: 2,
		MaxOverMean: maxOverMean, Imbalance: maxOverMean - 1, Floor: floor, Flagged: flagged, Worst: 1}}
	t.Overall = []imbalance.Summary{imbalance.Summarize(t.Imbalance, router.LevelRank, imbalance.Time)}
	t.Bound = imbalance.Bound{Gain: 0.05, LossNS: 5e4, StepNS: 1e6}
	return t
}

// A layer whose unevenness is mostly noise is even, and the answer says by how much.
func TestNoiseIsEven(t *testing.T) {
	for _, c := range []struct {
		maxOverMean, floor router.Number
		flagged            bool
		verdict            Verdict
		noise              bool
	}{{1.12, 1.11, false, Even, true}, {1.12, 1.01, true, Uneven, false}, {1.02, 1.015, false, Even, false},
		{1.08, router.Undefined(), false, Even, false}} {
		a := OfTrace(traced(c.maxOverMean, c.floor, c.flagged), "x")
		labels := []string{"gain of even ranks", "loss per step", "worst imbalance (layer 2)"}
		if c.noise {
			labels = []string{"gain of even ranks at most", "loss per step", "imbalance of equal ranks by noise", labels[2]}
		}
		for i, n := range a.Numbers {
			if len(a.Numbers) != len(labels) || n.Label != labels[i] {
				t.Errorf("%+v: have %+v, want %q", c, a.Numbers, labels)
			}
		}
		if a.Verdict != c.verdict || strings.Contains(a.Line, "noise") != c.noise ||
			c.noise != (len(a.Reasons) > 0 && strings.Contains(a.Reasons[0], "12.0 % uneven")) {
			t.Errorf("%+v: have %+v", c, a)
		}
	}
}

// A cause is in the answer only where it explains most of the waiting, with how much; a late
// step is named whatever the verdict.
func TestWaitingReasons(t *testing.T) {
	cause := func(name string, ns router.Number, did wait.Deed) wait.Cause {
		return wait.Cause{Name: name, NS: ns, Did: did}
	}
	waiting := func(w wait.Waiting, late ...wait.LateStep) func(*nsys.Trace) {
		return func(t *nsys.Trace) {
			w.Steps, w.Late = 50, late
			w.Ranks = []wait.Arrival{{Rank: 3, LastSteps: 30, WaitNS: w.WaitNS / 2, Cause: w.Cause},
				{Rank: 1, LastSteps: 20, WaitNS: w.WaitNS / 2}}
			t.Waiting = w
		}
	}
	step := wait.LateStep{Step: 37, Rank: 11, WaitNS: 6e6, Cause: cause(wait.LateHosts, 5e6, wait.CollectsGarbage)}
	for _, c := range []struct {
		change  func(*nsys.Trace)
		verdict Verdict
		want    string
	}{
		{waiting(wait.Waiting{WaitNS: 2e5}), Even,
			"Ranks wait 200 µs per step, and no single cause explains most of it; rank 3 is last in 30 of 50 steps."},
		{waiting(wait.Waiting{WaitNS: 2e5, Cause: cause(wait.ExpertLoad, 1.5e5, "")}), Even,
			"200 µs per step, 150 µs of it for expert load;"},
		{waiting(wait.Waiting{WaitNS: 2e5, Cause: cause(wait.LateHosts, 1.1e5, "")}), LateLaunches,
			"200 µs per step, 110 µs of it for late launches; rank 3 is last in 30 of 50 steps."},
		{waiting(wait.Waiting{WaitNS: 2e5, Cause: cause(wait.LateHosts, 3e5, wait.Launches)}), LateLaunches,
			"all of it for late launches (launch calls);"},
		{waiting(wait.Waiting{WaitNS: 5e3}), Even, ""},
		{waiting(wait.Waiting{WaitNS: 4e5, Cause: cause(wait.ExpertLoad, 3e5, "")}, step), Even,
			"In step 37 ranks wait 6.00 ms for rank 11, 5.00 ms of it for late launches (Python garbage collection)."},
		{waiting(wait.Waiting{WaitNS: 2e5, Cause: cause(wait.LateHosts, 2e5, wait.CollectsGarbage)}, step), LateLaunches,
			"In step 37 ranks wait 6.00 ms for rank 11, 5.00 ms of it for late launches (Python garbage collection)."},
	} {
		trace := traced(1.03, 1.01, false)
		c.change(trace)
		a := OfTrace(trace, "x")
		if said := strings.Join(a.Reasons, " "); a.Verdict != c.verdict || !strings.Contains(said, c.want) ||
			c.want == "" && len(a.Reasons) > 0 {
			t.Errorf("want %q, have %+v", c.want, a)
		}
	}
	trace := traced(1.03, 1.01, false)
	waiting(wait.Waiting{WaitNS: 2e5, Cause: cause(wait.LateHosts, 2e5, "")}, step)(trace)
	if a := OfTrace(trace, "x"); a.Line != "Late launches on rank 11 in step 37 stall the others 6.00 ms." {
		t.Errorf("have %q", a.Line)
	}
}

// What stalls the ranks, and how long if it is in few steps.
func TestStalled(t *testing.T) {
	late := func(ns router.Number) wait.Cause { return wait.Cause{Name: wait.LateHosts, NS: ns} }
	other := wait.Cause{Name: wait.ExpertLoad, NS: 9e6}
	first := func(ns router.Number, c wait.Cause) []wait.Arrival {
		return []wait.Arrival{{Rank: 2, WaitNS: ns, Cause: c}}
	}
	for want, w := range map[string]wait.Waiting{
		"on rank 2 stall the others": {WaitNS: 1e7, Cause: late(8e6), Ranks: first(7e6, late(6e6))},
		"stall the ranks in turn":    {WaitNS: 1e7, Cause: late(8e6), Ranks: first(4e6, late(4e6))},
		"in 2 of 4 steps stall the other ranks up to 30.0 ms": {Steps: 4, WaitNS: 1e7, Ranks: first(7e6, other),
			Late: []wait.LateStep{{Step: 1, Rank: 0, WaitNS: 3e7}, {Step: 3, Rank: 1, WaitNS: 2e7}}},
		"on rank 1 in 2 of 4 steps stall the others up to 30.0 ms": {Steps: 4, WaitNS: 1e7, Ranks: first(7e6, other),
			Late: []wait.LateStep{{Step: 1, Rank: 1, WaitNS: 3e7}, {Step: 3, Rank: 1, WaitNS: 2e7}}},
	} {
		if have := stalled(w); have != want {
			t.Errorf("have %q, want %q", have, want)
		}
	}
}

// What ranks are missing decides, and they are to be recorded.
func TestMissingRanks(t *testing.T) {
	trace := traced(1.5, 1.01, true)
	trace.Warnings = []router.Warning{router.Warn("missing_ranks", "", "given", 2, "world", 8)}
	a := OfTrace(trace, "x")
	if a.Verdict != NoAnswer || !strings.Contains(a.Line, "only 2 of the run's 8 ranks") || len(a.Next) != 1 ||
		a.Next[0] != recordAll || a.Caveats[0].Severity != Doubt {
		t.Errorf("have %+v", a)
	}
}

// Even experts lead, and what ranks wait for late launches follows where it is more than their loss.
func TestEvenBesideLateLaunches(t *testing.T) {
	trace := traced(1.02, router.Undefined(), false) // a loss of 50 µs of 1 ms
	for _, c := range []struct {
		late router.Number
		want string
	}{{6e4, "Expert time is even; late launches stall the ranks 60.0 µs per step."},
		{4e4, "Expert time is even; perfectly even ranks would gain about 5.0 %."}} {
		trace.Waiting = wait.Waiting{WaitNS: 6.5e4, Steps: 2, Cause: wait.Cause{Name: wait.LateHosts, NS: c.late},
			Ranks: []wait.Arrival{{}}}
		if a := OfTrace(trace, "x"); a.Verdict != Even || a.Line != c.want {
			t.Errorf("%s: have %q, want %q", a.Verdict, a.Line, c.want)
		}
	}
}

// A rank that is the slowest in a quarter of the steps is not behind an imbalance: no rank is.
func TestChangingRanks(t *testing.T) {
	row := imbalance.Row{Layer: 2, Level: router.LevelRank, Quantity: imbalance.Time, Flagged: true, MaxOverMean: 1.39,
		Steps: 8, Worst: 0, WorstSteps: 2}
	steady := row
	steady.WorstSteps = 7
	for want, rows := range map[string][]imbalance.Row{
		"the slowest rank changes in layer 2":  {row},
		"the slowest rank changes in 2 layers": {row, row},
		"rank 0 is slowest in layer 2":         {steady},
		"rank 0 is slowest, most in layer 2":   {steady, row},
	} {
		if got := overloaded(&nsys.Trace{}, rows); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := slowestWords(&nsys.Trace{}, []imbalance.Row{row, row, steady}); !strings.Contains(got, "from step to step") {
		t.Error(got)
	}
}
