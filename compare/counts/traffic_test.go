package counts

import (
	"math"
	"reflect"
	"testing"
)

// Experts 0 and 1 on rank 0, 2 and 3 on rank 1. Rank 0 chose 0 1 2 3 and rank 1
// chose 0 3, so 2 slots of each of rank 0's pairs and 1 of rank 1's: 3 of 6
// stay; pairs 2 2 1 1 of a mean of 1.5, sources 4 and 2 of a mean of 3.
func TestTraffic(t *testing.T) {
	folder := tensorrtFolder(t, fourExperts, map[string]map[string][]int64{
		"rank0.safetensors": {"10_3": {1, 1, 1, 1}}, "rank1.safetensors": {"10_3": {1, 0, 0, 1}},
	})
	traffic, err := mustRead(t, folder).Traffic(Options{})
	if err != nil || len(traffic) != 1 {
		t.Fatalf("%+v, %v", traffic, err)
	}
	first := traffic[0]
	if first.Layer != 3 || !reflect.DeepEqual(first.Slots, [][]int64{{2, 2}, {1, 1}}) || !near(first.OffRank, 0.5) ||
		!near(first.PairMaxOverMean, 2/1.5) || !near(first.SentMaxOverMean, 4.0/3) {
		t.Errorf("%+v", first)
	}
	// Experts on four ranks, tokens recorded on two: what would stay is not known.
	traffic, err = mustRead(t, folder).Traffic(Options{Ranks: 4})
	if err != nil || !reflect.DeepEqual(traffic[0].Slots, [][]int64{{1, 1, 1, 1}, {1, 0, 0, 1}}) ||
		traffic[0].OffRank.Defined() {
		t.Errorf("%+v, %v", traffic, err)
	}
	if traffic, err := mustRead(t, fixture("counts", "logical-count.json")).Traffic(Options{}); err != nil ||
		traffic != nil {
		t.Errorf("nobody recorded who sent, but: %+v, %v", traffic, err)
	}
	if _, err := mustRead(t, folder).Traffic(Options{Ranks: 9}); err == nil {
		t.Error("9 ranks for 4 experts")
	}
}

// The columns of the traffic are the loads that Imbalance judges, and the
// balanced capture sends evenly from every rank to every rank.
func TestTrafficOfCaptures(t *testing.T) {
	for _, folder := range []string{"gptoss-ep4-ranks", "deepseek-ep4-ranks"} {
		for _, arm := range []string{"counts-normal", "counts-perfect"} {
			r := mustRead(t, fixture(folder, arm))
			traffic, err := r.Traffic(Options{})
			if err != nil {
				t.Fatal(err)
			}
			place, _ := Contiguous(r.Experts, r.Ranks)
			layout, _ := place.Layout(0)
			for _, l := range traffic {
				received := make([]int64, r.Ranks)
				for _, row := range l.Slots {
					for target, n := range row {
						received[target] += n
					}
				}
				if want := layout.RankLoad(r.ByLayer()[l.Layer].PerExpert); !reflect.DeepEqual(received, want) {
					t.Errorf("%s layer %d: received %v, want %v", r.Source, l.Layer, received, want)
				}
				even := math.Abs(float64(l.PairMaxOverMean)-1) < 1e-12 && near(l.OffRank, 0.75)
				if even != (arm == "counts-perfect") {
					t.Errorf("%s layer %d: %+v", r.Source, l.Layer, l)
				}
			}
		}
	}
}

// Ranks that send all to themselves in one step and all to the other in the next:
// a pair is at twice the mean in both, and half the slots leave, although the sums
// are the same for all four pairs.
func TestAlternatingPairsDoNotCancel(t *testing.T) {
	r := mustRead(t, tensorrtFolder(t, fourExperts, map[string]map[string][]int64{
		"rank0.safetensors": {"1_0": {4, 4, 0, 0}, "2_0": {0, 0, 4, 4}, "3_0": {0, 0, 0, 0}},
		"rank1.safetensors": {"1_0": {0, 0, 4, 4}, "2_0": {4, 4, 0, 0}, "3_0": {0, 0, 0, 0}},
	}))
	traffic, err := r.Traffic(Options{})
	want := LayerTraffic{Steps: 2, Slots: [][]int64{{8, 8}, {8, 8}}, OffRank: 0.5, PairMaxOverMean: 2,
		SentMaxOverMean: 1}
	if err != nil || len(traffic) != 1 || !reflect.DeepEqual(traffic[0], want) {
		t.Errorf("have %+v, %v, want %+v", traffic, err, want)
	}
}

func TestTrafficOfNothing(t *testing.T) {
	r := mustRead(t, tensorrtFolder(t, fourExperts,
		map[string]map[string][]int64{"rank0.safetensors": {"1_0": {0, 0, 0, 0}}}))
	traffic, err := r.Traffic(Options{})
	if err != nil || len(traffic) != 1 || traffic[0].Steps != 0 || traffic[0].OffRank.Defined() ||
		traffic[0].PairMaxOverMean.Defined() {
		t.Errorf("have %+v, %v", traffic, err)
	}
}
