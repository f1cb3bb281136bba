package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Work is a quantity that balance cannot change, in both arms: where they differ in it by more than
// Allowed, they did different work, and no difference of time is a gain.
type Work struct {
	Quantity string        `json:"quantity"`
	Unit     string        `json:"unit"`
	Normal   router.Number `json:"normal"`
	Perfect  router.Number `json:"perfect"`
	// Differs is the larger over the smaller, minus 1; undefined where one is 0. Of a share of time in
	// kernels of one arm it is a share itself.
	Differs router.Number `json:"differs"`
	Allowed float64       `json:"allowed"`
	Equal   bool          `json:"equal"`
}

// The most that the arms may differ in, as fractions. The pairs of testdata whose arms ran on equally fast GPUs
// differ in compute outside the MoE blocks by at most 0.0198.
const (
	tokensMargin  = 0.01
	computeMargin = 0.02
	backendMargin = 0.1
	// mostNoise is the standard error of compute outside the MoE blocks up to which the margin is meant for
	// the true difference: steps whose sizes differ have more.
	mostNoise = 0.002
	// leastOutside is the share of compute outside the MoE blocks below which it says nothing.
	leastOutside = 0.02
)

// balancedWithin is the imbalance of expert time over ranks up to which traces of the perfect arm pass as
// balanced. Equal load still takes unequal time on unequal hardware and in noise: 15 balanced runs in testdata
// have 0.003 to 0.027. It has nothing to do with the threshold of a verdict on gain.
const balancedWithin = 0.10

// outsidePhases are the phases that balance does not change.
var outsidePhases = []trace.Phase{trace.PhaseAttention, trace.PhaseOther}

// share is the unit of quantities that differ by a share themselves.
const share = "share"

// refuse says why the sides are no two arms of one run.
func (c *Comparison) refuse(why string, args ...any) {
	c.Comparable = false
	c.Refusals = append(c.Refusals, router.Warn("refused", "", append(args, "why", why)...))
}

// check notes a quantity, and refuses sides that differ in it: by the ratio of its values, undefined where one is 0,
// but for shares.
func (c *Comparison) check(why string, w Work, args ...any) {
	if w.Unit != share {
		w.Differs = max(w.Normal, w.Perfect)/min(w.Normal, w.Perfect) - 1
	}
	w.Equal = w.Differs <= router.Number(w.Allowed)
	if c.Work = append(c.Work, w); !w.Equal {
		names := c.Builds.Names()
		c.refuse(why, append(args, "arm", names[0], "other", names[1], "here", w.Normal, "there", w.Perfect)...)
	}
}

// judge asks whether these are the two arms of one run, which did the same work. Of two builds nothing is
// asked about arms and balance.
func (c *Comparison) judge(a arms) {
	for i, name := range c.Builds.Names() {
		routed := func(x trace.Cell) bool { return slices.Contains(kernel.Routed, x.Phase) }
		if cells := a[i].trace.Cells; len(cells) == 0 || !c.Builds.Named() && !slices.ContainsFunc(cells, routed) {
			c.refuse("no_moe", "arm", name)
		}
		if ranks, by := a[i].trace.SlowGPUs(); len(ranks) > 0 {
			c.warn(SlowGPU, string(name), "ranks", ranks, "by", by)
		}
	}
	if c.Comparable {
		c.judgeExtent(a)
	}
	if c.Comparable {
		c.judgeWork(a)
	}
	if a[0].trace.ByPyTorch() != a[1].trace.ByPyTorch() {
		c.refuse("profilers")
	}
	same := func(rank int) bool { return slices.Equal(a[0].cells(rank), a[1].cells(rank)) }
	if at := slices.IndexFunc(c.Ranks, same); at >= 0 { // no two launches are the same
		c.refuse("same_recording", "rank", c.Ranks[at])
	}
	if !c.Builds.Named() && c.judgeArms() {
		c.judgeBalance(a)
	}
}

// cells are the cells of a rank.
func (a *arm) cells(rank int) []trace.Cell {
	return slices.DeleteFunc(slices.Clone(a.trace.Cells), func(c trace.Cell) bool { return c.Rank != rank })
}

// judgeExtent wants both arms to have run the same layers on the same ranks. A report of a rank can get
// lost, a layer cannot: every step goes through all.
func (c *Comparison) judgeExtent(a arms) {
	names := c.Builds.Names()
	if here, there := a[0].trace.World, a[1].trace.World; here.Defined() && there.Defined() && here != there {
		c.refuse("worlds", "arm", names[0], "here", int(here), "other", names[1], "there", int(there))
	}
	if most := max(len(c.Normal.Ranks), len(c.Perfect.Ranks)); 2*len(c.Ranks) < most {
		c.refuse("ranks", "common", len(c.Ranks), "all", most, "arm", names[0], "ranks", c.Normal.Ranks,
			"other", names[1], "others", c.Perfect.Ranks)
	}
	for i := range a {
		doubt := a[i].trace.Doubt()
		if doubt.Code != "" && !(c.Builds.Named() && doubt.Code == trace.FusedExperts) { // whose steps have times
			c.Comparable, doubt.Subject = false, string(names[i])
			c.Refusals = append(c.Refusals, doubt)
		}
	}
	if n, p := named(layersOf(a[0].trace)), named(layersOf(a[1].trace)); !slices.Equal(n, p) {
		c.refuse("layers", "arm", names[0], "layers", n, "other", names[1], "others", p)
	}
}

