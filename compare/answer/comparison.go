package answer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Steps of several answers.
var (
	measure   = Step{"Measure the gain.", "moebalance bench -- YOUR_BENCHMARK"}
	recordAll = Step{"Record all ranks, one report each.", "moebalance profile -- YOUR_COMMAND"}
	wholeArms = Step{"Give all ranks of each arm, or one folder that holds both.",
		"moebalance compare NORMAL_DIR PERFECT_DIR"}
)

// OfComparison answers what balance, or a build, changes by the traces of both.
func OfComparison(c *diff.Comparison) Answer {
	a := Answer{Numbers: []Number{}, Reasons: []string{}, Next: []Step{},
		Caveats: caveats(c.Caveats(), caveat.SeverityOf)}
	steps := quantity.Count(c.Perfect.Steps, "step")
	if c.Normal.Steps != c.Perfect.Steps {
		steps = fmt.Sprintf("%d and %s", c.Normal.Steps, steps)
	}
	launches := "of one launch per arm"
	if c.BothInOneLaunch() {
		launches = "per arm in one launch"
	}
	a.Basis = fmt.Sprintf("%s %s · %s", steps, launches, quantity.Count(len(c.Ranks), "rank"))
	switch {
	case !c.Comparable:
		a.Verdict, a.Line = NotComparable, "Not comparable: the sides are no two arms of one run."
		if why := Refusals(c); len(why) > 0 {
			a.Line, a.Reasons = refusal("Not comparable: ", why,
				"Not comparable: the sides differ in what balance cannot change.")
		}
		a.Next = append(a.Next, otherSides(c)...)
	case c.Builds.Named():
		a.builds(c)
	case c.Fused() && c.Prediction.Measured == nil:
		a.fused(c)
	default:
		a.predicted(c)
		if c.Prediction.Measured == nil && len(a.Next) == 0 {
			a.Next = append(a.Next, measure)
		}
	}
	if c.Comparable && a.Verdict != NoAnswer && warns(c, diff.EqualWorkUnknown) {
		a.Reasons = append([]string{"Equal work is unknown: too little compute lies outside the MoE blocks to show it."},
			a.Reasons...)
	}
	a.Reasons = a.Reasons[:min(3, len(a.Reasons))]
	return a
}

// otherSides are those to compare instead.
func otherSides(c *diff.Comparison) []Step {
	switch {
	case swapped(c):
		return []Step{{"Give the learned side first.", "moebalance compare NORMAL PERFECT"}}
	case len(c.Ranks) == 0 && len(c.Normal.Exports)+len(c.Perfect.Exports) == 2: // a pattern without quotes
		return []Step{{"If both are ranks of one arm, trace them.",
			"moebalance trace " + launch.Quote(slices.Concat(c.Normal.Exports, c.Perfect.Exports))}, wholeArms}
	case len(c.Ranks) == 0:
		return []Step{wholeArms}
	}
	steps := []Step{{"Record both arms of one command.", "moebalance bench --profile -- YOUR_BENCHMARK"}}
	switch b := c.Builds; {
	case b.Named():
		arms := launch.Quote([]string{string(b[0] + "," + b[1])})
		steps[0] = Step{"Record both builds.", "moebalance bench --arms " + arms + " --profile -- YOUR_BENCHMARK"}
	case c.Normal.Arm == string(gain.Normal) && len(c.Refusals) == 1 && c.Refusals[0].Key() == "refused.arm":
		steps = append(steps, Step{"If your engine has a switch of its own, accept the arms as labeled.",
			"moebalance compare --trust-arms NORMAL PERFECT"})
	}
	return steps
}

// Slowest says what balance changes, the expert compute of the slowest rank: of the step's GPU time a part is waiting.
func Slowest(c *diff.Comparison) string {
	s := c.Ceiling.SlowestExperts
	return fmt.Sprintf("%s of the slowest rank falls from %s to %s per step.", c.Ceiling.Of.ExpertTime(),
		quantity.Duration(s.NormalNS), quantity.Duration(s.PerfectNS))
}

// swapped reports sides that record each other's arm.
func swapped(c *diff.Comparison) bool {
	return slices.ContainsFunc(c.Refusals, func(w router.Warning) bool { return w.Args["why"] == "swapped" })
}

// Refusals say why the sides of a comparison are no two arms of one run.
func Refusals(c *diff.Comparison) (texts []string) {
	for _, w := range c.Refusals {
		if text := caveat.Text(w); w.Subject == "" {
			texts = append(texts, text)
		} else { // what its trace warns of
			texts = append(texts, fmt.Sprintf("the %s side is uncertain: %s", w.Subject, text))
		}
	}
	return texts
}

