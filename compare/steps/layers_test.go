package steps

import (
	"slices"
	"testing"
)

// Ranges may name every step, or pieces of steps.
func TestLayersOfSteps(t *testing.T) {
	found := func(layers int) Structure { return Structure{Layers: layers, of: &recording{}} }
	for _, c := range []struct {
		name   string
		s      Structure
		steps  []int32
		layers []int32
		n      int
	}{
		{"two steps", found(0), []int32{4, 4, 5, 5}, []int32{0, 1, 0, 1}, 2},
		{"begins within a step", found(0), []int32{1, 2, 2, 2, 3, 3, 3}, nil, 0},
		{"one step as the pattern has it", found(2), []int32{1, 1}, []int32{0, 1}, 2},
		{"one step", found(0), []int32{1, 1}, nil, 0},
		{"pieces of steps", found(4), []int32{1, 1, 2, 2, 3, 3}, nil, 0},
		{"a short step in the middle", found(0), []int32{1, 1, 2, 3, 3}, nil, 0},
		{"a block in no step", found(0), []int32{1, 1, -1, 2, 2}, nil, 0},
		{"nothing", found(0), nil, nil, 0},
	} {
		if layers, n := c.s.LayersOfSteps(c.steps); n != c.n || !slices.Equal(layers, c.layers) {
			t.Errorf("%s: %d layers %v, want %d %v", c.name, n, layers, c.n, c.layers)
		}
	}
	var l []Launch
	for range 4 {
		l = append(l, launches(attention, gemm, attention, gemm, gemm)...)
	}
	if layers, n := Find(l).LayersOfSteps([]int32{1, 1, 2, 2, 3, 3, 4, 4}); n != 0 {
		t.Errorf("of overlapping microbatches: %v", layers)
	}
}
