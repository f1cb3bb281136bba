package gain

import (
	"fmt"
	"math"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Verdict is the answer of a campaign.
type Verdict string

// The verdicts, in the words of reports and JSON.
const (
	Significant    Verdict = "imbalance significant" // the whole interval lies above the threshold
	NotSignificant Verdict = "not significant"       // the whole interval lies below it
	Inconclusive   Verdict = "inconclusive"          // the interval contains the threshold, or there is none
	Invalid        Verdict = "invalid"               // balance not proved, or another check failed
	NotComparable  Verdict = "not comparable"        // the arms did different work: there is no gain
	NoVerdict      Verdict = "no verdict"            // of one launch, as of traces

	// Of builds and further arms.
	Faster Verdict = "faster"     // the whole interval lies above the threshold
	Slower Verdict = "slower"     // the whole interval lies below the loss that undoes it
	Equal  Verdict = "equivalent" // shown to be within ±1 %
)

// Refused reports a campaign whose gain decides nothing.
func (v Verdict) Refused() bool { return v == Invalid || v == NotComparable }

// DefaultThreshold is the throughput gain above which TensorRT-LLM's
// perfect-router documentation calls routing imbalance significant
// (docs/source/developer-guide/perf-analysis.md). It is about throughput gain,
// never about load.
const DefaultThreshold = 0.10

// decisionPower is the probability with which pairsNeeded pairs would decide.
const decisionPower = 0.8

// decide compares an interval of the gain with the threshold (a fraction). A bound that
// equals the threshold decides nothing, nor does any interval of a gain that has none.
func (r Result) decide(low, high router.Number) Verdict {
	threshold, builds := r.Threshold, r.builds().Named()
	switch {
	case r.Gain.Method == OneLaunch:
		return NoVerdict
	case !r.Gain.Low.Defined():
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

// explain says in sentences what the verdict on the gain means.
func (r Result) explain(confidence float64) []string {
	g, builds := r.Gain, r.builds()
	interval := fmt.Sprintf("gain %s, %s interval %s to %s, %s", quantity.Change(g.Estimate),
		quantity.Confidence(g.Confidence), quantity.Change(g.Low), quantity.Change(g.High), quantity.Count(g.N, "pair"))
	limit := quantity.Percent(r.Threshold)
	switch r.Verdict {
	case Faster, Slower:
		text := fmt.Sprintf("%s: %s is %s than %s", interval, builds[1], r.Verdict, builds[0])
		if r.Threshold > 0 {
			text += " by more than the threshold of " + limit
		}
		return []string{text}
	case Equal:
		return []string{interval}
	case Significant:
		return []string{interval + ": above the threshold of " + limit}
	case NotSignificant:
		reasons := []string{interval + ": below the threshold of " + limit}
		switch {
		case g.High < 0 && r.Chance:
			reasons = append(reasons, ChanceArm.Label()+" is slower")
		case g.High < 0:
			reasons = append(reasons, Perfect.Label()+" is slower: load imbalance does not limit throughput here")
		case g.Low > 0:
			reasons = append(reasons, "the interval is above zero: there is a gain, below the threshold")
		default:
			reasons = append(reasons, "the interval contains zero: no gain was shown")
		}
		return reasons
	}
	var reasons []string
	if g.Low.Defined() && builds.Named() {
		text := fmt.Sprintf("%s: it does not show whether %s is faster or slower than %s", interval, builds[1],
			builds[0])
		if r.Threshold > 0 {
			text += " by more than " + limit
		}
		reasons = append(reasons, text)
	} else if g.Low > router.Number(r.Threshold) || g.High < router.Number(r.Threshold) {
		reasons = append(reasons, interval+": too few pairs remain without the outlying launches to be sure of it")
	} else if g.Low.Defined() {
		reasons = append(reasons, interval+": the interval contains the threshold of "+limit)
	} else {
		reasons = append(reasons, fmt.Sprintf("%s: a %s interval needs at least %d",
			quantity.Count(g.N, "complete pair"), quantity.Confidence(confidence), stats.MinPairs(confidence)))
	}
	if len(r.Outliers) > 0 {
		return append(reasons, "launches are far off: find their cause; more pairs are no cure")
	}
	if pairs, ok := r.PairsToDecide(); ok {
		reasons = append(reasons, fmt.Sprintf("%s would decide it with probability %s, if the gain is as estimated",
			pairs, quantity.Percent(decisionPower)))
	} else if g.Low.Defined() {
		reasons = append(reasons,
			pairs+" would be needed: the noise between launches hides on which side of the threshold the gain lies")
	}
	return reasons
}

// manyPairs is more than anyone runs.
const manyPairs = 1000

// PairsToDecide says how many pairs in all would decide, with their range; false where
// that is more than anyone runs, or not known.
func (r Result) PairsToDecide() (text string, ok bool) {
	if !(r.PairsNeeded < manyPairs) {
		return "1,000 or more pairs", false
	}
	most := "1,000 or more"
	if r.PairsNeededHigh < manyPairs {
		most = fmt.Sprintf("%.0f", r.PairsNeededHigh)
	}
	return fmt.Sprintf("about %.0f pairs in all (%.0f to %s, as the spread between pairs is known)", r.PairsNeeded,
		r.PairsNeededLow, most), true
}
