package counts

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
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
	for _, s := range r.Steps() {
		got = append(got, step{s.Iteration, s.Layer, s.Load.PerExpert, s.Received})
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\nhave %v\nwant %v", r.Source, got, want)
	}
}

// The array of 2 layers, 2 ranks and 4 local experts, in C and Fortran order.
var numpyLoads = []step{
	{0, 0, []int64{71, 50, 60, 86, 67, 35, 63, 59}, nil},
	{0, 1, []int64{10, 5, 65, 38, 59, 31, 22, 14}, nil},
}

// Each fixture's counts, worked by hand from its text; the binary ones from
// what the program that wrote them printed.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		path, axes           string
		format               string
		experts, topK, ranks int
		window               bool
		warnings             string
		steps                []step
	}{
		{"expert-location.json", "", "SGLang logical counts", 4, 0, 0, true, "dense_layers",
			[]step{{0, 1, []int64{8, 1, 2, 5}, nil}, {0, 2, []int64{3, 3, 4, 2}, nil}}},
		{"sglang-stat.pt", "", statFormat, 8, 0, 0, false, "empty_steps", []step{
			{0, 0, []int64{26, 8, 17, 27, 0, 0, 0, 5}, nil}, {0, 1, []int64{21, 19, 34, 11, 25, 9, 26, 29}, nil},
			{1, 0, []int64{15, 14, 0, 4, 36, 29, 31, 6}, nil}, {1, 1, []int64{32, 18, 17, 34, 14, 10, 10, 31}, nil},
			{2, 0, []int64{4, 33, 19, 2, 13, 0, 22, 1}, nil}, {2, 1, []int64{13, 34, 16, 35, 14, 31, 16, 3}, nil},
		}},
		// arange(48) as [2, 3, 8], transposed to [3, 2, 8], without its first step.
		{"sglang-strided.pt", "", statFormat, 8, 0, 0, false, "", []step{
			{0, 0, []int64{8, 9, 10, 11, 12, 13, 14, 15}, nil}, {0, 1, []int64{32, 33, 34, 35, 36, 37, 38, 39}, nil},
			{1, 0, []int64{16, 17, 18, 19, 20, 21, 22, 23}, nil}, {1, 1, []int64{40, 41, 42, 43, 44, 45, 46, 47}, nil},
		}},
		// Pass 100, layer 0: rank 0 counted 17 11 23 16 29 | 4 14 25 21 23 and rank 1
		// 32 15 8 0 0 | 10 10 3 31 32, together 49 26 31 16 29 | 14 24 28 52 55 (151
		// and 173); copies 8 and 9 are of experts 0 and 3. Layer 1 runs from expert 7
		// down to 0, and ends in copies of 1 and 2.
		{"sglang-pass", "", "SGLang expert distribution (per pass)", 8, 0, 2, false, "", []step{
			{100, 0, []int64{49 + 52, 26, 31, 16 + 55, 29, 14, 24, 28}, []int64{151, 173}},
			{100, 1, []int64{53, 49 + 19, 45 + 40, 62, 45, 17, 41, 21}, []int64{186, 206}},
			{101, 0, []int64{33 + 52, 15, 12, 36 + 35, 65, 69, 41, 46}, []int64{161, 243}},
			{101, 1, []int64{44, 29 + 19, 24 + 34, 35, 58, 41, 13, 39}, []int64{186, 150}},
		}},
		{"loads_c.npy", "layers,ranks,experts", "NumPy array of loads", 8, 0, 2, true, "", numpyLoads},
		{"loads_fortran.npy", "layers,ranks,experts", "NumPy array of loads", 8, 0, 2, true, "", numpyLoads},
	} {
		axes, _ := ParseAxes(c.axes)
		r := must(ReadAs(fixture("counts", c.path), axes))
		if r.Format != c.format || r.Experts != c.experts || r.TopK != c.topK || r.Ranks != c.ranks ||
			r.Window != c.window || strings.Join(codes(r.Warnings), " ") != c.warnings {
			t.Errorf("%s: %s, %d experts, top-%d, %d ranks, window %v, warnings %v", r.Source, r.Format, r.Experts,
				r.TopK, r.Ranks, r.Window, r.Warnings)
		}
		checkSteps(t, r, c.steps)
	}
}

