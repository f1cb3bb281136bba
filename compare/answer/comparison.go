package answer

import (
	"cmp"
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
	k := knowing(caveats(c.Warnings, nil))
	k.hooked(c.Normal.Treatment)
	k.know("ranks", len(c.Ranks))
	steps, launches := quantity.Count(c.Perfect.Steps, "step"), "of one launch per arm"
	if c.Normal.Steps != c.Perfect.Steps {
		steps = fmt.Sprintf("%d and %s", c.Normal.Steps, steps)
	}
	if c.BothInOneLaunch() {
		launches = "per arm in one launch"
	}
	k.basis = fmt.Sprintf("%s %s · %s", steps, launches, quantity.Count(len(c.Ranks), "rank"))
	switch {
	case !c.Comparable:
		return k.tell(k.refused(c))
	case c.Builds.Named():
		k.basis = "measured in " + k.basis
		k.wholeSteps(c)
		return k.tell("compare.builds")
	}
	return k.tell(k.predicted(c))
}

// refuse leads with the first of the reasons, or of its parts, and adds the others.
func (k *known) refuse(why []string) {
	first, rest, _ := strings.Cut(why[0], "; ")
	k.know("why", first)
	for _, text := range append([]string{rest}, why[1:]...) {
		k.because("rest", text)
	}
}

// refused picks the line of sides that are no two arms of one run, which leads to what to compare instead.
func (k *known) refused(c *diff.Comparison) string {
	k.refuse(Refusals(c))
	switch {
	case slices.ContainsFunc(c.Refusals, func(w router.Warning) bool { return w.Args["why"] == "swapped" }):
		k.know("swapped", launch.Quote([]string{strings.Join(c.Perfect.Exports, ","), strings.Join(c.Normal.Exports, ",")}))
		return "compare.swapped"
	case len(c.Ranks) == 0:
		if len(c.Normal.Exports) == 1 && len(c.Perfect.Exports) == 1 { // a pattern without quotes
			k.know("one_arm", launch.Quote([]string{c.Normal.Exports[0], c.Perfect.Exports[0]}))
		}
		return "compare.ranks"
	case c.Builds.Named():
		k.builds(c.Builds[0], c.Builds[1])
	case c.Normal.Arm == string(gain.Normal) && len(c.Refusals) == 1 && c.Refusals[0].Key() == "refused.arm":
		k.know("trusted", "NORMAL PERFECT")
		if len(c.Normal.Exports) == 1 && len(c.Perfect.Exports) == 1 {
			k.know("trusted", launch.Quote([]string{c.Normal.Exports[0], c.Perfect.Exports[0]}))
		}
	}
	return "compare.refused"
}

// builds are the names of two builds, and how a benchmark takes them.
func (k *known) builds(one, other gain.Arm) {
	k.know("one", string(one), "other", string(other), "load_to_fill", loadToFill, "arm_to_fill", "{arm}",
		"arms", launch.Quote([]string{"--arm", string(one), "--arm", string(other)}))
}

// Refusals say why the sides of a comparison are no two arms of one run.
func Refusals(c *diff.Comparison) (texts []string) {
	for _, w := range c.Refusals {
		text := caveat.Text(w)
		if w.Subject != "" { // a warning of its trace
			text, _ = caveat.Say("side", router.Args{"arm": w.Subject, "text": text})
		}
		texts = append(texts, text)
	}
	return append(texts, map[bool][]string{true: {"the sides are no two arms of one run"}}[len(texts) == 0]...)
}

// wholeSteps compares whole steps of two builds, and names the phase that changes most.
func (k *known) wholeSteps(c *diff.Comparison) {
	s, names := c.Step, c.Builds
	change := s.PerfectNS/s.NormalNS - 1
	k.builds(names[0], names[1])
	k.know("change", max(change, -change), "how", map[bool]string{true: "less", false: "more"}[change < 0])
	k.number("normal", "GPU time per step, "+string(names[0]), s.NormalNS, NS, Measured)
	k.number("perfect", "GPU time per step, "+string(names[1]), s.PerfectNS, NS, Measured)
	k.number("change", "change", change, Fraction, Measured)
	if len(c.Phases) > 0 {
		p := slices.MaxFunc(c.Phases, func(a, b diff.PhaseChange) int {
			return cmp.Compare(max(a.DifferenceNS, -a.DifferenceNS), max(b.DifferenceNS, -b.DifferenceNS))
		})
		k.know("phase", string(p.Phase), "phase_ns", p.DifferenceNS)
		if p.Collective {
			k.know("phase", "collectives of "+string(p.Phase))
		}
	}
}

