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
	Name             string        `json:"name"`
	Phase            trace.Phase   `json:"phase"` // in which most of its time is
	NormalInstances  int64         `json:"normal_instances"`
	PerfectInstances int64         `json:"perfect_instances"`
	NormalNS         int64         `json:"normal_ns"`
	PerfectNS        int64         `json:"perfect_ns"`
	NormalMeanNS     router.Number `json:"normal_mean_ns"`
	PerfectMeanNS    router.Number `json:"perfect_mean_ns"`
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
			if r := &rows[at[name]]; side == 0 {
				r.NormalInstances, r.NormalNS = r.NormalInstances+k.Instances, r.NormalNS+k.TotalNS
			} else {
				r.PerfectInstances, r.PerfectNS = r.PerfectInstances+k.Instances, r.PerfectNS+k.TotalNS
			}
		}
	}
	for i := range rows {
		r := &rows[i]
		r.NormalMeanNS = router.Number(r.NormalNS) / router.Number(r.NormalInstances) // 0/0 is undefined
		r.PerfectMeanNS = router.Number(r.PerfectNS) / router.Number(r.PerfectInstances)
	}
	slices.SortStableFunc(rows, func(a, b KernelChange) int {
		return cmp.Compare(max(b.NormalNS, b.PerfectNS), max(a.NormalNS, a.PerfectNS))
	})
	return rows
}
