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
	Invalid        Verdict = "invalid"               // arms not comparable, or balance not proved
)

// DefaultThreshold is the throughput gain above which TensorRT-LLM's
// perfect-router documentation calls routing imbalance significant
// (docs/source/developer-guide/perf-analysis.md). It is about throughput gain,
// never about load.
const DefaultThreshold = 0.10

// decisionPower is the probability with which pairsNeeded pairs would decide.
const decisionPower = 0.8

// decide compares the exact interval of a gain with the threshold (a fraction).
// A bound that equals the threshold decides nothing.
func decide(g Gain, threshold float64) Verdict {
	switch {
	case float64(g.Low) > threshold:
		return Significant
	case float64(g.High) < threshold:
		return NotSignificant
	}
	return Inconclusive
}

// pairsNeeded is how many pairs in all would settle on which side of the
// threshold the gain lies, with probability 0.8, if the estimate and the spread
// stay what they are (see stats.PairsToDecide). It is at least one more than
// there are. It is undefined when no spread is known yet (fewer than 2 pairs),
// and when the estimate is so near the threshold that a million pairs would not
// do.
func pairsNeeded(g Gain, threshold, confidence float64) router.Number {
	distance := math.Log1p(float64(g.Estimate)) - math.Log1p(threshold)
	n, ok := stats.PairsToDecide(distance, float64(g.LogSD), confidence, decisionPower)
	if !ok {
		return router.Undefined()
	}
	return router.Number(max(n, g.N+1))
}

// explain says in sentences what a verdict on a gain means.
func explain(v Verdict, g Gain, threshold, confidence float64, needed router.Number) []string {
	interval := fmt.Sprintf("gain %s, %s interval %s to %s, %s", quantity.Change(g.Estimate), quantity.Confidence(g.Confidence), quantity.Change(g.Low), quantity.Change(g.High), quantity.Count(g.N, "pair"))
	limit := quantity.Percent(threshold)
	switch v {
	case Significant:
		return []string{interval + ": above the threshold of " + limit}
	case NotSignificant:
		reasons := []string{interval + ": below the threshold of " + limit}
		switch {
		case g.High < 0:
			reasons = append(reasons, "perfect routing is slower: load imbalance does not limit throughput here")
		case g.Low > 0:
			reasons = append(reasons, "the interval is above zero: there is a gain, below the threshold")
		default:
			reasons = append(reasons, "the interval contains zero: no gain was shown")
		}
		return reasons
	}
	var reasons []string
	if g.Low.Defined() {
		reasons = append(reasons, interval+": the interval contains the threshold of "+limit)
	} else {
		reasons = append(reasons, fmt.Sprintf("%s: a %s interval needs at least %d", quantity.Count(g.N, "complete pair"), quantity.Confidence(confidence), stats.MinPairs(confidence)))
	}
	if needed.Defined() {
		reasons = append(reasons, fmt.Sprintf("about %.0f pairs in all would decide it (with probability %.0f %%, if the estimate and its spread stay as they are)", needed, 100*decisionPower))
	} else if g.N >= 2 {
		reasons = append(reasons, "no practical number of pairs would decide it while the estimate stays this near the threshold")
	}
	return reasons
}
