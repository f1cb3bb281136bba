package answer

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
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
		if a.Verdict != c.verdict || strings.Contains(a.Line, "noise") != c.noise ||
			c.noise != (len(a.Reasons) > 0 && strings.Contains(a.Reasons[0], "12.0 % uneven")) {
			t.Errorf("%+v: have %+v", c, a)
		}
	}
}
