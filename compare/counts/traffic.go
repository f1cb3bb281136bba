package counts

import "github.com/moebalance/moebalance/router"

// LayerTraffic is who sent slots to whom in one layer. Load that is even over the
// receivers can still be uneven between pairs of ranks, which is what the exchange
// of tokens takes its time from. Each number is computed per step and then
// averaged over the steps in which anybody sent, so that a busy pair that
// alternates does not cancel; only Slots is a sum.
type LayerTraffic struct {
	Layer int       `json:"layer"`
	Steps int       `json:"steps"`
	Slots [][]int64 `json:"slots"` // [source rank][target rank], over all steps
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
	if !r.sent {
		return nil, nil
	}
	j, err := newJudge(r, o)
	if err != nil {
		return nil, r.contradicted(err)
	}
	layers := map[int]*LayerTraffic{}
	for s, err := range r.Steps() {
		if err != nil {
			return nil, err
		}
		layout, err := j.place.Layout(s.Layer)
		if err != nil {
			return nil, r.contradicted(err)
		}
		if layers[s.Layer] == nil {
			layers[s.Layer] = &LayerTraffic{Layer: s.Layer}
		}
		layers[s.Layer].add(layout, s.Sent)
	}
	var out []LayerTraffic
	for _, layer := range r.Layers() {
		t := layers[layer]
		n := router.Number(t.Steps)
		t.OffRank, t.PairMaxOverMean, t.SentMaxOverMean = t.OffRank/n, t.PairMaxOverMean/n, t.SentMaxOverMean/n
		out = append(out, *t)
	}
	return out, nil
}

// add adds one step; until all are added, the ratios are sums.
func (t *LayerTraffic) add(layout router.Layout, sent []router.Load) {
	if t.Slots == nil {
		t.Slots = make([][]int64, len(sent))
		for source := range t.Slots {
			t.Slots[source] = make([]int64, layout.Ranks())
		}
	}
	pairs, sources := make([]int64, 0, len(sent)*layout.Ranks()), make([]int64, 0, len(sent))
	var stay int64
	for source, load := range sent {
		row := layout.RankLoad(load.PerExpert)
		for target, n := range row {
			t.Slots[source][target] += n
		}
		pairs = append(pairs, row...)
		sources = append(sources, load.Total())
		if source < len(row) {
			stay += row[source]
		}
	}
	overSources := router.BalanceOf(sources)
	if overSources.Total == 0 {
		return
	}
	t.Steps++
	t.PairMaxOverMean += router.BalanceOf(pairs).MaxOverMean
	t.SentMaxOverMean += overSources.MaxOverMean
	if len(sent) == layout.Ranks() {
		t.OffRank += 1 - router.Number(stay)/overSources.Total
	} else {
		t.OffRank = router.Undefined()
	}
}
