package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Work is a quantity that balance cannot change, in both arms: where they differ in it by
// more than Allowed, they did different work, and no difference of time is a gain.
type Work struct {
	Quantity string        `json:"quantity"`
	Unit     string        `json:"unit"`
	Normal   router.Number `json:"normal"`
	Perfect  router.Number `json:"perfect"`
	// Differs is the larger over the smaller, minus 1; undefined where one is 0. Of a
	// share of time it is the larger of both.
	Differs router.Number `json:"differs"`
	Allowed float64       `json:"allowed"`
	Equal   bool          `json:"equal"`
}

// The most that the arms may differ in, as fractions. The pairs of testdata differ in
// compute outside the MoE blocks by at most 0.0198.
const (
	tokensMargin  = 0.01
	computeMargin = 0.02
	slotsMargin   = 0.05
	backendMargin = 0.1
	// mostNoise is the standard error of compute outside the MoE blocks up to which the margin is that of
	// the true difference: steps whose sizes differ have more.
	mostNoise = 0.002
)

// Quantities.
const (
	tokensPerStep = "tokens per step"
	outsideMoE    = "compute outside MoE"
)

// leastOutside is the share of compute outside the MoE blocks below which it says nothing.
const leastOutside = 0.02

func workOfBoth(name, unit string, normal, perfect, allowed float64) Work {
	w := Work{
		Quantity: name, Unit: unit, Normal: router.Number(normal), Perfect: router.Number(perfect),
		Differs: router.Undefined(), Allowed: allowed,
	}
	switch least := min(normal, perfect); {
	case normal == perfect:
		w.Differs, w.Equal = 0, true
	case least > 0:
		w.Differs = router.Number(max(normal, perfect)/least - 1)
		w.Equal = w.Differs <= router.Number(allowed)
	}
	return w
}

// judgeWork asks whether both arms did the same work, in what balance cannot change. Two
// builds may compute otherwise, of the same model and as many tokens.
func (c *Comparison) judgeWork(p arms, sides [2]*trace.Trace) {
	if a, b := trace.GateExperts(sides[0].Names), trace.GateExperts(sides[1].Names); len(a) == 1 && len(b) == 1 {
		c.judge(workOfBoth("experts of the gate", "", float64(a[0]), float64(b[0]), 0), "gates")
	}
	tokens, requests := p.batches(func(b ranges.Batch) int { return b.Tokens }),
		p.batches(func(b ranges.Batch) int { return b.Requests })
	switch {
	case tokens[0] > 0 && tokens[1] > 0:
		c.judge(workOfBoth(tokensPerStep, "", tokens[0], tokens[1], tokensMargin), "tokens")
	case requests[0] > 0 && requests[1] > 0:
		c.judge(workOfBoth("requests per step", "", requests[0], requests[1], tokensMargin), "requests")
	}
	if a, b := stepSlots(sides[0]), stepSlots(sides[1]); a > 0 && b > 0 && tokens == [2]float64{} {
		c.judge(workOfBoth("slots per step and layer", "", a, b, slotsMargin), "slots")
	}
	if c.Builds.Named() {
		return
	}
	c.judgeKernels(sides)
	c.judgeOutside(p, tokens)
}

// judge notes a quantity, and refuses sides that differ in it.
func (c *Comparison) judge(w Work, why string, args ...any) {
	if c.Work = append(c.Work, w); !w.Equal {
		names := c.Builds.Names()
		c.refuse(why, append(args, "arm", names[0], "other", names[1], "here", w.Normal, "there", w.Perfect)...)
	}
}

// judgeOutside compares the compute outside the MoE blocks, per token where ranges name
// the tokens of every step. What is in no known phase may be of the blocks. A loop over
// experts that nothing names counts as outside, so experts must be known.
func (c *Comparison) judgeOutside(p arms, tokens [2]float64) {
	var outside [2]float64
	known, noise := false, 0.0
	for i, a := range p.both() {
		all, experts := stat.Mean(a.compute(""), nil), stat.Mean(a.compute(trace.PhaseExperts), nil)
		steps := make([]float64, len(a.steps))
		for _, phase := range outsidePhases {
			floats.Add(steps, a.compute(phase))
		}
		outside[i] = stat.Mean(steps, nil)
		noise = math.Hypot(noise, stat.StdErr(stat.StdDev(steps, nil), float64(len(steps)))/outside[i])
		if !(experts > 0) {
			known = false
			break
		}
		known = known || outside[i] >= leastOutside*all
	}
	if !known {
		c.warn(EqualWorkUnknown, "", "share", leastOutside)
		return
	}
	per := "step"
	if tokens[0] > 0 && tokens[1] > 0 {
		floats.Div(outside[:], tokens[:])
		per = "token"
	}
	unit := quantity.TimeUnit(max(outside[0], outside[1]))
	allowed := computeMargin
	if tokens == [2]float64{} && noise < mostNoise { // of steps of one size
		allowed += 2 * noise
	}
	c.judge(workOfBoth(outsideMoE, unit.Name+"/"+per, outside[0]/unit.Per, outside[1]/unit.Per, allowed),
		"outside", "per", per, "normal_ns", outside[0], "perfect_ns", outside[1])
}

// EqualWorkUnknown is the code of the warning that the traces do not show whether both sides did the
// same work.
const EqualWorkUnknown = "equal_work_unknown"

// outsidePhases are those that balance does not change.
var outsidePhases = []trace.Phase{trace.PhaseAttention, trace.PhaseOther}

