package wait

import (
	"slices"
	"testing"
)

// Kernels overlap, one runs on into the next step, and steps 0 to 2 begin at 0, 100 and 200.
func TestIdle(t *testing.T) {
	kernels := slices.Values([]Kernel{{Start: 0, End: 30}, {Start: 20, End: 50}, {Start: 90, End: 120},
		{Start: 100, End: 110, Step: 1}, {Start: 150, End: 160, Step: 1}, {Start: 200, End: 300, Step: 2}})
	windows, begun := Windows(kernels)
	if !slices.Equal(windows, []Window{{0, 0, 100}, {1, 100, 200}}) || !slices.Equal(begun, []int32{0, 1, 2}) {
		t.Fatalf("have %v of %v", windows, begun)
	}
	if have := IdleOf(3, kernels, windows); have != (Idle{3, 2, (40 + 70) / 2.0, 100}) {
		t.Errorf("have %+v", have)
	}
	if have := IdleOf(3, kernels, nil); have.NoKernelNS.Defined() || have.WallNS.Defined() {
		t.Errorf("of no step: %+v", have)
	}
}
