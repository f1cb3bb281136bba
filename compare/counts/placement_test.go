package counts

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/testdata/require"
)

// Placements as engines write and users post them, by hand. Layer 1 of expert-map.json lists device 1 first:
// experts 2 1 0 are on rank 0, 0 3 1 on rank 1. model-maps.json holds 0 1 | 2 1 and 2 0 | 1 2.
func TestPlacements(t *testing.T) {
	for _, c := range []struct {
		file                  string
		ranks, layer, experts int
		first, last           []int32 // on the first rank, on the last
	}{
		{"expert-map.json", 0, 1, 4, []int32{2, 1, 0}, []int32{0, 3, 1}},
		{"eplb.yaml", 4, 0, 6, []int32{0, 1}, []int32{0, 1}},
		{"vllm-mapping.json", 2, 0, 4, nil, nil},
		{"expert-map-sglang.json", 2, 1, 4, []int32{3, 2, 1}, []int32{0, 3, 2}},
		{"users/model-maps.json", 2, 1, 3, []int32{2, 0}, []int32{1, 2}},
		{"users/map-by-layer.json", 2, 1, 4, []int32{3, 2, 1}, nil},
		{"users/map-of-all.json", 3, 7, 4, []int32{0, 1}, nil},
		{"users/exflow.json", 0, 5, 8, []int32{5}, nil},
	} {
		p, err := ReadPlacement(fixture("counts", c.file), c.ranks)
		if err != nil {
			t.Error(err)
			continue
		}
		l, err := p.Layout(c.layer)
		if err != nil || p.Experts != c.experts || c.first != nil && !slices.Equal(l.Held(0), c.first) ||
			c.last != nil && !slices.Equal(l.Held(p.Ranks-1), c.last) {
			t.Errorf("%s: %+v, %v, %v", c.file, p, l, err)
		}
	}
}

// A slot of -1 holds no expert, as on ranks that vLLM has masked, and counts nothing.
func TestSlotsWithoutAnExpert(t *testing.T) {
	text := `{"physical_to_logical_map": [[0, 1, 2, -1, 3, 0, -1, -1]], "num_ranks": 2, "expert_load": [[9, 2, 3, 0, 4, 1, 0, 0]]}`
	p, err := placementOf("x", []byte(text), 2)
	if l, _ := p.Layout(0); err != nil || !slices.Equal(l.Held(0), []int32{0, 1, 2}) || !slices.Equal(l.Held(1), []int32{3, 0}) {
		t.Errorf("%v, %v", l, err)
	}
	step := parsed(text).Steps()[0]
	if !slices.Equal(step.Load.PerExpert, []int64{10, 2, 3, 4}) || !slices.Equal(step.Received, []int64{14, 5}) {
		t.Errorf("%+v", step)
	}
}

func TestPlacementRefusals(t *testing.T) {
	for content, want := range map[string]string{
		// a number in a file is no size of memory
		`{"moe_layer_count":1,"layer_list":[{"layer_id":0,"device_count":1000000000,"device_list":[]}]}`: "layers × ranks × experts, have [1, 0]",
		`{"num_slots": 1, "ep_size": 1000000000, "initial_global_assignments": {"0": [0]}}`:              "16384 ranks",
		"num_slots: 1\nep_size: -3\ninitial_global_assignments:\n  0: [0]\n":                             "give the EP size",
		"[[[2000000000]]]": "names expert", "": "the file is empty", "[[[1, 0, 0, 1], [0, 1, 1, 0]]]": "4 slots on a rank for 2 experts",
		"{}":      "names no layer",
		"{\"a\":": "ends early",
		"num_slots: 4\ninitial_global_assignments:\n  0: [0, 1, 2, 3]\n":                                                                                                 "give the EP size",
		"num_slots: 4\nep_size: 3\ninitial_global_assignments:\n  0: [0, 1, 2, 3]\n":                                                                                     "do not divide over 3",
		"num_slots: 5\nep_size: 2\ninitial_global_assignments:\n  0: [0, 1, 2, 3]\n":                                                                                     "a list of 5 slots",
		"num_slots: 4\nep_size: 2\ninitial_global_assignments:\n  0: [0, 1, 1, 3]\n":                                                                                     "no rank holds expert 2",
		"num_slots: 4\nep_size: 2\ninitial_global_assignments: {}\n":                                                                                                     "lists of experts by layer",
		"num_slots: x\ninitial_global_assignments: {}\n":                                                                                                                 "lists of experts by layer",
		`{"moe_layer_count":2,"layer_list":[]}`:                                                                                                                          "names no layer",
		`{"moe_layer_count":1,"layer_list":[{"layer_id":0,"device_list":[{"device_id":1,"device_expert":[0]}]}]}`:                                                        "each of 1 devices once",
		`{"moe_layer_count":1,"layer_list":[{"layer_id":0,"device_count":2,"device_list":[{"device_id":0,"device_expert":[0]},{"device_id":0,"device_expert":[1]}]}]}`:   "once",
		`{"moe_layer_count":1,"layer_list":[{"layer_id":0,"device_count":2,"device_list":[{"device_id":0,"device_expert":[0]},{"device_id":1,"device_expert":[9e9]}]}]}`: "names expert",
	} {
		if p, err := placementOf("x", []byte(content), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, have %v (%+v)", content, want, err, p)
		}
	}
	if _, err := ReadPlacement(fixture("counts", "expert-map.json"), 3); err == nil ||
		!strings.Contains(err.Error(), "the file is of 2") {
		t.Errorf("3 ranks for a map of 2: %v", err)
	}
}

