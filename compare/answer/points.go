package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
)

// AtPoint is the point whose gain the campaign's is: " at 32 tokens"; empty where there is one load.
func AtPoint(r gain.Result) string {
	for _, p := range r.Points {
		g := p.Gain
		if g.Estimate == r.Gain.Estimate && (g.Low == r.Gain.Low || !g.Low.Defined() && !r.Gain.Low.Defined()) {
			return " at " + named(p.Name, fmt.Sprintf("%g", p.Value))
		}
	}
	return ""
}

// named are values of a point: 32 tokens, concurrency 8.
func named(point, values string) string {
	if strings.HasSuffix(point, "s") {
		return values + " " + point
	}
	return point + " " + values
}

// costOfLoad says what each 10 % of imbalance costs, or, where no line goes through the arms, the largest load.
func costOfLoad(d *gain.Dose, place string) string {
	key := "dose"
	switch {
	case !d.Low.Defined():
	case d.Bent:
		fitted := slices.DeleteFunc(slices.Clone(d.Arms), func(a gain.DoseArm) bool { return !a.Fitted })
		if len(fitted) == 0 {
			return ""
		}
		most := slices.MaxFunc(fitted, func(a, b gain.DoseArm) int { return cmp.Compare(a.MaxOverMean, b.MaxOverMean) })
		if most.Low > 1 {
			return caveat.Say("dose.bent", "load", most.MaxOverMean, "cost", most.Time-1, "place", place)
		}
		key = "dose.open"
	case d.High < 0:
		key = "dose.nothing"
	case d.Low <= 0:
		key = "dose.open"
	}
	return caveat.Say(key, "cost", d.Slope/10, "low", d.Low/10, "high", d.High/10, "place", place)
}

// atLoads says what imbalance costs where the line of a campaign is, and the gains at the other loads:
// up to three one by one, of more the least and the largest.
func (a *Answer) atLoads(r gain.Result) {
	dose, place, others := r.Dose, AtPoint(r), []gain.PointGain{}
	for _, p := range r.Points {
		if at := named(p.Name, fmt.Sprintf("%g", p.Value)); " at "+at == place {
			dose = cmp.Or(dose, p.Dose)
		} else if p.Gain.Estimate.Defined() {
			others = append(others, p)
		}
	}
	if dose != nil && dose.Slope.Defined() {
		a.reason(costOfLoad(dose, place))
	}
	if len(others) > 3 {
		by := func(a, b gain.PointGain) int { return cmp.Compare(a.Gain.Estimate, b.Gain.Estimate) }
		others = []gain.PointGain{slices.MinFunc(others, by), slices.MaxFunc(others, by)}
	}
	for _, p := range others {
		a.because("why.points", "at", named(p.Name, fmt.Sprintf("%g", p.Value)), "gain", p.Gain.Estimate, "low", p.Gain.Low,
			"high", p.Gain.High)
	}
}
