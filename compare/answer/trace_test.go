package answer

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// traced is a trace of two ranks whose one layer is so uneven, with this floor.
func traced(maxOverMean, floor router.Number, flagged bool) *trace.Trace {
	t := &trace.Trace{Ranks: []trace.Rank{{Rank: 0}, {Rank: 1}}}
	t.Imbalance = []imbalance.Row{{Layer: 2, Level: router.LevelRank, Quantity: imbalance.Time, Parts: 2,
		MaxOverMean: maxOverMean, Imbalance: maxOverMean - 1, Floor: floor, Flagged: flagged, Worst: 1}}
	t.Overall = []imbalance.Summary{imbalance.Summarize(t.Imbalance, router.LevelRank, imbalance.Time)}
	t.Bound = trace.Bound{Gain: replay.Gain{Estimate: 0.05, Low: 0.026, High: 0.06}, LossNS: 5e4, StepNS: 1e6}
	return t
}

// A cause is in the answer only where it explains most of the waiting, with how much.
func TestWaitingReasons(t *testing.T) {
	cause := func(name string, ns router.Number, did trace.Deed) trace.Cause {
		return trace.Cause{Name: name, NS: ns, Did: did}
	}
	for _, c := range []struct {
		w       trace.Waiting
		verdict Verdict
		want    string
	}{
		{trace.Waiting{WaitNS: 2e5}, "even",
			"Ranks wait 200 µs per step, and no single cause explains most of it."},
		{trace.Waiting{WaitNS: 2e5, Cause: cause(trace.ExpertTime, 1.5e5, "")}, "even",
			"200 µs per step, 150 µs of it for expert time."},
		{trace.Waiting{WaitNS: 2e5, Cause: cause(trace.LateHosts, 1.1e5, "")}, LateLaunches,
			"The launch queue ran dry: check the ranks' CPUs "},
		{trace.Waiting{WaitNS: 5e3}, "even", ""},
		{trace.Waiting{WaitNS: 2e5, Cause: cause(trace.LateHosts, 2e5, "Python garbage collection")}, LateLaunches,
			"Keep Python from collecting garbage there: gc.freeze()"},
	} {
		of := traced(1.03, 1.01, false)
		c.w.Steps, c.w.Ranks = 50, []trace.Arrival{{Rank: 3, WaitNS: c.w.WaitNS / 2, Cause: c.w.Cause},
			{Rank: 1, WaitNS: c.w.WaitNS / 2}}
		of.Waiting = c.w
		a := OfTrace(of, "x")
		if said := strings.Join(a.Reasons, " "); a.Verdict != c.verdict || !strings.Contains(said, c.want) ||
			c.want == "" && len(a.Reasons) > 0 {
			t.Errorf("want %q, have %+v", c.want, a)
		}
	}
	for want, w := range map[string]trace.Waiting{
		"Late launches on rank 2 make the ranks wait 6.00 ms per step; even ranks would gain about 5.0 %.": {WaitNS: 1e7,
			Cause: cause(trace.LateHosts, 8e6, ""), Ranks: []trace.Arrival{{Rank: 2, WaitNS: 7e6, Cause: cause(trace.LateHosts,
				6e6, "")}}},
		"Late launches make the ranks in turn wait 8.00 ms per step": {WaitNS: 1e7, Cause: cause(trace.LateHosts, 8e6, ""),
			Ranks: []trace.Arrival{{Rank: 2, WaitNS: 4e6, Cause: cause(trace.LateHosts, 4e6, "")}}},
	} {
		of := traced(1.03, 1.01, false)
		of.Waiting = w
		a := OfTrace(of, "x")
		check(t, want, a, LateLaunches, want, "", "moebalance ")
		if wait := quantity.Duration(a.Numbers[0].Value); !strings.Contains(want, wait) {
			t.Errorf("%s: the first number is %s", want, wait)
		}
	}
}

// Even experts lead, and what ranks wait for late launches follows where it is more than their loss.
func TestEvenBesideLateLaunches(t *testing.T) {
	of := traced(1.02, router.Undefined(), false) // a loss of 50 µs of 1 ms
	for want, late := range map[string]router.Number{"Expert time is even; late launches make the ranks wait 60.0 µs per step.": 6e4,
		"Expert time is even; about 5.0 % is left to gain.": 4e4} {
		of.Waiting = trace.Waiting{WaitNS: 6.5e4, Steps: 2, Cause: trace.Cause{Name: trace.LateHosts, NS: late},
			Ranks: []trace.Arrival{{}}}
		check(t, want, OfTrace(of, "x"), "even", want, "", "")
	}
}

