package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
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
	k := knowing(caveats(byFile(r.Caveats()), nil))
	k.verdict, k.basis = Verdict(best.Verdict), placeBasis(r, best)
	k.know("ranks", best.Ranks, "copies", best.Redundant, "With", "without copies", "traffic", "unseen traffic",
		"decided", caveat.Text(best.Reason), "falls", "does not fall")
	if best.Redundant > 0 {
		k.know("With", "with "+quantity.Count(best.Redundant, "copy"))
	}
	if allSeen(r) {
		k.know("traffic", "traffic already seen")
	}
	if best.Judged.Defined() {
		k.number("fall", "fall of the busiest rank's load", -best.Change, Fraction, Predicted)
		k.number("before", "busiest rank now (max/mean)", best.Baseline, MaxMean, Recorded)
		k.number("after", "with the placement", best.Judged, MaxMean, Predicted)
	}
	k.predictions(best)
	k.written(best, files)
	switch given = cmp.Or(given, "COUNTS"); {
	case best.Verdict == place.NoVerdict || !best.Judged.Defined():
		k.steps, files = nil, nil // before anything is put to use
		k.know("unjudged", given)
		return k.tell("place.unknown")
	case best.Reason.Args["why"] == place.Flat:
		return k.tell("place.flat")
	case best.Verdict == place.Trial && len(files) == 0:
		k.know("write", given)
	case best.Verdict == place.Trial:
		k.know("arm_to_fill", "{arm}")
	case len(files) == 0:
		k.know("keep", best.Ranks)
	}
	if best.Change < 0 {
		k.know("falls", "falls by "+quantity.Percent(-best.Change))
	}
	if best.Verdict == place.NotNow {
		k.because("decision", caveat.Text(best.Reason))
	}
	return k.tell("place")
}

// written says how engines load the files: all in one reason, of which none is left out.
func (k *known) written(best place.Placement, files []Written) {
	var texts []string
	for _, f := range files {
		values := router.Warn("", "", "file", word(f.File), "copies", "").Args
		if best.Redundant > 0 {
			values["copies"] = fmt.Sprint(best.Redundant)
		}
		text, command, _ := caveat.Step(f.Engine, values)
		k.steps, texts = append(k.steps, Step{text, command}), append(texts, text)
	}
	k.because("written", strings.Join(texts, " "))
}

// placeBasis says what a placement was learned from and judged on, and what it is set against.
func placeBasis(r *place.Result, best place.Placement) string {
	learned, judged := "", "judged on "+quantity.Count(len(r.Judged), "other window")
	if len(r.Learned) == 1 {
		learned = "learned from one window · "
	}
	switch alike := seen(r); {
	case r.LeftOut > 0:
		judged = fmt.Sprintf("judged on %s of windows left out in turn · written plan learned from all",
			quantity.Count(r.LeftOut, "kind"))
	case len(r.Judged) == 0:
		judged = "judged on no other window"
	case alike > 0:
		judged += fmt.Sprintf(", %d of them like a learned one", alike)
	}
	baseline := "contiguous (assumed)"
	if best.Before != place.Contiguous && best.Before != "" {
		baseline = filepath.Base(best.Before)
	}
	return fmt.Sprintf("%s%s · %s · baseline: %s", learned, judged, quantity.Count(best.Ranks, "rank"), baseline)
}

// seen is how many judged windows are like learned ones.
func seen(r *place.Result) int {
	for _, w := range r.Warnings {
		if alike, ok := w.Args["alike"].(float64); ok && w.Code == "judged_learned" {
			return int(alike)
		}
	}
	return 0
}

// allSeen reports that no judged window differs from the learned ones.
func allSeen(r *place.Result) bool { return len(r.Judged) > 0 && seen(r) == len(r.Judged) }

// predictions are the times and gains that are predicted, the first of them behind the fall of load, and why others are
// not.
func (k *known) predictions(best place.Placement) {
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
			continue
		}
		k.know("at", at, "why", caveat.Text(*g.Refused))
		k.because("unpredicted", k.say("unpredicted"))
	}
	for i, n := range list {
		k.add([]string{"time", "gains"}[min(i, 1)], n)
	}
}
