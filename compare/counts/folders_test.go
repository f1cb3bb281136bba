package counts

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/testdata/require"
)

const fixtures = "../../testdata"

func fixture(parts ...string) string { return filepath.Join(append([]string{fixtures}, parts...)...) }

func mustRead(path string) *Record { return must(Read(path)) }

func codes(warnings []router.Warning) (list []string) {
	for _, w := range warnings {
		list = append(list, w.Code)
	}
	return list
}

// put writes a file of a folder.
func put(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
}

// tensorrtFolder writes a folder of TensorRT-LLM: what a file holds, tensors by name, with commas between them.
func tensorrtFolder(t *testing.T, meta string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "meta_info.json", []byte(meta))
	for name, tensors := range files {
		var list []safetensors.Tensor
		var data []byte
		for tensor := range strings.SplitSeq(tensors, ",") {
			key, rest, _ := strings.Cut(tensor, ":")
			fields := strings.Fields(rest)
			dtype := safetensors.I64
			if strings.HasPrefix(rest, ":") { // small ones
				dtype, fields = safetensors.U8, strings.Fields(rest[1:])
			}
			for _, field := range fields {
				var v int64
				if _, err := fmt.Sscan(field, &v); err != nil {
					t.Fatal(err)
				}
				data = append(data, binary.LittleEndian.AppendUint64(nil, uint64(v))[:dtype.Size()]...)
			}
			if key != "none" {
				list = append(list, safetensors.Tensor{Name: key, DType: dtype, Shape: []int64{int64(len(fields))}})
			}
		}
		put(t, dir, name, append(safetensors.Header(nil, list), data...))
	}
	return dir
}

const fourExperts = `{"num_experts": 4, "num_experts_per_token": 2}`

// The load is the sum over the ranks, whatever the order and the type of their tensors; files of other statistics,
// which an older glob would sum, are none.
func TestTensorRTSumsOverSources(t *testing.T) {
	r := mustRead(tensorrtFolder(t, fourExperts, map[string]string{
		"rank0.safetensors": "100_3: 3 1 0 0,101_3: 1 1 1 1", "rank1.safetensors": "101_3:: 0 0 2 255,0100_03:: 0 2 2 0",
		"rank0_raw.safetensors": "100_3: 0 1 2 3", "cooccurrence_rank0.safetensors": "100_3: 9 9 9 9",
	}))
	checkSteps(t, r, []step{{100, 3, []int64{3, 3, 2, 0}, nil}, {101, 3, []int64{1, 1, 3, 256}, nil}})
	if r.Ranks != 2 {
		t.Error(r.Ranks)
	}
	r = mustRead(tensorrtFolder(t, strings.Replace(fourExperts, "4", "5", 1), map[string]string{
		"rank0.safetensors": "1_0: 1 1 0 0 0", "rank1.safetensors": "1_0: 1 0 1 0 0"})) // of 5 ranks, perhaps
	if !slices.Contains(codes(r.Warnings), "rank_files") {
		t.Error(r.Warnings)
	}
	r = mustRead(tensorrtFolder(t, fourExperts, map[string]string{"rank0.safetensors": "461168601842738790_16383: 1 1 0 0"}))
	checkSteps(t, r, []step{{461168601842738790, maxLayers - 1, []int64{1, 1, 0, 0}, nil}})
}

