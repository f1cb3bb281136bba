package gain

import (
	"math"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Verdict is the answer of a campaign.
type Verdict string

// The verdicts, in the words of reports and JSON.
const (
	Significant    Verdict = "imbalance significant" // the whole interval lies above the threshold
	NotSignificant Verdict = "below the threshold"   // the whole interval lies below it
	Inconclusive   Verdict = "inconclusive"          // the interval contains the threshold, or there is none
	Invalid        Verdict = "invalid"               // balance not proved, or another check failed
	NotComparable  Verdict = "not comparable"        // the arms did different work: there is no gain
	NoVerdict      Verdict = "no verdict"            // a trial: too few launches or pairs; also of traces

	// Of builds and further arms.
	Faster Verdict = "faster"     // the whole interval lies above the threshold
	Slower Verdict = "slower"     // the whole interval lies below the loss that undoes it
	Equal  Verdict = "equivalent" // shown to be within ±1 %
)

// Refused reports a campaign whose gain decides nothing.
func (v Verdict) Refused() bool { return v == Invalid || v == NotComparable }

// Open reports a campaign that has no verdict where one is demanded.
func (v Verdict) Open() bool { return v == Inconclusive || v == NoVerdict }

// decided reports whether the interval lies on one side of the threshold, or shows builds to be alike.
func (r Result) decided() bool { return !r.Verdict.Open() && !r.Verdict.Refused() }

// DefaultThreshold is the throughput gain above which TensorRT-LLM's
// perfect-router documentation calls routing imbalance significant
// (docs/source/developer-guide/perf-analysis.md). It is about throughput gain,
// never about load.
const DefaultThreshold = 0.10

// decisionPower is the probability with which pairsNeeded pairs would decide.
const decisionPower = 0.8

// decidingLaunches is how many launches that hold all arms can decide. Where a launch gains nothing or
// twice the threshold by chance, four agree in one of eight campaigns, and five in one of sixteen.
const decidingLaunches = 5

// leastUnits is how many launches that hold all arms, or pairs, a verdict takes.
func (c Campaign) leastUnits() int {
	if c.Design == WithinLaunch {
		return decidingLaunches
	}
	return stats.MinPairs(c.Confidence)
}

// decide compares the interval of the gain with the threshold (a fraction), where there are as many
// units as a verdict takes. A bound that equals the threshold decides nothing.
func (r Result) decide(least int) Verdict {
	threshold, builds, low, high := r.Threshold, r.builds().Named(), r.Gain.Low, r.Gain.High
	switch {
	case r.Gain.N < least:
		return NoVerdict
	case builds && float64(low) > threshold:
		return Faster
	case builds && float64(high) < 1/(1+threshold)-1:
		return Slower
	case builds && r.Precision.Equivalent:
		return Equal
	case builds:
	case float64(low) > threshold:
		return Significant
	case float64(high) < threshold:
		return NotSignificant
	}
	return Inconclusive
}

// pairsNeeded is how many pairs in all would settle on which side of the
// threshold the gain lies, with probability 0.8, if the estimate and the spread
// stay what they are (see stats.PairsToDecide), and the same at the bounds of the
// spread. It is at least one more than there are. It is undefined when no spread is
// known yet, and when the estimate is so near the threshold that a million pairs would
// not do.
func (c Campaign) pairsNeeded(logs logGains, confidence float64) (n, low, high router.Number) {
	t, toDecide := logs.crossover(confidence), stats.PairsToDecide
	if c.Design == WithinLaunch {
		toDecide = stats.LaunchesToDecide
	}
	at := func(sd float64) router.Number {
		n, ok := toDecide(t.Estimate-math.Log1p(c.Threshold), sd, confidence, decisionPower)
		if !ok {
			return router.Undefined()
		}
		return router.Number(max(n, t.N+1))
	}
	least, most := t.SDInterval(confidence)
	return at(t.SD), at(least), at(most)
}
