package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

func sideOf(t *trace.Trace, a *armTimes) Side {
	s := Side{Arm: t.Arm, Evidence: t.ArmEvidence, Exports: []string{}, Ranks: ranksOf(t), Steps: len(a.steps),
		StepNS: a.times.StepNS(a.wall), Structure: t.Structure, Treatment: t.Treatment()}
	for _, e := range t.Exports {
		s.Exports = append(s.Exports, e.Path)
	}
	return s
}

func ranksOf(t *trace.Trace) []int { return ofCells(t, func(c *trace.Cell) int { return c.Rank }) }

// layersOf lists the layers that hold time, trace.NoID first where there is time
// outside layers.
func layersOf(t *trace.Trace) []int {
	return ofCells(t, func(c *trace.Cell) int { return int(c.Layer) })
}

// ofCells are the numbers of all cells, each once and sorted; an empty list for none.
func ofCells(t *trace.Trace, number func(*trace.Cell) int) []int {
	seen := map[int]bool{}
	for i := range t.Cells {
		seen[number(&t.Cells[i])] = true
	}
	return append([]int{}, slices.Sorted(maps.Keys(seen))...)
}

// judgeSides asks whether these are the two arms of one run.
func (c *Comparison) judgeSides(p arms, normal, perfect *trace.Trace) {
	names := c.Builds.Names()
	for i, side := range []*trace.Trace{normal, perfect} {
		if len(side.Cells) == 0 {
			c.refuse("no_kernels", "arm", names[i])
		} else if !c.Builds.Named() &&
			!slices.ContainsFunc(side.Cells, func(x trace.Cell) bool { return slices.Contains(moePhases, x.Phase) }) {
			c.refuse("no_moe", "arm", names[i])
		}
	}
	if c.Comparable {
		c.judgeExtent(normal, perfect)
	}
	c.warnSlowGPUs([2]*trace.Trace{normal, perfect})
	if c.Comparable {
		c.judgeWork(p, [2]*trace.Trace{normal, perfect})
	}
	if byPyTorch(normal) != byPyTorch(perfect) {
		c.refuse("profilers")
	}
	if rank, same := sameRecording(normal, perfect); same {
		c.refuse("same_recording", "rank", rank)
	}
	if c.Builds.Named() {
		return
	}
	if c.judgeArms() {
		c.judgeLoad(perfect)
		if len(c.Ranks) > 0 { // else it is not this that is unknown
			c.judgeBalance(perfect)
		}
	}
}

// refuse says why the sides are no two arms of one run.
func (c *Comparison) refuse(why string, args ...any) {
	c.Comparable = false
	args = append(args, "why", why)
	c.Refusals = append(c.Refusals, router.Warn("refused", "", args...))
}

// byPyTorch reports a trace of PyTorch's profiler.
func byPyTorch(t *trace.Trace) bool {
	return slices.ContainsFunc(t.Exports,
		func(e trace.Export) bool { return strings.HasPrefix(e.SchemaVersion, "PyTorch") })
}

// moePhases are those that only an MoE layer has.
var moePhases = []trace.Phase{trace.PhaseRouter, trace.PhaseDispatch, trace.PhaseExperts, trace.PhaseCombine}

// judgeExtent wants both arms to have run the same layers and experts on the
// same ranks. A report of a rank can get lost, a layer cannot: every step goes
// through all.
func (c *Comparison) judgeExtent(normal, perfect *trace.Trace) {
	names := c.Builds.Names()
	if here, there := normal.World, perfect.World; here.Defined() && there.Defined() && here != there {
		c.refuse("worlds", "arm", names[0], "here", int(here), "other", names[1], "there", int(there))
	}
	if most := max(len(c.Normal.Ranks), len(c.Perfect.Ranks)); 2*len(c.Ranks) < most {
		c.refuse("ranks", "common", len(c.Ranks), "all", most, "arm", names[0], "ranks", c.Normal.Ranks,
			"other", names[1], "others", c.Perfect.Ranks)
	}
	for i, t := range []*trace.Trace{normal, perfect} {
		if doubt := t.Doubt(); doubt.Code != "" && doubt.Code != trace.FusedExperts { // which leaves the times of steps
			c.Comparable, doubt.Subject = false, string(names[i])
			c.Refusals = append(c.Refusals, doubt)
		}
	}
	if n, p := named(layersOf(normal)), named(layersOf(perfect)); !slices.Equal(n, p) {
		c.refuse("layers", "arm", names[0], "layers", n, "other", names[1], "others", p)
	}
	if n, p := recordedExperts(normal), recordedExperts(perfect); n > 0 && p > 0 && n != p {
		c.refuse("loads", "experts", n, "arm", names[0], "others", p, "other", names[1])
	}
}

