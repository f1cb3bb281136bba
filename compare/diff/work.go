package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/nsys"
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
// compute outside the MoE blocks by at most 0.014.
const (
	tokensMargin  = 0.01
	computeMargin = 0.05
	backendMargin = 0.1
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
func (c *Comparison) judgeWork(p arms, sides [2]*nsys.Trace) {
	if a, b := gateExperts(sides[0]), gateExperts(sides[1]); len(a) == 1 && len(b) == 1 {
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
		c.judge(workOfBoth("slots per step and layer", "", a, b, computeMargin), "slots")
	}
	if c.Builds.Named() {
		return
	}
	c.judgeBackend(sides)
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
	known := false
	for i, a := range p.aligned() {
		all, experts := stat.Mean(a.compute(every), nil), stat.Mean(a.compute(expertScope.phase), nil)
		for _, phase := range outsidePhases {
			outside[i] += stat.Mean(a.compute(slices.Index(phases, phase)), nil)
		}
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
	c.judge(workOfBoth(outsideMoE, unit.Name+"/"+per, outside[0]/unit.Per, outside[1]/unit.Per, computeMargin),
		"outside", "per", per, "normal_ns", outside[0], "perfect_ns", outside[1])
}

// EqualWorkUnknown is the code of the warning that the traces do not show whether both sides did the
// same work.
const EqualWorkUnknown = "equal_work_unknown"

// outsidePhases are those that balance does not change.
var outsidePhases = []nsys.Phase{nsys.PhaseAttention, nsys.PhaseOther}

// side is one arm in the steps that both begin with.
type side struct {
	*armTimes
	first int
}

// compute is, step by step, the mean rank's compute of a phase.
func (s side) compute(phase int) []float64 {
	return after(s.mean(scope{every, phase}, workOf), s.first)
}

// aligned are both arms without the first steps that one of them excludes as warm-up.
func (p arms) aligned() [2]side {
	return [2]side{{p.normal, p.later()}, {p.perfect, -p.later()}}
}

// batches is the mean over steps of a size of their batches, of each arm; 0 where not every
// step's range says it.
func (p arms) batches(size func(ranges.Batch) int) (mean [2]float64) {
	for i, a := range p.aligned() {
		steps := after(a.batches, a.first)
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
func stepSlots(t *nsys.Trace) (mean float64) {
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

// gateExperts are the numbers of experts that the gates' kernels are compiled for.
func gateExperts(t *nsys.Trace) (numbers []int) {
	for _, k := range t.Kernels {
		if n, ok := kernel.GateExperts(k.Name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// judgeBackend wants the experts of both arms to run in the same kernels, but for their
// tiles: those of another library, or a loop instead of a grouped kernel, are another
// difference than balance.
func (c *Comparison) judgeBackend(sides [2]*nsys.Trace) {
	times := [2]map[string]int64{expertKernels(sides[0]), expertKernels(sides[1])}
	var share [2]float64
	for i, own := range times {
		var all, alone int64
		for name, ns := range own {
			if all += ns; times[1-i][name] == 0 {
				alone += ns
			}
		}
		share[i] = float64(alone) / float64(max(all, 1))
	}
	w := workOfBoth("expert time in kernels of this side alone", "share", share[0], share[1], backendMargin)
	if w.Differs = max(w.Normal, w.Perfect); len(times[0])+len(times[1]) > 0 {
		w.Equal = w.Differs <= backendMargin
		c.judge(w, "kernels", "kernel", longest(times[0]), "others", longest(times[1]))
	}
}

// expertKernels is the time of expert GEMMs in the kinds of steps that a trace holds, by
// library and, of grouped ones, by family.
func expertKernels(t *nsys.Trace) map[string]int64 {
	kinds := map[router.OptInt]bool{}
	for i := range t.Cells {
		if t.Cells[i].Step.Defined() {
			kinds[t.Cells[i].Kind] = true
		}
	}
	ran := map[string]bool{}
	for _, k := range t.StepKinds {
		for _, name := range k.Kernels {
			if kinds[router.OptInt(k.Kind)] {
				ran[strings.TrimSuffix(name, " (CUDA graph)")] = true
			}
		}
	}
	times := map[string]int64{}
	for _, k := range t.Kernels {
		class := kernel.Classify(k.Name)
		given := k.Phase == nsys.PhaseExperts && class.Phase != nsys.PhaseExperts // by a rule of the user
		switch {
		case len(ran) > 0 && !ran[k.Name] && class.Phase == nsys.PhaseExperts: // of other steps
		case class.GEMM || given || class.Phase == nsys.PhaseExperts && len(class.Fused) > 0:
			times[strings.TrimSuffix(fmt.Sprintf("%s (%s)", kernel.Family(k.Name), class.Library), " ()")] += k.TotalNS
		case class.Phase == nsys.PhaseOther && k.Placed == nsys.PhaseExperts:
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
	c.Step.Ratio, c.Ceiling.StepGain, c.Ceiling.GainBound = u, u, u
}
