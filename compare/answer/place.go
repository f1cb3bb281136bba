package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfPlacement answers whether a placement is worth a trial. given are the arguments that it was asked
// for with but the number of ranks and copies; empty where they are not known.
func OfPlacement(r *place.Result, given string) Answer {
	best := r.Best()
	a := Answer{Verdict: Verdict(best.Verdict), Numbers: []Number{}, Reasons: []string{}, Next: []Step{},
		Caveats: caveats(byFile(r.Caveats()), caveat.SeverityOf)}
	a.placed(r, best)
	a.foretold(best)
	for _, text := range beyond(r) {
		a.Reasons = append(a.Reasons, sentence(text))
	}
	if best.PaidBackAfter.Defined() {
		a.Reasons = append(a.Reasons, fmt.Sprintf("Moving the weights is paid back after %s steps.",
			quantity.Digits3(best.PaidBackAfter)))
	}
	a.Reasons = a.Reasons[:min(3, len(a.Reasons))]
	command := fmt.Sprintf("moebalance place --ep %d --redundant %d ", best.Ranks, best.Redundant)
	if best.Verdict == place.Trial {
		a.Next = append(a.Next, Step{"Write it for an engine.", command + "--write-sglang NEW.json " +
			cmp.Or(given, "--judge OTHER_COUNTS COUNTS")})
	}
	if !best.Judged.Defined() {
		a.Next = append(a.Next, Step{"Judge it on other counts.", command + "--judge OTHER_COUNTS " +
			cmp.Or(given, "COUNTS")})
	}
	return a
}

// placed says what the placement does to the load, and on what it was judged.
func (a *Answer) placed(r *place.Result, best place.Placement) {
	what, traffic := "Without copies", "unseen traffic"
	if best.Redundant > 0 {
		what = "With " + quantity.Count(best.Redundant, "copy")
	}
	if seen(r) {
		traffic = "traffic already seen"
	}
	why := caveat.Text(best.Reason)
	switch {
	case !best.Judged.Defined():
		a.Line, a.Reasons = "Not enough evidence: no other counts to judge the placement on.", []string{sentence(why)}
	case best.Verdict == place.NoVerdict:
		a.Line, a.Reasons = refusal("Not enough evidence: ", []string{why}, "Not enough evidence for a placement.")
	case best.Change < 0:
		a.Line = fmt.Sprintf("%s the busiest rank's load falls by %s on %s.", what, quantity.Percent(-best.Change),
			traffic)
	default:
		a.Line = fmt.Sprintf("%s the busiest rank's load does not fall on %s.", what, traffic)
	}
	if best.Verdict == place.NotNow {
		a.Reasons = []string{sentence(why)}
	}
	judged := "judged on " + quantity.Count(len(r.Judged), "other window")
	if len(r.Judged) == 0 {
		judged = "judged on no other window"
	}
	if r.LeftOut > 0 {
		judged = fmt.Sprintf("judged on %s of windows left out in turn · written plan learned from all",
			quantity.Count(r.LeftOut, "kind"))
	}
	a.Basis = fmt.Sprintf("%s · %s · baseline: %s", judged, quantity.Count(best.Ranks, "rank"), baseline(best))
	if best.Judged.Defined() {
		a.Numbers = append(a.Numbers, NumberOf("busiest rank now (max/mean)", best.Baseline, MaxMean, Recorded),
			NumberOf("with the placement", best.Judged, MaxMean, Predicted))
	}
}

// foretold are the times and gains that are predicted, and why others are not.
func (a *Answer) foretold(best place.Placement) {
	if t := best.Time; t != nil {
		of := "predicted " + t.Of
		if t.AtMost {
			of += " at most"
		}
		a.Numbers = append(a.Numbers, Number{of, t.Estimate, Fraction, t.Low, t.High, Predicted})
	}
	for _, g := range best.Gains {
		at := "at the load of the campaign"
		if g.Point != "" {
			at = "at " + named(g.Point, quantity.Plain(g.Value))
		}
		if g.Refused == nil {
			a.Numbers = append(a.Numbers, Number{"predicted gain " + at, g.Estimate, Fraction, g.Low, g.High, Predicted})
		} else {
			a.Reasons = append(a.Reasons, sentence("no gain is predicted "+at+": "+caveat.Text(*g.Refused)))
		}
	}
}

// seen reports that no judged window differs from those learned.
func seen(r *place.Result) bool {
	return slices.ContainsFunc(r.Warnings, func(w router.Warning) bool {
		return w.Code == judgedLearned && w.Args["alike"] == w.Args["windows"]
	})
}

// judgedLearned is the code of the warning that judged windows are like learned ones.
const judgedLearned = "judged_learned"

// baseline names the placement that every number is set against.
func baseline(p place.Placement) string {
	if p.Before == place.Contiguous || p.Before == "" {
		return "contiguous (assumed)"
	}
	return filepath.Base(p.Before)
}

// beyond is what is known of the best placement beyond its own numbers, a sentence each: whether
// it is learned from too little, or judged on what it has seen, what EPLB reaches, and what fewer
// moves reach.
func beyond(res *place.Result) (list []string) {
	best := res.Best()
	for _, w := range res.Caveats() {
		// the numbers say less than they seem to; of several windows one sentence says it
		again := best.Reason.Args["why"] == "repeats" // and says it already
		if text := caveat.Text(w); (w.Code == "one_window" || w.Code == judgedLearned && !again) &&
			!slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for _, p := range res.Placements {
		if p.Plan == best.Plan && p.Name == place.PlanEPLB && best.Name != place.PlanEPLB && p.Judged.Defined() {
			text := fmt.Sprintf("it reaches max/mean %s, EPLB %s", quantity.Ratio(best.Judged), quantity.Ratio(p.Judged))
			if len(res.Judged) > 1 {
				text += fmt.Sprintf("; in the worst window %s and %s", quantity.Ratio(best.Worst), quantity.Ratio(p.Worst))
			}
			list = append(list, text)
		}
	}
	if text := fewMoves(res); text != "" {
		list = append(list, text)
	}
	return list
}

// fewMoves is what few moves reach of what all do; empty where that is not known.
func fewMoves(res *place.Result) string {
	var none, knee, all *place.Point
	for i, p := range res.Curve {
		switch of := &res.Curve[i]; {
		case p.Plan != res.Best().Plan:
		case none == nil:
			none = of
		case p.Knee:
			knee = of
		case p.Afresh:
			all = of
		}
	}
	if none != nil && knee != nil && all != nil {
		const text = "moving %s of the copies lowers the learned max/mean from %s to %s, and %s to %s"
		return fmt.Sprintf(text, quantity.Percent(knee.MovedShare), quantity.Ratio(none.Learned),
			quantity.Ratio(knee.Learned), quantity.Percent(all.MovedShare), quantity.Ratio(all.Learned))
	}
	return ""
}