// Texts as people and engines spell them.
func TestSpellings(t *testing.T) {
	want := []step{{0, 0, []int64{5, 7}, nil}}
	routed := []step{{0, 0, []int64{1, 0, 1, 0, 0, 2, 0, 0}, nil}, {0, 1, []int64{1, 1, 0, 1, 0, 0, 0, 1}, nil}}
	for text, want := range map[string][]step{
		"layer,expert,count\n0,0,5\n0,1,7\n": want, "layer_id, expert_id, num_tokens\n0,0,5\n0,1,7\n": want,
		"\ufeffLayer,Expert,Tokens\n0,0,5\n0,1,7\n": want, "LAYER-IDX,\"Expert Idx\",counts\n0,0,5\n0,1,7\n": want,
		"x,layer,expert,count\n9,0,0,5\n9,0,1,7\n": want, "layer;expert;count\n0;0;5\n0;1;7\n": want,
		"layer_id\texpert_id\tnum_tokens\n0\t0\t5\n0\t1\t7\n": want, "layer,0,1\n0,5,7\n": want,
		`{"ep_size": 2, "expert_histogram": [[5], [7]]}`: want, "# layer,expert,hits,rows\n0,0,5,9\n0,1,7,9\n": want,
		"layer_id,expert_ids\n0,2 5\n0,0 5\n1,\"[1, 3]\"\n1,7 0\n": routed,
		// as forks of llama.cpp write them
		"# initial_global_assignments:\n#\nlayer,expert,count,frac_of_layer\n0,0,5,0.4\n0,1,7,0.6\n# total,12\n": want,
		"step,layer,rank0,rank1\n4,0,5,7\n4,1,1,2\n":                                                             {{4, 0, nil, []int64{5, 7}}, {4, 1, nil, []int64{1, 2}}},
		"layer,expert,count,model\n0,0,5,a\n0,1,1,a\n0,0,2,b\n": {{0, 0, []int64{5, 1}, nil},
			{0, 0, []int64{2, 0}, nil}},
		"\x93NUMPY\x01\x00\x3e\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), } \n\x00\x00\xa0\x40\x00\x00\xe0\x40": want,
		`[[1, 2], [3, 4.0]]`: {{0, 0, []int64{1, 2}, nil}, {0, 1, []int64{3, 4}, nil}},
		"[[1, 1], [2, 2]]":   {{0, 0, []int64{1, 1}, nil}, {0, 1, []int64{2, 2}, nil}}, // columns of one sum, and rows
		"[[1, 2], [2, 1]]":   {{0, 0, []int64{1, 2}, nil}, {0, 1, []int64{2, 1}, nil}},
		`{"logical_count": [[[0, 0], [0, 0]], [[1, 2], [3, 4]]]}`: {{1, 0, []int64{1, 2}, nil},
			{1, 1, []int64{3, 4}, nil}},
		// the documented example: 2 tokens, 2 layers, top-2: 0 5 1 3 | 2 5 0 7
		`{"meta_info": {"routed_experts": "AAAAAAUAAAABAAAAAwAAAAIAAAAFAAAAAAAAAAcAAAA=", "shape": [2, 2, 2]}}`:                           nil,
		`{"routed_experts": "AAAAAAUAAAABAAAAAwAAAAIAAAAFAAAAAAAAAAcAAAA=", "shape": [2, 2, 2]}`:                                          routed,
		`{"routed_experts": [[[0, 5], [1, 3]], [[2, 5], [0, 7]]]}`:                                                                        routed,
		`[{"choices": [{"sgl_ext": {"routed_experts": [[[0, 5], [1, 3]]]}}], "outputs": "text"}, {"routed_experts": [[[2, 5], [0, 7]]]}]`: routed,
		// counts by layer, as lines and as a list; two steps
		`{"layer_idx": 3, "expert_counts": [5, 7]} {"layer_idx": 4, "expert_counts": [1, 2]}`: {{0, 3, []int64{5, 7}, nil},
			{0, 4, []int64{1, 2}, nil}},
		`[{"step": 1, "layer_idx": 3, "expert_counts": [5, 7]}, {"step": 2, "layer_idx": 3, "expert_counts": [1, 2]}]`: {
			{1, 3, []int64{5, 7}, nil}, {2, 3, []int64{1, 2}, nil}},
		`{"layer_3": [5, 7], "layer_4": [1, 2]}`: {{0, 3, []int64{5, 7}, nil}, {0, 4, []int64{1, 2}, nil}},
		`{"layers": [{"layer": 3, "counts": [5, 7]}, {"layer": 4, "counts": [1, 2]}]}`: {{0, 3, []int64{5, 7}, nil},
			{0, 4, []int64{1, 2}, nil}},
		`{"hits": 9, "layers": [{"il": 3, "hits": 8, "misses": 4, "count": [5, 7]}]}`:                              {{0, 3, []int64{5, 7}, nil}}, // llama.cpp
		`[{"layer": 0, "expert": 1, "count": 7, "load": 0.6}, {"layer": 0, "expert": 0, "count": 5, "load": 0.4}]`: want,
		`{"prefill": {"expert_counts": [[5, 7]]}, "decode": {"expert_counts": [[1, 2]]}}`: {{0, 0, []int64{1, 2}, nil},
			{0, 0, []int64{5, 7}, nil}},
		// vLLM: copies 0 1 1 0 of two ranks, without a map the experts themselves; a log line
		`{"num_ranks": 2, "step": 3000, "expert_load": [[5, 1, 2, 4]], "p2l_map": [[0, 1, 1, 0]]}`: {{3000, 0, []int64{9, 3},
			[]int64{6, 6}}},
		`{"num_ranks": 2, "step": 3000, "expert_load": [[5, 1, 2, 4]]}`: {{3000, 0, []int64{5, 1, 2, 4}, nil}},
		`{"expert_load": [5, 7]}`: want, `{"expert_counts": [5, 7]}`: want,
		`INFO 11-20 eplb: {"schema_version": 2, "eplb_step": 11, "expert_parallel_size": 2, "experts_per_token": 2, ` +
			`"logical_expert_counts": [[4, 0], [1, 3]]}`: {{11, 0, []int64{4, 0}, nil}, {11, 1, []int64{1, 3}, nil}},
		`{"3": [5, 7], "4": [1, 2]}`: {{0, 3, []int64{5, 7}, nil}, {0, 4, []int64{1, 2}, nil}},
		`{"model.layers.3.mlp": [5, 7]} {"layer": 2, "experts": {"1": 7, "0": 5}}`: {{0, 2, []int64{5, 7}, nil},
			{0, 3, []int64{5, 7}, nil}},
		`{"expert_load": [[5, 7]]}`:               want,
		`{"step": 1, "layer": 0, "load": [5, 7]}`: {{1, 0, []int64{5, 7}, nil}}, "expert,tokens\n0,5\n1,7\n": want,
		`{"tokens_per_expert": [[5, 7], [1, 2]]}`: {{0, 0, []int64{5, 7}, nil}, {0, 1, []int64{1, 2}, nil}},
		// tokens × top-k of a layer, counts that tell the same again, and records of another tool than SGLang
		`{"records": [{"layer": 0, "topk_experts": [[0, 1], [1, -1]]}]}`:        {{0, 0, []int64{1, 2}, nil}},
		`{"layers": {"3": {"cnt": [5, 7], "expert_counts": null}}}`:             {{0, 3, []int64{5, 7}, nil}},
		`[{"layer": 0, "expert_counts": [5, 7], "selected_experts": [[0, 1]]}]`: want,
		// two ranks' choices of top-2 slots of 4 in TensorRT-LLM's calibration: 0 1 | 0 2 and 0 3 | 1 0
		`{"world_size": 2, "all_ranks_records": [[{"iteration": 47, "metadata": [{"layer_idx": 5, "num_slots": 4, "token_selected_slots_shape": [2, 2]}], "raw_data": "eJxjYGBgYGSAACYgBgAAJAAE"}], [{"iteration": 47, "metadata": [{"layer_idx": 5, "num_slots": 4, "token_selected_slots_shape": [2, 2]}], "raw_data": "eJxjYGBgYAZiRgYIAAAAPAAF"}]]}`: {{47,
			5, []int64{4, 2, 1, 1}, nil}},
	} {
		if want == nil {
			want = routed
		}
		checkSteps(t, parsed(text), want)
	}
}

