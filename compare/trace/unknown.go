package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
)

// unknownShare is the share of GPU time from which unknown time is worth a
// warning.
const unknownShare = 0.05

// unknownTime warns of kernels that neither a range nor the name places in a phase.
func (r *reduction) unknownTime() {
	var total, unknown int64
	var worst []KernelStat
	for _, k := range r.trace.Kernels {
		if total, unknown = total+k.TotalNS, unknown+k.UnknownNS; k.UnknownNS > 0 {
			worst = append(worst, k)
		}
	}
	slices.SortStableFunc(worst, func(a, b KernelStat) int { return cmp.Compare(b.UnknownNS, a.UnknownNS) })
	if share := float64(unknown) / float64(total); share > unknownShare {
		r.warn("unknown_kernels", "share", share, "kernels", functions(worst))
	}
}

// functions names the functions of kernels, each once.
func functions(list []KernelStat) (names []string) {
	for _, k := range list {
		function, _ := kernel.Parts(kernel.NormalName(k.Name))
		if !slices.Contains(names, function) {
			names = append(names, function)
		}
	}
	return names
}
