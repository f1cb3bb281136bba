package gain

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/router"
)

// Point is a load at which both arms were measured.
type Point struct {
	Value float64 // positive, such as the number of concurrent requests
	// TokensPerExpert is the mean number of tokens of an active expert in a step,
	// undefined where it is not known.
	TokensPerExpert router.Number
}

// TokensPerActiveExpert is the mean number of tokens of an expert that has any, when the
// T·k slots of a step are spread as evenly as possible over E experts:
//
//	T·k / min(E, T·k)
//
// Undefined unless all three are positive.
func TokensPerActiveExpert(tokens float64, experts, topK int) router.Number {
	if !(tokens > 0) || experts < 1 || topK < 1 {
		return router.Undefined()
	}
	return router.Number(max(1, tokens*float64(topK)/float64(experts)))
}

// PointGain is the gain at one load. Its interval is one of all points' together.
type PointGain struct {
	Name            string        `json:"name"`
	Value           float64       `json:"value"`
	Gain            Gain          `json:"gain"`
	Verdict         Verdict       `json:"verdict"`
	TokensPerExpert router.Number `json:"tokens_per_active_expert"` // under balanced routing
	Share           *Share        `json:"share_of_ceiling,omitempty"`
	Dose            *Dose         `json:"dose,omitempty"`
}

// Crossover is the load at which the gain changes its sign: below it load balance costs
// speed, or above it where the gain falls. The logarithm of the gain is interpolated over
// that of the value between neighboring points, and so are the bounds of its intervals,
// which hold together; Low and High are where these cross zero. Undefined: with fewer than
// three points, without a change of sign or with several, and a bound outside of the
// points measured.
type Crossover struct {
	Name       string        `json:"name"`
	Value      router.Number `json:"value"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence float64       `json:"confidence"`
	// Why is the case: one of those below. Below says that load balance costs speed below
	// the value, and gains above it.
	Why   string `json:"why"`
	Below bool   `json:"below"`
	Text  string `json:"text"` // empty until it is worded
}

// Why there is a crossover or none.
const (
	Crosses   = "crosses"
	FewPoints = "few_points" // make no curve
	NoGain    = "no_gain"    // at some point
	OneSign   = "one_sign"
	ManyZeros = "many_zeros"
)

// LeastPoints is how many points make a curve.
const LeastPoints = 3

func (c *Campaign) crossover(points []PointGain) *Crossover {
	x := &Crossover{Name: c.PointName, Value: router.Undefined(), Low: router.Undefined(), High: router.Undefined(),
		Confidence: c.Confidence}
	var at, estimate, low, high []float64
	for _, p := range points {
		at, estimate = append(at, math.Log(p.Value)), append(estimate, math.Log1p(float64(p.Gain.Estimate)))
		low, high = append(low, math.Log1p(float64(p.Gain.Low))), append(high, math.Log1p(float64(p.Gain.High)))
	}
	x.Below = !(estimate[0] > 0)
	if !x.Below { // mirrored, so that the gain rises
		low, high = high, low
		for _, values := range [][]float64{estimate, low, high} {
			floats.Scale(-1, values)
		}
	}
	switch zeros := crossings(at, estimate); {
	case slices.ContainsFunc(estimate, math.IsNaN):
		x.Why = NoGain
	case len(points) < LeastPoints:
		x.Why = FewPoints
	case len(zeros) == 0:
		x.Why = OneSign
	case len(zeros) > 1:
		x.Why = ManyZeros
	default:
		x.Why, x.Value = Crosses, exp(zeros[0])
		if high[0] < 0 && !slices.ContainsFunc(high, math.IsNaN) {
			x.Low = exp(slices.Min(crossings(at, high)))
		}
		if low[len(low)-1] > 0 && !slices.ContainsFunc(low, math.IsNaN) {
			x.High = exp(slices.Max(crossings(at, low)))
		}
	}
	return x
}

// crossings are where the line through the points changes from below zero to zero or
// more, or back, ascending.
func crossings(at, y []float64) (zeros []float64) {
	for i := 1; i < len(y); i++ {
		if (y[i-1] < 0) != (y[i] < 0) {
			zeros = append(zeros, at[i-1]-y[i-1]*(at[i]-at[i-1])/(y[i]-y[i-1]))
		}
	}
	return zeros
}
