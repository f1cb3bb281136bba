package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router/quantity"
)

// Written is a placement in a file for an engine.
type Written struct{ Engine, File string }

// OfPlacement answers whether a placement is worth a trial. given are the arguments that it was asked
// for with but the number of ranks and copies; empty where they are not known. files are what was
// written for engines.
func OfPlacement(r *place.Result, given string, files ...Written) Answer {
	best, given := r.Best(), cmp.Or(given, "COUNTS")
	k := knowing(caveats(r.Caveats(), nil))
	k.verdict = Verdict(best.Verdict)
	k.know("ranks", best.Ranks, "copies", best.Redundant, "With", withCopies(best), "redundant", positive(best.Redundant),
		"costs", when(r.Untimed(), "saves"))
	if least := r.WithFewest(best); least.Redundant < best.Redundant && least.Change < 0 {
		k.know("fewer", -least.Change, "with_fewer", withCopies(least))
	}
	k.judgedOn(r, best)
	k.predictions(best)
	k.written(files)
	switch decided, wrote := caveat.Text(best.Reason), len(files) > 0; {
	case best.Verdict == place.NoVerdict || !best.Judged.Defined(): // before anything is put to use
		k.know("undecided", decided, "unjudged", given)
		k.steps = nil
	case best.Reason.Args["why"] == place.Flat:
		k.know("flat", decided)
	case best.Verdict == place.NotNow:
		k.because("decision", decided)
		k.know("keep", when(!wrote, fmt.Sprint(best.Ranks)))
	case !wrote:
		k.know("write", given, "untimed", when(r.Untimed(), given), "engine", engines[r.Engine],
			"flag", when(engines[r.Engine] != "", r.Engine), "new", when(r.Engine == counts.TensorRT, "NEW.yaml"))
	}
	return k.tell("place")
}

// withCopies says how many copies a placement has: "with 2 copies".
func withCopies(p place.Placement) string {
	return cmp.Or(when(p.Redundant > 0, "with "+quantity.Count(p.Redundant, "copy")), "without copies")
}

// engines that take placements, in words.
var engines = map[string]string{counts.TensorRT: "TensorRT-LLM", counts.SGLang: "SGLang", counts.VLLM: "vLLM"}

// written says how engines load the files: all in one reason, of which none is left out.
func (k *known) written(files []Written) {
	var texts []string
	for _, f := range files {
		k.know("file", word(f.File))
		step := k.next(f.Engine)
		k.steps, texts = append(k.steps, step...), append(texts, step[0].Text)
	}
	k.because("written", strings.Join(texts, " "))
}

// judgedOn says what a placement was learned from and judged on, and what it is set against.
func (k *known) judgedOn(r *place.Result, best place.Placement) {
	alike, from := warned(r.Warnings, "judged_learned").Args["alike"], best.Before
	k.know("baseline", cmp.Or(when(from != place.Contiguous && from != "", filepath.Base(from)), "contiguous (assumed)"),
		"kinds", positive(r.LeftOut), "windows", positive(len(r.Judged)), "alike", alike,
		"one", when(len(r.Learned) == 1, "one window"),
		"traffic", cmp.Or(when(alike == float64(len(r.Judged)), "traffic already seen"), "unseen traffic"))
	k.know("fall", positive(-best.Change))
	if best.Judged.Defined() {
		k.number("fall", "fall of the busiest rank's load", -best.Change, Fraction, Predicted)
		k.number("before", "busiest rank now (max/mean)", best.Baseline, MaxMean, Recorded)
		k.number("after", "with the placement", best.Judged, MaxMean, Predicted)
	}
}

// predictions are the times and gains that are predicted, the first of them behind the fall of load, and why others are
// not.
func (k *known) predictions(best place.Placement) {
	name := "time"
	if t := best.Time; t != nil {
		if best.Verdict == place.Trial {
			k.know("moved", best.Moved, "payback", 1e9/t.SavedNS)
		}
		k.add(name, Number{"predicted step time", t.Estimate, Fraction, t.Low, t.High, Predicted})
		name = "gains"
	}
	for _, g := range best.Gains {
		at := "at " + cmp.Or(when(g.Point != "", named(g.Point, float64(g.Value))), "the load of the campaign")
		if g.Refused != nil {
			k.because("unpredicted", fmt.Sprintf("no gain is predicted %s: %s", at, caveat.Text(*g.Refused)))
			continue
		}
		k.add(name, Number{"predicted gain " + at, g.Estimate, Fraction, g.Low, g.High, Predicted})
		name = "gains"
	}
}
