package trace

import (
	"testing"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
)

// A rank without tokens for every other layer, or with twice as many chunks in some, has the layers of the others; a
// step in which it tunes kernels does not count.
func TestOtherGEMMsOnARank(t *testing.T) {
	paths := inTestdata(t, "vllm/qwen3-normal.rank?.json.gz")
	for want, runs := range map[int]func(pair int) int{4: func(pair int) int { return pair % 3 },
		3: func(pair int) int { return 1 + map[int]int{30: 9}[pair] }} { // steps, and how often a rank runs a pair of GEMMs
		trace := changedAgain(t, paths, recordings(paths), func(rank int, rec *capture.Recording) {
			recorded, gemms := rec.Kernels, 0
			rec.Kernels = nil
			for _, k := range recorded {
				n := 1
				if rank == 1 && kernel.Classify(rec.KernelNames[k.Name]).GEMM {
					n, gemms = runs(gemms/2), gemms+1
				}
				for range n {
					k.Start++
					rec.Kernels = append(rec.Kernels, k)
				}
			}
		})
		doubt, n := trace.Undecided().Code, len(trace.Times().StepsOf(imbalance.Counts))
		if n != want || doubt != "" || trace.Structure.Layers != 12 {
			t.Errorf("%d steps, want %d, %s, %+v", n, want, doubt, trace.Structure)
		}
	}
}
