package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfComparison answers what balance, or a build, changes by the traces of both.
func OfComparison(c *diff.Comparison) Answer {
	a := answering(caveats(c.Warnings, caveat.SeverityOf))
	steps := quantity.Count(c.Perfect.Steps, "step")
	if c.Normal.Steps != c.Perfect.Steps {
		steps = fmt.Sprintf("%d and %s", c.Normal.Steps, steps)
	}
	launches := "of one launch per arm"
	if c.BothInOneLaunch() {
		launches = "per arm in one launch"
	}
	a.Basis = fmt.Sprintf("%s %s · %s", steps, launches, quantity.Count(len(c.Ranks), "rank"))
	if c.Comparable && warns(c, diff.EqualWorkUnknown) {
		a.because("why.work")
	}
	switch {
	case !c.Comparable:
		a.refuse(NotComparable, "compare.refused", Refusals(c))
		a.otherSides(c)
	case c.Builds.Named():
		a.builds(c)
	default:
		a.predicted(c)
		switch {
		case len(a.Next) > 0:
		case a.Verdict == Verdict(gain.Significant):
			a.next("plan", "ranks", len(c.Ranks))
		default:
			a.measure(c.Normal.Treatment)
		}
	}
	return a.few()
}

// refuse leads with the first of the reasons, or of its parts, and adds the others.
func (a *Answer) refuse(v Verdict, key string, why []string) {
	first, rest, _ := strings.Cut(why[0], "; ")
	a.say(v, key, "why", first, "Verdict", capital(string(v)))
	for _, text := range append([]string{rest}, why[1:]...) {
		a.reason(text)
	}
}

// otherSides says what to compare instead.
func (a *Answer) otherSides(c *diff.Comparison) {
	given := launch.Quote(slices.Concat(c.Normal.Exports, c.Perfect.Exports))
	two := len(c.Normal.Exports) == 1 && len(c.Perfect.Exports) == 1
	switch swapped := slices.ContainsFunc(c.Refusals, func(w router.Warning) bool { return w.Args["why"] == "swapped" }); {
	case swapped:
		a.next("swapped", "given", launch.Quote([]string{strings.Join(c.Perfect.Exports, ","),
			strings.Join(c.Normal.Exports, ",")}))
	case len(c.Ranks) == 0 && two: // a pattern without quotes
		a.next("one_arm", "given", given)
		a.next("whole")
	case len(c.Ranks) == 0:
		a.next("whole")
	case c.Builds.Named():
		a.next("builds", "load", loadToFill, "arm", "{arm}", "arms",
			launch.Quote([]string{"--arm", string(c.Builds[0]), "--arm", string(c.Builds[1])}))
	default:
		a.next("both_arms")
		if c.Normal.Arm == string(gain.Normal) && len(c.Refusals) == 1 && c.Refusals[0].Key() == "refused.arm" {
			if !two {
				given = "NORMAL PERFECT"
			}
			a.next("trust", "given", given)
		}
	}
}

// Refusals say why the sides of a comparison are no two arms of one run.
func Refusals(c *diff.Comparison) (texts []string) {
	for _, w := range c.Refusals {
		if text := caveat.Text(w); w.Subject == "" {
			texts = append(texts, text)
		} else { // a warning of its trace
			texts = append(texts, caveat.Say("why.side", "arm", w.Subject, "text", text))
		}
	}
	return append(texts, map[bool][]string{true: {"the sides are no two arms of one run"}}[len(texts) == 0]...)
}

// warns reports a warning of this code.
func warns(c *diff.Comparison, code string) bool {
	return slices.ContainsFunc(c.Warnings, func(w router.Warning) bool { return w.Code == code })
}

func (a *Answer) builds(c *diff.Comparison) {
	s, names := c.Step, c.Builds
	change := s.PerfectNS/s.NormalNS - 1
	how := map[bool]string{true: "less", false: "more"}[change < 0]
	a.say(NoVerdict, "compare.builds", "one", string(names[0]), "other", string(names[1]), "change", max(change, -change),
		"how", how)
	a.Basis = "measured in " + a.Basis
	a.number("GPU time per step, "+string(names[0]), s.NormalNS, NS, Measured)
	a.number("GPU time per step, "+string(names[1]), s.PerfectNS, NS, Measured)
	a.number("change", change, Fraction, Measured)
	if len(c.Phases) > 0 {
		p := slices.MaxFunc(c.Phases, func(a, b diff.PhaseChange) int {
			return int(max(a.DifferenceNS, -a.DifferenceNS) - max(b.DifferenceNS, -b.DifferenceNS))
		})
		ns, phase := quantity.Duration(p.DifferenceNS), string(p.Phase)
		if p.DifferenceNS > 0 {
			ns = "+" + ns
		}
		if p.Collective {
			phase = "collectives of " + phase
		}
		a.because("why.phase", "phase", phase, "ns", ns)
	}
	a.next("builds", "load", loadToFill, "arm", "{arm}", "arms",
		launch.Quote([]string{"--arm", string(names[0]), "--arm", string(names[1])}))
}

