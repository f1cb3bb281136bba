package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/counts"
)

type countsOptions struct {
	ranks     int
	threshold float64
	failAbove float64
	out       resultFlags
}

func countsCmd() *cobra.Command {
	var o countsOptions
	c := &cobra.Command{
		Use:   "counts PATH…",
		Short: "expert statistics of other engines: load, imbalance, chance",
		Long: `counts reads the expert statistics that an engine recorded and says how uneven
the load is, per layer, over ranks and over experts.

Each PATH is a file or folder; its format is told by its content. Every number
is computed per step and layer, averaged over the steps with any load, and then
over the layers: never from summed counts, in which a busy rank that alternates
cancels. max/mean is the largest load over the mean load; imbalance is
max/mean − 1; balancedness is mean/max. The floor is the best that indivisible
slots allow. The null is what uniformly random routing of the same tokens gives,
simulated: its median and 95th percentile.

A layer is flagged when its imbalance is above the threshold, also measured from
the floor, and above the null's 95th percentile.`,
		Example: `  moebalance counts testdata/gptoss-ep4-ranks/counts-normal
  moebalance counts --ep 8 --format csv testdata/deepseek-ep4-ranks/counts-normal
  moebalance counts --fail-above 0.5 testdata/gptoss-ep4-ranks/counts-perfect`,
		Args: argCount(1, -1, "at least one file or folder of expert statistics"),
		RunE: func(c *cobra.Command, paths []string) error { return o.run(c, paths) },
	}
	f := c.Flags()
	f.IntVar(&o.ranks, "ep", 0, "judge as if the experts lay contiguously on this many ranks (default as recorded)")
	f.Float64Var(&o.threshold, "threshold", 0.10, "flag an imbalance above this fraction")
	f.Float64Var(&o.failAbove, "fail-above", 0, "exit 3 when any layer's rank load is above this fraction over its floor")
	o.out.bind(c)
	return c
}

func (o *countsOptions) check(c *cobra.Command) error {
	switch {
	case o.ranks < 0 || c.Flags().Changed("ep") && o.ranks == 0:
		return usagef("--ep: want at least 1 rank, have %d", o.ranks)
	case !(o.threshold >= 0):
		return usagef("--threshold: want a fraction of at least 0, have %v", o.threshold)
	case !(o.failAbove >= 0):
		return usagef("--fail-above: want a fraction of at least 0, have %v", o.failAbove)
	}
	return o.out.check()
}

// countsResult is the JSON of counts. Its lists repeat the source, so that each
// row stands alone.
type countsResult struct {
	SchemaVersion int              `json:"schema_version"`
	Kind          string           `json:"kind"` // always "counts"
	Threshold     float64          `json:"threshold"`
	Records       []countsRecord   `json:"records"`
	Imbalance     []countsLayer    `json:"imbalance"`
	Summary       []countsSummary  `json:"summary"`
	Reported      []countsReported `json:"reported"`
	Warnings      []counts.Warning `json:"warnings"`
}

type countsRecord struct {
	Source     string `json:"source"`
	Format     string `json:"format"`
	Experts    int    `json:"experts"`
	TopK       int    `json:"top_k"`
	Ranks      int    `json:"ranks"`
	Iterations int    `json:"iterations"`
	Layers     int    `json:"layers"`
	Slots      int64  `json:"slots"`
}

type countsLayer struct {
	Source string `json:"source"`
	counts.LayerBalance
}

type countsSummary struct {
	Source string `json:"source"`
	counts.Summary
}

type countsReported struct {
	Source string `json:"source"`
	counts.Reported
}

func (o *countsOptions) run(c *cobra.Command, paths []string) error {
	if err := o.check(c); err != nil {
		return err
	}
	judging := counts.Options{Ranks: o.ranks, Threshold: o.threshold}
	result := countsResult{
		SchemaVersion: 1, Kind: "counts", Threshold: o.threshold,
		Records: []countsRecord{}, Imbalance: []countsLayer{}, Summary: []countsSummary{}, Reported: []countsReported{}, Warnings: []counts.Warning{},
	}
	for _, path := range paths {
		r, err := counts.Read(path)
		if err != nil {
			return err
		}
		if err := result.add(r, judging); err != nil {
			return err
		}
	}
	if err := o.out.write(c, result.document()); err != nil {
		return err
	}
	if c.Flags().Changed("fail-above") {
		return result.gate(o.failAbove)
	}
	return nil
}

