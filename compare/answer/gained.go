package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Worded is a result with the words of its checks and its crossover.
func Worded(r gain.Result) gain.Result {
	r.Checks = slices.Clone(r.Checks)
	for i, c := range r.Checks {
		r.Checks[i].Text = said(c)
	}
	if r.Crossover != nil {
		x := *r.Crossover
		x.Text = crossover(r)
		r.Crossover = &x
	}
	return r
}

// Why is what a gate says of a result that does not pass: the failed checks, or the line of
// the answer.
func Why(r gain.Result, run gain.Run) string {
	var failed []string
	for _, c := range r.Failed() {
		failed = append(failed, said(c))
	}
	if len(failed) > 0 {
		return strings.Join(failed, "; ")
	}
	return OfCampaign(r, run).Line
}

// said is what a check found, of several parts that which its status rests on.
func said(c gain.Check) string {
	var texts []string
	for _, group := range caveats(c.Warnings(), func(router.Warning) Severity { return Note }) {
		texts = append(texts, group.String())
	}
	return strings.Join(texts, "; ")
}

// shareOf says how much of the ceiling an arm recovers, or why there is no share.
func shareOf(s gain.Share) string {
	if !s.Estimate.Defined() {
		return fmt.Sprintf("%s: no share of the ceiling, because the gain of %s is not above zero.",
			capital(string(s.Arm)), gain.Perfect.Label())
	}
	return fmt.Sprintf("%s recovers %s of the ceiling, %s interval %s to %s.", capital(string(s.Arm)),
		quantity.Percent(s.Estimate), quantity.Confidence(s.Confidence), quantity.Percent(s.Low), quantity.Percent(s.High))
}

// CostOfLoad is a title that says what load imbalance costs at a place.
func CostOfLoad(d *gain.Dose, place string) string { return capital(costOfLoad(d, place)) }

// costOfLoad says what each 10 % of imbalance costs, or, where no line goes through the arms, the load of each.
func costOfLoad(d *gain.Dose, place string) string {
	const each = "each 10 % of load imbalance costs "
	cost, low, high := d.Slope/10, d.Low/10, d.High/10
	switch {
	case !low.Defined():
		return each + "about " + quantity.Percent(cost) + " of time" + place
	case costs(d) && d.Bent:
		var arms []string
		for _, a := range d.Arms {
			if !a.Fitted || a.Arm == gain.Perfect {
				continue
			}
			time, with := "nothing that shows", " with"
			if a.Low > 1 {
				time = quantity.Percent(a.Time-1) + " of time"
			}
			if arms == nil {
				with += " a rank max/mean of"
			}
			arms = append(arms, fmt.Sprintf("%s%s %.2f", time, with, a.MaxOverMean))
		}
		return "load imbalance costs " + strings.Join(arms, ", ") + place
	case high < 0:
		return "load imbalance costs nothing" + place
	case low <= 0:
		return fmt.Sprintf("%sbetween %s and %s of time%s", each, quantity.Change(low), quantity.Change(high), place)
	}
	return fmt.Sprintf("%s%s of time (%s to %s)%s", each, quantity.Percent(cost), quantity.Percent(low),
		quantity.Percent(high), place)
}

// costs reports that load imbalance is shown to cost time, in all or, on a bent curve, with the load of some arm.
func costs(d *gain.Dose) bool {
	return d.Low > 0 || d.Bent && slices.ContainsFunc(d.Arms, func(a gain.DoseArm) bool { return a.Fitted && a.Low > 1 })
}

// doses says what imbalance costs, at each point; empty where no curve shows it.
func doses(r gain.Result) string {
	if len(r.Points) == 0 && r.Dose != nil && r.Dose.Slope.Defined() {
		return costOfLoad(r.Dose, "")
	}
	var parts, none, hidden []string // what it costs, and where it costs nothing, or nothing that shows
	for _, p := range r.Points {
		switch d := p.Dose; {
		case d == nil || !d.Slope.Defined():
		case !d.Low.Defined() || costs(d):
			parts = append(parts, costOfLoad(d, atPoint(p)))
		case d.High < 0:
			none = append(none, atPoint(p))
		default:
			hidden = append(hidden, atPoint(p))
		}
	}
	text := strings.Join(parts, "; ")
	free := func(what string, places []string) {
		lead := "; "
		if text == "" {
			lead = "load imbalance costs "
		}
		if len(places) > 0 {
			text += lead + what + strings.Join(places, " and")
		}
	}
	free("nothing", none)
	free("nothing that shows", hidden)
	return text
}