func (a *Answer) predicted(c *diff.Comparison) {
	s, measured := c.Split, c.Prediction.Measured
	switch {
	case measured != nil:
		a.shown(Verdict(c.Prediction.Verdict), gain.Perfect.Label(), *measured, 0, "", "")
		parts := "gain measured, parts unknown from "
		if s.Known() {
			parts = "gain measured, parts predicted from "
		}
		a.Basis = parts + a.Basis
		a.Numbers = append(a.Numbers, gainOf(*measured))
	case s.Known():
		a.Basis = "predicted from " + a.Basis
		a.Numbers = append(a.Numbers, Number{"gain", s.Gain, Fraction, s.Low, s.High, Predicted})
		a.foretell(c)
	default:
		a.say(NoAnswer, "compare.unknown", "why", caveat.Say("compare.none"))
		for _, w := range c.Warnings {
			if w.Code == diff.FewRanks {
				a.say(NoAnswer, "compare.unknown", "why", caveat.Brief(w))
				a.next("ranks")
			}
		}
		return
	}
	if !s.Known() {
		return
	}
	basis := Predicted
	if s.Basis == diff.FromCampaign {
		basis = Measured
	}
	a.number("step with "+gain.Perfect.Label(), s.PerfectNS, NS, basis)
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
			a.reason(caveat.Text(w))
		}
	}
	a.mostLoss(c)
	for _, k := range c.Kinds[min(1, len(c.Kinds)):] {
		if k.Gain.Defined() {
			a.because("why.kind", "steps", k.Steps, "gain", k.Gain)
		}
	}
}

// foretell is the line of a prediction: of which steps, and what makes most of it.
func (a *Answer) foretell(c *diff.Comparison) {
	s, steps := c.Split, ""
	if len(c.Kinds) > 0 {
		steps = c.Kinds[0].Steps
	}
	slower := ""
	if at := slices.IndexFunc(c.Warnings, func(w router.Warning) bool { return w.Code == diff.SlowGPU }); at >= 0 {
		slower = fmt.Sprint(c.Warnings[at].Args["rank"])
	}
	if !(s.Low > 0) && !(s.High < 0) && s.Low.Defined() {
		a.say(NoVerdict, "compare.unshown", "low", s.Low, "high", s.High, "steps", steps, "slower", slower)
		for _, w := range c.Warnings {
			if w.Code == "perfect_not_balanced" || w.Code == "arms_look_alike" {
				a.say(NoVerdict, "compare.unlike", "of", w.Args["of"], "here", w.Args["here"], "there", w.Args["there"])
			}
		}
		return
	}
	args := append([]any{"how", "about", "gain", s.Gain, "steps", steps, "slower", slower}, mostly(s)...)
	if warns(c, diff.EqualWorkUnknown) {
		args = append(args, "work", "the same work")
	}
	a.say(NoVerdict, "compare.gain", args...)
}

var parts = map[diff.PartName]string{diff.EvenRanks: "part.ranks", diff.EvenExperts: "part.experts"}

// mostly names the part that makes most of a gain, which explains more than half of it; where another part
// costs more than half of the gain, both with their times: even ranks save 633 µs and other compute costs 620 µs.
func mostly(s diff.Split) []any {
	var most, cost diff.Part
	for _, p := range s.Parts {
		if parts[p.Name] != "" && p.Gain > most.Gain {
			most = p
		}
		if parts[p.Name] != "" && p.Gain < cost.Gain {
			cost = p
		}
	}
	switch {
	case !(s.Gain > 0) || !(2*most.Gain > s.Gain):
		return nil
	case -2*cost.Gain > s.Gain:
		return []any{"part2", caveat.Say(parts[most.Name]), "saved", most.SavedNS, "part3", caveat.Say(parts[cost.Name]),
			"cost", -cost.SavedNS}
	default:
		return []any{"part", caveat.Say(parts[most.Name])}
	}
}

// mostLoss names the layer that holds most of the loss that balance removes.
func (a *Answer) mostLoss(c *diff.Comparison) {
	if most := c.MostLoss; most.Share > 0.5 {
		a.because("why.loss", "layer", most.Layer, "share", most.Share)
	}
}

// shown is the line of a measured gain: undecided where its interval contains the threshold, unshown where
// it contains 0; a gain below the threshold says so. place and caution say where it was measured and what
// to know first.
func (a *Answer) shown(v Verdict, what string, g gain.Gain, threshold float64, place, caution string) {
	key, below := "bench.gain", 0.0
	if v == Verdict(gain.NotSignificant) && g.High > 0 {
		below = threshold
	}
	switch {
	case v == Verdict(gain.Inconclusive) && g.Low > 0:
		key = "bench.undecided"
	case v == Verdict(gain.Inconclusive):
		key = "bench.open"
	case g.Low <= 0 && g.High >= 0:
		key = "bench.unshown"
	}
	args := []any{"what", what, "What", capital(what), "gain", g.Estimate, "low", g.Low, "high", g.High, "place", place,
		"caution", caution}
	if below > 0 {
		args = append(args, "below", below)
	}
	a.say(v, key, args...)
}

// gainOf is a measured gain; the gain of one launch has a widened interval.
func gainOf(g gain.Gain) Number {
	label := "gain"
	if g.Method == gain.OneLaunch {
		label = "gain, widened interval"
	}
	return Number{label, g.Estimate, Fraction, g.Low, g.High, Measured}
}