// Uneven time leads on to the experts behind it, and these to a placement; the arms of one capture to their
// comparison. Missing ranks decide, and are to be given.
func TestTracesLeadOn(t *testing.T) {
	uneven := func() *trace.Trace { return traced(1.5, 1.01, true) }
	warned := func(w router.Warning) *trace.Trace { t := uneven(); t.Warnings = []router.Warning{w}; return t }
	check(t, "uneven", OfTrace(uneven(), "a.sqlite b.sqlite"), Uneven,
		"Rank 1 is slowest in layer 2; even ranks would gain about 5.0 %.",
		"", "moebalance counts --ep 2 COUNTS; moebalance bench")
	wide := uneven()
	wide.Bound.Low = 0.024
	check(t, "wide", OfTrace(wide, "x"), Uneven, "layer 2; even ranks would gain 2.4 % to 6.0 %.", "", "")
	one := warned(router.Warn(trace.LateLaunches, "", "gain", 0.08))
	one.Cells = []trace.Cell{{Step: 1, Layer: 2, Rank: 0}, {Step: 1, Layer: 2, Rank: 1}}
	one.StepKinds = []trace.StepKind{{Steps: []int{1}}}
	one.Replays, one.Bound.InTime, one.Bound.Low = []trace.Replay{{Undecided: true}}, 0.08, router.Undefined()
	check(t, "late in one step", OfTrace(one, "x"), Uneven, "layer 2; even ranks would gain about 5.0 %.", "", "")
	check(t, "counted", OfTrace(uneven(), "--counts c --model m a.sqlite"), Uneven, "", "",
		"moebalance place --ep 2 --trace a.sqlite --judge OTHER_COUNTS c --model m; moebalance bench")
	check(t, "both arms", OfTrace(warned(router.Warn("other_arms", "", "arm", "normal", "others", "perfect")), "a.sqlite"),
		Uneven, "", "", "moebalance compare a.sqlite; ")
	part := warned(router.Warn("missing_ranks", "", "given", 2, "world", 8))
	part.World = 8
	a := OfTrace(part, "x")
	check(t, "ranks", a, "no answer", "only 2 of the run's 8 ranks", "", "moebalance trace FILES_OF_ALL_RANKS")
	if a.Caveats[0].Severity != "doubt" {
		t.Errorf("%+v", a.Caveats)
	}
	check(t, "groups", OfTrace(warned(router.Warn("rank_groups", "")), "--ep 4 --phase a=b x"), "no answer", "", "",
		"moebalance trace --ep RANKS --phase a=b FILES_OF_A_GROUP")
	part.World, part.Ranks = 1, part.Ranks[:1]
	check(t, "one of one", OfTrace(part, "x"), "no answer", "; one was given.", "", "moebalance counts --ep RANKS COUNTS")
	perfect := traced(1.02, 1.01, false)
	perfect.Arm = "perfect"
	check(t, "perfect", OfTrace(perfect, "x"), "even", "Under balanced routing, expert time is even; ", "",
		"moebalance compare NORMAL x")
	check(t, "even", OfTrace(traced(1.02, 1.01, false), "x"), "even", "", "", "moebalance profile -- YOUR_COMMAND")
	served := traced(1.5, 1.01, true)
	served.Phases = []trace.Cell{{Phase: trace.PhaseCombine, Sum: imbalance.Sum{CollectiveNS: 1}}}
	served.StepTimes = []trace.StepTime{{Range: "execute_context_0(0)_generation_64(64)"}}
	check(t, "served", OfTrace(served, "x"), Uneven, "", "", "logits generate --model MODEL --ep 2 --mode tep --cache "+
		"cache && MOEBALANCE_CACHE=cache moebalance bench --treatment hook --server SERVER")
	served.Phases = append(served.Phases, trace.Cell{Phase: trace.PhaseDispatch, Sum: imbalance.Sum{CollectiveNS: 1}})
	check(t, "own tokens", OfTrace(served, "--counts c --model m x"), Uneven, "", "", "--model m --ep 2 --mode dep --cache")
	lone := &trace.Trace{Ranks: []trace.Rank{{}}, World: 4}
	check(t, "one of 4", OfTrace(lone, "--phase 'a=b c' --counts d x"), "no answer", "", "",
		"moebalance trace --phase 'a=b c' --counts d FILES_OF_ALL_RANKS")
	slow := uneven()
	slow.Speeds = []trace.Speed{{Rank: 0, OverMean: 1.1}, {Rank: 1, OverMean: 1.1}, {Rank: 2, OverMean: 0.8}}
	check(t, "slow GPUs", OfTrace(slow, "x"), "slower GPU", "Ranks 0, 1 take 37.5 % longer than the others for equal dense "+
		"GEMMs: slower GPUs, or more tokens.", "until all ranks are equally fast", "")
	graph := &trace.Trace{Hidden: trace.Hidden{NS: 8e6, Launches: 4}}
	check(t, "graphs", OfTrace(graph, "x"), "no answer", "4 CUDA graph launches hide kernels in 8.00 ms", "",
		"profile")
}

// A rank that is the slowest in a quarter of the steps is not behind an imbalance: no rank is.
func TestChangingRanks(t *testing.T) {
	row := imbalance.Row{Layer: 2, Level: router.LevelRank, Quantity: imbalance.Time, Flagged: true, MaxOverMean: 1.39,
		Steps: 8, Worst: 0, WorstSteps: 4}
	steady, other := row, row
	steady.WorstSteps, other.WorstSteps, other.Worst = 5, 5, 1
	unknown := traced(1.39, 1.01, true)
	unknown.Warnings = []router.Warning{router.Warn("blocks", "")}
	check(t, "blocks", OfTrace(unknown, "x"), Uneven, "Rank 1 is slowest in block 2; ", "", "")
	for want, rows := range map[string][]imbalance.Row{
		"The slowest rank changes in layer 2; ":        {row},
		"The slowest rank changes in 2 layers; ":       {row, row},
		"Rank 0 is slowest in layer 2; ":               {steady},
		"Rank 0 is slowest, most in layer 2; ":         {steady, row},
		"Expert time is uneven, most in layer 2; even": {steady, other},
	} {
		of := traced(1.39, 1.01, true)
		of.Imbalance = rows
		check(t, want, OfTrace(of, "x"), Uneven, want, "", "")
	}
}
