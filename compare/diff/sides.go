package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

func sideOf(t *nsys.Trace, a *armTimes) Side {
	s := Side{Arm: t.Arm, Evidence: t.ArmEvidence, Exports: []string{}, Ranks: ranksOf(t), Steps: len(a.steps),
		OutsideSteps: a.times.OutsideShare, OverSteps: a.times.OverSteps(a.wall), Structure: t.Structure}
	for _, e := range t.Exports {
		s.Exports = append(s.Exports, e.Path)
	}
	return s
}

func ranksOf(t *nsys.Trace) []int {
	seen := map[int]bool{}
	for _, c := range t.Cells {
		seen[c.Rank] = true
	}
	return sorted(seen)
}

// layersOf lists the layers that hold time, nsys.None first where there is time
// outside layers.
func layersOf(t *nsys.Trace) []int {
	seen := map[int]bool{}
	for _, c := range t.Cells {
		seen[int(c.Layer)] = true
	}
	return sorted(seen)
}

// sorted is the members of a set, an empty list for none.
func sorted(set map[int]bool) []int {
	return append([]int{}, slices.Sorted(maps.Keys(set))...)
}

// judgeSides asks whether these are the two arms of one run.
func (c *Comparison) judgeSides(p arms, normal, perfect *nsys.Trace) {
	refuse := func(format string, args ...any) {
		c.Comparable = false
		c.Reasons = append(c.Reasons, fmt.Sprintf(format, args...))
	}
	names := c.Builds.Names()
	for i, side := range []*nsys.Trace{normal, perfect} {
		if len(side.Cells) == 0 {
			refuse("the %s side has no kernel time; kernels of CUDA graphs need --cuda-graph-trace=node", names[i])
		} else if !c.Builds.Named() &&
			!slices.ContainsFunc(side.Cells, func(x nsys.Cell) bool { return slices.Contains(moePhases, x.Phase) }) {
			refuse("the %s side has no MoE kernel, so no routing is compared", names[i])
		}
	}
	if c.Comparable {
		c.judgeExtent(normal, perfect, refuse)
	}
	if c.Comparable {
		c.judgeWork(p, [2]*nsys.Trace{normal, perfect}, refuse)
	}
	if n, p := byPyTorch(normal), byPyTorch(perfect); n != p {
		refuse("one side was recorded by Nsight Systems and the other by PyTorch's profiler, which place kernels by different evidence: record both alike")
	}
	if rank, same := sameRecording(normal, perfect); same {
		refuse("rank %d is the same recording on both sides", rank)
	}
	if c.Builds.Named() {
		return
	}
	c.judgeArms(refuse)
	c.judgeLoad(perfect, refuse)
	c.judgeBalance(perfect, refuse)
}

// byPyTorch reports a trace of PyTorch's profiler.
func byPyTorch(t *nsys.Trace) bool {
	return slices.ContainsFunc(t.Exports,
		func(e nsys.Export) bool { return strings.HasPrefix(e.SchemaVersion, "PyTorch") })
}

// moePhases are those that only an MoE layer has.
var moePhases = []nsys.Phase{nsys.PhaseRouter, nsys.PhaseDispatch, nsys.PhaseExperts, nsys.PhaseCombine}