// What is refused, in one line that says why, and where.
func TestRefusals(t *testing.T) {
	refused(t, map[string]string{
		"   ": "empty", "\x80\x04]": "a Python pickle", "[" + strings.Repeat("[3, 1, 0, 4], ", 15) + "[2, 4, 1, 3]]": "or say what these are",
		"{": "ends early", "{}": "an object of 0 keys", "[1,2]": "want counts of layers × experts, have [2]",
		"PK\x03\x04broken": "want a whole zip", "\x93NUMPY\x01\x00": "magic", `[2026-11-22 09:00:01 DP0] server up`: "no line of this log",
		"\x93NUMPY\x01\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n": "impossible shape",

		`[[1, 2], [3]]`: "lists of counts, layers × experts, of one length", `[[1.5]]`: "want whole counts", `[[-2]]`: "have -2",
		`[[1, null]]`: "want whole counts below 70368744177664, have null", `[[1]] [[2]]`: "have several values",
		`[[[1]], [2]]`: "lists of counts, layers × experts, of one length and depth",
		`[[[1, 2]]]`:   "have [1, 1, 2]: name the dimensions", `{"logical_count": null}`: "holds no counts",
		`{"logical_count": [[1]]} {"logical_count": [[1]]}`: "recorded twice", `{"logical_count": [[1e300]]}`: "want whole counts",

		"layer,expert,count,\"a,b\"\n0,0,1\n":               "want 4 fields as in the header",
		"layer,expert,count,num_tokens\n0,0,1,2\n":          `header: want one column of a kind, have "count" and "num_tokens"`,
		"layer,expert,hits,misses\n0,0,1,1\n":               "want one count",
		"layer,expert_ids,count\n0,5,3\n":                   "unknown format",
		"layer,expert,count\n":                              "holds no counts",
		"layer,expert,count\n0,,1\n":                        `line 2: expert: want a whole number from 0 on, have ""`,
		`{"layer": 0, "expert": 1, "hits": 7, "misses": 7}`: "want one count", `{"layer": 0, "expert": 1, "count": -5}`: "want a count between 0", `{"expert": -1, "count": 5}`: "want a number of the expert",
		"iteration,0,1\n0,5,7\n": "unknown format", "expert,share\n0,1\n": "unknown format", `{"ep_size": 8, "expert_histogram": [[1, 2], [3, 4]]}`: "have 8 and 2",
		"layer,expert,count\n0,0\n":          "line 2",
		"# a\nlayer,expert,count\n0,0,nan\n": "line 3: count: want a whole number",
		"layer,expert,count\n0,-1,1\n":       `line 2: expert: want a whole number from 0 on, have "-1"`,
		"layer,expert,count\n0,0,1\n0,0,2\n": "line 3: iteration 0, layer 0: expert 0 is recorded twice",
		"layer,0,1\n0,5,x\n":                 `line 2: column 1: want whole counts below`,
		"layer,0,1\n0,5,1\n0,2,2\n":          "line 3: iteration 0, layer 0: expert 0 is recorded twice",
		"step,experts\n0,\"[1, 2]\"\n1,x\n":  "line 3: want a list of counts",

		`{"routed_experts": "AAAAAAUAAAA="}`:                                                          "without their shape",
		`{"routed_experts": "AAAAAAUAAAA=", "shape": [1, 1, 3]}`:                                      "want the numbers of shape [1, 1, 3]",
		`{"routed_experts": "@"}`:                                                                     "routed_experts: illegal base64",
		`{"routed_experts": [[[0, 0]], [[0, 0]]]}`:                                                    "recorded no routing",
		`{"routed_experts": [[[0, -7]]]}`:                                                             "have -7",
		`{"routed_experts": [[3, 0], [3, 1]]}`:                                                        "with --axes, of other dimensions",
		`{"layer": 0, "topk_ids": [1, 2]} {"layer": 0, "topk_ids": [1]}`:                              "record 2: topk_ids: iteration 0, layer 0: want 2 choices",
		`{"layer_0": [1, 2], "layer_0": [3, 4]}`:                                                      "a key comes twice: /layer_0",
		"layer,ranks\n0,\"[1,2,3]\"\n1,\"[1,2]\"\n":                                                   "line 3: iteration 0, layer 1: want 3 ranks",
		"layer,experts\n0,\"[[1,2],[3,4]]\"\n":                                                        "line 2: want a list of counts",
		"layer,expert 0,expert 1,experts\n0,1,2,\"[1,2]\"\n":                                          "want counts in columns or in a list",
		"[[1, 5, 0], [3, 4, 0], [6, 1, 0]]":                                                           "columns have one sum",
		`{"logical_count": [[[1, 5, 0], [3, 4, 0], [6, 1, 0]], [[2, 1, 0], [1, 2, 0], [1, 1, 0]]]}`:   "columns have one sum",
		",router_skew,layer_idx,0,1\n0,0.5,0,5,7\n1,0.9,0,6,6\n":                                      `keep the rows of one value of "router_skew"`,
		`{"num_ranks": 2, "expert_load": [1, 2, 3, 4], "physical_to_logical_map": [[0, 1, 2, 3, 0]]}`: "5 copies do not divide over 2 ranks",
		`{"logical_count_layout": "rank_layer_expert", "logical_count": [[[1, 2]], [[3, 4]]]}`:        "want the sum over the ranks",
		`{"layer": 99999, "topk_ids": [1, 2]}`:                                                        "want a layer below",
		`{"num_experts": 2} {"layer": 0, "topk_ids": [1, 2]}`:                                         "the expert from 0 to 1, have 2",
		`{"layer": 0, "topk_ids": [1]} {"layer": 0, "topk_ids": [1]} {"layer": `:                      "the JSON ends early",
		"step,experts\n0,\"[]\"\n":                                                                    "line 2: want steps, layers and experts",
		`{"router_data": {"selected_experts": [1]}}`:                                                  "holds no counts",
		strings.Repeat(`{"topk_ids": [1], "a":`, 99) + "1" + strings.Repeat("}", 99):                  "at most 32 lists and objects",

		`{"layer": 1, "expert_counts": [1, 2]} {"layer": 1, "expert_counts": [1, 2]}`:                                                             "recorded twice",
		`{"layer": 1, "expert_counts": [1, 2]} {"layer": 2, "expert_counts": [1]}`:                                                                "want 2 experts",
		`{"all_ranks_records": [{"metadata": [{"layer_idx": 5, "token_selected_slots_shape": [9, 2]}], "raw_data": "eJxjYGBgYGSAACYgBgAAJAAE"}]}`: "want the numbers of shape [9, 2]",
		`{"all_ranks_records": [{"raw_data": "eJxj"}]}`:                                                                                           "beside the metadata",

		// a number in a file is no size of memory
		`{"num_experts": 1000000000000} {"layer": 0, "topk_ids": [1, 2]}`:                                     "want at most 65536 experts",
		`{"record_type": "eplb_load_stats", "num_ranks": 1000000000, "expert_load": [[1]], "p2l_map": [[0]]}`: "16384 ranks",
		`{"record_type": "eplb_load_stats", "num_ranks": 1, "expert_load": [[1]], "p2l_map": [[999999999]]}`:  "names expert",
		manySteps(4096): "counts, of all experts and steps, have more",
	})
}

