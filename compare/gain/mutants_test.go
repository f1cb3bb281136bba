package gain

import (
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Failed requests of either arm alone are too many, whatever the other's.
func TestErrorsOfEitherArm(t *testing.T) {
	for _, arm := range Arms {
		launches := paired(0.2, 0.21, 0.19, 0.2, 0.22, 0.2)
		for i := range launches {
			launches[i].Work = map[string]float64{WorkRequests: 100, WorkErrors: 0}
			if launches[i].Arm == arm && launches[i].Pair == 2 {
				launches[i].Work[WorkErrors] = 2
			}
		}
		if c := check(t, Judge(valid(launches)), CheckWork); c.Status != Fail {
			t.Errorf("errors of the %s arm: %+v", arm, c)
		}
	}
}

// A gain beyond what even ranks can give is doubted only where its interval excludes none.
func TestExplainedNeedsAClearGain(t *testing.T) {
	c := Campaign{Ranks: 2, RankLoad: 1.1}
	for low, want := range map[float64]CheckStatus{0.01: Warn, 0: Pass, -0.01: Pass} {
		if got, ok := c.checkExplained(gainFrom(0.2, low, 0.4)); !ok || got.Status != want {
			t.Errorf("from %v: %+v, want %s", low, got, want)
		}
	}
	if got, _ := c.checkExplained(gainFrom(0.1, 0.05, 0.2)); got.Status != Pass {
		t.Errorf("at what ranks can give: %+v", got)
	}
}

// Builds are equivalent only where both one-sided tests show it.
func TestEquivalentOnBothSides(t *testing.T) {
	for gain, want := range map[float64]bool{0: true, 0.02: false, -0.02: false} {
		var l logGains
		for i := range 8 {
			l.add(gain+0.0005*float64(i%3), []string{"AB", "BA"}[i%2])
		}
		if p := precisionOf(l, l.gain(0.95), 0.95); p.Equivalent != want {
			t.Errorf("a gain of %v: %+v", gain, p)
		}
	}
}

// A block counts where it has as many values of both arms, and two at least.
func TestUnequalSegmentsOfABlock(t *testing.T) {
	segments := func(order string) (out []Launch) {
		for i, arm := range order {
			out = append(out, Launch{Arm: Arms[arm-'A'], Position: i, Status: StatusOK, Value: 100})
		}
		return out
	}
	for order, want := range map[string]string{"ABBA": PairComplete, "ABB": PairIncomplete, "AAB": PairIncomplete,
		"AB": PairIncomplete, "ABBAA": PairIncomplete, "AABBAB": PairComplete} {
		if b, _ := within(nil).block(segments(order)); b.Status != want {
			t.Errorf("%s: %s, want %s", order, b.Status, want)
		}
	}
}

func gainFrom(estimate, low, high float64) Gain {
	return Gain{Estimate: router.Number(estimate), Low: router.Number(low), High: router.Number(high)}
}
