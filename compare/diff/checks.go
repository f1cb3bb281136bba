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
	"github.com/moebalance/moebalance/compare/kernel/ranges"
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

// The most that the arms may differ in, as fractions. The pairs of testdata differ in compute outside
// the MoE blocks by at most 0.0198.
const (
	tokensMargin  = 0.01
	computeMargin = 0.02
	backendMargin = 0.1
	// mostNoise is the standard error of compute outside the MoE blocks up to which the margin is that of
	// the true difference: steps whose sizes differ have more.
	mostNoise = 0.002
	// leastOutside is the share of compute outside the MoE blocks below which it says nothing.
	leastOutside = 0.02
)

// balancedWithin is the imbalance of expert time over ranks up to which traces of the perfect arm pass as
// balanced. Equal load still takes unequal time on unequal hardware and in noise: balanced runs in testdata
// lie below 0.01. It has nothing to do with the threshold of a verdict on gain.
const balancedWithin = 0.10

// moePhases are the phases that only an MoE layer has; outsidePhases those that balance does not change.
var (
	moePhases     = []trace.Phase{trace.PhaseRouter, trace.PhaseDispatch, trace.PhaseExperts, trace.PhaseCombine}
	outsidePhases = []trace.Phase{trace.PhaseAttention, trace.PhaseOther}
)

// refuse says why the sides are no two arms of one run.
func (c *Comparison) refuse(why string, args ...any) {
	c.Comparable = false
	c.Refusals = append(c.Refusals, router.Warn("refused", "", append(args, "why", why)...))
}

// whys are the reasons of the refusals, as codes.
func (c *Comparison) whys() (codes []string) {
	for _, w := range c.Refusals {
		why, _ := w.Args["why"].(string)
		codes = append(codes, cmp.Or(why, w.Code))
	}
	return codes
}

// apart is the ratio of the larger value to the smaller, less 1; undefined where one alone is 0.
func apart(a, b router.Number) router.Number {
	if a == b {
		return 0
	}
	if min(a, b) > 0 {
		return max(a, b)/min(a, b) - 1
	}
	return router.Undefined()
}

// check notes a quantity, and refuses sides that differ in it.
func (c *Comparison) check(why string, w Work, args ...any) {
	w.Equal = w.Differs <= router.Number(w.Allowed)
	if c.Work = append(c.Work, w); !w.Equal {
		names := c.Builds.Names()
		c.refuse(why, append(args, "arm", names[0], "other", names[1], "here", w.Normal, "there", w.Perfect)...)
	}
}

// judge asks whether these are the two arms of one run, which did the same work. Of two builds nothing is
// asked about arms and balance.
func (c *Comparison) judge(a arms, layers [2][]int) {
	normal, perfect, names := a[0].trace, a[1].trace, c.Builds.Names()
	for i := range a {
		cells := a[i].trace.Cells
		routed := func(x trace.Cell) bool { return slices.Contains(moePhases, x.Phase) }
		if len(cells) == 0 {
			c.refuse("no_kernels", "arm", names[i])
		} else if !c.Builds.Named() && !slices.ContainsFunc(cells, routed) {
			c.refuse("no_moe", "arm", names[i])
		}
	}
	if c.Comparable {
		c.judgeExtent(a, layers)
	}
	for i := range a {
		if rank, by, slow := a[i].trace.SlowGPU(); slow {
			c.warn(SlowGPU, string(names[i]), "rank", rank, "by", by)
		}
	}
	if c.Comparable {
		c.judgeWork(a)
	}
	if byPyTorch(normal) != byPyTorch(perfect) {
		c.refuse("profilers")
	}
	if rank, same := sameRecording(normal, perfect); same {
		c.refuse("same_recording", "rank", rank)
	}
	if !c.Builds.Named() && c.judgeArms() {
		c.judgeBalance(perfect)
	}
}

// judgeExtent wants both arms to have run the same layers on the same ranks. A report of a rank can get
// lost, a layer cannot: every step goes through all.
func (c *Comparison) judgeExtent(a arms, layers [2][]int) {
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
	if n, p := named(layers[0]), named(layers[1]); !slices.Equal(n, p) {
		c.refuse("layers", "arm", names[0], "layers", n, "other", names[1], "others", p)
	}
}

