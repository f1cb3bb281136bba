package answer

import (
	"fmt"
	"path/filepath"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfPlacement answers whether a placement is worth a trial.
func OfPlacement(r *place.Result) Answer {
	best := r.Best()
	a := Answer{Verdict: Verdict(best.Verdict), Numbers: []Number{}, Reasons: []string{}, Next: []Step{},
		Caveats: caveats(byFile(r.Warnings), caveat.SeverityOf)}
	what := "Placement without copies"
	if best.Redundant > 0 {
		what = "Placement with " + quantity.Count(best.Redundant, "copy")
	}
	switch {
	case !best.Judged.Defined():
		a.Line = "Not enough evidence: no other counts to judge the placement on."
	case best.Verdict == place.NoVerdict:
		a.Line = clause("Not enough evidence: ", best.Reason,
			"Not enough evidence for a placement: see the first reason.")
	case best.Change < 0:
		a.Line = fmt.Sprintf("%s cuts the busiest rank's load by %s on unseen traffic.", what,
			quantity.Percent(-best.Change))
	default:
		a.Line = fmt.Sprintf("%s does not cut the busiest rank's load on unseen traffic.", what)
	}
	a.Basis = fmt.Sprintf("judged on %s left out · %s · baseline: %s", quantity.Count(len(r.Judged), "window"),
		quantity.Count(best.Ranks, "rank"), baseline(best))
	if best.Judged.Defined() {
		a.Numbers = append(a.Numbers, NumberOf("busiest rank now (max/mean)", best.Baseline, MaxMean, Recorded),
			NumberOf("placed", best.Judged, MaxMean, Predicted))
	}
	if t := best.Time; t != nil {
		a.Numbers = append(a.Numbers, Number{"predicted " + t.Of, t.Estimate, Fraction, t.Low, t.High, Predicted})
	}
	if best.Verdict != place.Trial {
		a.Reasons = append(a.Reasons, sentence(best.Reason))
	}
	for _, text := range r.Beyond() {
		a.Reasons = append(a.Reasons, sentence(text))
	}
	if best.PaidBackAfter.Defined() {
		a.Reasons = append(a.Reasons, fmt.Sprintf("Moving the weights is paid back after %s steps.",
			quantity.Digits3(best.PaidBackAfter)))
	}
	a.Reasons = a.Reasons[:min(3, len(a.Reasons))]
	return a
}

// baseline names the placement that every number is set against.
func baseline(p place.Placement) string {
	if p.Before == place.Contiguous || p.Before == "" {
		return "contiguous (assumed)"
	}
	return filepath.Base(p.Before)
}
