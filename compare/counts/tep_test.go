package counts

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// writeHook writes what 'moebalance hook' records: the slots of one step and layer on each rank.
func writeHook(t *testing.T, mode string, ranks ...[]int32) string {
	t.Helper()
	dir := t.TempDir()
	meta := `{"num_experts": 4, "num_experts_per_token": 2, "ep_size": 2, "mode": "` + mode + `"}`
	err := os.WriteFile(filepath.Join(dir, "meta_info.json"), []byte(meta), 0o644)
	for rank, counts := range ranks {
		head, headErr := safetensors.Header(nil,
			[]safetensors.Tensor{{Name: "0_3", DType: safetensors.I32, Shape: []int64{4}}})
		for _, n := range counts {
			head = binary.LittleEndian.AppendUint32(head, uint32(n))
		}
		err = errors.Join(err, headErr, os.WriteFile(filepath.Join(dir, "rank"+string(rune('0'+rank))+".safetensors"),
			head, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// In tep mode the ranks hold the same tokens, whose 8 slots count once; in dep mode
// each has its own.
func TestTokensOfAllRanksCountOnce(t *testing.T) {
	for mode, want := range map[string]int64{"tep": 8, "dep": 16} {
		r, err := Read(writeHook(t, mode, []int32{5, 1, 1, 1}, []int32{5, 1, 1, 1}))
		if err != nil || r.Slots() != want || r.Ranks != 2 {
			t.Errorf("%s: %v, %+v", mode, err, r)
			continue
		}
		rows, _, err := r.Imbalance(Options{})
		if err != nil || len(rows) != 2 || float64(rows[0].MaxOverMean) != 1.5 { // rank 0: 6 of 8, the mean is 4
			t.Errorf("%s: %+v, %v", mode, rows, err)
		}
	}
	r, err := Read(writeHook(t, "tep", []int32{5, 1, 1, 1}, []int32{4, 2, 1, 1}))
	if err != nil || len(r.Warnings) != 1 || r.Warnings[0].Code != "ranks_disagree" ||
		r.Warnings[0].Args["cases"] != 1.0 {
		t.Errorf("ranks that disagree: %v, %+v", err, r.Warnings)
	}
}
