package counts

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// step is a Step in a form that a table can hold.
type step struct {
	iteration int64
	layer     int
	load      []int64
	received  []int64
}

func checkSteps(t *testing.T, r *Record, want []step) {
	t.Helper()
	var got []step
	for _, s := range stepsOf(t, r) {
		got = append(got, step{s.Iteration, s.Layer, s.Load.PerExpert, s.Received})
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\nhave %v\nwant %v", r.Source, got, want)
	}
}

// Each fixture's counts, worked by hand from its text; the binary ones from
// what the program that wrote them printed.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		path                 []string
		format               string
		experts, topK, ranks int
		window               bool
		warnings             []string
		steps                []step
	}{
		{
			path: []string{"sglang.csv"}, format: "expert counts CSV", experts: 4, window: true,
			steps: []step{{0, 0, []int64{5, 1, 0, 4}, nil}, {0, 1, []int64{0, 0, 7, 0}, nil}},
		}, {
			path: []string{"scrape-1.prom"}, format: "Prometheus text", experts: 4, ranks: 2, window: true,
			warnings: []string{"cumulative"},
			steps:    []step{{0, 3, []int64{90, 10, 30, 30}, []int64{100, 60}}},
		}, {
			path: []string{"sglang-stat.pt"}, format: torchStatFormat, experts: 8, warnings: []string{"empty_steps"},
			steps: []step{
				{0, 0, []int64{26, 8, 17, 27, 0, 0, 0, 5}, nil}, {0, 1, []int64{21, 19, 34, 11, 25, 9, 26, 29}, nil},
				{1, 0, []int64{15, 14, 0, 4, 36, 29, 31, 6}, nil}, {1, 1, []int64{32, 18, 17, 34, 14, 10, 10, 31}, nil},
				{2, 0, []int64{4, 33, 19, 2, 13, 0, 22, 1}, nil}, {2, 1, []int64{13, 34, 16, 35, 14, 31, 16, 3}, nil},
			},
		}, {
			// arange(48) as [2, 3, 8], transposed to [3, 2, 8], without its first step.
			path: []string{"sglang-strided.pt"}, format: torchStatFormat, experts: 8,
			steps: []step{
				{0, 0, []int64{8, 9, 10, 11, 12, 13, 14, 15}, nil}, {0, 1, []int64{32, 33, 34, 35, 36, 37, 38, 39},
					nil},
				{1, 0, []int64{16, 17, 18, 19, 20, 21, 22, 23}, nil}, {1, 1, []int64{40, 41, 42, 43, 44, 45, 46, 47},
					nil},
			},
		}, {
			// Pass 100, layer 0: rank 0 counted 17 11 23 16 29 | 4 14 25 21 23 and rank 1
			// 32 15 8 0 0 | 10 10 3 31 32, together 49 26 31 16 29 | 14 24 28 52 55 (151
			// and 173); copies 8 and 9 are of experts 0 and 3. Layer 1 runs from expert 7
			// down to 0, and ends in copies of 1 and 2.
			path: []string{"sglang-pass"}, format: "SGLang expert distribution (per pass)", experts: 8, ranks: 2,
			steps: []step{
				{100, 0, []int64{49 + 52, 26, 31, 16 + 55, 29, 14, 24, 28}, []int64{151, 173}},
				{100, 1, []int64{53, 49 + 19, 45 + 40, 62, 45, 17, 41, 21}, []int64{186, 206}},
				{101, 0, []int64{33 + 52, 15, 12, 36 + 35, 65, 69, 41, 46}, []int64{161, 243}},
				{101, 1, []int64{44, 29 + 19, 24 + 34, 35, 58, 41, 13, 39}, []int64{186, 150}},
			},
		}, {
			path: []string{"loads_c.npy"}, format: "NumPy array of loads", experts: 8, ranks: 2, window: true,
			steps: numpyLoads,
		}, {
			path: []string{"loads_fortran.npy"}, format: "NumPy array of loads", experts: 8, ranks: 2, window: true,
			steps: numpyLoads,
		},
	} {
		var axes Axes
		if strings.HasSuffix(c.path[0], ".npy") {
			axes = Axes{"layers", "ranks", "experts"}
		}
		r, err := ReadAs(fixture(append([]string{"counts"}, c.path...)...), axes)
		if err != nil {
			t.Fatal(err)
		}
		if r.Format != c.format || r.Experts != c.experts || r.TopK != c.topK || r.Ranks != c.ranks ||
			r.Window != c.window || !slices.Equal(codes(r.Warnings), c.warnings) {
			t.Errorf("%s: %s, %d experts, top-%d, %d ranks, window %v, warnings %v", r.Source, r.Format, r.Experts,
				r.TopK, r.Ranks, r.Window, r.Warnings)
		}
		if !slices.ContainsFunc(Formats(), func(f Format) bool { return f.Name == r.Format }) {
			t.Errorf("%q is not among the formats listed: %v", r.Format, Formats())
		}
		checkSteps(t, r, c.steps)
	}
}

