package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// KernelFamily is a group of kernels that only one arm launched. Libraries
// choose a kernel by problem size, so an arm with uneven loads shows variants
// that the other does not; a whole family in one arm only means that the arms
// ran different code.
type KernelFamily struct {
	Arm       gain.Arm `json:"arm"`
	Family    string   `json:"family"` // the kernel's name up to tile sizes and arguments
	Elsewhere bool     `json:"family_in_other_arm"`
	Names     []string `json:"names"` // the variants, as recorded
	// Phase is that of the family's kernel with most time.
	Phase     nsys.Phase    `json:"phase"`
	Instances int64         `json:"instances"`
	TotalNS   int64         `json:"total_ns"`
	MeanNS    router.Number `json:"mean_ns"`
	// OtherMeanNS is the mean of the family's kernels in the phase in the other arm, of
	// whatever variant; undefined where it has none.
	OtherMeanNS router.Number `json:"other_arm_mean_ns"`
}

// kernelFamilies lists them by arm, the most time first.
func kernelFamilies(names [2]gain.Arm, normal, perfect *nsys.Trace) []KernelFamily {
	rows := append(onlyIn(names[0], normal, perfect), onlyIn(names[1], perfect, normal)...)
	return append([]KernelFamily{}, rows...)
}

func onlyIn(arm gain.Arm, own, other *nsys.Trace) []KernelFamily {
	type inPhase struct {
		family string
		phase  nsys.Phase
	}
	names, families, times := map[string]bool{}, map[string]bool{}, map[inPhase]kernel.Stats{}
	for _, k := range other.Kernels {
		names[kernel.NormalName(k.Name)] = true
		family := kernel.Family(k.Name)
		families[family] = true
		sum := times[inPhase{family, k.Placed}]
		sum.Instances, sum.TotalNS = sum.Instances+k.Instances, sum.TotalNS+k.TotalNS
		times[inPhase{family, k.Placed}] = sum
	}
	byFamily := map[string]*KernelFamily{}
	for _, k := range own.Kernels {
		if names[kernel.NormalName(k.Name)] {
			continue
		}
		name := kernel.Family(k.Name)
		f := byFamily[name]
		if f == nil {
			sum := times[inPhase{name, k.Placed}]
			f = &KernelFamily{Arm: arm, Family: name, Elsewhere: families[name], Phase: k.Placed,
				OtherMeanNS: mean(sum.TotalNS, sum.Instances)}
			byFamily[name] = f
		}
		f.Names = append(f.Names, k.Name)
		f.Instances += k.Instances
		f.TotalNS += k.TotalNS
		f.MeanNS = mean(f.TotalNS, f.Instances)
	}
	var rows []KernelFamily
	for _, name := range slices.Sorted(maps.Keys(byFamily)) {
		f := byFamily[name]
		slices.Sort(f.Names)
		rows = append(rows, *f)
	}
	slices.SortStableFunc(rows, func(a, b KernelFamily) int { return cmp.Compare(b.TotalNS, a.TotalNS) })
	return rows
}

// mean is undefined of no instances.
func mean(total, instances int64) router.Number {
	if instances == 0 {
		return router.Undefined()
	}
	return router.Number(total) / router.Number(instances)
}

// otherMargin is the share of an arm's kernel time in families that the other
// arm never launched from which a warning is due. Sorting and other small kernels
// change with the load; a tenth of the time does not.
const otherMargin = 0.1

// warnOtherKernels warns of an arm that ran kernel families of its own.
func (c *Comparison) warnOtherKernels(sides [2]*nsys.Trace) {
	for i, arm := range c.Builds.Names() {
		var alone, total int64
		for _, k := range sides[i].Kernels {
			total += k.TotalNS
		}
		for _, f := range c.Kernels {
			if f.Arm == arm && !f.Elsewhere {
				alone += f.TotalNS
			}
		}
		if share := float64(alone) / float64(total); share > otherMargin {
			c.warn("other_kernels", string(arm), "share", share)
		}
	}
}

// tacticsMargin is the share of an arm's kernel time from which variants that the other
// arm did not launch are worth a warning.
const tacticsMargin = 0.01

// CheckTactics warns of kernel variants (tactics) that take time in one arm and were not
// launched in the other: chosen by an autotuner or by the size of the problem, they differ
// in speed for another reason than balance.
func CheckTactics(normal, perfect *nsys.Trace) gain.Check {
	var found []string
	for _, f := range kernelFamilies(gain.Arms, normal, perfect) {
		trace := map[gain.Arm]*nsys.Trace{gain.Normal: normal, gain.Perfect: perfect}[f.Arm]
		if share := float64(f.TotalNS) / float64(trace.Coverage.GPUNS); f.Elsewhere && share >= tacticsMargin {
			found = append(found, fmt.Sprintf("%s of %s (%s of the kernel time of the %s arm)",
				quantity.Count(len(f.Names), "variant"), f.Family, quantity.Percent(share), f.Arm))
		}
	}
	if len(found) > 0 {
		return gain.NewCheck("kernel_tactics", gain.Warn, "other", "variants", found)
	}
	return gain.NewCheck("kernel_tactics", gain.Pass, "same")
}
