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
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Compared are the arguments that name the normal side's counts, its traces and the other side's, each empty where it
// is not known.
type Compared struct{ Counts, Normal, Perfect string }

// OfComparison answers what balance, or a build, changes by the traces of both.
func OfComparison(c *diff.Comparison, given Compared) Answer {
	k := knowing(caveats(c.Warnings, nil))
	k.know("hook", c.Normal.Treatment, "torch", when(strings.Contains(given.Normal, ".json"), "profiler"),
		"traces", argument.ReplaceAllString(given.Normal, "--trace $0"))
	for _, p := range c.Phases {
		if p.Collective {
			k.exchanges(p.Phase, p.NormalNS)
		}
	}
	steps := when(c.Normal.Steps != c.Perfect.Steps, fmt.Sprintf("%d and ", c.Normal.Steps))
	k.know("ranks", len(c.Ranks), "of_steps", steps+quantity.Count(c.Perfect.Steps, "step"), "together",
		when(c.BothInOneLaunch(), "per arm in one launch"), "slower", warned(c.Warnings, diff.SlowGPU).Args["ranks"],
		"labeled", when(warned(c.Warnings, "arm_unknown", "arm_on_trust").Code != "", "as labeled"))
	if c.Builds.Named() {
		k.builds(c.Builds)
	}
	switch {
	case !c.Comparable:
		k.refused(c, when(given.Normal != "" && given.Perfect != "", given.Perfect+" "+given.Normal))
	case c.Builds.Named():
		k.wholeSteps(c)
	default:
		k.predicted(c)
		if s := c.Split; s.Known() && s.Parts[0].Low > 0 { // else no placement gains
			unused := warned(c.Warnings, trace.OtherSteps).Code != ""
			k.know("counts", cmp.Or(when(!unused, given.Counts), when(s.Measured != nil, "COUNTS")), "movable", "ranks")
		}
	}
	return k.tell("compare")
}

// refuse leads with the first of the reasons, and adds the others.
func (k *known) refuse(why []string) {
	k.know("refusal", "why", "why", append(why, "")[0])
	for _, text := range why[min(1, len(why)):] {
		k.because("rest", text)
	}
}

// refused says why sides are no two arms of one run, and what to compare instead.
func (k *known) refused(c *diff.Comparison, swapped string) {
	k.refuse(Refusals(c))
	is := func(key string) bool {
		return slices.ContainsFunc(c.Refusals, func(w router.Warning) bool { return w.Key() == key })
	}
	sides := []string{strings.Join(c.Normal.Exports, ","), strings.Join(c.Perfect.Exports, ",")}
	two := len(c.Normal.Exports)+len(c.Perfect.Exports) == 2 // maybe a pattern without quotes
	k.know("swapped", when(is("refused.swapped"), cmp.Or(swapped, launch.Quote([]string{sides[1], sides[0]}))),
		"unrecorded", "arms",
		"one_arm", when(len(c.Ranks) == 0 && two, launch.Quote(sides)), "apart", when(len(c.Ranks) == 0, "ranks"),
		"trusted", when(len(c.Ranks) > 0 && c.Normal.Arm == string(gain.Normal) && len(c.Refusals) == 1 && is("refused.arm"),
			launch.Quote(sides)))
}

// builds are the names of two builds, and how a benchmark takes them.
func (k *known) builds(b gain.Builds) {
	one, other := string(b[0]), string(b[1])
	k.know("one", one, "other", other, "arms", launch.Quote([]string{"--arm", one, "--arm", other}))
}

// Refusals say why the sides of a comparison are no two arms of one run.
func Refusals(c *diff.Comparison) (texts []string) {
	for _, w := range c.Refusals {
		of := when(w.Subject != "", fmt.Sprintf("the %s side is uncertain: ", w.Subject)) // a warning of its trace
		texts = append(texts, of+caveat.Text(w))
	}
	return texts
}

// wholeSteps compares whole steps of two builds, and names the phase that changes most.
func (k *known) wholeSteps(c *diff.Comparison) {
	change := c.Step.PerfectNS/c.Step.NormalNS - 1
	k.know("evidence", "measured in", "change", max(change, -change), "less", when(change < 0, "less"))
	k.number("normal", "GPU time per step, "+string(c.Builds[0]), c.Step.NormalNS, NS, Measured)
	k.number("perfect", "GPU time per step, "+string(c.Builds[1]), c.Step.PerfectNS, NS, Measured)
	k.number("change", "change", change, Fraction, Measured)
	most := router.Number(0)
	for _, p := range c.Phases {
		if d := max(p.DifferenceNS, -p.DifferenceNS); d > most {
			most = d
			k.know("phase", when(p.Collective, "collectives of ")+string(p.Phase), "phase_ns", p.DifferenceNS)
		}
	}
}