func TestFoldersRefused(t *testing.T) {
	one, empty := "1_0: 1 1 0 0", t.TempDir()
	cases := map[string]string{
		"no such file": filepath.Join(empty, "missing"), "no expert counts in this folder: want": empty,
		"a placement of experts": fixture("counts", "expert-map.json"),
		`keys: "architectures, `: fixture("..", "router", "presets", "deepseek-v3.json"),
		"give the folder":        fixture("gptoss-ep4-ranks", "counts-normal", "rank0.safetensors"),
		"counts-normal":          fixture("deepseek-ep4-ranks"),
		"give the folder that":   fixture("counts", "sglang-pass", "expert_distribution_recorder_17.5_0.pt"),
	}
	for want, c := range map[string]struct {
		meta  string
		files map[string]string
	}{
		"by each of 2 ranks":              {fourExperts, map[string]string{"rank0.safetensors": one, "rank1.safetensors": "0_0: 1 1 0 0"}},
		"have 2 files and none of rank 1": {fourExperts, map[string]string{"rank0.safetensors": one, "rank2.safetensors": one}},
		"are there several recordings":    {fourExperts, map[string]string{"rank0.safetensors": one, "rank00.safetensors": one}},
		"ep_size 8":                       {`{"num_experts": 4, "num_experts_per_token": 2, "ep_size": 8}`, map[string]string{"rank0.safetensors": one}},
		"want 5 experts":                  {`{"num_experts": 5, "num_experts_per_token": 2}`, map[string]string{"rank0.safetensors": one}},
		"want a count between 0":          {fourExperts, map[string]string{"rank0.safetensors": "1_0: 1 -1 0 0"}},
		"recorded twice":                  {fourExperts, map[string]string{"rank0.safetensors": one + ",01_0: 1 1 0 0"}},
		"EXPERT_STATISTIC":                {fourExperts, nil},
		"holds no counts":                 {fourExperts, map[string]string{"rank0.safetensors": "none"}},
		"num_experts_per_token":           {`{"num_experts": 4}`, nil}, "meta_info.json": {"[", nil},
		"routed no token": {"null\n", map[string]string{"rank0.safetensors": "none"}},
	} {
		cases[want] = tensorrtFolder(t, c.meta, c.files)
	}
	for _, name := range []string{"", "_", "1_", "_0", "1_0_0", "+1_0", "1_-0", " 1_0", "4611686018427387903_0"} {
		cases["want tensors named iteration_layer, have \""+name+"\""] = tensorrtFolder(t, fourExperts,
			map[string]string{"rank0.safetensors": name + ": 1 1 0 0"})
	}
	const torch, other = "expert_distribution_recorder_1_0.pt", "expert_distribution_recorder_1_1.pt"
	for want, names := range map[string]map[string]string{
		"several recordings":        {"sglang-pass/expert_distribution_recorder_17.5_0.pt": other},
		"want one dump per rank":    {"sglang-pass/expert_distribution_recorder_17.5_0.pt": "expert_distribution_recorder_1.5.pt"},
		"this is no dump of passes": {"sglang-stat.pt": torch, "sglang-strided.pt": other},
		"want a list of records":    {"sglang.csv": torch},
		"3 files and none of rank 2": {"sglang-pass/expert_distribution_recorder_17.5_0.pt": torch,
			"sglang-pass/expert_distribution_recorder_17.5_1.pt": other, "sglang-stat.pt": strings.Replace(other, "_1.", "_3.", 1)},
	} {
		cases[want] = t.TempDir()
		for from, to := range names {
			put(t, cases[want], to, content(from))
		}
	}
	for want, path := range cases {
		if r, err := Read(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: want an error with %q, have %v (%+v)", path, want, err, r)
		}
	}
	stat := t.TempDir()
	put(t, stat, "expert_distribution_recorder_1.5.pt", content("sglang-stat.pt"))
	if r, err := Read(stat); err != nil || r.Format != statFormat {
		t.Errorf("a folder of one stat dump: %+v, %v", r, err)
	}
}

// In tep mode, which 'moebalance hook' writes, the ranks hold the same tokens, whose 8 slots count once;
// in dep mode each has its own.
func TestTokensOfAllRanksCountOnce(t *testing.T) {
	for mode, want := range map[string]int64{"tep": 8, "dep": 16} {
		r := mustRead(tensorrtFolder(t, `{"num_experts": 4, "num_experts_per_token": 2, "ep_size": 2, "mode": "`+mode+`"}`,
			map[string]string{"rank0.safetensors": "0_3: 5 1 1 1", "rank1.safetensors": "0_3: 5 1 1 1"}))
		rows, _, err := r.Imbalance(Options{})
		if err != nil || r.Slots() != want || r.Ranks != 2 || len(rows) != 2 ||
			float64(rows[0].MaxOverMean) != 1.5 { // rank 0: 6 of 8, the mean is 4
			t.Errorf("%s: %+v, %+v, %v", mode, r, rows, err)
		}
		if said := slices.Contains(codes(r.Warnings), "same_sources"); said != (mode == "dep") { // which none can have
			t.Errorf("%s: %v", mode, r.Warnings)
		}
	}
}

// Counts in TensorRT-LLM's form are of the engine that the hook names beside them.
func TestEngineOfTheHook(t *testing.T) {
	dir := tensorrtFolder(t, fourExperts, map[string]string{"rank0.safetensors": "1_0: 1 1 0 0"})
	if r := mustRead(dir); r.Engine != placement.TensorRT {
		t.Error(r.Engine)
	}
	put(t, dir, "moebalance-hook.rank0.json", []byte(`{"engine": "vllm", "steps": 7}`))
	if r := mustRead(dir); r.Engine != placement.VLLM {
		t.Error(r.Engine)
	}
	put(t, dir, "moebalance-hook.rank0.json", []byte(`{"arm": "perfect"}`))
	if _, err := Read(filepath.Dir(dir)); err == nil || !strings.HasSuffix(err.Error(), dir+" (perfect)") {
		t.Errorf("the folder around it: %v", err)
	}
	put(t, dir, "moebalance-hook.rank0.json", []byte("{"))
	if r := mustRead(dir); r.Engine != "" || r.Slots() != 2 {
		t.Errorf("a broken proof: %+v", r)
	}
}
