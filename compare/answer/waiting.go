package answer

import (
	"cmp"
	"fmt"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/compare/trace/wait"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// late says whose late launches stall whom, and how long: launches of a rank in few steps, of a rank,
// or of ranks in turn.
func (a *Answer) late(t *trace.Trace) {
	w := t.Waiting
	rank, when, whom, most, ns, step := router.OptInt(router.NoID), "", "the others", "", w.WaitNS, "step"
	if steps, same := w.FewLate(); steps > 0 {
		when, ns, step = fmt.Sprintf("step %d", w.Late[0].Step), w.Late[0].WaitNS, ""
		if steps > 1 {
			when, most = fmt.Sprintf("%d of %s", steps, quantity.Count(w.Steps, "step")), "up to"
		}
		if rank = router.OptInt(w.Late[0].Rank); !same {
			rank, whom = router.NoID, "the other ranks"
		}
	} else if len(w.Ranks) > 0 && 2*w.Ranks[0].WaitNS > w.WaitNS && w.Ranks[0].Name == wait.LateHosts {
		rank, ns = router.OptInt(w.Ranks[0].Rank), w.Ranks[0].WaitNS
	} else {
		whom, ns = "the ranks in turn", min(w.Cause.NS, w.WaitNS)
	}
	args := []any{"when", when, "whom", whom, "most", most, "ns", ns, "step", step, "gain", wouldGain(t, "gain")}
	if rank.Defined() {
		args = append(args, "rank", rank)
	}
	a.say(LateLaunches, "trace.late", args...)
	a.Numbers = append([]Number{NumberOf("waiting per step", w.WaitNS, NS, Measured)}, a.Numbers...)
	a.waits(t)
}

// waits says who arrives last and why ranks wait, and in which step far longer than in most; nothing
// where they hardly wait.
func (a *Answer) waits(t *trace.Trace) {
	w := t.Waiting
	if few, _ := w.FewLate(); few == 0 && len(w.Ranks) > 0 && w.Matters(t.Bound.StepNS) {
		first := w.Ranks[0]
		for _, r := range w.Ranks {
			if r.LastSteps > first.LastSteps {
				first = r
			}
		}
		a.because("why.wait", "ns", w.WaitNS, "cause", because(w.Cause, w.WaitNS), "rank", first.Rank, "last",
			first.LastSteps, "steps", w.Steps)
	}
	if len(w.Late) > 0 {
		l := w.Late[0]
		args := []any{"step", l.Step, "ns", l.WaitNS, "rank", l.Rank, "cause", because(l.Cause, l.WaitNS)}
		if n := len(w.Late) - 1; n > 0 {
			args = append(args, "more", n)
		}
		a.because("why.late", args...)
	}
}

// because says for what ranks wait: the part that explains most of it, and how much.
func because(c wait.Cause, whole router.Number) string {
	if c.Name == "" {
		return caveat.Say("cause.none")
	}
	much := quantity.Duration(c.NS)
	if c.NS >= whole || much == quantity.Duration(whole) {
		much = "all" // where it is more, the rank has less of something else
	}
	what := map[string]string{wait.ExpertTime: "expert time", wait.LateHosts: "late launches",
		wait.OtherCompute: "other compute of the last rank"}[c.Name]
	return caveat.Say("cause", "much", much, "what", what, "did", string(c.Did))
}

// checkHost says what to look at where hosts launch late.
func checkHost(w wait.Waiting) string {
	whose, did := "the ranks' CPUs", w.Did
	if len(w.Ranks) > 0 && 2*w.Ranks[0].WaitNS > w.WaitNS {
		whose, did = fmt.Sprintf("rank %d's CPU", w.Ranks[0].Rank), cmp.Or(w.Ranks[0].Did, did)
	}
	return caveat.Say(map[wait.Deed]string{"": "host", wait.CollectsGarbage: "host.garbage",
		wait.WaitsForLock: "host.lock", wait.Launches: "host.launches"}[did], "whose", whose)
}