// warns reports a warning of this code.
func warns(c *diff.Comparison, code string) bool {
	return slices.ContainsFunc(c.Warnings, func(w router.Warning) bool { return w.Code == code })
}

// clause is a sentence from a prefix and a text, or the other one where that has too many words.
func clause(prefix, text, other string) string {
	if line := prefix + strings.TrimSuffix(text, ".") + "."; len(strings.Fields(line)) <= MaxWords &&
		utf8.RuneCountInString(line) <= MaxRunes {
		return line
	}
	return other
}

// refusal is a line with the first reason, or the other one where that is too long, and the
// reasons that it does not say.
func refusal(head string, why []string, other string) (line string, rest []string) {
	if line = clause(head, why[0], ""); line != "" {
		why = why[1:]
	} else if at := strings.IndexAny(why[0], ":,;"); at > 0 { // its first clause
		if line = clause(head, why[0][:at], other); line != other && why[0][at] != ',' {
			why[0] = strings.TrimSpace(why[0][at+1:])
		}
	} else {
		line = other
	}
	return line, append([]string{}, reasons(why)...)
}

// reasons are the first three, as sentences.
func reasons(texts []string) (out []string) {
	for _, t := range texts[:min(3, len(texts))] {
		out = append(out, sentence(t))
	}
	return out
}

// fused is the answer where kernels hold the work and the waiting of a rank in one.
func (a *Answer) fused(c *diff.Comparison) {
	a.Verdict = NoVerdict
	a.Line = fmt.Sprintf("One kernel holds a rank's work and its waiting; steps take %s and %s.",
		quantity.Duration(c.Step.NormalNS), quantity.Duration(c.Step.PerfectNS))
	a.Basis = "measured in " + a.Basis
	for i, ns := range []router.Number{c.Step.NormalNS, c.Step.PerfectNS} {
		a.Numbers = append(a.Numbers, NumberOf("GPU time per step, "+gain.Arms[i].Label(), ns, NS, Measured))
	}
	if c.Ceiling.StepGain.Defined() {
		a.Numbers = append(a.Numbers, NumberOf("gain of these steps", c.Ceiling.StepGain, Fraction, Measured))
	}
	a.Reasons = append(a.Reasons, "How much of the change is balance, and what a placement would gain, these traces "+
		"cannot tell.")
	a.Next = append(a.Next, measure)
}

func (a *Answer) builds(c *diff.Comparison) {
	s, names := c.Step, c.Builds
	change := s.PerfectNS/s.NormalNS - 1
	a.Verdict = NoVerdict
	word := "more"
	if change < 0 {
		word = "less"
	}
	a.Line = fmt.Sprintf("Steps of %s take %s %s GPU time than those of %s.", names[1], quantity.Percent(abs(change)),
		word, names[0])
	a.Basis = "measured in " + a.Basis
	a.Numbers = append(a.Numbers, NumberOf("GPU time per step, "+string(names[0]), s.NormalNS, NS, Measured),
		NumberOf("GPU time per step, "+string(names[1]), s.PerfectNS, NS, Measured),
		NumberOf("change", change, Fraction, Measured))
	if p, ok := largestPhase(c); ok {
		a.Reasons = append(a.Reasons, fmt.Sprintf("Most of it is %s: %s per step.", phaseWords(p),
			signed(p.DifferenceNS)))
	}
}

// largestPhase is the phase whose time changes most.
func largestPhase(c *diff.Comparison) (p diff.PhaseChange, ok bool) {
	for _, row := range c.Phases {
		if !ok || abs(row.DifferenceNS) > abs(p.DifferenceNS) {
			p, ok = row, row.DifferenceNS.Defined()
		}
	}
	return p, ok
}

func phaseWords(p diff.PhaseChange) string {
	if p.Collective {
		return "collectives of " + string(p.Phase)
	}
	return string(p.Phase)
}

func abs(n router.Number) router.Number { return max(n, -n) }

// signed writes nanoseconds with their sign.
func signed(ns router.Number) string {
	if ns > 0 {
		return "+" + quantity.Duration(ns)
	}
	return quantity.Duration(ns)
}

