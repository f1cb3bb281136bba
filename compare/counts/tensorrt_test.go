package counts

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

const fixtures = "../../testdata"

func fixture(parts ...string) string { return filepath.Join(append([]string{fixtures}, parts...)...) }

func mustRead(t testing.TB, path string) *Record {
	t.Helper()
	r, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stepsOf collects what the record yields one at a time.
func stepsOf(_ testing.TB, r *Record) []Step {
	return r.Steps()
}

func codes(warnings []router.Warning) []string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.Code)
	}
	return out
}

// tensorrtFolder writes a folder: files[name] holds tensors by name.
func tensorrtFolder(t *testing.T, meta string, files map[string]map[string][]int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "meta_info.json"), []byte(meta), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tensors := range files {
		var list []safetensors.Tensor
		var data []byte
		for key, values := range tensors {
			list = append(list, safetensors.Tensor{Name: key, DType: safetensors.I64,
				Shape: []int64{int64(len(values))}})
			for _, v := range values {
				data = binary.LittleEndian.AppendUint64(data, uint64(v))
			}
		}
		head, err := safetensors.Header(nil, list)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(head, data...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const fourExperts = `{"num_experts": 4, "num_experts_per_token": 2}`

func TestTensorRTSumsOverSources(t *testing.T) {
	dir := tensorrtFolder(t, fourExperts, map[string]map[string][]int64{
		"rank0.safetensors": {"100_3": {3, 1, 0, 0}, "101_3": {1, 1, 1, 1}},
		"rank1.safetensors": {"100_3": {0, 2, 2, 0}, "101_3": {0, 0, 2, 2}},
		// Files of other statistics, which an older glob would sum:
		"rank0_raw.safetensors":                    {"100_3": {0, 1, 2, 3}},
		"cooccurrence_rank0.safetensors":           {"100_3": {9, 9, 9, 9}},
		"token_selected_experts_rank0.safetensors": {"100_3": {9, 9}},
	})
	r := mustRead(t, dir)
	if len(r.steps) != 2 || r.Ranks != 2 {
		t.Fatalf("%d steps of %d ranks", len(r.steps), r.Ranks)
	}
	checkSteps(t, r, []step{{100, 3, []int64{3, 3, 2, 0}, nil}, {101, 3, []int64{1, 1, 3, 3}, nil}})
}

// Ranks may order their tensors as they like, and choose the integer type of each.
func TestTensorRTLayoutsDiffer(t *testing.T) {
	dir := tensorrtFolder(t, fourExperts, map[string]map[string][]int64{"rank0.safetensors": {"7_0": {1, 2, 3, 4},
		"10_0": {5, 6, 7, 8}}})
	head, err := safetensors.Header(map[string]string{"format": "pt"}, []safetensors.Tensor{
		{Name: "7_0", DType: safetensors.I32, Shape: []int64{4}}, {Name: "10_0", DType: safetensors.U8,
			Shape: []int64{4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rank1 := append(head, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, 40, 0, 0, 0, 50, 60, 70, 255)
	if err := os.WriteFile(filepath.Join(dir, "rank1.safetensors"), rank1, 0o600); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, mustRead(t, dir), []step{{7, 0, []int64{11, 22, 33, 44}, nil},
		{10, 0, []int64{55, 66, 77, 263}, nil}})
}

func TestTensorRTNames(t *testing.T) {
	for _, name := range []string{"", "1", "_", "1_", "_0", "1_0_0", "+1_0", "-1_0", "1_-0", " 1_0", "1_0 ", "1e2_0",
		"0x1_0", "1__0", "1_16384", "4611686018427387904_0", "١_0"} {
		dir := tensorrtFolder(t, fourExperts, map[string]map[string][]int64{"rank0.safetensors": {name: {1, 1, 0, 0}}})
		if r, err := Read(dir); err == nil || !strings.Contains(err.Error(), "want tensors named iteration_layer") {
			t.Errorf("%q: %+v, %v", name, r, err)
		}
	}
	largest := tensorrtFolder(t, fourExperts,
		map[string]map[string][]int64{"rank0.safetensors": {"4611686018427387903_16383": {1, 1, 0, 0},
			"007_00003": {1, 0, 0, 1}}})
	checkSteps(t, mustRead(t, largest), []step{{7, 3, []int64{1, 0, 0, 1}, nil},
		{1<<62 - 1, maxLayers - 1, []int64{1, 1, 0, 0}, nil}})
}

// Uneven counts that all ranks have are of the same tokens; even ones are a balanced plan's.
func TestTensorRTSameSources(t *testing.T) {
	for i, load := range [][]int64{{5, 1, 0, 0}, {2, 2, 2, 1}} {
		one := map[string][]int64{"1_0": load, "1_1": {1, 1, 1, 1}}
		dir := tensorrtFolder(t, fourExperts, map[string]map[string][]int64{"rank0.safetensors": one,
			"rank1.safetensors": one})
		if got := codes(mustRead(t, dir).Warnings); slices.Contains(got, "same_sources") != (i == 0) {
			t.Errorf("%v: %v", load, got)
		}
	}
}

func TestTensorRTRefusals(t *testing.T) {
	one := map[string][]int64{"1_0": {1, 1, 0, 0}}
	for want, dir := range map[string]string{
		"holds no counts: no step was recorded by each of 2 ranks": tensorrtFolder(t, fourExperts,
			map[string]map[string][]int64{"rank0.safetensors": one, "rank1.safetensors": {"0_0": {1, 1, 0, 0}}}),
		"rank2.safetensors: want one file of each rank from 0 to 1": tensorrtFolder(t, fourExperts,
			map[string]map[string][]int64{"rank0.safetensors": one, "rank2.safetensors": one}),
		"rank00.safetensors: want one file of each rank": tensorrtFolder(t, fourExperts,
			map[string]map[string][]int64{"rank0.safetensors": one, "rank00.safetensors": one}),
		"ep_size 8": tensorrtFolder(t, `{"num_experts": 4, "num_experts_per_token": 2, "ep_size": 8}`,
			map[string]map[string][]int64{"rank0.safetensors": one}),
		"want 5 experts": tensorrtFolder(t, `{"num_experts": 5, "num_experts_per_token": 2}`,
			map[string]map[string][]int64{"rank0.safetensors": one}),
		"want a count between 0": tensorrtFolder(t, fourExperts,
			map[string]map[string][]int64{"rank0.safetensors": {"1_0": {1, -1, 0, 0}}}),
		"iteration_layer": tensorrtFolder(t, fourExperts,
			map[string]map[string][]int64{"rank0.safetensors": {"counts": {1, 1, 0, 0}}}),
		"recorded twice": tensorrtFolder(t, fourExperts,
			map[string]map[string][]int64{"rank0.safetensors": {"1_0": {1, 1, 0, 0}, "01_0": {1, 1, 0, 0}}}),
		"EXPERT_STATISTIC": tensorrtFolder(t, fourExperts, nil),
		"holds no counts": tensorrtFolder(t, fourExperts,
			map[string]map[string][]int64{"rank0.safetensors": {}}),
		"num_experts_per_token": tensorrtFolder(t, `{"num_experts": 4}`, nil),
		"meta_info.json":        tensorrtFolder(t, `[`, nil),
		"routed no token":       tensorrtFolder(t, "null\n", map[string]map[string][]int64{"rank0.safetensors": {}}),
	} {
		if r, err := Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, have %v (%+v)", want, err, r)
		}
	}
}

func TestReadRefusesByName(t *testing.T) {
	empty := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(empty, "missing"):      "no such file",
		empty:                                "no expert counts",
		fixture("counts", "expert-map.json"): "a placement of experts",
		fixture("vllm", "qwen3-normal.rank0.json.gz"):                              "as traces and their summaries are",
		fixture("..", "router", "presets", "deepseek-v3.json"):                     "its keys are architectures",
		fixture("gptoss-ep4-ranks", "counts-normal", "rank0.safetensors"):          "give the folder",
		fixture("counts", "sglang-pass", "expert_distribution_recorder_17.5_0.pt"): "give the folder",
	} {
		if r, err := Read(path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s: want an error with %q, have %v (%+v)", path, want, err, r)
		}
	}
}

// In tep mode, which 'moebalance hook' writes, the ranks hold the same tokens, whose 8 slots count once;
// in dep mode each has its own.
func TestTokensOfAllRanksCountOnce(t *testing.T) {
	folder := func(mode string, second []int64) string {
		return tensorrtFolder(t, `{"num_experts": 4, "num_experts_per_token": 2, "ep_size": 2, "mode": "`+mode+`"}`,
			map[string]map[string][]int64{"rank0.safetensors": {"0_3": {5, 1, 1, 1}}, "rank1.safetensors": {"0_3": second}})
	}
	for mode, want := range map[string]int64{"tep": 8, "dep": 16} {
		r := mustRead(t, folder(mode, []int64{5, 1, 1, 1}))
		rows, _, err := r.Imbalance(Options{})
		if err != nil || r.Slots() != want || r.Ranks != 2 || len(rows) != 2 ||
			float64(rows[0].MaxOverMean) != 1.5 { // rank 0: 6 of 8, the mean is 4
			t.Errorf("%s: %+v, %+v, %v", mode, r, rows, err)
		}
	}
}