// recordedExperts is the number of experts of a layer that the load was recorded
// of, 0 where it was not. All layers have as many.
func recordedExperts(t *trace.Trace) int {
	for _, s := range t.Imbalance {
		if s.Level == router.LevelExpert && s.Quantity == imbalance.Load {
			return s.Parts
		}
	}
	return 0
}

// named is the layers without the time outside layers.
func named(layers []int) []int {
	return slices.DeleteFunc(slices.Clone(layers), func(l int) bool { return l == trace.NoID })
}

// AssumeArm is the trace taken as the arm that it is given as, where its captures do
// not show that arm: a switch that they do not record, or none in the environment
// at all. The result says so, and what they do say. Whether routing was balanced
// is asked all the same.
func AssumeArm(t *trace.Trace, arm gain.Arm) *trace.Trace {
	if t.Arm == string(arm) {
		return t
	}
	said := cmp.Or(t.Arm, "nothing")
	trusted := *t
	trusted.Arm = string(arm)
	trusted.ArmEvidence = fmt.Sprintf("accepted as labeled; the captures say %s (%s)", said, t.ArmEvidence)
	trusted.Warnings = append(slices.Clone(t.Warnings),
		router.Warn("arm_on_trust", "", "arm", arm, "said", said, "evidence", t.ArmEvidence))
	return &trusted
}

// judgeArms holds the sides against the arms that they record; false where each is the other's.
func (c *Comparison) judgeArms() bool {
	n, p := c.Normal, c.Perfect
	switch {
	case n.Arm == string(gain.Perfect) && p.Arm == string(gain.Normal):
		c.refuse("swapped", "arm", gain.Normal, "evidence", n.Evidence, "other", gain.Perfect, "others", p.Evidence)
		return false
	case n.Arm == "" && p.Arm == "":
		c.warn("arm_unknown", "", "why", "both")
		return true
	case n.Arm == "" || p.Arm == "":
		c.warn("arm_unknown", "", "why", "one")
	}
	for i, s := range []Side{n, p} {
		if s.Arm != "" && s.Arm != string(gain.Arms[i]) {
			c.refuse("arm", "arm", gain.Arms[i], "recorded", s.Arm, "evidence", s.Evidence)
		}
	}
	return true
}

// judgeLoad asks the recorded load of the perfect arm, where there is one,
// whether its ranks were balanced.
func (c *Comparison) judgeLoad(perfect *trace.Trace) {
	for _, s := range perfect.Imbalance {
		if s.Level == router.LevelRank && s.Quantity == imbalance.Load && s.Flagged {
			c.refuse("load", "arm", gain.Perfect, "load", s.MaxOverMean, "layer", s.Layer, "floor", s.Floor)
			return
		}
	}
}

// balancedWithin is the imbalance of expert time over ranks up to which traces of
// the perfect arm pass as balanced, a fraction. Equal load still takes unequal
// time on unequal hardware and in noise: the captures of balanced runs in
// testdata lie below 0.01. It is the imbalance from which this toolkit
// flags a layer, and has nothing to do with the threshold of a verdict on gain.
const balancedWithin = 0.10

