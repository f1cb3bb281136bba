package diff

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// KernelChange is a kernel over all ranks and steps of both sides. Launches and times of a side
// are 0 where it did not run the kernel.
type KernelChange struct {
	Name             string      `json:"name"`
	Phase            trace.Phase `json:"phase"` // in which most of its time is
	NormalInstances  int64       `json:"normal_instances"`
	PerfectInstances int64       `json:"perfect_instances"`
	Change
}

// kernelChanges lists the kernels of both sides, the most time first.
func kernelChanges(sides [2]*trace.Trace) []KernelChange {
	rows, at := []KernelChange{}, map[string]int{}
	for side, t := range sides {
		for _, k := range t.Kernels {
			name := kernel.NormalName(k.Name) // spelt the same for every version of the profiler
			if _, known := at[name]; !known {
				at[name], rows = len(rows), append(rows, KernelChange{Name: k.Name, Phase: k.Placed})
			}
			r := &rows[at[name]]
			n, ns := &r.NormalInstances, &r.NormalNS
			if side == 1 {
				n, ns = &r.PerfectInstances, &r.PerfectNS
			}
			*n, *ns = *n+k.Instances, *ns+router.Number(k.TotalNS)
		}
	}
	for i := range rows {
		rows[i].Change = changeOf(rows[i].NormalNS, rows[i].PerfectNS)
	}
	slices.SortStableFunc(rows, func(a, b KernelChange) int {
		return cmp.Compare(max(b.NormalNS, b.PerfectNS), max(a.NormalNS, a.PerfectNS))
	})
	return rows
}