func (a *Answer) predicted(c *diff.Comparison) {
	s, measured := c.Split, c.Prediction.Measured
	a.Verdict = NoVerdict
	switch {
	case measured != nil:
		a.Verdict = Verdict(c.Prediction.Verdict)
		a.Line = shown(gain.Perfect.Label(), *measured, c.Prediction.Verdict, "")
		parts := "gain measured, parts predicted from "
		if !s.Known() {
			parts = "gain measured, parts unknown from "
		}
		a.Basis = parts + a.Basis
		a.Numbers = append(a.Numbers, gainOf(*measured))
	case s.Known():
		a.Basis = "predicted from " + a.Basis
		a.Numbers = append(a.Numbers, Number{"gain", s.Gain, Fraction, s.Low, s.High, Predicted})
		kinds, short := "", ""
		if len(c.Kinds) > 0 {
			kinds = " for " + c.Kinds[0].Steps
			short, _, _ = strings.Cut(kinds, " of ")
		}
		// of which steps it is comes before what part makes most of it, and before their time
		if a.Line = cmp.Or(clause("", predictedLine(c, kinds, from(s)), ""), clause("", predictedLine(c, kinds, ""), ""),
			clause("", predictedLine(c, short, ""), "")); a.Line == "" {
			a.Line = predictedLine(c, "", from(s))
			a.Reasons = append(a.Reasons, sentence("the prediction is"+kinds))
		}
	default:
		a.Verdict, a.Line = NoAnswer, "No answer: these traces allow no prediction of the gain."
		for _, w := range c.Warnings {
			if w.Code == diff.FewRanks {
				a.Line = "No answer: " + caveat.Brief(w) + "."
				a.Next = append(a.Next, recordAll)
			}
		}
	}
	if !s.Known() {
		return
	}
	a.Numbers = append(a.Numbers, NumberOf("step with "+gain.Perfect.Label(), s.PerfectNS, NS, basisOfStep(s.Basis)))
	// a gain beside another one needs the same step time, the campaign's
	if p := s.Placement; s.Basis == diff.FromCampaign && p.GainBound.Defined() {
		a.Numbers = append(a.Numbers, Number{"gain of even ranks alone", p.GainBound, Fraction, p.Low, p.High, Predicted})
	} else {
		ranks := s.Parts[0]
		a.Numbers = append(a.Numbers, Number{"saved by even ranks", ranks.SavedNS, NS, ranks.Low * s.PerfectNS,
			ranks.High * s.PerfectNS, Predicted})
	}
	a.partReasons(c)
}

// partReasons say where the gain is, of which steps, and what limits it.
func (a *Answer) partReasons(c *diff.Comparison) {
	for _, w := range c.Warnings {
		if w.Code == diff.CampaignRefused {
			a.Reasons = append(a.Reasons, sentence(caveat.Text(w)))
		}
	}
	if l, ok := mostLoss(c); ok {
		a.Reasons = append(a.Reasons, l)
	}
	for _, k := range c.Kinds[min(1, len(c.Kinds)):] {
		if k.Gain.Defined() {
			a.Reasons = append(a.Reasons, fmt.Sprintf("For %s it would be %s.", k.Steps, speed(k.Gain, "about")))
		}
	}
	if c.Prediction.LateHosts {
		a.Reasons = append(a.Reasons,
			"Ranks wait mostly for late kernel launches (the CPU is behind), which balance does not change.")
	}
}

func basisOfStep(b diff.StepBasis) Basis {
	if b == diff.FromCampaign {
		return Measured
	}
	return Predicted
}

func predictedLine(c *diff.Comparison, kinds, tail string) string {
	s, most := c.Split, "about"
	if !(s.Low > 0) && !(s.High < 0) && s.Low.Defined() {
		return fmt.Sprintf("No gain shown: %s would change speed by %s to %s%s.", gain.Perfect.Label(),
			quantity.Change(s.Low), quantity.Change(s.High), kinds)
	}
	if c.Prediction.LateHosts && s.Gain > 0 {
		most = "at most"
	}
	if warns(c, diff.EqualWorkUnknown) {
		tail = ", if both sides did the same work"
	}
	return fmt.Sprintf("%s would be %s%s%s.", capital(gain.Perfect.Label()), speed(s.Gain, most), kinds, tail)
}

// from names the part that makes most of a gain; a cause is named only if it explains
// more than half.
func from(s diff.Split) string {
	words := map[diff.PartName]string{diff.EvenRanks: "even ranks", diff.EvenExperts: "even expert sizes",
		diff.OtherCompute: "other compute", diff.OtherWaiting: "less waiting"}
	for _, p := range s.Parts {
		if word := words[p.Name]; word != "" && s.Gain > 0 && 2*p.Gain > s.Gain {
			return ", mostly from " + word
		}
	}
	return ""
}

// mostLoss is the layer that holds most of the reduced straggler loss; false where none holds half.
func mostLoss(c *diff.Comparison) (string, bool) {
	var all, most router.Number
	at := router.OptInt(router.NoID)
	for _, s := range c.Stragglers {
		if saved := -s.Change.DifferenceNS; saved.Defined() {
			all += saved
			if saved > most {
				most, at = saved, s.Layer
			}
		}
	}
	if !at.Defined() || !(most > all/2) || len(c.Stragglers) < 2 {
		return "", false
	}
	return fmt.Sprintf("Layer %d holds %s of the loss that balance removes.", at, quantity.Percent(most/all)), true
}
