package answer

import (
	"testing"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Sides that cannot be compared are given otherwise: two files as ranks of one arm, or whole arms.
func TestOtherSides(t *testing.T) {
	side := func(arm string, exports ...string) diff.Side { return diff.Side{Arm: arm, Exports: exports} }
	refused := func(all ...string) (list []router.Warning) {
		for _, why := range all {
			list = append(list, router.Warn("refused", "", "why", why))
		}
		return list
	}
	const whole, record = "moebalance compare NORMAL_DIR PERFECT_DIR", "moebalance profile --dir normal -- " +
		"YOUR_COMMAND && moebalance profile --dir perfect --perfect -- YOUR_COMMAND && moebalance compare normal perfect"
	for want, c := range map[string]diff.Comparison{
		whole: {Normal: side("", "a", "b"), Perfect: side("", "c"), Refusals: refused("ranks")},
		record + "; moebalance compare --trust-arms a b": {Ranks: []int{0}, Normal: side("normal", "a"),
			Perfect: side("normal", "b"), Refusals: refused("arm")},
		record: {Ranks: []int{0}, Normal: side("normal", "a"), Perfect: side("normal", "a"),
			Refusals: refused("same_recording", "arm")}, // which trust does not mend
		"moebalance bench --arm old --arm new": {Ranks: []int{0}, Normal: side("normal", "a"), Perfect: side("normal", "b"),
			Builds: gain.Builds{"old", "new"}, Refusals: refused("layers")},
		"moebalance compare b a": {Ranks: []int{0}, Normal: side("perfect", "a"), Perfect: side("normal", "b"),
			Refusals: refused("swapped")},
	} {
		check(t, want, OfComparison(&c, Compared{}), Verdict(gain.NotComparable), "Not comparable: ", "", want)
	}
}

// split is a predicted gain with these parts, as fractions of a step of 1 ms.
func split(ranks, compute router.Number) diff.Comparison {
	c := diff.Comparison{Comparable: true, Ranks: []int{0, 1}}
	whole := ranks + compute
	c.Split = diff.Split{Gain: whole, Low: whole - 0.001, High: whole + 0.001, PerfectNS: 1e6, Basis: diff.Profiled,
		Parts: []diff.Part{{Name: diff.EvenRanks, SavedNS: 1e6 * ranks, Gain: ranks, Low: ranks - 0.01, High: ranks + 0.01},
			{Name: diff.EvenExperts, SavedNS: 1e6 * compute, Gain: compute}}}
	return c
}

// A prediction names the part that surely makes most of it, else both, as where one costs more than a tenth of the whole.
// Two sides that are equally uneven show no gain, and why; where nothing shows equal work, the line depends on it.
func TestPredictions(t *testing.T) {
	warned := func(c diff.Comparison, code string, here, there float64) diff.Comparison {
		c.Warnings = []router.Warning{router.Warn(code, "", "of", "expert time", "arm", "normal", "other", "perfect",
			"here", here, "there", there)}
		return c
	}
	unknown := split(0.0001, 0)
	unknown.Warnings = []router.Warning{router.Warn(diff.EqualWorkUnknown, "", "share", 0.02)}
	zero := split(0.05, 0)
	zero.Threshold = new(float64) // as given
	for want, c := range map[string]diff.Comparison{
		"about 5.0 % faster, mostly from even ranks.":                                             zero,
		"about 10.0 % faster, mostly from even ranks.":                                            split(0.11, -0.01),
		"about 10.0 % faster, mostly from even experts.":                                          split(0.039, 0.061),
		"about 10.0 % faster, as even ranks save 59.0 µs and even experts save 41.0 µs per step.": split(0.059, 0.041),
		"about 5.0 % slower, as even experts cost 60.0 µs and even ranks save 10.0 µs per step.":  split(0.01, -0.06),
		"about 10.0 % faster, as even ranks save 115 µs and even experts cost 15.0 µs per step.":  split(0.115, -0.015),
		"speed by −0.1 % to +0.1 %, if both sides did the same work.":                             unknown,
		"about 30.0 % faster, as even ranks save 633 µs and even experts cost 333 µs per step.":   split(0.633, -0.333),
		"The perfect side is not balanced: its expert time over ranks has max/mean 1.480, the normal side's 1.500.": warned(
			split(0.0001, 0), "perfect_not_balanced", 1.5, 1.48),
		"max/mean 1.174, the normal side's 1.290; its routing would be about 4.0 % faster.": warned(split(0.1, -0.06),
			"perfect_not_balanced", 1.29, 1.174),
	} {
		check(t, want, OfComparison(&c, Compared{}), Verdict(gain.NoVerdict), want, "", "moebalance bench -- YOUR_BENCHMARK")
	}
	even := warned(split(0.0001, 0), "arms_look_alike", 1.003, 1.0031)
	check(t, "even", OfComparison(&even, Compared{}), Verdict(gain.NoVerdict),
		"Both sides are even: expert time over ranks has max/mean 1.003 and 1.003; there is nothing to gain here.", "", "profile")
}

// Each kind of steps has its interval; one that holds 0 tells no gain.
func TestKindsOfSteps(t *testing.T) {
	c := split(0.11, -0.001)
	c.Kinds = []diff.KindChange{{Steps: "prefill steps"}, {Steps: "decode steps", Gain: -0.032, Low: -0.05, High: -0.015},
		{Steps: "small steps", Gain: 0.002, Low: -0.01, High: 0.014},
		{Steps: "one step", Gain: -0.048, Low: router.Undefined(), High: router.Undefined()}}
	for _, want := range []string{"For decode steps it would be about 3.2 % slower (−5.0 % to −1.5 %); leave routing as it is there.",
		"For small steps it cannot be told: speed would change by −1.0 % to +1.4 %; bench measures it.",
		"For one step it would be about 4.8 % slower, as far as one step tells."} {
		check(t, want, OfComparison(&c, Compared{}), Verdict(gain.NoVerdict), "for prefill steps", want, "")
	}
}
