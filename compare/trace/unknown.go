package trace

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
)

// unknownShare is the share of GPU time from which unknown time is worth a
// warning.
const unknownShare = 0.05

// placed is a phase and what placed a kernel in it.
type placed struct {
	phase Phase
	by    ranges.Evidence
}

// placements is the time of each name by phase and evidence.
func (r *reduction) placements() map[string]map[placed]int64 {
	ns := map[string]map[placed]int64{}
	for g := range r.groups() {
		name := g.rank.of.Names[g.name]
		if ns[name] == nil {
			ns[name] = map[placed]int64{}
		}
		ns[name][placed{g.at.Phase, g.at.Evidence}] += g.ns
	}
	return ns
}

// unknownTime tells which kernels neither a range nor their own name places. It runs after kernels.
func (r *reduction) unknownTime() {
	ns := r.placements()
	var total, unknown int64
	var worst []*KernelStat
	for i := range r.trace.Kernels {
		k := &r.trace.Kernels[i]
		total += k.TotalNS
		most := placed{PhaseUnknown, ranges.ByNothing}
		for _, by := range slices.SortedFunc(maps.Keys(ns[k.Name]),
			func(a, b placed) int { return cmp.Or(kernel.ComparePhases(a.phase, b.phase), cmp.Compare(a.by, b.by)) }) {
			if ns[k.Name][by] > ns[k.Name][most] {
				most = by
			}
			if by.phase == PhaseUnknown {
				k.UnknownNS += ns[k.Name][by]
			}
		}
		k.Placed, k.Evidence = most.phase, most.by.String()
		unknown += k.UnknownNS
		if k.UnknownNS > 0 {
			worst = append(worst, k)
		}
	}
	slices.SortStableFunc(worst, func(a, b *KernelStat) int { return cmp.Compare(b.UnknownNS, a.UnknownNS) })
	if float64(unknown) > unknownShare*float64(total) {
		r.warn("unknown_kernels", "", "share", float64(unknown)/float64(total), "kernels", functions(worst))
	}
}

// functions names the functions of kernels, each once.
func functions(list []*KernelStat) (names []string) {
	for _, k := range list {
		function, _ := kernel.Parts(kernel.NormalName(k.Name))
		if !slices.Contains(names, function) {
			names = append(names, function)
		}
	}
	return names
}

// fusedPhases are the phase as which a kernel counts, and the others that it does.
func fusedPhases(name string) (own Phase, others []Phase) {
	c := kernel.Classify(name)
	for _, p := range c.Fused {
		if p != c.Phase {
			others = append(others, p)
		}
	}
	return c.Phase, others
}
