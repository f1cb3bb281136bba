package answer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router/placement"
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
	k.know("ranks", best.Ranks, "copies", best.Redundant, "redundant", positive(best.Redundant))
	k.judgedOn(r, best)
	k.flat(best.Reason, Inferred)
	k.predictions(r, best)
	k.written(files, best.Verdict == place.Trial)
	why, decided := best.Reason.Args["why"], caveat.Text(best.Reason)
	switch {
	case best.Verdict == place.NoVerdict || !best.Judged.Defined():
		k.know("undecided", decided, "unjudged", judges.ReplaceAllString(given, ""),
			"unsure", when(why == place.Contradicts || why == place.Unlike || k.values["unsure"] == "run", "run"))
	case best.Verdict == place.NotNow:
		k.because("decision", decided)
		k.know("keep", keeping(best.Ranks, given), "worth", when(why == "time" || why == "time_rises", "not worth it"))
	case len(files) == 0:
		k.know("write", given, "untimed", when(r.Untimed(), given), "engine", engines[r.Engine],
			"flag", when(engines[r.Engine] != "", r.Engine), "new", when(r.Engine == placement.TensorRT, "NEW.yaml"))
	}
	return k.tell("place")
}

// judges are the counts that a placement was judged on, among the arguments.
var judges = regexp.MustCompile(`--judge (?:'[^']*'|\S)+ `)

// keeping are the ranks, model and running placement of arguments, as counts takes them: 4, "--from p x" → "4
// --placement p".
func keeping(ranks int, given string) string {
	placement := strings.Replace(flag(given, "from"), "--from", "--placement", 1)
	return strings.Join(strings.Fields(fmt.Sprint(ranks, " ", flag(given, "model"), " ", placement)), " ")
}

// engines that take placements, in words.
var engines = map[string]string{placement.TensorRT: "TensorRT-LLM", placement.SGLang: "SGLang", placement.VLLM: "vLLM"}

// written says how engines load the files: the step says it of one, else one reason of all, so that none is left out.
func (k *known) written(files []Written, trial bool) {
	var texts []string
	for _, f := range files {
		k.know("file", word(f.File), "hooked", when(f.Engine == placement.VLLM, "hook"))
		k.know("placed", launch.Quote([]string{"placed=" + k.say(f.Engine+"_arm")}))
		step := k.next(f.Engine)
		k.steps, texts = append(k.steps, step...), append(texts, step[0].Text)
	}
	if k.because("written", when(!trial || len(files) > 1, strings.Join(texts, " "))); !trial { // nothing is put to use
		k.steps = nil
	}
}

// judgedOn says what a placement was learned from and judged on, and what it is set against.
func (k *known) judgedOn(r *place.Result, best place.Placement) {
	alike, from := warned(r.Warnings, "judged_learned").Args["alike"], best.Before
	k.know("baseline", cmp.Or(when(from != place.Contiguous && from != "", filepath.Base(from)), "contiguous (assumed)"),
		"kinds", positive(r.LeftOut), "windows", positive(len(r.Judged)), "alike", alike,
		"one", when(len(r.Learned) == 1, "one window"), "fall", positive(-best.Change), "costs",
		when(r.Untimed(), "saves, and when the moves have paid"))
	if best.Judged.Defined() {
		k.number("fall", "fall of the busiest rank's load", -best.Change, Fraction, Predicted)
		k.number("before", "busiest rank now (max/mean)", best.Baseline, MaxMean, Recorded)
		k.number("after", "with the placement", best.Judged, MaxMean, Predicted)
	}
}

// predictions are the times and gains that are predicted, and why others are not.
func (k *known) predictions(r *place.Result, best place.Placement) {
	name := "time"
	if t := best.Time; t != nil {
		k.know("steps", t.Steps, "step", max(t.Estimate, -t.Estimate), "less", when(t.Estimate < 0, "less"))
		if best.Verdict == place.Trial {
			k.know("moved", best.Moved, "payback", 1e9/t.SavedNS)
		}
		for _, other := range best.Others {
			k.kind(other.Steps)
			k.know("kind_step", max(other.Estimate, -other.Estimate), "kind_less",
				when(other.Estimate < 0, "less"), "kind_low", other.Low, "kind_high", other.High,
				"kind_open", when(other.Low <= 0 && other.High >= 0, "open"))
			k.kinds = append(k.kinds, k.say("place_kind"))
		}
		k.add(name, Number{"predicted step time", t.Estimate, Fraction, t.Low, t.High, Predicted})
		name = "gains"
	} else if t = best.Predicted(); t != nil && t.Estimate < 0 { // by a campaign
		k.know("rise", -t.Estimate/(1+t.Estimate))
	}
	for _, g := range best.Gains {
		at := "at " + cmp.Or(when(g.Point != "", named(g.Point, float64(g.Value))), "the load of the campaign")
		if g.Refused != nil {
			k.because("unpredicted", caveat.Text(*g.Refused))
			continue
		}
		k.add(name, Number{"predicted gain " + at, g.Estimate, Fraction, g.Low, g.High, Predicted})
		name = "gains"
	}
	if best.Verdict != place.NoVerdict && r.NoTime.Code != "" && r.NoTime.Args["why"] != place.NoEvidence {
		k.because("unpredicted", caveat.Text(r.NoTime))
	}
}
