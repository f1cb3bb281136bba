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
// Bounds are undefined (null) when the pairs are too few for the confidence:
// 6 are the least for 95 %.
type Gain struct {
	// Estimate is the Hodges–Lehmann estimate, Low and High its signed-rank
	// interval, exact to stats.MaxExactPairs pairs; Confidence the coverage that
	// interval really has: at least what was asked for, 0.969 for 6 pairs asked
	// for 0.95.
	Estimate   router.Number `json:"estimate"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence router.Number `json:"confidence"`
	N          int           `json:"n"`
	// The geometric mean with Student's t interval, at exactly the confidence
	// asked for.
	TEstimate   router.Number `json:"t_estimate"`
	TLow        router.Number `json:"t_low"`
	THigh       router.Number `json:"t_high"`
	TConfidence router.Number `json:"t_confidence"`
	// P is the two-sided signed-rank p-value of no gain, exact as the interval is.
	P router.Number `json:"p"`
	// LogSD is the standard deviation over pairs of the log ratio (divisor
	// n−1), about the coefficient of variation of one pair's gain.
	LogSD router.Number `json:"log_sd"`
}

// DefaultConfidence is asked for where nothing else is said.
const DefaultConfidence = 0.95

// logGain is the logarithm of a pair's gain: ln(perfect/normal) where higher
// values are better, ln(normal/perfect) where lower ones are. It is NaN unless
// both values are positive and finite.
func logGain(normal, perfect float64, higherIsBetter bool) float64 {
	if !(normal > 0 && perfect > 0) || math.IsInf(normal, 0) || math.IsInf(perfect, 0) {
		return math.NaN()
	}
	if higherIsBetter {
		return math.Log(perfect / normal)
	}
	return math.Log(normal / perfect)
}

// gainOfLogs computes the gain from one log gain per pair. confidence is asked of
// every interval. No pairs give an undefined gain with N = 0.
func gainOfLogs(logs []float64, confidence float64) Gain {
	hl := stats.HodgesLehmann(logs, confidence)
	t := stats.PairedT(logs, 0, confidence)
	return Gain{
		Estimate: fraction(hl.Estimate), Low: fraction(hl.Low), High: fraction(hl.High),
		Confidence: router.Number(hl.Confidence), N: len(logs),
		TEstimate: fraction(t.Estimate), TLow: fraction(t.Low), THigh: fraction(t.High),
		TConfidence: router.Number(t.Confidence),
		P:           router.Number(stats.SignedRank(logs).P), LogSD: router.Number(t.SD),
	}
}

// fraction turns a log ratio into a gain.
func fraction(log float64) router.Number { return router.Number(math.Expm1(log)) }
