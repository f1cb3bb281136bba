package counts

import (
	"bytes"
	"io"
	"testing"
)

// What engines are given reads back as it was placed, by hand: 3 experts and a copy of
// expert 2 over 2 ranks, in layers 1 and 3 of a model whose layers 0 and 2 are dense.
func TestWrittenPlacementsReadBack(t *testing.T) {
	slots := Slots{1: {2, 0, 1, 2}, 3: {0, 1, 2, 2}}
	for _, engine := range []struct {
		name   string
		write  func(io.Writer) error
		text   string
		layers map[int][]int32
	}{
		{"eplb.yaml", slots.WriteTensorRT, "num_slots: 4\ninitial_global_assignments:\n  1: [2, 0, 1, 2]\n  3: [0, 1, 2, 2]\nlayer_updates_per_iter: 0\n", slots},
		{"sglang.json", func(w io.Writer) error { return slots.WriteSGLang(w, 3) },
			`{"physical_to_logical_map":[[0,1,2,0],[2,0,1,2],[0,1,2,0],[0,1,2,2]]}` + "\n", map[int][]int32{0: {0, 1, 2, 0}, 1: slots[1], 2: {0, 1, 2, 0}, 3: slots[3]}},
		{"vllm.json", func(w io.Writer) error { return slots.WriteVLLM(w, 3) },
			`{"initial_global_assignments":{"0":[2,0,1,2],"1":[0,1,2,2]},"num_redundant_experts":1,"num_slots":4,"record_type":"eplb_initial_mapping","version":1}` + "\n", map[int][]int32{0: slots[1], 1: slots[3]}},
	} {
		var out bytes.Buffer
		if err := engine.write(&out); err != nil || out.String() != engine.text {
			t.Errorf("%s: %q, %v", engine.name, out.String(), err)
		}
		p, err := parsePlacement(engine.name, out.Bytes(), 2)
		if err != nil || p.Experts != 3 || len(p.layers) != len(engine.layers) {
			t.Fatalf("%s: %+v, %v", engine.name, p, err)
		}
		for layer, want := range engine.layers {
			l, err := p.Layout(layer)
			if err != nil || l.Held(0)[0] != want[0] || l.Held(0)[1] != want[1] || l.Held(1)[0] != want[2] || l.Held(1)[1] != want[3] {
				t.Errorf("%s: layer %d: %v, want %v (%v)", engine.name, layer, l, want, err)
			}
		}
	}
}
