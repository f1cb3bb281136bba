package gain

import (
	"math"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Gain is by how much perfect routing beats normal routing over a set of
// pairs, as fractions (0.198 is +19.8 %). The statistics run on the logarithm
// of each pair's ratio, so that a gain and the loss that undoes it weigh the
// same, and are turned back by exp(x) − 1. A pair counts once; requests and
// steps within a launch do not add to N.
//
// Bounds are undefined (null) below MinPairs pairs. Launches that hold all arms have bounds from two on, and a
// single one by its blocks and LaunchSD.
type Gain struct {
	// Method is how Estimate, Low and High were found; they decide. It follows from the
	// orders that were recorded, never from the values.
	Method string `json:"method"`
	Interval
	N int `json:"n"`
}

// Interval is an estimate with its two-sided confidence interval.
type Interval struct {
	Estimate   router.Number `json:"estimate"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence router.Number `json:"confidence"`
}

// noInterval is the interval of what is not estimated.
var noInterval = Interval{router.Undefined(), router.Undefined(), router.Undefined(), router.Undefined()}

// The methods.
const (
	CrossoverT = "crossover t"     // both orders were run: their effect is taken out
	PairedT    = "paired t"        // one order, or unknown ones
	LaunchT    = "t over launches" // that hold all arms
	OneLaunch  = "one launch"      // its blocks, widened by the launch sd that is assumed
)

// DefaultConfidence is the confidence of a gain's interval, and of all intervals of several points together.
const DefaultConfidence = 0.95

// MinPairs is the least number of pairs that can decide: that six agree in sign by chance has a probability of
// 2/2⁶, 3 %.
const MinPairs = 6

// LaunchSD is the standard deviation, over launches, of the log gain that a launch of no
// noise would show, where only one launch was run: 0.55 points were measured with vLLM on
// H200s.
const LaunchSD = 0.006

// equivalenceMargin is the gain, as a fraction, below which arms count as the
// same: the ±1 % that criterion and poop use as their noise threshold.
const equivalenceMargin = 0.01

// SecondaryGain is the gain in a metric beside the one that the verdict rests
// on. Several metrics are several chances to be fooled, so the intervals of all M of them hold together, by
// Bonferroni: each has the confidence 1 − (1−c)/M.
type SecondaryGain struct {
	Metric Metric `json:"metric"`
	Gain   Gain   `json:"gain"` // positive where perfect routing is better; bounds are adjusted
}

// fractions turns an interval of a log ratio into a gain's.
func fractions(t stats.Interval) Interval {
	return Interval{fraction(t.Estimate), fraction(t.Low), fraction(t.High), router.Number(t.Confidence)}
}

// fraction turns a log ratio into a gain.
func fraction(log float64) router.Number { return router.Number(math.Expm1(log)) }

func exp(log float64) router.Number { return router.Number(math.Exp(log)) }

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

// DefaultThreshold is the throughput gain above which TensorRT-LLM's
// perfect-router documentation calls routing imbalance significant
// (docs/source/developer-guide/perf-analysis.md). It is about throughput gain,
// never about load.
const DefaultThreshold = 0.10

// MinLaunches is how many launches that hold all arms can decide. Where a launch gains nothing or
// twice the threshold by chance, four agree in one of eight campaigns, and five in one of sixteen.
const MinLaunches = 5