// judgeExtent wants both arms to have run the same layers and experts on the
// same ranks. A report of a rank can get lost, a layer cannot: every step goes
// through all.
func (c *Comparison) judgeExtent(normal, perfect *nsys.Trace, refuse func(string, ...any)) {
	names := c.Builds.Names()
	if most := max(len(c.Normal.Ranks), len(c.Perfect.Ranks)); 2*len(c.Ranks) < most {
		refuse("the sides have %d of %d ranks in common: %s has %s; %s has %s", len(c.Ranks), most, names[0],
			quantity.Ranges(c.Normal.Ranks), names[1], quantity.Ranges(c.Perfect.Ranks))
	}
	for i, t := range []*nsys.Trace{normal, perfect} {
		if doubt := t.Doubt(); doubt.Code != "" && doubt.Code != nsys.FusedExperts { // which leaves the times of steps
			refuse("the %s side is uncertain: %s", names[i], caveat.Text(doubt))
		}
	}
	if n, p := named(layersOf(normal)), named(layersOf(perfect)); !slices.Equal(n, p) {
		refuse("the sides have different layers: %s has %s; %s has %s", names[0], quantity.Ranges(n), names[1],
			quantity.Ranges(p))
	}
	if n, p := recordedExperts(normal), recordedExperts(perfect); n > 0 && p > 0 && n != p {
		refuse("the recorded load covers %s in the %s arm and %d in the %s arm", quantity.Count(n, "expert"), names[0],
			p, names[1])
	}
}

// recordedExperts is the number of experts of a layer that the load was recorded
// of, 0 where it was not. All layers have as many.
func recordedExperts(t *nsys.Trace) int {
	for _, s := range t.Imbalance {
		if s.Level == router.LevelExpert && s.Quantity == imbalance.Load {
			return s.Parts
		}
	}
	return 0
}

// named is the layers without the time outside layers.
func named(layers []int) []int {
	return slices.DeleteFunc(slices.Clone(layers), func(l int) bool { return l == nsys.None })
}

// OnTrust is the trace taken as the arm that it is given as, where its captures do
// not show that arm: a switch that they do not record, or none in the environment
// at all. The result says so, and what they do say. Whether routing was balanced
// is asked all the same.
func OnTrust(t *nsys.Trace, arm gain.Arm) *nsys.Trace {
	if t.Arm == string(arm) {
		return t
	}
	said := cmp.Or(t.Arm, "nothing")
	trusted := *t
	trusted.Arm = string(arm)
	trusted.ArmEvidence = fmt.Sprintf("accepted as labeled; the captures say %s (%s)", said, t.ArmEvidence)
	trusted.Warnings = append(slices.Clone(t.Warnings), router.Warning{Code: "arm_on_trust",
		Text: fmt.Sprintf("the %s arm is %s", arm, trusted.ArmEvidence)})
	return &trusted
}

// judgeArms holds the sides against the arms that they record.
func (c *Comparison) judgeArms(refuse func(string, ...any)) {
	n, p := c.Normal, c.Perfect
	switch {
	case n.Arm == string(gain.Perfect) && p.Arm == string(gain.Normal):
		refuse("the arms are swapped: the normal side says perfect (%s) and the perfect side says normal (%s)",
			n.Evidence, p.Evidence)
		return
	case n.Arm == "" && p.Arm == "":
		c.warn("arm_unknown", "", "neither side records its arm: both are accepted as labeled")
		return
	case n.Arm == "" || p.Arm == "":
		c.warn("arm_unknown", "", "only one side records its arm")
	}
	for i, s := range []Side{n, p} {
		if s.Arm != "" && s.Arm != string(gain.Arms[i]) {
			refuse("the %s side records the arm %q (%s)", gain.Arms[i], s.Arm, s.Evidence)
		}
	}
}

// judgeLoad asks the recorded load of the perfect arm, where there is one,
// whether its ranks were balanced.
func (c *Comparison) judgeLoad(perfect *nsys.Trace, refuse func(string, ...any)) {
	for _, s := range perfect.Imbalance {
		if s.Level == router.LevelRank && s.Quantity == imbalance.Load && s.Flagged {
			refuse("balance is not proved: the recorded load of the perfect arm has max/mean %s over ranks in layer %d (floor %s)", quantity.Ratio(s.MaxOverMean), s.Layer, quantity.Ratio(s.Floor))
			return
		}
	}
}

// BalancedWithin is the imbalance of expert time over ranks up to which traces of
// the perfect arm pass as balanced, a fraction. Equal load still takes unequal
// time on unequal hardware and in noise: the captures of balanced runs in
// testdata lie below 0.01. It is the imbalance from which this toolkit
// flags a layer, and has nothing to do with the threshold of a verdict on gain.
const BalancedWithin = 0.10

