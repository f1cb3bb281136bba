package answer

import (
	"cmp"
	"fmt"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// stalled says whose late launches stall whom: those of a rank in few steps, with how long, of a rank, or
// of ranks in turn.
func stalled(w wait.Waiting) string {
	if steps, same := w.FewLate(); steps > 0 {
		when, most := fmt.Sprintf("in step %d", w.Late[0].Step), quantity.Duration(w.Late[0].WaitNS)
		if steps > 1 {
			when, most = fmt.Sprintf("in %d of %s", steps, quantity.Count(w.Steps, "step")), "up to "+most
		}
		if same {
			return fmt.Sprintf("on rank %d %s stall the others %s", w.Late[0].Rank, when, most)
		}
		return when + " stall the other ranks " + most
	}
	if r := w.Ranks[0]; 2*r.WaitNS > w.WaitNS && r.Name == wait.LateHosts {
		return fmt.Sprintf("on rank %d stall the others", r.Rank)
	}
	return "stall the ranks in turn"
}

// waitReasons say who arrives last and why ranks wait, and in which step far longer than in
// most; nothing where they hardly wait.
func waitReasons(t *nsys.Trace) (reasons []string) {
	w := t.Waiting
	if few, _ := w.FewLate(); few == 0 && w.Matters(t.Bound.StepNS) {
		first := w.Ranks[0]
		for _, r := range w.Ranks {
			if r.LastSteps > first.LastSteps {
				first = r
			}
		}
		reasons = append(reasons, fmt.Sprintf("Ranks wait %s per step, %s; rank %d is last in %d of %s.",
			quantity.Duration(w.WaitNS), because(w.Cause, w.WaitNS), first.Rank, first.LastSteps,
			quantity.Count(w.Steps, "step")))
	}
	if len(w.Late) > 0 {
		l, more := w.Late[0], ""
		if n := len(w.Late) - 1; n > 0 {
			more = fmt.Sprintf("; %s late", are(n, "more step"))
		}
		reasons = append(reasons, fmt.Sprintf("In step %d ranks wait %s for rank %d, %s%s.", l.Step,
			quantity.Duration(l.WaitNS), l.Rank, because(l.Cause, l.WaitNS), more))
	}
	return reasons
}

// because says for what ranks wait: the part that explains most of it, and how much.
func because(c wait.Cause, whole router.Number) string {
	if c.Name == "" {
		return "and no single cause explains most of it"
	}
	much := quantity.Duration(c.NS)
	if c.NS >= whole || much == quantity.Duration(whole) {
		much = "all" // where it is more, the rank has less of something else
	}
	text := fmt.Sprintf("%s of it for %s", much, map[string]string{wait.ExpertLoad: "expert load",
		wait.LateHosts: "late launches", wait.OtherCompute: "other compute of the last rank",
		wait.OtherKernels: "kernels of its own"}[c.Name])
	if c.Did != "" {
		text += " (" + string(c.Did) + ")"
	}
	return text
}

// checkHost says what to look at where hosts launch late.
func checkHost(w wait.Waiting) string {
	whose, did := "the ranks' CPUs", w.Did
	if len(w.Ranks) > 0 && 2*w.Ranks[0].WaitNS > w.WaitNS {
		whose, did = fmt.Sprintf("rank %d's CPU", w.Ranks[0].Rank), cmp.Or(w.Ranks[0].Did, did)
	}
	switch did {
	case wait.CollectsGarbage:
		return "Keep Python from collecting garbage there: gc.freeze() after loading, gc.disable() while serving."
	case wait.WaitsForLock:
		return "Find the Python threads that hold the lock meanwhile, and move their work to other processes."
	case wait.Launches:
		return "The launch calls take too long: use CUDA graphs, or check " + whose + " for other processes."
	}
	return "The launch queue ran dry. Check " + whose + ": pinning, other processes, Python garbage collection."
}

// lateTable is the table that shows why a run's verdict is late launches.
func lateTable(w wait.Waiting) string {
	if few, _ := w.FewLate(); few > 0 {
		return "late"
	}
	return "arrivals"
}
