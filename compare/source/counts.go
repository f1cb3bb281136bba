package source

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// ReadCounts reads a record, nil where the path is empty; of arrays with the axes, nil for those they tell.
func ReadCounts(path string, axes counts.Axes) (*counts.Record, error) {
	if path == "" {
		return nil, nil
	}
	record, err := counts.ReadAs(path, axes)
	return record, Meant(path, err, Counts, Placements) // about which the error is plain
}

// ReadPlacement reads where the experts are; ranks are how many there are where the file does not say.
func ReadPlacement(path string, ranks int) (*placement.Map, error) {
	read, err := counts.ReadPlacement(path, ranks)
	return read, Meant(path, err, Placements)
}

// Records reads the records that arguments name, each once.
func Records(args []string, axes counts.Axes) (records []*counts.Record, err error) {
	paths, err := expanded(args)
	if err = cmp.Or(err, noneTwice(paths)); err != nil {
		return nil, err
	}
	for _, path := range paths {
		r, err := ReadCounts(path, axes)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// Trace reads the exports of one run, and sets the expert statistics of the same run beside them, nil for none, with
// the model's shape, nil where no model is named. Statistics that record no ranks are taken to be on the ranks of the
// trace, with contiguous experts: the engines' default, which is assumed.
func Trace(ctx context.Context, exports []string, o trace.Options, record *counts.Record, shape *router.Shape) (
	*trace.Trace, error) {
	if record != nil {
		if _, err := record.ExpertsOf(shape); err != nil {
			return nil, err
		}
		o.Recorded.OnRanks = onRanks(record, o.Threshold, shape)
	}
	t, err := trace.Read(ctx, exports, o)
	for _, path := range exports {
		err = Meant(path, err, Captures)
	}
	return t, err
}

// onRanks is what a trace can use of a record on the ranks of its run.
func onRanks(record *counts.Record, threshold float64, shape *router.Shape) func(run, traced int) (trace.Recorded,
	error) {
	return func(run, traced int) (trace.Recorded, error) {
		if run != traced || run > record.Experts || record.Ranks > 0 || record.Placement != nil {
			run = 0
		}
		return beside(record, counts.Options{Threshold: threshold, Shape: shape, Ranks: run})
	}
}

// beside is what a trace can use of a record, whose ranks the options assume where it has none.
func beside(record *counts.Record, o counts.Options) (r trace.Recorded, err error) {
	rows, warnings, err := record.Imbalance(o)
	if err != nil {
		return r, err
	}
	tokens := stepTokens(record, o.Shape)
	r = trace.Recorded{Imbalance: rows, Layers: map[int]trace.Counted{}, StepTokens: cmp.Or(tokens, slotsPerLayer(record)),
		AtMost: tokens == 0}
	for _, w := range slices.Concat(record.Warnings, warnings) {
		w.Code, w.Subject = "counts_"+w.Code, filepath.Base(w.Subject)
		r.Warnings = append(r.Warnings, w)
	}
	if o.Ranks > 0 {
		r.Warnings = append(r.Warnings, router.Warn("counts_assumed_ranks", filepath.Base(record.Source), "ranks", o.Ranks))
	}
	where := record.Placement
	if ranks := max(o.Ranks, record.Ranks); where == nil && ranks > 0 {
		where, err = placement.Contiguous(record.Experts, ranks)
	}
	for layer, load := range record.ByLayer() {
		c := trace.Counted{Load: load}
		if err == nil {
			c.Layout, err = where.Layout(layer)
		}
		r.Layers[layer] = c
	}
	return r, err
}

// stepTokens is the tokens of all ranks in a step, mean over the recorded steps; 0 where a record does not tell them.
func stepTokens(record *counts.Record, shape *router.Shape) float64 {
	topK := record.TopK
	if shape != nil {
		topK = shape.TopK
	}
	if record.Window || topK == 0 {
		return 0
	}
	return slotsPerLayer(record) / float64(topK)
}

// slotsPerLayer is the slots of all ranks in a layer of a step, mean over the recorded ones with experts.
func slotsPerLayer(record *counts.Record) float64 {
	all, loaded := int64(0), 0
	for _, s := range record.Steps() {
		if slots := s.Load.Total(); slots > 0 {
			all, loaded = all+slots, loaded+1
		}
	}
	return float64(all) / float64(max(1, loaded))
}

// RecordedBalance is the balance of the expert statistics at a path, as proof of how
// a launch was routed. The placement is a file of the command, for statistics that do not
// say where the experts are; empty for none.
func RecordedBalance(path, placement string) (p proof.LoadProof, err error) {
	record, err := counts.Read(path)
	if err != nil {
		return p, err
	}
	var o counts.Options
	unplaced := func(s counts.Step) bool { return s.Received == nil }
	placed := record.Placement != nil || record.Experts > 0 && !slices.ContainsFunc(record.Steps(), unplaced)
	if !placed && placement != "" {
		placed = true
		if o.Placement, err = counts.ReadPlacement(placement, record.Ranks); err != nil {
			return p, err
		}
	}
	layers, _, err := record.Imbalance(o)
	if err != nil {
		return p, err
	}
	furthest := func(level string) imbalance.Row {
		none := &imbalance.Row{MaxOverMean: router.Undefined(), Floor: router.Undefined()}
		return *cmp.Or(imbalance.Furthest(layers, level, imbalance.Load), none)
	}
	rank, expert := furthest(router.LevelRank), furthest(router.LevelExpert)
	return proof.LoadProof{Source: path, Ranks: record.Ranks, Experts: record.KnownExperts, TopK: record.TopK,
		Slots: record.LayerSlots(), Placed: placed, RankMaxOverMean: rank.MaxOverMean, RankFloor: rank.Floor,
		RankMean:          imbalance.Summarize(layers, router.LevelRank, imbalance.Load).MaxOverMean,
		ExpertMaxOverMean: expert.MaxOverMean, ExpertFloor: expert.Floor}, nil
}
