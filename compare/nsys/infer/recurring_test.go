package infer_test

import (
	"testing"

	"github.com/moebalance/moebalance/compare/nsys/infer"
)

// Layers that differ from each other are layers once each recurs, twice at the least; kernels
// that never occur again are none, wherever the longer runs of them stand.
func TestKernelsThatRecur(t *testing.T) {
	const layers, glue = 4, 40
	recorded := func(steps int, name func(step, layer int) int32) (l []infer.Launch) {
		for block := -1; block < steps*layers; block++ { // begins with the last layer of a step
			step, layer := (block+layers)/layers, (block+layers)%layers
			if block >= 0 && layer == 0 { // ends the step before, and has all of layer 1
				l = append(l, infer.Launch{Name: 3, Anchor: infer.Dense}, infer.Launch{Name: 4}, infer.Launch{Name: 5}, infer.Launch{Name: 6})
			}
			if block >= 0 {
				l = append(l, infer.Launch{Name: 1, Anchor: infer.Attention})
				for n := range int32(glue) {
					l = append(l, infer.Launch{Name: name(step, max(1, layer)) + n})
				}
			}
			l = append(l, infer.Launch{Name: 2, Anchor: infer.ExpertGEMM})
		}
		return l
	}
	for what, c := range map[string]struct {
		name func(step, layer int) int32
		want int
	}{
		"each layer has its kernels":          {func(_, layer int) int32 { return int32(100 * layer) }, layers},
		"each layer of each step has its own": {func(step, layer int) int32 { return int32(1000*step + 100*layer) }, 0},
	} {
		if s := infer.Find(recorded(2, c.name)); s.Layers != c.want || len(s.Blocks) != 2*layers+1 {
			t.Errorf("%s: %d layers in %d blocks (%s), want %d", what, s.Layers, len(s.Blocks), s.Unknown, c.want)
		}
	}
}