// The array of 2 layers, 2 ranks and 4 local experts, in C and Fortran order.
var numpyLoads = []step{
	{0, 0, []int64{71, 50, 60, 86, 67, 35, 63, 59}, nil},
	{0, 1, []int64{10, 5, 65, 38, 59, 31, 22, 14}, nil},
}

// A record of physical copies knows where they are, so that chance can be told
// per rank and other ranks can be asked for.
func TestRecordedCopiesArePlaced(t *testing.T) {
	r := mustRead(t, fixture("counts", "sglang-pass"))
	if r.Placement == nil || len(r.Warnings) > 0 {
		t.Fatalf("placement %v, warnings %v", r.Placement, r.Warnings)
	}
	l, err := r.Placement.Layout(1)
	if err != nil || !slices.Equal(l.Held(0), []int32{7, 6, 5, 4, 3}) ||
		!slices.Equal(l.Held(1), []int32{2, 1, 0, 1, 2}) {
		t.Errorf("layer 1: %v, %v", l, err)
	}
	layers, warnings, err := r.Imbalance(Options{Shape: &router.Shape{Experts: 8, TopK: 1}})
	if err != nil || len(warnings) > 0 || !layers[0].NullP95.Defined() {
		t.Errorf("%+v, %v, %v", layers, warnings, err)
	}
	_, warnings, err = r.Imbalance(Options{Placement: r.Placement})
	if err != nil || !slices.Contains(codes(warnings), "even_replicas") {
		t.Errorf("asked for the placement instead of the counts per rank: %v, %v", warnings, err)
	}
	holes := collector{Record: &Record{Experts: 3, Ranks: 2}, cells: map[stepKey]*cells{}}
	err = errors.Join(holes.copies(stepKey{}, 0, []int64{1, 2}, []int64{0, 1}), holes.steps(), holes.finish())
	if err != nil || holes.Placement != nil || !slices.Equal(codes(holes.Warnings), []string{"no_placement"}) {
		t.Errorf("a map without expert 2: %+v, %v", holes, err)
	}
}

func TestSince(t *testing.T) {
	first, second := mustRead(t, fixture("counts", "scrape-1.prom")), mustRead(t, fixture("counts", "scrape-2.prom"))
	d, err := second.Since(first)
	if err != nil {
		t.Fatal(err)
	}
	checkSteps(t, d, []step{{0, 3, []int64{1, 5, 8, 2}, []int64{6, 10}}})
	if len(d.Warnings) > 0 {
		t.Errorf("warnings %v", d.Warnings)
	}
	checkSteps(t, second, []step{{0, 3, []int64{91, 15, 38, 32}, []int64{106, 70}}}) // unchanged
	if _, err := first.Since(second); err == nil || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("counters that fell: %v", err)
	}
	if _, err := first.Since(mustRead(t, fixture("counts", "sglang.csv"))); err == nil {
		t.Error("records of two formats have a difference")
	}
}

func TestReportedLines(t *testing.T) {
	r := mustRead(t, fixture("counts", "engine.log"))
	b, err := json.Marshal(r.Reported)
	want := `[{"step":812,"passes":1,"balancedness":0.744,"max_over_mean":1.3440860215053763},` +
		`{"step":2250,"passes":1,"balancedness":0.7817,"max_over_mean":1.2792631444288092},` +
		`{"step":null,"passes":1,"balancedness":0.8,"max_over_mean":1.25}]`
	if err != nil || string(b) != want {
		t.Errorf("have %s (%v)\nwant %s", b, err, want)
	}
	if got := codes(r.Warnings); !slices.Equal(got, []string{"idle_steps", "vllm_axis"}) {
		t.Errorf("warnings %v", got)
	}
	layers, warnings, err := r.Imbalance(Options{})
	if err != nil || len(layers) > 0 || len(warnings) > 0 {
		t.Errorf("a log has no loads, but: %v, %v, %v", layers, warnings, err)
	}
}

func TestPlacements(t *testing.T) {
	p, err := ReadPlacement(fixture("counts", "expert-map.json"), 0)
	if err != nil {
		t.Fatal(err)
	}
	// Layer 1 lists device 1 first: experts 2 1 0 are on rank 0, 0 3 1 on rank 1.
	l, err := p.Layout(1)
	if err != nil || !slices.Equal(l.Held(0), []int32{2, 1, 0}) || !slices.Equal(l.Held(1), []int32{0, 3, 1}) ||
		p.Experts != 4 || p.Ranks != 2 {
		t.Errorf("%+v, %v, %v", p, l, err)
	}
	// 8 slots on 4 ranks, two each: 0 1 | 2 3 | 4 5 | 0 1.
	p, err = ReadPlacement(fixture("counts", "eplb.yaml"), 4)
	if err != nil {
		t.Fatal(err)
	}
	l, err = p.Layout(0)
	if err != nil || !slices.Equal(l.RankLoad([]int64{10, 20, 1, 2, 3, 4}), []int64{15, 3, 7, 15}) {
		t.Errorf("EPLB: %v, %v", l, err)
	}
	p, err = ReadPlacement(fixture("counts", "vllm-mapping.json"), 2)
	if err != nil || p.Experts != 4 {
		t.Errorf("vLLM's mapping: %+v, %v", p, err)
	}
	// Six physical experts on two ranks: layer 1 is 3 2 1 | 0 3 2.
	p, err = ReadPlacement(fixture("counts", "expert-map-sglang.json"), 2)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = p.Layout(1); err != nil || !slices.Equal(l.Held(0), []int32{3, 2, 1}) ||
		!slices.Equal(l.Held(1), []int32{0, 3, 2}) {
		t.Errorf("SGLang's map: %v, %v", l, err)
	}
	if _, err := p.Layout(7); err == nil {
		t.Error("a layer that is not placed has a layout")
	}
}