// judgeWork asks whether both arms did the same work. Two builds may compute otherwise, of the same model and
// as many tokens. Experts and attention of both arms must run in the same kernels, but for their tiles, and all
// of them launched alike: those of another library, or a loop instead of a grouped kernel, are another difference
// than balance. Attention of steps that one arm alone recorded runs in kernels of that arm alone; two libraries
// leave both arms with some.
func (c *Comparison) judgeWork(a arms) {
	gates := [2][]int{trace.GateExperts(a[0].trace.Names), trace.GateExperts(a[1].trace.Names)}
	tokens := a.batches(func(b ranges.Batch) int { return b.Tokens })
	var experts [2]router.Number
	if len(gates[0]) == 1 && len(gates[1]) == 1 {
		experts = [2]router.Number{router.Number(gates[0][0]), router.Number(gates[1][0])}
	}
	for _, k := range []struct {
		why, quantity string
		values        [2]router.Number
		allowed       float64
	}{
		{"gates", "experts of the gate", experts, 0},
		{"tokens", "tokens per step", tokens, tokensMargin},
		{"requests", "requests per step", a.batches(func(b ranges.Batch) int { return b.Requests }), tokensMargin},
	} {
		if n, p := k.values[0], k.values[1]; n > 0 && p > 0 {
			c.check(k.why, Work{Quantity: k.quantity, Normal: n, Perfect: p, Differs: apart(n, p), Allowed: k.allowed})
		}
	}
	if c.Builds.Named() {
		return
	}
	c.judgeKernels("kernels", "expert time", [2]map[string]int64{expertKernels(a[0].trace), expertKernels(a[1].trace)},
		func(x, y float64) float64 { return max(x, y) })
	c.judgeKernels("attention", "attention time",
		[2]map[string]int64{attentionKernels(a[0].trace), attentionKernels(a[1].trace)},
		func(x, y float64) float64 { return min(x, y) })
	if one := graphs(a[0].trace); one != graphs(a[1].trace) {
		c.refuse("graphs", "arm", c.Builds.Names()[map[bool]int{true: 0, false: 1}[one]])
	}
	c.judgeOutside(a, tokens)
}

// judgeKernels judges how much time of both arms is in kernels that the other arm did not run.
func (c *Comparison) judgeKernels(why, what string, times [2]map[string]int64, of func(x, y float64) float64) {
	var alone [2]float64
	var mostly [2]string
	for i, own := range times {
		all := int64(0)
		for _, name := range slices.Sorted(maps.Keys(own)) {
			if all += own[name]; times[1-i][name] == 0 {
				alone[i] += float64(own[name])
			}
			if mostly[i] == "" || own[name] > own[mostly[i]] {
				mostly[i] = name
			}
		}
		alone[i] /= float64(max(all, 1))
		mostly[i] = cmp.Or(mostly[i], "unidentified kernels")
	}
	if len(times[0])+len(times[1]) > 0 {
		c.check(why, Work{Quantity: what + " in kernels of this side alone", Unit: "share", Normal: router.Number(alone[0]),
			Perfect: router.Number(alone[1]), Differs: router.Number(of(alone[0], alone[1])), Allowed: backendMargin},
			"kernel", mostly[0], "others", mostly[1])
	}
}

// judgeOutside compares the compute outside the MoE blocks, per token where ranges name the tokens of
// every step. What is in no known phase may be of the blocks. A loop over experts that nothing names
// counts as outside, so experts must be known.
func (c *Comparison) judgeOutside(a arms, tokens [2]router.Number) {
	var outside [2]float64
	known, noise := false, 0.0
	for i, arm := range a {
		steps := arm.compute(outsidePhases...)
		outside[i] = stat.Mean(steps, nil)
		noise = math.Hypot(noise, stat.StdErr(stat.StdDev(steps, nil), float64(len(steps)))/outside[i])
		if !(average(arm.compute(trace.PhaseExperts)) > 0) {
			known = false
			break
		}
		known = known || outside[i] >= leastOutside*stat.Mean(arm.compute(""), nil)
	}
	if !known {
		c.warn(EqualWorkUnknown, "", "share", leastOutside)
		return
	}
	per, allowed := "step", computeMargin
	if tokens[0] > 0 && tokens[1] > 0 {
		outside[0], outside[1], per = outside[0]/float64(tokens[0]), outside[1]/float64(tokens[1]), "token"
	}
	if tokens == [2]router.Number{} && noise < mostNoise { // of steps of one size
		allowed += 2 * noise
	}
	unit := quantity.TimeUnit(max(outside[0], outside[1]))
	n, p := router.Number(outside[0]/unit.Per), router.Number(outside[1]/unit.Per)
	c.check("outside", Work{Quantity: "compute outside MoE", Unit: unit.Name + "/" + per, Normal: n, Perfect: p,
		Differs: apart(n, p), Allowed: allowed},
		"per", per, "normal_ns", outside[0], "perfect_ns", outside[1])
}

// batches is the mean over steps of a size of their batches, of each arm; 0 where not every step's range
// says it.
func (a arms) batches(size func(ranges.Batch) int) (mean [2]router.Number) {
	for i, arm := range a {
		if slices.ContainsFunc(arm.batches, func(b ranges.Batch) bool { return size(b) == 0 }) {
			continue
		}
		for _, b := range arm.batches {
			mean[i] += router.Number(float64(size(b)) / float64(len(arm.batches)))
		}
	}
	return mean
}