// judgeWork asks whether both arms did the same work. Two builds may compute otherwise, of the same model and
// as many tokens. Experts and attention of both arms must run in the same kernels, but for their tiles, and all
// of them launched alike: another library, or a loop instead of a grouped kernel, is another difference than
// balance. Attention of steps that one arm alone recorded runs in kernels of that arm alone; two libraries
// leave both arms with some.
func (c *Comparison) judgeWork(a arms) {
	if n, p := a[0].trace.GateExperts(), a[1].trace.GateExperts(); len(n) == 1 && len(p) == 1 {
		c.check("gates", Work{Quantity: "experts of the gate", Normal: router.Number(n[0]), Perfect: router.Number(p[0])})
	}
	if n, p := a[0].tokens, a[1].tokens; n > 0 && p > 0 {
		c.check("tokens", Work{Quantity: "tokens per step", Normal: n, Perfect: p, Allowed: tokensMargin})
	}
	if c.Builds.Named() {
		return
	}
	c.judgeKernels("kernels", "expert time", a, expertKernels, math.Max)
	c.judgeKernels("attention", "attention time", a, attentionKernels, math.Min)
	c.judgeOutside(a)
}

// judgeKernels judges how much time of both arms is in kernels that the other arm did not run.
func (c *Comparison) judgeKernels(why, what string, a arms, timesOf func(*trace.Trace) map[string]int64,
	of func(x, y float64) float64) {
	times := [2]map[string]int64{timesOf(a[0].trace), timesOf(a[1].trace)}
	var alone [2]float64
	mostly := [2]string{"unidentified kernels", "unidentified kernels"}
	for i, own := range times {
		all := int64(0)
		for name, ns := range own {
			if all += ns; times[1-i][name] == 0 {
				alone[i] += float64(ns)
			}
		}
		alone[i] /= float64(max(all, 1))
		if len(own) > 0 {
			longer := func(x, y string) int { return cmp.Compare(own[x], own[y]) }
			mostly[i] = slices.MaxFunc(slices.Sorted(maps.Keys(own)), longer)
		}
	}
	if len(times[0])+len(times[1]) > 0 {
		c.check(why, Work{Quantity: what + " in kernels of this side alone", Unit: share, Normal: router.Number(alone[0]),
			Perfect: router.Number(alone[1]), Differs: router.Number(of(alone[0], alone[1])), Allowed: backendMargin},
			"kernel", mostly[0], "others", mostly[1])
	}
}

// attentionKernels is the time of attention by family.
func attentionKernels(t *trace.Trace) map[string]int64 {
	times := map[string]int64{}
	for _, k := range t.Kernels {
		if k.Placed == trace.PhaseAttention {
			times[kernel.Family(k.Name)] += k.TotalNS
		}
	}
	return times
}

// expertKernels is the time of expert GEMMs in the kinds of steps that a trace holds, by library and, of
// grouped ones, by family: "cutlass::gemm::kernel::GemmUniversal (CUTLASS)", and whether a graph replayed them.
func expertKernels(t *trace.Trace) map[string]int64 {
	ran := map[string]string{} // how kernels of experts ran
	for _, k := range t.StepKinds {
		for _, name := range k.Kernels {
			name, replayed := strings.CutSuffix(name, trace.InGraph)
			ran[name] = map[bool]string{true: trace.InGraph}[replayed]
		}
	}
	times := map[string]int64{}
	for _, k := range t.Kernels {
		class, name := kernel.Classify(k.Name), ""
		given := k.Phase == trace.PhaseExperts && class.Phase != trace.PhaseExperts // by a rule of the user
		how, in := ran[k.Name]
		switch {
		case len(ran) > 0 && !in && class.Phase == trace.PhaseExperts: // of other steps
			continue
		case class.GEMM || given || class.FusedExperts():
			name = strings.TrimSuffix(fmt.Sprintf("%s (%s)", kernel.Family(k.Name), class.Library), " ()")
		case class.Phase == trace.PhaseOther && k.Placed == trace.PhaseExperts:
			name = "dense GEMMs (" + class.Library + ")"
		default:
			continue
		}
		times[name+how] += k.TotalNS
	}
	return times
}

