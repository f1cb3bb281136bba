package answer

import (
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

// OfComparison answers what balance, or a build, changes by the traces of both.
func OfComparison(c *diff.Comparison) Answer {
	k := knowing(caveats(c.Warnings, nil))
	k.hooked(c.Normal.Treatment)
	for _, p := range c.Phases {
		k.exchanges(p.Phase, p.Collective && p.NormalNS > 0)
	}
	steps := quantity.Count(c.Perfect.Steps, "step")
	if c.Normal.Steps != c.Perfect.Steps {
		steps = fmt.Sprintf("%d and %s", c.Normal.Steps, steps)
	}
	k.know("ranks", len(c.Ranks), "of_steps", steps, "together", when(c.BothInOneLaunch(), "per arm in one launch"))
	if c.Builds.Named() {
		k.builds(c.Builds)
	}
	switch {
	case !c.Comparable:
		return k.tell(k.refused(c))
	case c.Builds.Named():
		k.wholeSteps(c)
		return k.tell("compare.builds")
	}
	return k.tell(k.predicted(c))
}

// refuse leads with the first of the reasons, and adds the others.
func (k *known) refuse(why []string) {
	k.know("why", why[0])
	for _, text := range why[1:] {
		k.because("rest", text)
	}
}

// refused picks the line of sides that are no two arms of one run, which leads to what to compare instead.
func (k *known) refused(c *diff.Comparison) string {
	k.refuse(Refusals(c))
	sides := []string{strings.Join(c.Normal.Exports, ","), strings.Join(c.Perfect.Exports, ",")}
	first := append(c.Refusals, router.Warning{})[0].Key()
	switch {
	case slices.ContainsFunc(c.Refusals, func(w router.Warning) bool { return w.Key() == "refused.swapped" }):
		k.know("swapped", launch.Quote([]string{sides[1], sides[0]}))
		return "compare.swapped"
	case len(c.Ranks) == 0: // of two files maybe a pattern without quotes
		k.know("one_arm", when(len(c.Normal.Exports)+len(c.Perfect.Exports) == 2, launch.Quote(sides)))
		return "compare.ranks"
	}
	k.slower(c)
	k.know("trusted", when(c.Normal.Arm == string(gain.Normal) && len(c.Refusals) == 1 && first == "refused.arm",
		launch.Quote(sides)))
	return "compare.refused"
}

// builds are the names of two builds, and how a benchmark takes them.
func (k *known) builds(b gain.Builds) {
	one, other := string(b[0]), string(b[1])
	k.know("one", one, "other", other, "arms", launch.Quote([]string{"--arm", one, "--arm", other}))
}

// Refusals say why the sides of a comparison are no two arms of one run.
func Refusals(c *diff.Comparison) (texts []string) {
	for _, w := range c.Refusals {
		of := "" // a warning of its trace
		if w.Subject != "" {
			of = fmt.Sprintf("the %s side is uncertain: ", w.Subject)
		}
		texts = append(texts, of+caveat.Text(w))
	}
	if len(texts) == 0 {
		texts = []string{"the sides are no two arms of one run"}
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

// predicted picks the lines of two arms: by the gain that a campaign measured beside them, else by what they predict.
func (k *known) predicted(c *diff.Comparison) string {
	s := c.Split
	if s.Known() {
		k.parts(c)
	}
	few, partial := warned(c, diff.FewRanks)
	contrary, unlike := warned(c, diff.CampaignUnlike)
	switch {
	case s.Measured != nil:
		k.gain(*s.Measured, Verdict(s.Verdict), gain.Perfect.Label())
		k.know("evidence", "gain measured, parts "+map[bool]string{true: "predicted", false: "unknown"}[s.Known()]+" from")
		if w, apart := warned(c, diff.CampaignApart); apart {
			k.know("predicted", w.Args["predicted"])
		}
		return when(s.Verdict == gain.Significant, "compare.significant|") + "compare.measured"
	case s.Known():
		k.know("evidence", "predicted from", "contrary", when(unlike, caveat.Text(contrary)))
		k.add("gain", Number{"gain", s.Gain, Fraction, s.Low, s.High, Predicted})
		k.foretold(c)
		return "compare.campaign|compare.gain|compare.unlike|compare.unshown"
	case partial:
		k.doubt(few)
	}
	return "compare.few_ranks|compare.unknown"
}

// warned is the warning of the first of some codes that there is.
func warned(c *diff.Comparison, codes ...string) (router.Warning, bool) {
	at := slices.IndexFunc(c.Warnings, func(w router.Warning) bool { return slices.Contains(codes, w.Code) })
	if at < 0 {
		return router.Warning{}, false
	}
	return c.Warnings[at], true
}

// parts are where the gain is, of which steps, and how much of it even ranks alone would give. A gain beside
// another one needs the same step time, the campaign's.
func (k *known) parts(c *diff.Comparison) {
	s, ranks, basis := c.Split, c.Split.Parts[0], Predicted
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
		k.add("saved", Number{"saved by even ranks", ranks.SavedNS, NS, ranks.Low * s.PerfectNS, ranks.High * s.PerfectNS,
			Predicted})
	}
	for _, other := range c.Kinds[min(1, len(c.Kinds)):] {
		gain, how := other.Gain, "predicted"
		if other.Measured != nil {
			gain, how = other.Measured.Estimate, "measured"
		}
		if gain.Defined() {
			k.know("kind", other.Steps, "kind_gain", gain, "measured", when(how == "measured", how))
			k.because("kinds", k.say("of_kind"))
		}
	}
	for _, w := range c.Warnings {
		k.because("kinds", when(w.Code == diff.KindsApart, caveat.Text(w)))
	}
}

// slower names a rank whose GPU is slow.
func (k *known) slower(c *diff.Comparison) {
	if w, slower := warned(c, diff.SlowGPU); slower {
		k.know("slower", fmt.Sprint(w.Args["rank"]))
	}
}

// foretold gathers a prediction: of which steps, and what makes most of it.
func (k *known) foretold(c *diff.Comparison) {
	s := c.Split
	_, unknown := warned(c, diff.EqualWorkUnknown)
	k.know("low", s.Low, "high", s.High, "work", when(unknown, "the same work"))
	if len(c.Kinds) > 0 {
		k.know("steps", c.Kinds[0].Steps)
	}
	if w, late := warned(c, trace.LateLaunches); late {
		k.know("prompt", w.Args["gain"])
	}
	k.slower(c)
	if s.Low > 0 || s.High < 0 || !s.Low.Defined() {
		k.know("gain", s.Gain)
		k.mostly(s)
	} else if w, ok := warned(c, "perfect_not_balanced", "arms_look_alike"); ok {
		k.know("of", w.Args["of"], "here", w.Args["here"], "there", w.Args["there"])
	}
}

// mostly names the part that makes most of a gain, which explains more than half of it; where the other part
// costs more than half of the gain, both with their times: even ranks save 633 µs and even expert sizes cost 620 µs.
func (k *known) mostly(s diff.Split) {
	names := map[diff.PartName]string{diff.EvenRanks: "even ranks", diff.EvenExperts: "even expert sizes"}
	var most, cost diff.Part
	for _, p := range s.Parts {
		if names[p.Name] != "" && p.Gain > most.Gain {
			most = p
		} else if names[p.Name] != "" && p.Gain < cost.Gain {
			cost = p
		}
	}
	switch {
	case !(s.Gain > 0) || !(2*most.Gain > s.Gain):
	case -2*cost.Gain > s.Gain:
		k.know("part2", names[most.Name], "saved", most.SavedNS, "part3", names[cost.Name], "cost", -cost.SavedNS)
	default:
		k.know("part", names[most.Name])
	}
}