// inGraph ends the name of a kernel that a CUDA graph replayed.
const inGraph = " (CUDA graph)"

// stepKernels are the names of the kernels that ran experts in the kinds of steps that a trace holds.
func stepKernels(t *trace.Trace) (names []string) {
	for _, k := range t.StepKinds {
		if slices.ContainsFunc(t.Cells, func(c trace.Cell) bool { return c.Step.Defined() && int(c.Kind) == k.Kind }) {
			names = append(names, k.Kernels...)
		}
	}
	return names
}

// graphs reports whether CUDA graphs replayed any expert kernel of the steps.
func graphs(t *trace.Trace) bool {
	return slices.ContainsFunc(stepKernels(t), func(name string) bool { return strings.HasSuffix(name, inGraph) })
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
// grouped ones, by family.
func expertKernels(t *trace.Trace) map[string]int64 {
	ran := map[string]bool{}
	for _, name := range stepKernels(t) {
		ran[strings.TrimSuffix(name, inGraph)] = true
	}
	times := map[string]int64{}
	for _, k := range t.Kernels {
		class := kernel.Classify(k.Name)
		given := k.Phase == trace.PhaseExperts && class.Phase != trace.PhaseExperts // by a rule of the user
		switch {
		case len(ran) > 0 && !ran[k.Name] && class.Phase == trace.PhaseExperts: // of other steps
		case class.GEMM || given || class.FusedExperts():
			times[strings.TrimSuffix(fmt.Sprintf("%s (%s)", kernel.Family(k.Name), class.Library), " ()")] += k.TotalNS
		case class.Phase == trace.PhaseOther && k.Placed == trace.PhaseExperts:
			times["dense GEMMs ("+class.Library+")"] += k.TotalNS
		}
	}
	return times
}

// byPyTorch reports a trace of PyTorch's profiler.
func byPyTorch(t *trace.Trace) bool {
	return slices.ContainsFunc(t.Exports,
		func(e trace.Export) bool { return strings.HasPrefix(e.SchemaVersion, "PyTorch") })
}

// sameRecording is the first rank whose cells are identical on both sides, which no two launches are.
func sameRecording(normal, perfect *trace.Trace) (rank int, same bool) {
	byRank := func(t *trace.Trace) map[int][]trace.Cell {
		cells := map[int][]trace.Cell{}
		for _, c := range t.Cells {
			cells[c.Rank] = append(cells[c.Rank], c)
		}
		return cells
	}
	own, other := byRank(normal), byRank(perfect)
	for _, rank := range slices.Sorted(maps.Keys(own)) {
		if slices.Equal(own[rank], other[rank]) {
			return rank, true
		}
	}
	return 0, false
}

// AssumeArm is the trace taken as the arm that it is given as, where its captures do not show that arm: a
// switch that they do not record, or none in the environment at all. The result says so, and what they do
// say. Whether routing was balanced is asked all the same.
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

// judgeBalance asks the recorded load of the perfect arm, and the traces' own times, whether its ranks were
// balanced, and more so than those of the normal arm.
func (c *Comparison) judgeBalance(perfect *trace.Trace) {
	load := func(r imbalance.Row) bool { return r.Level == router.LevelRank && r.Quantity == imbalance.Load }
	uneven := func(r imbalance.Row) bool { return load(r) && r.Flagged }
	if i := slices.IndexFunc(perfect.Imbalance, uneven); i >= 0 {
		r := perfect.Imbalance[i]
		c.refuse("load", "arm", gain.Perfect, "load", r.MaxOverMean, "layer", r.Layer, "floor", r.Floor)
	}
	inNormal, inPerfect := 1/c.Ceiling.Balancedness, 1/c.Ceiling.PerfectBalancedness
	args := []any{"of", c.Ceiling.Of.ExpertTime(), "arm", gain.Normal, "here", inNormal, "other", gain.Perfect,
		"there", inPerfect}
	_, _, slow := perfect.SlowGPU()
	switch {
	case len(c.Ranks) == 0 || slow: // it is not this that is unknown; experts of a slow GPU take longer anyway
	case !inNormal.Defined() || !inPerfect.Defined():
		if c.Perfect.Arm == "" && !slices.ContainsFunc(perfect.Imbalance, load) {
			c.refuse("unmeasured", "arm", gain.Perfect, "of", c.Ceiling.Of.ExpertTime())
			return
		}
		c.warn("balance_not_measured", "", "of", c.Ceiling.Of.ExpertTime())
	case inPerfect > 1+balancedWithin && inPerfect > inNormal:
		c.refuse("unbalanced", args...)
	case inPerfect > 1+balancedWithin:
		c.warn("perfect_not_balanced", string(gain.Perfect), args...)
	case inPerfect > inNormal:
		c.warn("arms_look_alike", "", args...)
	}
}
