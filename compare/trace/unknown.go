package trace

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
)

// unknownShare is the share of GPU time from which unknown time is worth a
// warning.
const unknownShare = 0.05

// unknownTime tells of each kernel name by what most of its time is placed, and which neither a range nor the name
// places. It runs after kernels.
func (r *reduction) unknownTime() {
	type use struct {
		name  string
		phase Phase
		by    ranges.Evidence
	}
	type placed struct {
		use
		ns int64
	}
	uses := map[string][]placed{}
	for u, s := range sums(r, func(g group) (use, bool) {
		return use{g.rank.of.Names[g.name], g.at.Phase, g.at.Evidence}, true
	}) {
		uses[u.name] = append(uses[u.name], placed{u, s.ns})
	}
	var total, unknown int64
	var worst []*KernelStat
	for i := range r.trace.Kernels {
		k := &r.trace.Kernels[i]
		total += k.TotalNS
		most := slices.MinFunc(uses[k.Name], func(a, b placed) int {
			return cmp.Or(cmp.Compare(b.ns, a.ns), kernel.ComparePhases(a.phase, b.phase), cmp.Compare(a.by, b.by))
		})
		k.Placed, k.Evidence = most.phase, most.by.String()
		for _, u := range uses[k.Name] {
			if u.phase == PhaseUnknown {
				k.UnknownNS += u.ns
			}
		}
		if unknown += k.UnknownNS; k.UnknownNS > 0 {
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