// judgeOutside compares the compute outside the MoE blocks, per token where ranges name the tokens of
// every step. What is in no known phase may be of the blocks. A loop over experts that nothing names
// counts as outside, so experts must be known in both arms.
func (c *Comparison) judgeOutside(a arms) {
	var ns [2]float64
	known, experts, noise := false, true, 0.0
	for i, arm := range a {
		mean, deviation := stat.MeanStdDev(arm.outside, nil)
		ns[i], noise = mean, math.Hypot(noise, stat.StdErr(deviation, float64(len(arm.outside)))/mean)
		all := router.Number(0)
		for _, phase := range trace.Phases() {
			all += arm.of(every, phase)[0]
		}
		known = known || mean >= leastOutside*all.Float64()
		experts = experts && arm.of(every, trace.PhaseExperts)[0] > 0
	}
	if !known || !experts {
		c.warn(EqualWorkUnknown, "", "share", leastOutside)
		return
	}
	per, allowed := "step", computeMargin
	switch n, p := a[0].tokens, a[1].tokens; {
	case n > 0 && p > 0:
		ns[0], ns[1], per = ns[0]/float64(n), ns[1]/float64(p), "token"
	case n+p == 0 && noise < mostNoise: // of steps of one size
		allowed += 2 * noise
	}
	unit := quantity.TimeUnit(max(ns[0], ns[1]))
	c.check("outside", Work{Quantity: "compute outside MoE", Unit: unit.Name + "/" + per,
		Normal: router.Number(ns[0] / unit.Per), Perfect: router.Number(ns[1] / unit.Per), Allowed: allowed},
		"per", per, "normal_ns", ns[0], "perfect_ns", ns[1])
}

// labeled is the evidence of an arm that captures do not show.
const labeled = "accepted as labeled"

// recorded reports a side whose captures show an arm.
func (s *Side) recorded() bool { return s.Arm != "" && s.Evidence != labeled }

// AssumeArm is the trace taken as the arm that it is given as, where its captures do not show that arm: a
// switch that they do not record, or none in the environment at all. The result says so, and what they do
// say. Whether routing was balanced is asked all the same.
func AssumeArm(t *trace.Trace, arm gain.Arm) *trace.Trace {
	if t.Arm == string(arm) {
		return t
	}
	trusted := *t
	trusted.Arm, trusted.ArmEvidence = string(arm), labeled
	trusted.Warnings = append(slices.Clone(t.Warnings),
		router.Warn("arm_on_trust", "", "arm", arm, "said", cmp.Or(t.Arm, "nothing"), "evidence", t.ArmEvidence))
	return &trusted
}

// judgeArms holds the sides against the arms that they record; false where each is the other's.
func (c *Comparison) judgeArms() bool {
	n, p := &c.Normal, &c.Perfect
	if n.Arm == string(gain.Perfect) && p.Arm == string(gain.Normal) {
		c.refuse("swapped", "arm", gain.Normal, "evidence", n.Evidence, "other", gain.Perfect, "others", p.Evidence)
		return false
	}
	if n.Arm == "" || p.Arm == "" {
		c.warn("arm_unknown", "", "why", map[bool]string{true: "both", false: "one"}[n.Arm == p.Arm])
	}
	for i, s := range []*Side{n, p} {
		if s.Arm != "" && s.Arm != string(gain.Arms[i]) {
			c.refuse("arm", "arm", gain.Arms[i], "recorded", s.Arm, "evidence", s.Evidence)
		}
	}
	return true
}

// loadOfRanks reports recorded load of ranks.
func loadOfRanks(r imbalance.Row) bool {
	return r.Level == router.LevelRank && r.Quantity == imbalance.Load
}

// judgeBalance asks the recorded load of the perfect arm, and the traces' own times, whether its ranks were
// balanced, and more so than the ranks of the normal arm.
func (c *Comparison) judgeBalance(a arms) {
	perfect, of := a[1].trace, a[0].times.Of.ExpertTime()
	uneven := func(r imbalance.Row) bool { return loadOfRanks(r) && r.Flagged }
	if i := slices.IndexFunc(perfect.Imbalance, uneven); i >= 0 {
		r := perfect.Imbalance[i]
		c.refuse("load", "arm", gain.Perfect, "load", r.MaxOverMean, "layer", r.Layer, "floor", r.Floor)
	}
	here, there := 1/c.Normal.Balancedness, 1/c.Perfect.Balancedness
	args := []any{"of", of, "arm", gain.Normal, "here", here, "other", gain.Perfect, "there", there}
	slow, _ := perfect.SlowGPUs()
	switch {
	case len(c.Ranks) == 0 || len(slow) > 0: // it is not this that is unknown; experts of a slow GPU take longer anyway
	case !(here > 0 && there > 0):
		if c.Perfect.Arm == "" && !slices.ContainsFunc(perfect.Imbalance, loadOfRanks) {
			c.refuse("unmeasured", "arm", gain.Perfect, "of", of)
			return
		}
		c.warn("balance_not_measured", "", "of", of)
	case there > 1+balancedWithin && here <= 1+balancedWithin && !c.Normal.recorded() && !c.Perfect.recorded():
		c.refuse("swapped", "evidence", fmt.Sprintf("max/mean %.3f of %s over ranks", here, of),
			"others", fmt.Sprintf("%.3f", there))
	case there > 1+balancedWithin && there > here:
		c.refuse("unbalanced", args...)
	case there > 1+balancedWithin:
		c.warn("perfect_not_balanced", string(gain.Perfect), args...)
	case there > here:
		c.warn("arms_look_alike", "", args...)
	}
}
