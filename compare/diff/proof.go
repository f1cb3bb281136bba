package diff

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// ProveRouting says what traces of one launch of each arm prove about routing, compared.
// Expert work over the ranks, per step and layer, must stay within balancedWithin
// in the perfect arm and be beyond it in the normal one; between the two nothing
// is proved.
func ProveRouting(compared Comparison) gain.TraceProof {
	inNormal, inPerfect, known := compared.Ceiling.maxOverMean()
	if !known {
		return gain.TraceProof{Evidence: "the traces of the profiled pair do not show expert time on two ranks"}
	}
	return gain.TraceProof{
		Proved: inPerfect <= 1+balancedWithin && inNormal > 1+balancedWithin,
		Evidence: fmt.Sprintf(
			"%s over ranks of the profiled pair has max/mean %s in the normal arm (want above %.2f) and %s in the perfect arm "+
				"(want at most that)",
			compared.Ceiling.Of.ExpertTime(), quantity.Ratio(inNormal), 1+balancedWithin, quantity.Ratio(inPerfect)),
	}
}