// compute is, step by step, the mean rank's compute of a phase, of all phases without one.
func (a *armTimes) compute(phase trace.Phase) []float64 {
	return a.of(part{layer: every, phase: phase})
}

func (p arms) both() [2]*armTimes { return [2]*armTimes{p.normal, p.perfect} }

// batches is the mean over steps of a size of their batches, of each arm; 0 where not every
// step's range says it.
func (p arms) batches(size func(ranges.Batch) int) (mean [2]float64) {
	for i, a := range p.both() {
		steps := a.batches
		if slices.ContainsFunc(steps, func(b ranges.Batch) bool { return size(b) == 0 }) {
			continue
		}
		for _, b := range steps {
			mean[i] += float64(size(b)) / float64(len(steps))
		}
	}
	return mean
}

// stepSlots is the mean recorded load of a layer in one step; 0 where not all experts of a
// layer were counted, or where one count is of many passes.
func stepSlots(t *trace.Trace) (mean float64) {
	if slices.ContainsFunc(t.Warnings, func(w router.Warning) bool { return w.Code == "counts_window" }) {
		return 0
	}
	slots, counted := map[router.OptInt]float64{}, map[router.OptInt]int{}
	for _, e := range t.Experts {
		if e.Known {
			slots[e.Layer], counted[e.Layer] = slots[e.Layer]+float64(e.Slots), counted[e.Layer]+1
		}
	}
	layers := 0.0
	for _, r := range t.Imbalance {
		if r.Level == router.LevelExpert && r.Quantity == imbalance.Load && r.Steps > 0 && counted[r.Layer] == r.Parts {
			mean, layers = mean+slots[r.Layer]/float64(r.Steps), layers+1
		}
	}
	return mean / max(layers, 1)
}

// judgeKernels wants experts and attention of both arms to run in the same kernels, but for their
// tiles, and all of them launched alike: those of another library, or a loop instead of a grouped
// kernel, are another difference than balance. Attention of steps that one arm alone recorded runs
// in kernels of that arm alone; two libraries leave both arms with some.
func (c *Comparison) judgeKernels(sides [2]*trace.Trace) {
	experts := [2]map[string]int64{expertKernels(sides[0]), expertKernels(sides[1])}
	alone := sharesAlone(experts)
	c.judgeShares("expert time in kernels of this side alone", "kernels", experts, alone, max(alone[0], alone[1]))
	attention := [2]map[string]int64{attentionKernels(sides[0]), attentionKernels(sides[1])}
	alone = sharesAlone(attention)
	c.judgeShares("attention time in kernels of this side alone", "attention", attention, alone, min(alone[0], alone[1]))
	one, other := graphs(sides[0]), graphs(sides[1])
	if names := c.Builds.Names(); one != other {
		c.refuse("graphs", "arm", names[map[bool]int{true: 0, false: 1}[one]])
	}
}

// judgeShares judges how much time of both arms is in kernels that the other arm did not run.
func (c *Comparison) judgeShares(what, why string, times [2]map[string]int64, alone [2]float64, differs float64) {
	w := workOfBoth(what, "share", alone[0], alone[1], backendMargin)
	if w.Differs = router.Number(differs); len(times[0])+len(times[1]) > 0 {
		w.Equal = differs <= backendMargin
		c.judge(w, why, "kernel", longest(times[0]), "others", longest(times[1]))
	}
}

// sharesAlone is the share of each arm's time in kernels that the other arm did not run.
func sharesAlone(times [2]map[string]int64) (share [2]float64) {
	for i, own := range times {
		var all, alone int64
		for name, ns := range own {
			if all += ns; times[1-i][name] == 0 {
				alone += ns
			}
		}
		share[i] = float64(alone) / float64(max(all, 1))
	}
	return share
}

// stepKernels are the names of the kernels that ran experts in the kinds of steps that a trace holds.
func stepKernels(t *trace.Trace) (names []string) {
	kinds := map[router.OptInt]bool{}
	for i := range t.Cells {
		if t.Cells[i].Step.Defined() {
			kinds[t.Cells[i].Kind] = true
		}
	}
	for _, k := range t.StepKinds {
		if kinds[router.OptInt(k.Kind)] {
			names = append(names, k.Kernels...)
		}
	}
	return names
}

// inGraph ends the name of a kernel that a CUDA graph replayed.
const inGraph = " (CUDA graph)"

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

// expertKernels is the time of expert GEMMs in the kinds of steps that a trace holds, by
// library and, of grouped ones, by family.
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
		case class.GEMM || given || class.Phase == trace.PhaseExperts && len(class.Fused) > 0:
			times[strings.TrimSuffix(fmt.Sprintf("%s (%s)", kernel.Family(k.Name), class.Library), " ()")] += k.TotalNS
		case class.Phase == trace.PhaseOther && k.Placed == trace.PhaseExperts:
			times["dense GEMMs ("+class.Library+")"] += k.TotalNS
		}
	}
	return times
}

// longest names the kernels with most time.
func longest(times map[string]int64) string {
	names := slices.Sorted(maps.Keys(times))
	if len(names) == 0 {
		return "unidentified kernels"
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(times[a], times[b]) })
}

// withoutGain takes from sides that are not comparable what could be read as a gain.
func (c *Comparison) withoutGain() {
	u := router.Undefined()
	c.Verdict = gain.NotComparable
	c.Step.Ratio, c.Ceiling.GainBound = u, u
}
