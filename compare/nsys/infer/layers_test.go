package infer

import (
	"slices"
	"testing"
)

func TestStepsOfLayers(t *testing.T) {
	for _, c := range []struct {
		name         string
		layers, want []int32
	}{
		{"two steps, glue before and behind layers", []int32{-1, 0, 0, -1, 1, -1, 0, 1, 1, -1}, []int32{0, 0, 0, 0, 0, 1, 1, 1, 1, -1}},
		{"begins and ends within steps", []int32{2, 1, 2, 1}, []int32{0, 1, 1, 2}},
		{"two steps of different layers", []int32{1, 2, 0, 1, 2}, nil},
		{"forward and backward", []int32{0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0}, nil},
		{"a layer lost in the middle", []int32{0, 1, 2, 0, 2, 0, 1, 2, 0, 1, 2}, nil},
		{"one step", []int32{0, 1, 2}, nil},
		{"one layer", []int32{5, 5, -1, 5}, nil},
		{"nothing", nil, nil},
	} {
		if have := StepsOfLayers(c.layers); !slices.Equal(have, c.want) {
			t.Errorf("%s: %v, want %v", c.name, have, c.want)
		}
	}
}
