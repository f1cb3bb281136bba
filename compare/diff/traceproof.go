package diff

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
)

// ProveRouting says what traces of one launch of each arm prove about routing.
// Expert work over the ranks, per step and layer, must stay within BalancedWithin
// in the perfect arm and be beyond it in the normal one; between the two nothing
// is proved.
func ProveRouting(normal, perfect *nsys.Trace) gain.TraceProof {
	c := Compare(normal, perfect).Ceiling
	if !c.Balancedness.Defined() || !c.PerfectBalancedness.Defined() {
		return gain.TraceProof{Evidence: "the profiled pair's traces do not show expert work on two ranks"}
	}
	inNormal, inPerfect := 1/c.Balancedness.Float64(), 1/c.PerfectBalancedness.Float64()
	return gain.TraceProof{
		Proved: inPerfect <= 1+BalancedWithin && inNormal > 1+BalancedWithin,
		Evidence: fmt.Sprintf("in the profiled pair expert work over ranks has max/mean %.3f in the normal arm and %.3f in the perfect one (want above and below %.2f)",
			inNormal, inPerfect, 1+BalancedWithin),
	}
}