// judgeBalance asks the traces' own times whether perfect routing was balanced,
// and more so than normal routing. Recorded load, which judgeLoad has asked, shows it too.
func (c *Comparison) judgeBalance(perfect *trace.Trace) {
	inNormal, inPerfect, known := c.Ceiling.maxOverMean()
	if !known {
		if c.Perfect.Arm == "" && !rankLoad(perfect) {
			c.refuse("unmeasured", "arm", gain.Perfect, "of", c.Ceiling.Of.ExpertTime())
			return
		}
		c.warn("balance_not_measured", "", "of", c.Ceiling.Of.ExpertTime())
		return
	}
	args := []any{"of", c.Ceiling.Of.ExpertTime(), "arm", gain.Normal, "here", inNormal, "other", gain.Perfect,
		"there", inPerfect}
	_, _, slow := perfect.SlowGPU()
	switch {
	case slow: // whose experts take longer, whatever their load
	case inPerfect > 1+balancedWithin && inNormal <= 1+balancedWithin && c.Normal.Arm == "" && c.Perfect.Arm == "":
		over := c.Ceiling.Of.ExpertTime() + " over ranks has max/mean "
		c.refuse("swapped", "arm", gain.Normal, "evidence", over+quantity.Decimals(inNormal, 3), "other", gain.Perfect,
			"others", quantity.Decimals(inPerfect, 3))
	case inPerfect > 1+balancedWithin && inPerfect > inNormal:
		c.refuse("unbalanced", args...)
	case inPerfect > 1+balancedWithin:
		c.warn("perfect_not_balanced", string(gain.Perfect), args...)
	case inPerfect > inNormal:
		c.warn("arms_look_alike", "", args...)
	}
}

// rankLoad reports whether the load of ranks was recorded.
func rankLoad(t *trace.Trace) bool {
	return slices.ContainsFunc(t.Imbalance,
		func(r imbalance.Row) bool { return r.Level == router.LevelRank && r.Quantity == imbalance.Load })
}

// warnSlowGPUs names a rank of either arm that takes longer for what all ranks run alike.
func (c *Comparison) warnSlowGPUs(sides [2]*trace.Trace) {
	for i, t := range sides {
		if rank, by, slow := t.SlowGPU(); slow {
			c.warn(SlowGPU, string(c.Builds.Names()[i]), "rank", rank, "by", by)
		}
	}
}

// SlowGPU is the code of the warning of a rank that takes longer for equal work.
const SlowGPU = "slow_gpu"

// sameRecording is the first rank whose cells are identical on both sides, which
// no two launches are.
func sameRecording(normal, perfect *trace.Trace) (rank int, same bool) {
	other := cellsByRank(perfect)
	own := cellsByRank(normal)
	for _, rank := range slices.Sorted(maps.Keys(own)) {
		if slices.Equal(own[rank], other[rank]) {
			return rank, true
		}
	}
	return 0, false
}

func cellsByRank(t *trace.Trace) map[int][]trace.Cell {
	cells := map[int][]trace.Cell{}
	for _, c := range t.Cells {
		cells[c.Rank] = append(cells[c.Rank], c)
	}
	return cells
}

// caveats are the limits of the result.
func (c *Comparison) caveats() {
	if c.BothInOneLaunch() {
		c.warn("one_launch", "", "steps", c.Normal.Steps, "others", c.Perfect.Steps, "why", "both")
	} else {
		c.warn("one_launch", "", "steps", c.Normal.Steps, "others", c.Perfect.Steps)
	}
	c.warnOfSwitch()
}

// leastSwitch is the share of a step from which the cost of the switch is told.
const leastSwitch = 0.002

// warnOfSwitch tells what routing takes longer in the perfect arm, whose experts another place chooses: the
// replay keeps the normal arm's routing, and a measured gain has it in.
func (c *Comparison) warnOfSwitch() {
	for _, p := range c.Phases {
		if p.Phase == trace.PhaseRouter && !p.Collective && p.DifferenceNS > leastSwitch*c.Step.NormalNS {
			c.warn("switch_cost", "", "ns", p.DifferenceNS, "share", p.DifferenceNS/c.Step.PerfectNS)
		}
	}
}