// elsewhere says the gain at the points that the answer's line does not speak of, or the verdicts where
// points are many or have no interval.
func elsewhere(r gain.Result) string {
	const few = 3
	if len(r.Points) > few {
		return byVerdict(r.Points)
	}
	var parts []string
	line := AtPoint(r)
	for _, p := range r.Points {
		g, at := p.Gain, atPoint(p)
		if !g.Low.Defined() {
			return byVerdict(r.Points)
		}
		if at != line {
			parts = append(parts, fmt.Sprintf("%s the gain is %s (%s to %s)", at[1:],
				quantity.Change(g.Estimate), quantity.Change(g.Low), quantity.Change(g.High)))
		}
	}
	return strings.Join(parts, "; ")
}

// byVerdict lists the points of each verdict, or counts many.
func byVerdict(points []gain.PointGain) string {
	const most = 6
	var parts []string
	for _, v := range []gain.Verdict{gain.Significant, gain.Faster, gain.Slower, gain.Equal, gain.NotSignificant,
		gain.Inconclusive, gain.NoVerdict} {
		var values []string
		for _, p := range points {
			if p.Verdict == v {
				values = append(values, fmt.Sprintf("%g", p.Value))
			}
		}
		if n := len(values); n > most {
			parts = append(parts, fmt.Sprintf("%s at %d of %d points between %s", v, n, len(points),
				named(points[0].Name, values[0]+" and "+values[n-1])))
		} else if n > 0 {
			parts = append(parts, fmt.Sprintf("%s at %s", v, named(points[0].Name, strings.Join(values, ", "))))
		}
	}
	return strings.Join(parts, "; ")
}

// atPoint is the place of a point: " at 32 tokens".
func atPoint(p gain.PointGain) string { return " at " + named(p.Name, fmt.Sprintf("%g", p.Value)) }

// named are values of a point: 32 tokens, concurrency 8.
func named(point, values string) string {
	if strings.HasSuffix(point, "s") {
		return values + " " + point
	}
	return point + " " + values
}

// crossover says at which load the gain changes its sign, or why none is shown.
func crossover(r gain.Result) string {
	x, measured := r.Crossover, "measured at "+quantity.Count(len(r.Points), "point")
	switch x.Why {
	case gain.NoGain:
		return measured + ", not at all of them with a gain: no crossover is shown"
	case gain.FewPoints:
		return fmt.Sprintf("measured at %s of %s: a crossover needs %d", quantity.Count(len(r.Points), "value"),
			r.Points[0].Name, gain.LeastPoints)
	case gain.OneSign:
		return measured + ": the estimates have one sign, so no crossover is shown"
	case gain.ManyZeros:
		return measured + ": the estimates change sign several times, so no single crossover is shown"
	case gain.Crosses:
		side, what := "above", "load balance costs speed"
		if x.Below {
			side = "below"
		}
		if len(r.Arms) == 2 {
			what = fmt.Sprintf("%s is slower than %s", r.Arms[1].Name, r.Arms[0].Name)
		}
		return fmt.Sprintf("crossover at %s (%s): %s it %s; %s, interpolated between them",
			named(x.Name, quantity.Digits3(x.Value)), bounds(x), side, what, measured)
	}
	return x.Text // of a result that was worded before
}

// bounds says those of a crossover; one that is undefined lies outside of the points.
func bounds(x *gain.Crossover) string {
	confidence := quantity.Confidence(x.Confidence)
	switch {
	case x.Low.Defined() && x.High.Defined():
		return fmt.Sprintf("%s interval %s to %s", confidence, quantity.Digits3(x.Low), quantity.Digits3(x.High))
	case x.Low.Defined():
		return fmt.Sprintf("%s interval from %s to beyond the largest point", confidence, quantity.Digits3(x.Low))
	case x.High.Defined():
		return fmt.Sprintf("%s interval from below the smallest point to %s", confidence, quantity.Digits3(x.High))
	}
	return "its interval covers all points"
}
