package counts

import "testing"

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
