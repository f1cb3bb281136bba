package counts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// LayerTraffic is who sent slots to whom in one layer, summed over the
// iterations. Load that is even over the receivers can still be uneven between
// pairs of ranks, which is what the exchange of tokens takes its time from.
type LayerTraffic struct {
	Layer int       `json:"layer"`
	Slots [][]int64 `json:"slots"` // [source rank][target rank]
	// OffRank is the share of slots that leave their rank, 1 − trace/total, in
	// [0, 1]; (R−1)/R when every rank sends evenly to all R. Undefined without
	// slots, and where the experts are judged on another number of ranks than sent.
	OffRank router.Number `json:"off_rank"`
	// PairMaxOverMean is the largest pair of source and target over the mean of
	// all pairs; SentMaxOverMean the largest source over the mean source, above
	// 1 when ranks hold unequal numbers of tokens.
	PairMaxOverMean router.Number `json:"pair_max_over_mean"`
	SentMaxOverMean router.Number `json:"sent_max_over_mean"`
}

// Traffic computes who sent to whom, for the formats that record who sent; nil
// for the others. Replicas are taken to share their expert's slots evenly.
func (r *Record) Traffic(o Options) ([]LayerTraffic, error) {
	if len(r.Sent) == 0 {
		return nil, nil
	}
	j, err := newJudge(r, o)
	if err != nil {
		return nil, fmt.Errorf("judging %q: %w", r.Source, err)
	}
	var out []LayerTraffic
	for _, layer := range slices.Sorted(maps.Keys(r.Sent)) {
		layout, err := j.place.Layout(layer)
		if err != nil {
			return nil, fmt.Errorf("judging %q: %w", r.Source, err)
		}
		t := LayerTraffic{Layer: layer, OffRank: router.Undefined()}
		var pairs, sent []int64
		var stay, total int64
		for source, load := range r.Sent[layer] {
			row := layout.RankLoad(load.PerExpert)
			t.Slots = append(t.Slots, row)
			pairs = append(pairs, row...)
			sent = append(sent, load.Total())
			total += load.Total()
			if source < len(row) {
				stay += row[source]
			}
		}
		if total > 0 && len(t.Slots) == layout.Ranks() {
			t.OffRank = 1 - router.Number(stay)/router.Number(total)
		}
		t.PairMaxOverMean, t.SentMaxOverMean = router.BalanceOf(pairs).MaxOverMean, router.BalanceOf(sent).MaxOverMean
		out = append(out, t)
	}
	return out, nil
}
