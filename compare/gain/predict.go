package gain

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Predicted is the gain that a curve of time over load imbalance promises for another imbalance of the
// ranks, at the load of a point. It is a model: a router that evens ranks also changes which experts are
// active, and a placement does not.
type Predicted struct {
	Point string        `json:"point"` // the name of the point's value, empty without points
	Value router.Number `json:"value"`
	From  router.Number `json:"from_max_over_mean"`
	To    router.Number `json:"to_max_over_mean"`
	Interval
	Basis string `json:"basis"` // always "predicted"
	// Refused is why there is none, of the code "no_prediction"; nil where there is one.
	Refused *router.Warning `json:"refused,omitempty"`
}

// Predict is the gain from one max/mean of the ranks to another, of each point. Between arms of known load
// the curve is straight, in each launch; the interval is over launches, as in Dose, widened by how far the
// prediction moves where one of the arms between the ends is left out: so much is not known of the curve's
// shape. ranks is the EP size that it is asked for.
func (r Result) Predict(ranks int, from, to router.Number) (list []Predicted) {
	for _, c := range r.Main() {
		p := Predicted{Point: c.Name, Value: router.Number(c.Value), From: from, To: to, Basis: "predicted"}
		if c.Name == "" {
			p.Value = router.Undefined()
		}
		if p = r.refuse(p, c.Dose, ranks); p.Refused == nil {
			p.predict(c.Dose, gainsOf(r.Launches, c.Value, mapped(c.Dose.Arms, func(a DoseArm) Arm { return a.Arm })))
		}
		list = append(list, p)
	}
	return list
}

// Refuse is the prediction without its numbers, and why.
func (p Predicted) Refuse(why string, args ...any) Predicted {
	refused := router.Warn("no_prediction", "", append(args, "why", why)...)
	p.Refused, p.Interval = &refused, noInterval
	return p
}

// Curved reports whether a curve was measured, at any point.
func (r Result) Curved() bool {
	return slices.ContainsFunc(r.Comparisons, func(c Comparison) bool { return c.Dose != nil })
}

// refuse is the prediction, refused where a curve does not predict it.
func (r Result) refuse(p Predicted, d *Dose, ranks int) Predicted {
	of := map[router.OptInt]bool{}
	for _, proof := range r.Proof {
		of[proof.Rank] = true
	}
	delete(of, AllRanks)
	arms := cmp.Or(d, &Dose{}).Line()
	switch n := len(arms); {
	case r.Verdict.Refused():
		return p.Refuse("campaign", "verdict", r.Verdict)
	case len(of) > 0 && len(of) != ranks:
		return p.Refuse("ranks", "ranks", len(of), "asked", ranks)
	case n < 3:
		return p.Refuse("no_curve", "arms", n)
	case slices.ContainsFunc(arms, func(a DoseArm) bool { return !a.Measured }):
		return p.Refuse("claimed")
	case !(min(p.From, p.To) >= arms[0].MaxOverMean && max(p.From, p.To) <= arms[n-1].MaxOverMean):
		return p.Refuse("outside", "from", p.From, "to", p.To, "least", arms[0].MaxOverMean, "most", arms[n-1].MaxOverMean)
	case !(d.Low > 0):
		return p.Refuse("no_cost", "low", d.Low/10, "high", d.High/10)
	}
	return p
}

// predict fills in the prediction of a curve.
func (p *Predicted) predict(d *Dose, all launchLogs) {
	along := func(curve []DoseArm) stats.Interval {
		return all.test(func(gained armLogs) float64 {
			return math.Log(timeAt(curve, p.From, gained.time) / timeAt(curve, p.To, gained.time))
		}, LaunchSD, d.Confidence)
	}
	curve := d.Line()
	whole, off := along(curve), 0.0
	for _, a := range curve[1 : len(curve)-1] {
		off = max(off, math.Abs(along(without(curve, a.Arm)).Estimate-whole.Estimate))
	}
	whole.Low, whole.High = whole.Low-off, whole.High+off
	p.Interval = fractions(whole)
}