// predicted picks the line of two arms: the gain that a campaign measured beside them, else what they predict.
func (k *known) predicted(c *diff.Comparison) string {
	s, measured, line := c.Split, c.Split.Measured, "compare.measured"
	few, partial := warned(c, diff.FewRanks)
	switch {
	case measured != nil:
		k.gain(*measured, Verdict(s.Verdict), gain.Perfect.Label())
		parts := map[bool]string{true: "predicted", false: "unknown"}[s.Known()]
		k.basis = "gain measured, parts " + parts + " from " + k.basis
		if k.verdict == Verdict(gain.Significant) {
			line = "compare.significant"
		}
	case s.Known():
		k.basis = "predicted from " + k.basis
		k.add("gain", Number{"gain", s.Gain, Fraction, s.Low, s.High, Predicted})
		line = k.foretold(c)
		if contrary, ok := warned(c, diff.CampaignUnlike); ok {
			k.know("doubt", caveat.Text(contrary))
			line = "compare.campaign"
		}
	case partial:
		k.doubt(few)
		return "compare.few_ranks"
	default:
		k.know("doubt", "these traces allow no prediction of the gain")
		return "compare.unknown"
	}
	if refused, ok := warned(c, diff.CampaignRefused); ok {
		k.because("campaign", caveat.Text(refused))
	}
	if s.Known() {
		k.parts(c)
	}
	return line
}

// warned is the warning of a code, if there is one.
func warned(c *diff.Comparison, code string) (router.Warning, bool) {
	at := slices.IndexFunc(c.Warnings, func(w router.Warning) bool { return w.Code == code })
	if at < 0 {
		return router.Warning{}, false
	}
	return c.Warnings[at], true
}

// parts are where the gain is, of which steps, and how much of it even ranks alone would give. A gain beside
// another one needs the same step time, the campaign's.
func (k *known) parts(c *diff.Comparison) {
	s, basis := c.Split, Predicted
	if s.Basis == diff.FromCampaign {
		basis = Measured
	}
	k.number("step", "step with "+gain.Perfect.Label(), s.PerfectNS, NS, basis)
	if p := s.Placement; basis == Measured && p.GainBound.Defined() {
		k.add("alone", Number{"gain of even ranks alone", p.GainBound, Fraction, p.Low, p.High, Predicted})
		if p.High < s.Measured.Low {
			k.know("alone", p.GainBound)
		}
	} else {
		ranks := s.Parts[0]
		k.add("saved", Number{"saved by even ranks", ranks.SavedNS, NS, ranks.Low * s.PerfectNS, ranks.High * s.PerfectNS,
			Predicted})
	}
	if most := c.MostLoss; most.Share > 0.5 {
		k.know("loss_layer", most.Layer, "loss_share", most.Share)
	}
	for _, other := range c.Kinds[min(1, len(c.Kinds)):] {
		if other.Gain.Defined() {
			k.know("kind", other.Steps, "kind_gain", other.Gain)
			k.because("kinds", k.say("kind"))
		}
	}
}

// foretold picks the line of a prediction: of which steps, and what makes most of it.
func (k *known) foretold(c *diff.Comparison) string {
	s := c.Split
	k.know("gain", s.Gain, "low", s.Low, "high", s.High)
	if len(c.Kinds) > 0 {
		k.know("steps", c.Kinds[0].Steps)
	}
	if w, ok := warned(c, diff.SlowGPU); ok {
		k.know("slower", fmt.Sprint(w.Args["rank"]))
	}
	if _, unknown := warned(c, diff.EqualWorkUnknown); unknown {
		k.know("work", "the same work")
	}
	if s.Low > 0 || s.High < 0 || !s.Low.Defined() {
		k.mostly(s)
		return "compare.gain"
	}
	for _, code := range []string{"perfect_not_balanced", "arms_look_alike"} {
		if w, ok := warned(c, code); ok {
			k.know("of", w.Args["of"], "here", w.Args["here"], "there", w.Args["there"])
			return "compare.unlike"
		}
	}
	return "compare.unshown"
}

// partNames are the parts that a sentence names, by their rows.
var partNames = map[diff.PartName]string{diff.EvenRanks: "part.even_ranks", diff.EvenExperts: "part.even_experts"}

// mostly names the part that makes most of a gain, which explains more than half of it; where another part
// costs more than half of the gain, both with their times: even ranks save 633 µs and even expert sizes cost 620 µs.
func (k *known) mostly(s diff.Split) {
	var most, cost diff.Part
	for _, p := range s.Parts {
		if partNames[p.Name] != "" && p.Gain > most.Gain {
			most = p
		}
		if partNames[p.Name] != "" && p.Gain < cost.Gain {
			cost = p
		}
	}
	switch {
	case !(s.Gain > 0) || !(2*most.Gain > s.Gain):
	case -2*cost.Gain > s.Gain:
		k.know("part2", k.say(partNames[most.Name]), "saved", most.SavedNS, "part3", k.say(partNames[cost.Name]),
			"cost", -cost.SavedNS)
	default:
		k.know("part", k.say(partNames[most.Name]))
	}
}