// Two copies of expert 0 on rank 0 and one on rank 1: of its 90 slots 60 go to rank
// 0, and the 10 of expert 1 to rank 1.
func TestCopiesOnOneRank(t *testing.T) {
	p, err := parsePlacement("x", []byte("num_slots: 4\nep_size: 2\ninitial_global_assignments:\n  3: [0, 0, 0, 1]\n"),
		0)
	if err != nil {
		t.Fatal(err)
	}
	rank, _ := judged(t, record(1, 0, []int64{90, 10}), Options{Placement: p})
	if !near(rank.MaxOverMean, 1.2) || rank.Worst != 0 {
		t.Errorf("60 and 40 slots: %+v", rank)
	}
}

func TestPlacementRefusals(t *testing.T) {
	for content, want := range map[string]string{
		"":        "the file is empty",
		"{}":      "unknown placement",
		"{\"a\":": "ends early",
		"num_slots: 4\ninitial_global_assignments:\n  0: [0, 1, 2, 3]\n":                                                                                                 "give the EP size",
		"num_slots: 4\nep_size: 3\ninitial_global_assignments:\n  0: [0, 1, 2, 3]\n":                                                                                     "do not divide over 3",
		"num_slots: 5\nep_size: 2\ninitial_global_assignments:\n  0: [0, 1, 2, 3]\n":                                                                                     "want 5 slots",
		"num_slots: 4\nep_size: 2\ninitial_global_assignments:\n  0: [0, 1, 1, 3]\n":                                                                                     "no rank holds expert 2",
		"num_slots: 4\nep_size: 2\ninitial_global_assignments: {}\n":                                                                                                     "names no layer",
		"num_slots: x\ninitial_global_assignments: {}\n":                                                                                                                 "not the YAML",
		`{"moe_layer_count":2,"layer_list":[]}`:                                                                                                                          "want 2 layers",
		`{"moe_layer_count":1,"layer_list":[{"layer_id":0,"device_count":2,"device_list":[{"device_id":0,"device_expert":[0]}]}]}`:                                       "want 2 devices",
		`{"moe_layer_count":1,"layer_list":[{"layer_id":0,"device_count":2,"device_list":[{"device_id":0,"device_expert":[0]},{"device_id":0,"device_expert":[1]}]}]}`:   "once",
		`{"moe_layer_count":1,"layer_list":[{"layer_id":0,"device_count":2,"device_list":[{"device_id":0,"device_expert":[0]},{"device_id":1,"device_expert":[9e9]}]}]}`: "cannot unmarshal",
	} {
		if p, err := parsePlacement("x", []byte(content), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, have %v (%+v)", content, want, err, p)
		}
	}
	if _, err := ReadPlacement(fixture("counts", "expert-map.json"), 3); err == nil ||
		!strings.Contains(err.Error(), "the file is of 2") {
		t.Errorf("3 ranks for a map of 2: %v", err)
	}
	if _, err := ReadPlacement(fixture("counts", "missing"), 0); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("a missing file: %v", err)
	}
}

func unwrapAll(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = inner.Unwrap()
	}
}

// What each text format refuses, and by which words.
func TestTextRefusals(t *testing.T) {
	for content, want := range map[string]string{
		"   ":                             "empty",
		"{":                               "ends early",
		"[1,2]":                           "want counts of layers × experts, have 1 dimension",
		"{}":                              "it is empty",
		"layer_id,expert_id,count\n0,0\n": "line 2",
		"layer_id,expert_id,count\n0,0,1\n0,0,2\n":                                    "twice",
		"layer_id,expert_id,count\n0,0,x\n":                                           "line 2",
		"vllm:phy_expert_heat{rank=\"x\",layer=\"0\",phy_expert_id=\"1\"} 5\n":        "want a number in rank",
		"vllm:eplb_tokens_routed_to_ep_rank{layer_idx=\"0\",dst_ep_rank=\"0\"} NaN\n": "NaN",
		"vllm:eplb_tokens_routed_to_ep_rank{dst_ep_rank=\"0\"} 5\n":                   "layer_idx",
		"[Expert Balancedness] forward_pass_id=1 current_pass_balancedness=..\n":      "", // no number: not a line
		"PK\x03\x04broken":  "zip",
		"\x93NUMPY\x01\x00": "magic",
	} {
		if r, err := parse("x", []byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, have %v (%+v)", content, want, err, r)
		}
	}
}
