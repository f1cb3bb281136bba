package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Written is a placement in a file for an engine.
type Written struct{ Engine, File string }

// OfPlacement answers whether a placement is worth a trial. given are the arguments that it was asked
// for with but the number of ranks and copies; empty where they are not known. files are what was
// written for engines.
func OfPlacement(r *place.Result, given string, files ...Written) Answer {
	best := r.Best()
	a := answering(caveats(byFile(r.Caveats()), caveat.SeverityOf))
	a.placed(r, best)
	a.foretold(best)
	a.beyond(r)
	given = cmp.Or(given, "COUNTS")
	args := []any{"ranks", best.Ranks, "copies", best.Redundant, "given", given}
	decided := best.Judged.Defined() && best.Verdict != place.NoVerdict
	if !decided { // before anything is put to use
		a.next("judge", args...)
	}
	var written []string
	for _, f := range files {
		copies := ""
		if best.Redundant > 0 {
			copies = fmt.Sprint(best.Redundant)
		}
		a.next(f.Engine, "file", launch.Quote([]string{f.File}), "copies", copies)
		written = append(written, a.Next[len(a.Next)-1].Text)
	}
	if len(files) > 0 { // all in one reason, which none is left out of
		a.Reasons = slices.Insert(a.Reasons, 0, strings.Join(written, " "))
	}
	switch {
	case !decided:
	case best.Verdict == place.Trial && len(files) == 0:
		a.next("write", args...)
	case best.Verdict == place.Trial:
		a.next("gain_placed", "arm", "{arm}")
	case len(files) == 0:
		a.next("keep", args...)
	}
	return a.few()
}

// placed says what the placement does to the load, and on what it was judged.
func (a *Answer) placed(r *place.Result, best place.Placement) {
	copies, traffic := "Without copies", "unseen traffic"
	if best.Redundant > 0 {
		copies = "With " + quantity.Count(best.Redundant, "copy")
	}
	if seen(r) {
		traffic = "traffic already seen"
	}
	key := "place.same"
	if best.Change < 0 {
		key = "place.fewer"
	}
	switch why := caveat.Text(best.Reason); {
	case best.Verdict == place.NoVerdict || !best.Judged.Defined():
		a.say(Verdict(best.Verdict), "place.unknown", "why", why)
	default:
		a.say(Verdict(best.Verdict), key, "copies", copies, "change", -best.Change, "traffic", traffic)
		if best.Verdict == place.NotNow {
			a.reason(why)
		}
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
		a.number("fall of the busiest rank's load", -best.Change, Fraction, Predicted)
		a.number("busiest rank now (max/mean)", best.Baseline, MaxMean, Recorded)
		a.number("with the placement", best.Judged, MaxMean, Predicted)
	}
}

// foretold are the times and gains that are predicted, the first of them behind the fall of load, and why others are
// not.
func (a *Answer) foretold(best place.Placement) {
	var list []Number
	if t := best.Time; t != nil {
		list = append(list, Number{"predicted step time", t.Estimate, Fraction, t.Low, t.High, Predicted})
	}
	for _, g := range best.Gains {
		at := "at the load of the campaign"
		if g.Point != "" {
			at = "at " + named(g.Point, quantity.Plain(g.Value))
		}
		if g.Refused == nil {
			list = append(list, Number{"predicted gain " + at, g.Estimate, Fraction, g.Low, g.High, Predicted})
		} else {
			a.because("why.no_gain", "at", at, "why", caveat.Text(*g.Refused))
		}
	}
	if len(list) > 0 {
		a.Numbers = append(slices.Insert(a.Numbers, min(1, len(a.Numbers)), list[0]), list[1:]...)
	}
}

// seen reports that no judged window differs from the learned ones.
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

// beyond adds what is known of the best placement beyond its own numbers: whether it is learned from too
// little, or judged on what it has seen, and what EPLB reaches.
func (a *Answer) beyond(res *place.Result) {
	best := res.Best()
	for _, w := range res.Caveats() {
		again := best.Reason.Args["why"] == "repeats" // says it already
		if text := Sentence(caveat.Text(w)); (w.Code == "one_window" || w.Code == judgedLearned && !again) &&
			!slices.Contains(a.Reasons, text) { // of several windows one sentence says it
			a.reason(text)
		}
	}
	for _, p := range res.Placements {
		if p.Plan == best.Plan && p.Name == place.PlanEPLB && best.Name != place.PlanEPLB && p.Judged.Defined() {
			args := []any{"own", quantity.Ratio(best.Judged), "eplb", quantity.Ratio(p.Judged)}
			if len(res.Judged) > 1 {
				args = append(args, "worst", quantity.Ratio(best.Worst), "eplb_worst", quantity.Ratio(p.Worst))
			}
			a.because("why.eplb", args...)
		}
	}
}