// predicted gathers the gain that a campaign measured beside two arms, else what they predict.
func (k *known) predicted(c *diff.Comparison) {
	s := c.Split
	k.flat(warned(c.Warnings, trace.LoadWithoutTime), Inferred)
	switch {
	case s.Measured != nil:
		k.gain(*s.Measured, Verdict(s.Verdict), gain.Perfect.Label())
		k.know("evidence", "gain measured, parts "+cmp.Or(when(s.Known(), "predicted"), "unknown")+" from",
			"predicted", warned(c.Warnings, diff.CampaignApart).Args["predicted"],
			"bar", when(s.Verdict == gain.NotSignificant && s.Measured.High > 0, bar(c)))
		if len(c.Kinds) > 0 && c.Kinds[0].Measured != nil { // else of the whole campaign
			k.know("place", " for "+c.Kinds[0].Steps, "loads", "")
		}
	case s.Known():
		k.know("evidence", "predicted from", "doubt", caveat.Text(warned(c.Warnings, diff.CampaignUnlike)))
		k.add("gain", Number{"gain", s.Gain, Fraction, s.Low, s.High, Predicted})
		k.foretold(c)
	case warned(c.Warnings, diff.FewRanks).Code != "":
		k.doubt(warned(c.Warnings, diff.FewRanks))
		k.know("apart", "ranks")
	}
	if s.Known() {
		k.parts(c)
	}
}

// parts are where the gain is, of which steps, and how much of it even ranks bring. A gain beside
// another one needs the same step time, the campaign's.
func (k *known) parts(c *diff.Comparison) {
	s, ranks := c.Split, c.Split.Parts[0]
	basis := map[diff.StepBasis]Basis{diff.FromCampaign: Measured, diff.Profiled: Predicted}[s.Basis]
	k.know("even", ranks.Gain)
	k.number("step", "step with "+gain.Perfect.Label(), s.PerfectNS, NS, basis)
	if basis == Measured {
		if ranks.High < s.Measured.Low {
			k.know("alone", ranks.SavedNS, "all_saved", s.Gain*s.PerfectNS)
		}
	}
	k.add("saved", Number{"saved by even ranks", ranks.SavedNS, NS, ranks.Low * s.PerfectNS, ranks.High * s.PerfectNS,
		Predicted})
	for _, other := range c.Kinds[min(1, len(c.Kinds)):] {
		k.know("kind", other.Steps, "kind_gain", other.Gain, "kind_low", other.Low, "kind_high", other.High, "measured", "",
			"slower_experts", positive(other.SlowestExperts.OfNormal()), "kind_worse", when(other.High < 0, "slower"))
		switch {
		case other.Measured != nil:
			k.know("kind_gain", other.Measured.Estimate, "measured", "measured")
		case other.Low < 0 && other.High > 0:
			k.know("kind_gain", "")
		}
		k.kinds = append(k.kinds, k.say("of_kind"))
	}
	for _, w := range c.Warnings {
		k.kinds = append(k.kinds, when(w.Code == diff.KindsApart, caveat.Text(w)))
	}
}

// foretold gathers a prediction: of which steps, and what makes most of it.
func (k *known) foretold(c *diff.Comparison) {
	s, alike := c.Split, warned(c.Warnings, "perfect_not_balanced", "arms_look_alike")
	k.know("low", s.Low, "high", s.High, "prompt", warned(c.Warnings, trace.LateLaunches).Args["gain"], "work",
		when(warned(c.Warnings, diff.EqualWorkUnknown).Code != "", "the same work"), "of", alike.Args["of"],
		"here", alike.Args["here"], "there", alike.Args["there"],
		"unbalanced", when(alike.Code == "perfect_not_balanced", "perfect"),
		"bar", when(s.Low > 0 && float64(s.High) < thresholdOf(c), bar(c)))
	if len(c.Kinds) > 0 {
		k.know("steps", c.Kinds[0].Steps, "sized", positive(router.Number(c.Kinds[0].Tokens)))
	}
	if s.Low > 0 || s.High < 0 || !s.Low.Defined() {
		k.know("gain", s.Gain)
		k.mostly(s)
	}
}

// thresholdOf is the threshold that a gain is held against, and bar its words: 10 % threshold.
func thresholdOf(c *diff.Comparison) float64 {
	if c.Threshold != nil {
		return *c.Threshold
	}
	return gain.DefaultThreshold
}

func bar(c *diff.Comparison) string { return quantity.Confidence(thresholdOf(c)) + " threshold" }

// mostly names the part that makes most of a gain, if its interval says so. Else, and where the other part costs more
// than a tenth of the gain, both with their times: even ranks save 677 µs and even experts cost 110 µs.
func (k *known) mostly(s diff.Split) {
	most, other := s.Parts[0], s.Parts[1] // what is not explained is no part of balance
	sure := 2*most.Low > s.Gain
	if (other.Gain > most.Gain) == (s.Gain > 0) {
		most, other, sure = other, most, 2*most.High < s.Gain
	}
	if sure && -10*other.Gain <= s.Gain {
		k.know("part", string(most.Name))
		return
	}
	k.know("part2", does(most), "saved", max(most.SavedNS, -most.SavedNS), "part3", does(other),
		"cost", max(other.SavedNS, -other.SavedNS))
}

// does is what a part does to a step: even ranks save.
func does(p diff.Part) string { return string(p.Name) + cmp.Or(when(p.SavedNS < 0, " cost"), " save") }
