package placement

import (
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// The example that deepseek-ai/EPLB publishes in its README: its two layers, and the
// map that it prints. The loads of the ranks are worked out by hand.
var published = []struct {
	load  []int64
	slots []int32
	ranks []float64
}{
	{[]int64{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86}, []int32{5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11,
		1},
		[]float64{121.5, 86.5, 125, 113, 147.5, 131.5, 156, 152}},
	{[]int64{20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27}, []int32{7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0,
		3, 1},
		[]float64{173, 179.5, 120.5, 172, 123, 152, 118.5, 117.5}},
}

func TestPublishedExample(t *testing.T) {
	for i, c := range published {
		slots, err := EPLB(c.load, Size{Slots: 16, Ranks: 8, Groups: 4, Nodes: 2})
		if err != nil || !slices.Equal(slots, c.slots) {
			t.Fatalf("layer %d: %v, want %v (%v)", i, slots, c.slots, err)
		}
		l, err := Layout(12, slots, 8)
		if err != nil || !slices.Equal(RankLoad(l, c.load), c.ranks) {
			t.Errorf("layer %d: loads %v, want %v (%v)", i, RankLoad(l, c.load), c.ranks, err)
		}
		if m, want := MaxOverMean(l, c.load), []float64{1.2081, 1.2422}[i]; math.Abs(float64(m)-want) > 5e-5 {
			t.Errorf("layer %d: max/mean %v, want %v", i, m, want)
		}
	}
	l, _ := router.Contiguous(4, 2)
	if MaxOverMean(l, make([]int64, 4)).Defined() {
		t.Error("no load has a max/mean")
	}
}