// What engines are given reads back as it was placed, by hand: 3 experts and a copy of
// expert 2 over 2 ranks, in layers 1 and 3 of a model whose layers 0 and 2 are dense.
func TestWrittenPlacementsReadBack(t *testing.T) {
	slots := placement.Slots{1: {2, 0, 1, 2}, 3: {0, 2, 1, 2}}
	for _, engine := range []struct {
		name   string
		text   string
		layers map[int][]int32
	}{
		{placement.TensorRT,
			"num_slots: 4\ninitial_global_assignments:\n  1: [2, 0, 1, 2]\n  3: [0, 2, 1, 2]\nlayer_updates_per_iter: 0\n", slots},
		{placement.SGLang,
			`{"physical_to_logical_map":[[0,1,2,0],[2,0,1,2],[0,1,2,0],[0,2,1,2]]}` + "\n",
			map[int][]int32{0: {0, 1, 2, 0}, 1: slots[1], 2: {0, 1, 2, 0}, 3: slots[3]}},
		{placement.VLLM,
			`{"initial_global_assignments":{"0":[2,0,1,2],"1":[0,2,1,2]},"num_redundant_experts":1,"num_slots":4,"record_type":"eplb_initial_mapping","version":1}` + "\n", map[int][]int32{0: slots[1], 1: slots[3]}},
		{placement.Ascend,
			`{"layer_list":[{"device_count":2,"device_list":[{"device_expert":[2,0],"device_id":0},{"device_expert":[1,2],"device_id":1}],"layer_id":0},` +
				`{"device_count":2,"device_list":[{"device_expert":[0,2],"device_id":0},{"device_expert":[1,2],"device_id":1}],"layer_id":1}],"moe_layer_count":2}` + "\n",
			map[int][]int32{0: slots[1], 1: slots[3]}},
	} {
		var out bytes.Buffer
		if err := slots.Write(&out, engine.name, 3, 2, nil); err != nil || out.String() != engine.text {
			t.Errorf("%s: %q, %v", engine.name, out.String(), err)
		}
		p, err := placementOf(engine.name, out.Bytes(), 2)
		if err != nil || p.Experts != 3 || len(p.Placed([]int{0, 1, 2, 3})) != len(engine.layers) {
			t.Fatalf("%s: %+v, %v", engine.name, p, err)
		}
		for layer, want := range engine.layers {
			if l, err := p.Layout(layer); err != nil || !slices.Equal(placement.SlotsOf(l), want) {
				t.Errorf("%s: layer %d: %v, want %v (%v)", engine.name, layer, l, want, err)
			}
		}
	}
	twice := placement.Slots{0: {0, 1, 2, 2}}
	if err := twice.Write(io.Discard, placement.Ascend, 3, 2, nil); err == nil || !strings.Contains(err.Error(), "twice on device 1") {
		t.Errorf("vllm-ascend would mix up the experts of %v: %v", twice, err)
	}
}

// The placement of two layers of a model whose first is dense, by the numbers that each
// engine gives them, and counts by both, in part and in full. Layer 2 holds 0 2 | 1 3.
func TestPlacementsNumberLayers(t *testing.T) {
	slots, moe := placement.Slots{1: {0, 1, 2, 3}, 2: {0, 2, 1, 3}, 3: {0, 3, 1, 2}}, []int{1, 2, 3}
	files := map[string][]byte{}
	for _, name := range []string{placement.TensorRT, placement.SGLang, placement.VLLM, placement.Ascend} {
		var out bytes.Buffer
		require.NoError(t, slots.Write(&out, name, 4, 2, nil))
		files[name] = out.Bytes()
	}
	layers := func(first, n int) (list []int) {
		for layer := range n {
			list = append(list, first+layer)
		}
		return list
	}
	for _, c := range []struct {
		first, n int // layers of the counts
		moe      []int
		layer    int // of the counts that is the model's layer 2
		refused  string
	}{
		{1, 3, nil, 2, "ascend vllm"}, {1, 3, moe, 2, ""}, {0, 3, nil, 1, "sglang trtllm"}, {0, 3, moe, 1, ""},
		{1, 2, nil, 2, "ascend vllm"}, {1, 2, moe, 2, ""}, {0, 2, nil, 1, "sglang trtllm"}, {0, 2, moe, 1, ""},
		{2, 1, nil, 2, "ascend vllm"}, {2, 1, moe, 2, ""}, {0, 5, moe, 0, "ascend sglang trtllm vllm"},
	} {
		var refused []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			var l router.Layout
			p, err := must(placementOf(name, files[name], 2)).For(layers(c.first, c.n), c.moe)
			if err == nil {
				_, first := p.Layout(c.first)
				l, err = p.Layout(c.layer)
				err = errors.Join(first, err)
			}
			if err == nil && (!slices.Equal(l.Held(0), []int32{0, 2}) || !slices.Equal(l.Held(1), []int32{1, 3})) {
				t.Errorf("%s: %d layers from %d, MoE layers %v: %v", name, c.n, c.first, c.moe, l)
			}
			if err != nil {
				refused = append(refused, name)
			}
		}
		if got := strings.Join(refused, " "); got != c.refused {
			t.Errorf("%d layers from %d, MoE layers %v: refused %q, want %q", c.n, c.first, c.moe, got, c.refused)
		}
	}
	var out bytes.Buffer
	part := placement.Slots{2: slots[2]}
	want := `"initial_global_assignments":{"0":[0,1,2,3],"1":[0,2,1,3],"2":[0,1,2,3]},`
	if err := part.Write(&out, placement.VLLM, 4, 2, moe); err != nil || !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %s (%v)", out.String(), want, err)
	}
}
