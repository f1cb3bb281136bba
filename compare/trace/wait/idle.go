package wait

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Kernel is one kernel of a rank, in the order of their starts.
type Kernel struct {
	Start, End int64
	Step       int32 // router.NoID outside
}

// Window is a step of one rank, from its first kernel to the first of the next step. The
// only step ends with its last kernel.
type Window struct {
	Step     int32
	From, To int64
}

// Windows are the steps of a rank that have an end, in order, and the numbers of all.
func Windows(kernels iter.Seq[Kernel]) (windows []Window, begun []int32) {
	starts, end := map[int32]int64{}, int64(0) // end of the last kernel in a step
	for k := range kernels {
		if k.Step == router.NoID {
			continue
		}
		end = max(end, k.End)
		if _, known := starts[k.Step]; !known {
			starts[k.Step] = k.Start
			begun = append(begun, k.Step)
		}
	}
	slices.Sort(begun)
	for _, step := range begun {
		to, next := starts[step+1]
		if len(begun) == 1 {
			to, next = end, true
		}
		if next && to >= starts[step] {
			windows = append(windows, Window{step, starts[step], to})
		}
	}
	return windows, begun
}

// Idle is how long the GPU of a rank runs no kernel in a step, and how long the step is on
// that rank, both as means over steps. Undefined without any.
type Idle struct {
	Rank       int           `json:"rank"`
	Steps      int           `json:"steps"` // that count and have an end
	NoKernelNS router.Number `json:"no_kernel_ns"`
	WallNS     router.Number `json:"wall_ns"`
}

// IdleOf is the mean over windows that do not overlap.
func IdleOf(rank int, kernels iter.Seq[Kernel], windows []Window) Idle {
	windows = slices.SortedFunc(slices.Values(windows), func(a, b Window) int { return cmp.Compare(a.From, b.From) })
	var wall, busy int64
	for _, w := range windows {
		wall += w.To - w.From
	}
	at, until := 0, int64(math.MinInt64) // kernels up to here are counted
	for k := range kernels {
		for at < len(windows) && windows[at].To <= k.Start {
			at++
		}
		for _, w := range windows[at:] {
			if w.From >= k.End {
				break
			}
			busy += max(0, min(k.End, w.To)-max(k.Start, w.From, until))
		}
		until = max(until, k.End)
	}
	n := router.Number(len(windows)) // 0/0 is NaN: undefined
	return Idle{rank, len(windows), router.Number(wall-busy) / n, router.Number(wall) / n}
}
