package steps

import (
	"slices"
	"testing"
)

// In steps of three layers a microbatch on stream 20 runs its experts while another on stream 7 attends to the next
// layer: its experts are of the layer before. It may run in some steps only, but neither behind the other, as another
// step would, nor in fewer layers.
func TestSideBySide(t *testing.T) {
	const layers, steps = 3, 6
	layer := func(stream uint16) (l []Launch) {
		for _, launch := range launches(attention, gate, exchange, gemm, gemm, exchange) {
			launch.Stream = stream
			l = append(l, launch)
		}
		return l
	}
	for _, c := range []struct {
		name  string
		late  int                     // launches of the other stream by which the microbatch is behind
		lacks func(n, layer int) bool // layers of the microbatch in a step
		want  int
	}{
		{"in each step", 4, func(int, int) bool { return false }, layers},
		{"in every second step", 4, func(n, _ int) bool { return n%2 > 0 }, layers},
		{"fewer layers in a step", 4, func(n, layer int) bool { return n == 2 && layer == 1 }, 0},
		{"in turn", 6 * layers, func(int, int) bool { return false }, 0},
	} {
		var list []Launch
		for n := range steps {
			a, b := launches(head, embedding, positions), []Launch(nil)
			for i := range layers {
				if a = append(a, layer(7)...); !c.lacks(n, i) {
					b = append(b, layer(20)...)
				}
			}
			for i := range max(len(a), len(b)+c.late+3) {
				list = append(list, a[min(i, len(a)):min(i+1, len(a))]...)
				if i -= c.late + 3; i >= 0 {
					list = append(list, b[min(i, len(b)):min(i+1, len(b))]...)
				}
			}
		}
		order, streams := SideBySide(list)
		if c.want == 0 {
			if order != nil {
				t.Errorf("%s: streams %v", c.name, streams)
			}
			continue
		}
		sorted := make([]Launch, len(list))
		for i, at := range order {
			sorted[i] = list[at]
		}
		s := Find(sorted)
		if all := slices.Clone(order); s.Layers != c.want || len(s.Blocks) != layers*steps || !slices.Equal(streams, []uint16{7, 20}) {
			t.Errorf("%s: %d layers, %d blocks, streams %v", c.name, s.Layers, len(s.Blocks), streams)
		} else if slices.Sort(all); all[len(all)-1] != len(all)-1 || len(slices.Compact(all)) != len(list) {
			t.Errorf("%s: launches are lost", c.name)
		}
		for b, block := range s.Blocks {
			gemms := 0
			for _, l := range sorted[block.First : block.Last+1] {
				if l.Anchor == ExpertGEMM {
					gemms++
				}
			}
			if want := 4; gemms != want && !c.lacks(b/layers, 0) || gemms != 2 && c.lacks(b/layers, 0) {
				t.Errorf("%s: layer %d has %d GEMMs", c.name, b, gemms)
			}
		}
	}
}
