package gain

import (
	"math"
	"slices"

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
	// Method is how Estimate, Low and High were found; they decide. It follows from the
	// orders that were recorded, never from the values.
	Method     string        `json:"method"`
	Estimate   router.Number `json:"estimate"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence router.Number `json:"confidence"`
	N          int           `json:"n"`
	// P is the two-sided p-value of no gain, by the same method.
	P router.Number `json:"p"`
	// LogSD is the standard deviation over pairs of the log ratio, without what the
	// order adds: about the coefficient of variation of one pair's gain.
	LogSD router.Number `json:"log_sd"`
}

// The methods.
const (
	CrossoverT = "crossover t"     // both orders were run: their effect is taken out
	PairedT    = "paired t"        // one order, or unknown ones
	BlockFit   = "block fit"       // the crossover t of a design with more than two arms
	LaunchT    = "t over launches" // that hold all arms
	OneLaunch  = "one launch"      // its blocks, widened by the launch sd that is assumed
)

// MinPairs is the least number of pairs that can decide at a confidence, 6 for 0.95.
func MinPairs(confidence float64) int { return stats.MinPairs(confidence) }

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

// logGains are the log gains of pairs by what ran first, or of pairs whose order is not
// known.
type logGains struct {
	normalFirst, perfectFirst, unknown []float64
	fit                                *fitted   // of a design with more arms; nil for two
	blocks                             []float64 // of the last launch that holds all arms; nil where none does
}

func (l *logGains) add(log float64, order string) {
	switch order {
	case "AB":
		l.normalFirst = append(l.normalFirst, log)
	case "BA":
		l.perfectFirst = append(l.perfectFirst, log)
	default:
		l.unknown = append(l.unknown, log)
	}
}

func (l logGains) all() []float64 { return slices.Concat(l.normalFirst, l.perfectFirst, l.unknown) }

// ordered reports whether the effect of the order can be taken out.
func (l logGains) ordered() bool {
	return len(l.normalFirst) > 0 && len(l.perfectFirst) > 0 && len(l.unknown) == 0
}

// crossover is the test that decides.
func (l logGains) crossover(confidence float64) stats.TTest {
	if l.fit != nil {
		return l.fit.effect(confidence)
	}
	if l.blocks != nil && len(l.unknown) == 1 {
		return stats.Widened(l.blocks, LaunchSD, confidence)
	}
	if !l.ordered() {
		return stats.PairedT(l.all(), confidence)
	}
	return stats.Crossover(l.normalFirst, l.perfectFirst, confidence)
}

// gain computes the gain; confidence is asked of every interval. No pairs give an
// undefined gain with N = 0.
func (l logGains) gain(confidence float64) Gain {
	t, all := l.crossover(confidence), l.all()
	g := Gain{
		Method: PairedT, Estimate: fraction(t.Estimate), Low: fraction(t.Low), High: fraction(t.High),
		Confidence: router.Number(t.Confidence), N: len(all), P: router.Number(t.P(0)),
		LogSD: router.Number(t.SD),
	}
	if l.ordered() {
		g.Method = CrossoverT
	}
	if l.fit != nil {
		g.Method, g.N = BlockFit, t.N
	}
	if l.blocks != nil {
		g.Method = LaunchT
		if g.N == 1 {
			g.Method = OneLaunch
		}
	}
	return g
}

// adjusted is the gain with the p-value of one of m tests that are judged together.
func (g Gain) adjusted(m int) Gain {
	g.P = min(1, g.P*router.Number(m))
	return g
}

// atLeast is the gain without bounds unless it has so many pairs.
func (g Gain) atLeast(pairs int) Gain {
	if g.N < pairs {
		g.Low, g.High, g.Confidence, g.P = router.Undefined(), router.Undefined(), router.Undefined(),
			router.Undefined()
	}
	return g
}

// fraction turns a log ratio into a gain.
func fraction(log float64) router.Number { return router.Number(math.Expm1(log)) }
