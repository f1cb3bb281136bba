package gain

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
	"gonum.org/v1/gonum/floats"
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

// judgeCurve judges every point alone, with simultaneous intervals: by Bonferroni, which
// holds however the points of one launch depend on each other. The largest of their
// statistics would give shorter intervals, from a correlation that few pairs do not show.
func (c Campaign) judgeCurve() Result {
	var parts []Result
	var points []PointGain
	var labels []string
	for _, p := range c.Points {
		part := c
		part.point, part.Launches = p.Value, slices.DeleteFunc(slices.Clone(c.Launches),
			func(l Launch) bool { return l.Point != p.Value })
		r := part.judge(len(c.Points))
		parts, labels = append(parts, r), append(labels, fmt.Sprintf("%s %g", c.PointName, p.Value))
		share := r.Share
		if share != nil && !share.Estimate.Defined() {
			share = nil
		}
		points = append(points, PointGain{c.PointName, p.Value, r.Gain, r.Verdict, p.TokensPerExpert, share, r.Dose})
	}
	head := 0
	var pairs []Pair
	var launches []LaunchGain
	var checks [][]Check
	var outliers []Outlier
	for i, r := range parts {
		launches = append(launches, r.Launches...)
		pairs, checks, outliers = append(pairs, r.Pairs...), append(checks, r.Checks), append(outliers, r.Outliers...)
		if surer(r.Gain, parts[head].Gain) {
			head = i
		}
	}
	needs := func(r Result) router.Number { // undefined, and so the least, where the verdict stands
		if r.Verdict == Inconclusive && !r.PairsNeeded.Defined() {
			return router.Number(math.Inf(1))
		}
		return r.PairsNeeded
	}
	out, most := parts[head], slices.MaxFunc(parts, func(a, b Result) int { return cmp.Compare(needs(a), needs(b)) })
	out.PairsNeeded, out.PairsNeededLow, out.PairsNeededHigh = most.PairsNeeded, most.PairsNeededLow,
		most.PairsNeededHigh
	out.Checks, out.SimultaneousConfidence = mergeChecks(labels, checks), c.Confidence
	failed := out.fails()
	out.Outliers = sortOutliers(outliers)
	out.Pairs, out.Launches, out.Points = pairs, launches, points // each as its own point judges it
	if failed {
		return out
	}
	out.Crossover = c.crossover(points)
	out.Verdict = overall(points)
	return out
}

// surer reports whether a gain leads another: by its interval's lower end, without intervals by its estimate.
func surer(a, b Gain) bool {
	if a.Low.Defined() || b.Low.Defined() {
		return a.Low > b.Low || !b.Low.Defined()
	}
	return a.Estimate > b.Estimate || a.Estimate.Defined() && !b.Estimate.Defined()
}

// overall is the verdict of several points: that of all, or significant where one is.
func overall(points []PointGain) Verdict {
	verdict := points[0].Verdict
	for _, p := range points {
		switch {
		case p.Verdict == Significant:
			return Significant
		case p.Verdict != verdict:
			verdict = Inconclusive
		}
	}
	return verdict
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

func (c Campaign) crossover(points []PointGain) *Crossover {
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

func exp(log float64) router.Number { return router.Number(math.Exp(log)) }