// add judges one record.
func (res *countsResult) add(r *counts.Record, o counts.Options) error {
	layers, warnings, err := r.Imbalance(o)
	if err != nil {
		return err
	}
	rec := countsRecord{Source: r.Source, Format: r.Format, Experts: r.Experts, TopK: r.TopK, Ranks: r.Ranks, Iterations: len(r.Iterations()), Layers: len(r.Layers())}
	rec.Slots = r.Slots()
	res.Records = append(res.Records, rec)
	for _, l := range layers {
		res.Imbalance = append(res.Imbalance, countsLayer{r.Source, l})
	}
	for _, level := range []string{counts.LevelRank, counts.LevelExpert} {
		if s := counts.Summarize(layers, level); s.Layers > 0 {
			res.Summary = append(res.Summary, countsSummary{r.Source, s})
		}
	}
	for _, line := range r.Reported {
		res.Reported = append(res.Reported, countsReported{r.Source, line})
	}
	res.Warnings = append(append(res.Warnings, r.Warnings...), warnings...)
	return nil
}

// gate fails on the layer whose rank load is furthest above its floor.
func (res *countsResult) gate(limit float64) error {
	for _, s := range res.Summary {
		if s.Level != counts.LevelRank {
			continue
		}
		if over := float64(s.WorstMax/s.WorstFloor) - 1; over > limit {
			return withCode(exitGate, fmt.Errorf("rank load of layer %d is %.1f %% over its floor, above %.1f %%: %s", s.WorstLayer, 100*over, 100*limit, s.Source))
		}
	}
	return nil
}

func (res *countsResult) document() output.Document {
	return output.Document{Headline: res.headline(), Tables: []output.Table{res.layerTable(), res.summaryTable()}, Notes: res.notes(), Value: res}
}

func (res *countsResult) headline() string {
	for _, s := range res.Summary {
		return fmt.Sprintf("%s load max/mean %.3f on average over %d layers, worst layer %d at %.3f: %d flagged", s.Level, s.MaxOverMean, s.Layers, s.WorstLayer, s.WorstMax, s.Flagged)
	}
	return "no load to judge"
}

func (res *countsResult) notes() []string {
	var notes []string
	for _, w := range res.Warnings {
		notes = append(notes, fmt.Sprintf("%s: %s", filepath.Base(w.Subject), w.Text))
	}
	return notes
}

func (res *countsResult) layerTable() output.Table {
	t := output.Table{Name: "imbalance", Title: "Per layer, mean over steps", Columns: []output.Column{
		{Name: "source"}, {Name: "layer", Kind: output.Count}, {Name: "level"}, {Name: "steps", Kind: output.Count},
		{Name: "max/mean", Key: "max_over_mean", Kind: output.Ratio}, {Name: "imbalance", Kind: output.Percent},
		{Name: "balancedness", Kind: output.Ratio}, {Name: "CV", Key: "cv", Kind: output.Ratio}, {Name: "Gini", Key: "gini", Kind: output.Ratio},
		{Name: "active", Kind: output.Real}, {Name: "floor", Kind: output.Ratio},
		{Name: "null median", Key: "null_median", Kind: output.Ratio}, {Name: "null p95", Key: "null_p95", Kind: output.Ratio},
		{Name: "flagged"}, {Name: "worst", Kind: output.Count},
	}}
	for _, l := range res.Imbalance {
		t.Rows = append(t.Rows, []any{
			filepath.Base(l.Source), l.Layer, l.Level, l.Steps, l.MaxOverMean, l.Imbalance, l.Balancedness, l.CV, l.Gini,
			l.Active, l.Floor, l.NullMedian, l.NullP95, l.Flagged, l.Worst,
		})
	}
	return t
}

func (res *countsResult) summaryTable() output.Table {
	t := output.Table{Name: "summary", Title: "Over layers", Columns: []output.Column{
		{Name: "source"}, {Name: "level"}, {Name: "layers", Kind: output.Count}, {Name: "flagged", Kind: output.Count},
		{Name: "max/mean", Key: "max_over_mean", Kind: output.Ratio}, {Name: "imbalance", Kind: output.Percent},
		{Name: "balancedness", Kind: output.Ratio}, {Name: "worst layer", Key: "worst_layer", Kind: output.Count},
		{Name: "its max/mean", Key: "worst_max_over_mean", Kind: output.Ratio}, {Name: "its floor", Key: "worst_floor", Kind: output.Ratio},
	}}
	for _, s := range res.Summary {
		t.Rows = append(t.Rows, []any{filepath.Base(s.Source), s.Level, s.Layers, s.Flagged, s.MaxOverMean, s.Imbalance, s.Balancedness, s.WorstLayer, s.WorstMax, s.WorstFloor})
	}
	return t
}
