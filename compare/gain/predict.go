package gain

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Predicted is the gain that a curve of time over load imbalance promises for another imbalance of the
// ranks, at the load of a point. It is a model: a router that evens ranks also changes which experts are
// active, and a placement does not.
type Predicted struct {
	Point      string        `json:"point"` // the name of the point's value, empty without points
	Value      router.Number `json:"value"`
	From       router.Number `json:"from_max_over_mean"`
	To         router.Number `json:"to_max_over_mean"`
	Estimate   router.Number `json:"estimate"`
	Low        router.Number `json:"low"`
	High       router.Number `json:"high"`
	Confidence router.Number `json:"confidence"`
	Basis      string        `json:"basis"`             // always "predicted"
	Refused    string        `json:"refused,omitempty"` // why there is none
}

// Predict is the gain from one max/mean of the ranks to another, of each point. Between arms of known load
// the curve is straight, in each launch; the interval is that of Dose over launches, widened by how far the
// prediction moves where one of the arms between the ends is left out: so much is not known of the curve's
// shape. ranks is the EP size that it is asked for.
func (r Result) Predict(ranks int, from, to router.Number) (list []Predicted) {
	points := r.Points
	if len(points) == 0 {
		points = []PointGain{{Value: math.NaN(), Dose: r.Dose}}
	}
	for _, point := range points {
		p := Predicted{Point: point.Name, Value: router.Number(point.Value), From: from, To: to, Basis: "predicted"}
		if why := r.refuse(point.Dose, ranks, from, to); why != "" {
			p = p.Refuse(why)
		} else {
			launches := slices.DeleteFunc(slices.Clone(r.Launches), func(l LaunchGain) bool {
				return len(r.Points) > 0 && l.Point != router.Number(point.Value)
			})
			p.predict(point.Dose, launches, len(r.Arms))
		}
		list = append(list, p)
	}
	return list
}

// Refuse is the prediction without its numbers.
func (p Predicted) Refuse(why string) Predicted {
	p.Estimate, p.Low, p.High, p.Confidence = router.Undefined(), router.Undefined(), router.Undefined(),
		router.Undefined()
	p.Refused = why
	return p
}

// At names the load that it is predicted for.
func (p Predicted) At() string {
	if p.Point == "" {
		return "at the load of the campaign"
	}
	return fmt.Sprintf("at %s %s", p.Point, quantity.Plain(p.Value))
}

// Curved reports whether a curve was measured, at any point.
func (r Result) Curved() bool {
	return r.Dose != nil || slices.ContainsFunc(r.Points, func(p PointGain) bool { return p.Dose != nil })
}

// refuse says why a curve does not predict, empty where it does.
func (r Result) refuse(d *Dose, ranks int, from, to router.Number) string {
	of := map[router.Whole]bool{}
	for _, p := range r.Proof {
		if p.Rank != AllRanks {
			of[p.Rank] = true
		}
	}
	switch {
	case r.Verdict.Refused():
		return fmt.Sprintf("the campaign is %s", r.Verdict)
	case d == nil:
		return "the campaign has no curve of time over imbalance: measure one with bench --routers"
	case len(of) > 0 && len(of) != ranks:
		return fmt.Sprintf("the campaign is of %s, the placement of %d", quantity.Count(len(of), "rank"), ranks)
	}
	arms := d.fitted()
	least, most := arms[0].MaxOverMean, arms[len(arms)-1].MaxOverMean
	switch {
	case slices.ContainsFunc(arms, func(a DoseArm) bool { return !a.Measured }):
		return "the imbalance of the campaign's arms is claimed and not measured: record expert counts (--counts)"
	case len(arms) < 3:
		return "two arms do not show whether time follows imbalance in a line: measure three or more (--routers)"
	case !(min(from, to) >= least && max(from, to) <= most):
		return fmt.Sprintf("max/mean %s to %s is outside the measured %s to %s", quantity.Ratio(from),
			quantity.Ratio(to), quantity.Ratio(least), quantity.Ratio(most))
	case !(d.Low > 0):
		return fmt.Sprintf("no cost of imbalance is measured there (each 10 %% of it: %s to %s of time)",
			quantity.Change(d.Low/10), quantity.Change(d.High/10))
	}
	return ""
}

// fitted are the arms that the curve goes through, by load.
func (d *Dose) fitted() []DoseArm {
	return slices.DeleteFunc(slices.Clone(d.Arms), func(a DoseArm) bool { return !a.Fitted })
}

// predict fills in the prediction of a curve, from the launches of a point that hold so many arms.
func (p *Predicted) predict(d *Dose, launches []LaunchGain, arms int) {
	along := func(curve []DoseArm) stats.TTest {
		return overLaunches(launches, arms, func(gained map[Arm]float64) float64 {
			return math.Log(timeAt(curve, gained, p.From.Float64()) / timeAt(curve, gained, p.To.Float64()))
		}, LaunchSD, d.Confidence)
	}
	curve := d.fitted()
	whole, off := along(curve), 0.0
	for i := 1; i < len(curve)-1; i++ {
		without := along(slices.Delete(slices.Clone(curve), i, i+1))
		off = max(off, math.Abs(without.Estimate-whole.Estimate))
	}
	p.Confidence = router.Number(d.Confidence)
	p.Estimate, p.Low, p.High = fraction(whole.Estimate), fraction(whole.Low-off), fraction(whole.High+off)
}

// timeAt is the time of a launch at a load, over that of the balanced arm, on straight lines between arms.
func timeAt(curve []DoseArm, gained map[Arm]float64, load float64) float64 {
	i := sort.Search(len(curve), func(i int) bool { return curve[i].MaxOverMean.Float64() >= load })
	if i == 0 {
		return timeOver(gained, curve[0].Arm)
	}
	a, b := curve[i-1], curve[i]
	share := (load - a.MaxOverMean.Float64()) / (b.MaxOverMean - a.MaxOverMean).Float64()
	return (1-share)*timeOver(gained, a.Arm) + share*timeOver(gained, b.Arm)
}
