package trace

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Two prefill steps whose ranges name the layers 3 and 5, and three decode steps in which no
// range names one. These have both layers where they have two blocks each, and none where they
// have another number, or where ranges name layers in them too.
func TestLayersBesideRanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks int
		some   bool // ranges name layers in decode steps too
		want   []int32
	}{
		{"as many", 2, false, []int32{3, 5}},
		{"more", 3, false, nil},
		{"half", 1, false, nil},
		{"named in part", 2, true, nil},
	} {
		f, id, at := newFixture(), int64(0), int64(0)
		block := func(rank int64, ns int64) {
			for _, name := range []string{"flash_fwd_kernel", "topkGatingSoftmax", "fused_moe_kernel"} {
				f.work(rank, id, at, ns, name)
				id, at = id+1, at+200
			}
		}
		for rank := range int64(2) {
			at = 0
			for step := range int64(5) {
				begin := at
				if step < 2 || c.some {
					f.push(rank, at, at+550, "layer 3")
				}
				for b := range int64(c.blocks) {
					if step < 2 && b == 1 {
						f.push(rank, at, at+550, "layer 5")
					}
					if step > 1 || b < 2 {
						block(rank, 50+10*step+5*b)
					}
				}
				for step < 2 && at < begin+1200 {
					f.push(rank, at, at+550, "layer 5")
					block(rank, 50)
				}
				f.push(rank, begin, at-1, fmt.Sprintf("step %d", step))
			}
		}
		trace := mustRead(t, Options{}, f.write(t, "beside.sqlite"))
		found := map[int32]bool{}
		for _, cell := range trace.Cells {
			if cell.Step > 1 && cell.Phase == PhaseExperts && cell.Layer.Defined() && (!c.some || cell.Layer != 3) {
				found[int32(cell.Layer)] = true
			}
		}
		equal(t, c.name, fmt.Sprint(slices.Sorted(maps.Keys(found))), fmt.Sprint(c.want))
		equal(t, c.name+": said", hasWarning(trace.Warnings, "inferred_beside"), c.want != nil)
		if s := trace.Structure; (s != nil) != (c.want != nil) || s != nil && (!s.Beside || s.Layers != 2 || s.Steps != 3) {
			t.Errorf("%s: %+v, want 3 steps beside ranges where layers are inferred", c.name, s)
		}
	}
}