// judgeBalance asks the traces' own times whether perfect routing was balanced,
// and more so than normal routing. Recorded load, which judgeLoad has asked, shows it too.
func (c *Comparison) judgeBalance(perfect *nsys.Trace, refuse func(string, ...any)) {
	if !c.Ceiling.Balancedness.Defined() || !c.Ceiling.PerfectBalancedness.Defined() {
		text := c.Ceiling.Of.ExpertTime() +
			" is not known on two ranks of both arms, so the traces do not show whether routing was balanced"
		loaded := slices.ContainsFunc(perfect.Imbalance,
			func(r imbalance.Row) bool { return r.Level == router.LevelRank && r.Quantity == imbalance.Load })
		if c.Perfect.Arm == "" && !loaded {
			refuse("balance is not proved: the perfect side does not record its arm, and %s", text)
			return
		}
		c.warn("balance_not_measured", "", text)
		return
	}
	inNormal, inPerfect := 1/float64(c.Ceiling.Balancedness), 1/float64(c.Ceiling.PerfectBalancedness)
	text := fmt.Sprintf("%s over ranks has max/mean %s in the normal arm and %s in the perfect arm (per step and layer)", c.Ceiling.Of.ExpertTime(), quantity.Ratio(inNormal), quantity.Ratio(inPerfect))
	switch {
	case inPerfect > 1+BalancedWithin && inPerfect > inNormal:
		refuse("balance is not proved: %s", text)
	case inPerfect > 1+BalancedWithin:
		c.warn("perfect_not_balanced", string(gain.Perfect), text+": uneven hardware, or routing that is not balanced")
	case inPerfect > inNormal:
		c.warn("arms_look_alike", "", text+": no imbalance to remove, or the sides are swapped")
	}
}

// sameRecording is the first rank whose cells are identical on both sides, which
// no two launches are.
func sameRecording(normal, perfect *nsys.Trace) (rank int, same bool) {
	other := cellsByRank(perfect)
	own := cellsByRank(normal)
	for _, rank := range slices.Sorted(maps.Keys(own)) {
		if slices.Equal(own[rank], other[rank]) {
			return rank, true
		}
	}
	return 0, false
}

func cellsByRank(t *nsys.Trace) map[int][]nsys.Cell {
	cells := map[int][]nsys.Cell{}
	for _, c := range t.Cells {
		cells[c.Rank] = append(cells[c.Rank], c)
	}
	return cells
}

// caveats are the limits of the result.
func (c *Comparison) caveats() {
	c.warn("one_launch", "",
		fmt.Sprintf("one launch of each arm (%d and %s): the spread over steps does not cover the variation between launches; for a verdict, run a paired campaign (bench)", c.Normal.Steps, quantity.Count(c.Perfect.Steps, "step")))
	if !c.Ceiling.StepGain.Defined() {
		c.warn("warm_up_differs", "",
			"the arms exclude different numbers of warm-up steps, so one of them still waits in its first step: their GPU time per step is not compared; record more steps")
	}
	var normal, perfect int
	for _, a := range c.Active {
		normal, perfect = normal+a.Normal, perfect+a.Perfect
	}
	text := fmt.Sprintf("%s activates %d experts, %s %d (all layers): at small batches it reads ", gain.Perfect.Label(),
		perfect, gain.Normal.Label(), normal)
	switch {
	case float64(perfect) < (1-activeMargin)*float64(normal):
		c.warn("fewer_active_experts", string(gain.Perfect), text+"fewer weights, a gain that is not balance")
	case float64(perfect) > (1+activeMargin)*float64(normal):
		c.warn("more_active_experts", string(gain.Perfect), text+"more weights, which can cost more than balance gains")
	}
}

// activeMargin is the share by which the arms' numbers of active experts may differ
// before the times are said to be about something else than balance.
const activeMargin = 0.05