// manySteps are few bytes a step, of which each would take half a megabyte.
func manySteps(n int) string {
	var b strings.Builder
	b.WriteString("step,layer,expert,count\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,0,65535,1\n", i)
	}
	return b.String()
}

// A record of physical copies knows where they are, so that chance can be told
// per rank and other ranks can be asked for.
func TestRecordedCopiesArePlaced(t *testing.T) {
	r := mustRead(fixture("counts", "sglang-pass"))
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
	holes := parsed(`{"num_ranks": 2, "expert_load": [[1, 2]], "p2l_map": [[0, 2]]}`)
	if holes.Placement != nil || !slices.Equal(codes(holes.Warnings), []string{"no_placement"}) {
		t.Errorf("a map without expert 2: %+v", holes)
	}
}

// copiesOf is the context of a layer's physical copies.
func copiesOf(experts ...int32) context {
	of := nothing()
	of.copies = placement.Slots{0: experts}
	return of
}

// collecting collects what each of some ranks records.
func collecting(ranks int) *collector {
	return &collector{Record: &Record{Ranks: ranks, placed: placement.Slots{}}, cells: map[stepKey]*Step{}, most: 1 << 10,
		sources: ranks}
}

// By hand: passes 7 to 9 on 2 ranks, of which both recorded 7 in order, rank 1 alone 8, and rank 0 twice 9. The load
// of a pass is the sum over the ranks, so that two of three are left out. In a file of one source a step that
// comes twice is an error.
func TestIncompletePasses(t *testing.T) {
	c := collecting(2)
	r := c.Record
	for _, pass := range [][2]int{{7, 0}, {9, 0}, {9, 0}, {7, 1}, {8, 1}} {
		c.source = pass[1]
		of := copiesOf(0, 1)
		of.numbers[isStep] = int64(pass[0])
		c.row([]int64{1, 2}, Axes{"copies"}, of)
	}
	if c.finish(); len(r.Warnings) != 1 ||
		fmt.Sprint(r.Warnings[0].Code, r.Warnings[0].Args) != "incomplete_passesmap[excluded:2 passes:3 ranks:2]" {
		t.Error(r.Warnings)
	}
	checkSteps(t, r, []step{{7, 0, []int64{2, 4}, []int64{2, 4}}})
	for last, missing := range []bool{true, false} { // of 6 copies, of which 2 or 1 have no load: of 3 ranks, or not
		c := collecting(2)
		for c.source = range 2 {
			c.row([]int64{1, 1, 1, 1, int64(last), 0}, Axes{"copies"}, copiesOf(0, 1, 2, 3, 4, 5))
		}
		if err := attempt(c.finish); (err != nil) != missing {
			t.Errorf("loads of %d copies: %v", 4+last, err)
		}
	}
	c.source = 0
	place := func(experts ...int64) func() {
		return func() { of := nothing(); c.place(&of, tensor.Array{Shape: []int64{1, 2}, Values: experts}) }
	}
	first := attempt(place(0, 1))
	c.source = 1
	if same, other := attempt(place(0, 1)), attempt(place(1, 0)); first != nil || same != nil || other == nil {
		t.Errorf("maps of two ranks: %v, %v, %v", first, same, other)
	}
	line := `{"record_type": "eplb_load_stats", "step": 7, "num_ranks": 1, "expert_load": [[1]], "p2l_map": [[0]]}` + "\n"
	refused(t, map[string]string{line + line: "recorded twice"})
}

// Tokens of a request are of its prefill up to the prompt's, counted from the first one of the request.
func TestPhasesOfARequest(t *testing.T) {
	for about, want := range map[string]string{`"prompt_tokens": 1`: "prefill 2 decode 2 ", `"x": 1`: " 4 ",
		`"prompt_tokens": 2, "routed_experts_start_len": 1`: "prefill 2 decode 2 ", `"prompt_tokens": 2`: "prefill 4 ",
		`"prompt_tokens": 2, "routed_experts_start_len": 2`: "decode 4 "} {
		have := ""
		for _, p := range parsed("{" + about + `, "routed_experts": [[[0, 5]], [[2, 5]]]}`).Phases() {
			have += fmt.Sprint(p.Phase, " ", p.Slots(), " ")
		}
		if have != want {
			t.Errorf("%s: have %q, want %q", about, have, want)
		}
	}
}
