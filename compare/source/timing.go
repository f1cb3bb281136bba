package source

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Timing is what is known of the time of expert work, as flags give it, and about the price of
// weights.
type Timing struct {
	Trace      []string      `flag:"trace"`
	Counts     string        `flag:"counts"`
	Campaign   string        `flag:"campaign"`
	StepTokens int           `flag:"step-tokens"`
	StepTime   time.Duration `flag:"step-time"`
	WeightBits int           `flag:"weight-bits"`
	Bandwidth  float64       `flag:"bandwidth"`
	Converter  capture.Converter
}

// Check finds flags that do not go together.
func (o *Timing) Check() error {
	switch {
	case o.Counts != "" && len(o.Trace) == 0:
		return usagef("--counts is of a trace: add --trace")
	case o.StepTokens > 0 && len(o.Trace) == 0 && o.Campaign == "":
		return usagef("--step-tokens is of the time of steps: add --trace or --campaign")
	case o.StepTime != 0 && (len(o.Trace) == 0 || o.Campaign != ""):
		return usagef("--step-time: want --trace with it, and no --campaign")
	case o.StepTime < 0 || o.StepTokens < 0 || o.WeightBits < 1 || !(o.Bandwidth >= 0 && o.Bandwidth < 1e9):
		return usagef("--step-time, --step-tokens and --bandwidth: want 0 or more, --weight-bits at least 1; have %v, "+
			"%d, %g, %d", o.StepTime, o.StepTokens, o.Bandwidth, o.WeightBits)
	}
	return nil
}

// Predict gives o what time is predicted from: the cost of expert work, or the reason why there is none,
// and the campaign, if it measured time over load.
func (o *Timing) Predict(ctx context.Context, first string, record *counts.Record, m *router.Model,
	options *place.Options) (err error) {
	topK := record.TopK
	if m != nil {
		topK = m.TopK
	}
	var measured *gain.Result
	if o.Campaign != "" {
		read, err := ReadCampaign(o.Campaign)
		if err != nil {
			return fmt.Errorf("--campaign: %w", err)
		}
		measured = &read.Result
		if tokens := o.tokens(record, topK); measured.Curved() {
			options.Dose = &place.Dose{Source: o.Campaign, Tokens: tokens, Result: *measured}
		} else if len(o.Trace) == 0 {
			return usagef("--campaign has the time of steps and not of slots: add --trace, or give a campaign of several " +
				"routers")
		}
	}
	options.Cost, options.NoTime, err = o.cost(ctx, first, m, topK, options.Threshold)
	if options.Cost == nil || err != nil || measured == nil {
		return err
	}
	if why := options.Cost.WithCampaign(*measured, float64(o.StepTokens)); why.Code != "" {
		return usagef("--campaign: %s", caveat.Text(why))
	}
	return nil
}

// tokens are the tokens of all ranks in one step, 0 where they are not known.
func (o *Timing) tokens(record *counts.Record, topK int) float64 {
	if o.StepTokens > 0 || record.Window || topK == 0 {
		return float64(o.StepTokens)
	}
	return place.SlotsPerStep(record) / float64(topK)
}

// cost is the cost of expert work; the reason says why there is none, and what to give.
func (o *Timing) cost(ctx context.Context, first string, m *router.Model, topK int, threshold float64) (
	cost *place.Cost, reason router.Warning, err error) {
	switch {
	case len(o.Trace) == 0 && o.Campaign != "":
		return nil, reason, nil
	case o.StepTokens > 0 && topK == 0:
		return nil, reason, usagef(
			"--step-tokens: name the model with --model, for the experts per token are not recorded")
	case len(o.Trace) == 0:
		return nil, router.Warn("no_time", "", "why", "no_evidence"), nil
	}
	cost, reason, err = o.traced(ctx, first, topK, m, threshold)
	if cost != nil && o.StepTime > 0 {
		cost.StepNS, cost.StepBasis = router.Number(o.StepTime), "measured"
	}
	return cost, reason, err
}

// traced fits the cost to a trace and the counts of its run.
func (o *Timing) traced(ctx context.Context, first string, topK int, m *router.Model,
	threshold float64) (cost *place.Cost, reason router.Warning, err error) {
	paths, err := RunCaptures(o.Trace, nil)
	if err != nil {
		return nil, reason, err
	}
	statistics := Statistics{Path: cmp.Or(o.Counts, first)}
	if m != nil {
		statistics.Shape = &m.Shape
	}
	t, err := Trace(ctx, paths, trace.Options{Threshold: threshold, Converter: o.Converter},
		statistics)
	if err != nil {
		return nil, reason, fmt.Errorf("--trace: %w", err)
	}
	record, err := ReadCounts(statistics.Path, nil)
	if err != nil {
		return nil, reason, err
	}
	return place.FromTrace(t, record, float64(o.StepTokens*topK), topK)
}
