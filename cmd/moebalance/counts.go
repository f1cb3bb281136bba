package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

type countsOptions struct {
	ranks     int
	placement string
	model     modelFlags
	since     string
	threshold share
	failAbove share
	out       resultFlags
}

func countsCmd() *cobra.Command {
	var o countsOptions
	c := &cobra.Command{
		Use:   "counts PATH…",
		Short: "expert statistics of other engines: load, imbalance, chance",
		Long: `counts reads the expert statistics that an engine recorded and says how uneven
the load is, per layer, over ranks and over experts. The formats, told apart by
their content:

  ` + strings.Join(counts.Formats(), "\n  ") + `

Every number is computed per step and layer, averaged over the steps with any
load, and then over the layers: never from summed counts, in which a busy rank
that alternates cancels. max/mean is the largest load over the mean load;
imbalance is max/mean − 1; balancedness is mean/max. The floor is the best that
indivisible slots allow. The null is what uniformly random routing of the same
tokens gives max/mean, simulated: median and 95th percentile of a mean over as
many steps. Groups make chance more uneven, so name the model with --model or
--config.

Where the format says which rank sent, traffic tells how far the slots travel:
off-rank is the share that leaves its rank; pair max/mean is the busiest pair of
source and target rank over the mean pair. JSON carries the whole matrix, summed
over the steps. Under another --ep than recorded nobody knows which rank would
have sent.

A layer is flagged when its max/mean is more than the threshold above the floor,
and above the null's 95th percentile: both are of the mean over its steps.`,
		Example: `  moebalance counts testdata/gptoss-ep4-ranks/counts-normal
  moebalance counts --model deepseek-v3 --ep 8 testdata/deepseek-ep4-ranks/counts-normal
  moebalance counts --ep 2 --placement testdata/counts/expert-map.json testdata/counts/fastdeploy.json
  moebalance counts --since testdata/counts/scrape-1.prom testdata/counts/scrape-2.prom`,
		Args: argCount(1, -1, "at least one file or folder of expert statistics"),
		RunE: func(c *cobra.Command, paths []string) error { return o.run(c, paths) },
	}
	f := c.Flags()
	f.IntVar(&o.ranks, "ep", 0, "judge as if the experts lay contiguously on this many ranks (default as recorded)")
	f.StringVar(&o.placement, "placement", "", "judge as if the experts lay as in this `FILE`: EPLB YAML (with --ep), expert map, slot assignments")
	o.model.bindCounts(f)
	f.StringVar(&o.since, "since", "", "judge what was added since this earlier `FILE` of the same cumulative counters")
	o.threshold.fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "flag an imbalance above this")
	f.Var(&o.failAbove, "fail-above", "exit 3 when any layer's rank load is above its floor by more than this")
	o.out.bind(c)
	return c
}

func (o *countsOptions) check(c *cobra.Command) error {
	if o.ranks < 0 || c.Flags().Changed("ep") && o.ranks == 0 {
		return usagef("--ep: want at least 1 rank, have %d", o.ranks)
	}
	return o.out.check()
}

func (o *countsOptions) run(c *cobra.Command, paths []string) error {
	if err := o.check(c); err != nil {
		return err
	}
	result, err := source.Interruptible(c.Context(), func() (*render.Counts, error) { return o.judge(paths) })
	if err != nil {
		return err
	}
	if err := o.out.write(c, result.Document()); err != nil {
		return err
	}
	if o.failAbove.given {
		return countsGate(result, o.failAbove.fraction)
	}
	return nil
}

// judge reads the records and judges them.
func (o *countsOptions) judge(paths []string) (*render.Counts, error) {
	judging, err := o.judging()
	if err != nil {
		return nil, err
	}
	result := &render.Counts{
		SchemaVersion: counts.SchemaVersion, Kind: "counts", Threshold: o.threshold.fraction,
		Records: []render.CountsRecord{}, Imbalance: []render.CountsLayer{}, Summary: []render.CountsSummary{}, Traffic: []render.CountsTraffic{}, Reported: []render.CountsReported{}, Warnings: []router.Warning{},
	}
	for _, path := range paths {
		r, err := o.read(path)
		if err != nil {
			return nil, err
		}
		if err := addRecord(result, r, judging); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// judging turns the flags into options, reading the files they name.
func (o *countsOptions) judging() (counts.Options, error) {
	judging := counts.Options{Ranks: o.ranks, Threshold: o.threshold.fraction}
	if o.placement != "" {
		p, err := counts.ReadPlacement(o.placement, o.ranks)
		if err != nil {
			return judging, err
		}
		judging.Placement = p
	}
	var err error
	judging.Shape, err = o.model.shape()
	return judging, err
}

// read reads one record, or what was added to it.
func (o *countsOptions) read(path string) (*counts.Record, error) {
	r, err := counts.Read(path)
	if err != nil || o.since == "" {
		return r, err
	}
	earlier, err := counts.Read(o.since)
	if err != nil {
		return nil, err
	}
	return r.Since(earlier)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// addRecord judges one record.
func addRecord(res *render.Counts, r *counts.Record, o counts.Options) error {
	var traffic []counts.LayerTraffic
	var untold error
	var other sync.WaitGroup
	other.Go(func() { traffic, untold = r.Traffic(o) }) // both read every step anew
	layers, warnings, err := r.Imbalance(o)
	other.Wait()
	if err := cmp.Or(err, untold); err != nil {
		return err
	}
	res.Records = append(res.Records, render.CountsRecord{
		Source: r.Source, Format: r.Format, Experts: stated(r.Experts), TopK: stated(r.TopK), Ranks: stated(r.Ranks),
		Iterations: len(r.Iterations()), Layers: len(r.Layers()), Slots: r.Slots(),
	})
	for _, l := range layers {
		res.Imbalance = append(res.Imbalance, render.CountsLayer{Source: r.Source, LayerBalance: l})
	}
	for _, level := range []string{router.LevelRank, router.LevelExpert} {
		if s := counts.Summarize(layers, level); s.Layers > 0 {
			res.Summary = append(res.Summary, render.CountsSummary{Source: r.Source, Summary: s})
		}
	}
	for _, l := range traffic {
		res.Traffic = append(res.Traffic, render.CountsTraffic{Source: r.Source, LayerTraffic: l})
	}
	for _, line := range r.Reported {
		res.Reported = append(res.Reported, render.CountsReported{Source: r.Source, Reported: line})
	}
	res.Warnings = append(append(res.Warnings, r.Warnings...), warnings...)
	return nil
}

// countsGate fails on the layer whose rank load is furthest above its floor, and when
// there is none to judge.
func countsGate(res *render.Counts, limit float64) error {
	var worst *render.CountsLayer
	for i, l := range res.Imbalance {
		if l.Level == router.LevelRank && l.Steps > 0 && (worst == nil || l.MaxOverMean/l.Floor > worst.MaxOverMean/worst.Floor) {
			worst = &res.Imbalance[i]
		}
	}
	switch {
	case worst == nil:
		return withCode(exitInconclusive, fmt.Errorf("--fail-above: no layer's load is known on ranks, so there is nothing to judge: give --ep if the number of ranks is not recorded"))
	case router.Above(worst.MaxOverMean, worst.Floor, limit):
		return withCode(exitGate, fmt.Errorf("rank load of layer %d is %s above its floor, limit %s: %s", worst.Layer, quantity.Percent(worst.MaxOverMean/worst.Floor-1), quantity.Percent(limit), worst.Source))
	}
	return nil
}
