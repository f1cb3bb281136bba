package nsys

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router/quantity"
)

// unknownShare is the share of GPU time from which unknown time is worth a
// warning.
const unknownShare = 0.05

// placed is a phase and what placed a kernel in it.
type placed struct {
	phase Phase
	by    evidence
}

// placements is the time of each name by phase and evidence.
func (r *reduction) placements() map[string]map[placed]int64 {
	ns := map[string]map[placed]int64{}
	for _, p := range r.ranks {
		of, ways := groupLocations(p.of.locations, func(l location) location {
			return location{Phase: l.Phase, Evidence: l.Evidence}
		})
		sums := make([]int64, len(p.of.names)*len(ways))
		for i := range p.events {
			e := &p.events[i]
			sums[int(e.name)*len(ways)+int(of[e.location])] += e.duration
		}
		for i, sum := range sums {
			name, way := p.of.names[i/len(ways)], ways[i%len(ways)]
			if sum > 0 {
				if ns[name] == nil {
					ns[name] = map[placed]int64{}
				}
				ns[name][placed{way.Phase, way.Evidence}] += sum
			}
		}
	}
	return ns
}

// unknownTime tells which kernels neither a range nor their own name places, and
// which ones hide phases because they do several in one. It runs after kernels.
func (r *reduction) unknownTime() {
	ns := r.placements()
	var total, fused, unknown int64
	var hidden, worst []*KernelStat
	for i := range r.trace.Kernels {
		k := &r.trace.Kernels[i]
		total += k.TotalNS
		most := placed{PhaseUnknown, byNothing}
		for _, by := range slices.SortedFunc(maps.Keys(ns[k.Name]), func(a, b placed) int { return cmp.Or(kernel.ComparePhases(a.phase, b.phase), cmp.Compare(a.by, b.by)) }) {
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
		if len(r.classes[r.names.Number(k.Name)].Fused) > 0 {
			fused += k.TotalNS
			hidden = append(hidden, k)
		}
	}
	slices.SortStableFunc(worst, func(a, b *KernelStat) int { return cmp.Compare(b.UnknownNS, a.UnknownNS) })
	if float64(unknown) > unknownShare*float64(total) {
		r.warn("unknown_kernels", "", fmt.Sprintf("%s of the GPU time is in kernels whose phase neither a range nor their name tells: %s; see 'trace --table kernels'",
			quantity.Percent(float64(unknown)/float64(total)), firstFunctions(worst)))
	}
	if fused > 0 {
		own, others := fusedPhases(hidden[0].Name)
		r.warn("fused_kernels", "", fmt.Sprintf("%s of the GPU time is in kernels that fuse several phases (%s): it counts as %s, and includes %s",
			quantity.Percent(float64(fused)/float64(total)), firstFunctions(hidden), own, others))
	}
}

// firstFunctions names the functions of the first few kernels.
func firstFunctions(list []*KernelStat) string {
	var names []string
	for _, k := range list {
		function, _ := kernel.Parts(kernel.NormalName(k.Name))
		if !slices.Contains(names, function) {
			names = append(names, function)
		}
	}
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// fusedPhases are the phase as which a kernel counts, and the others that it does.
func fusedPhases(name string) (own Phase, others string) {
	c := kernel.Classify(name)
	var words []string
	for _, p := range c.Fused {
		if p != c.Phase {
			words = append(words, string(p))
		}
	}
	return c.Phase, strings.Join(words, " and ")
}
