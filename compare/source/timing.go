package source

import (
	"cmp"
	"context"
	"fmt"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Timing is what is known of the time of expert work, as flags give it.
type Timing struct {
	Trace      []string `flag:"trace"`
	Counts     string   `flag:"counts"`
	Campaign   string   `flag:"campaign"`
	StepTokens int      `flag:"step-tokens"`
	Converter  capture.Converter
}

// Check finds flags that do not go together.
func (o *Timing) Check() error {
	switch {
	case len(o.Trace) > 0 && o.Campaign != "":
		return usagef("--trace and --campaign both tell time: want one of them")
	case o.Counts != "" && len(o.Trace) == 0:
		return usagef("--counts is of a trace: add --trace")
	case o.StepTokens != 0 && o.Campaign == "":
		return usagef("--step-tokens is of a campaign: add --campaign")
	case o.StepTokens < 0:
		return usagef("--step-tokens: want 0 or more, have %d", o.StepTokens)
	}
	return nil
}

// Predict gives the options what time is predicted from: a trace, of the run that the record is of unless Counts
// names others, or a campaign that measured time over load, or the reason why neither tells it.
func (o *Timing) Predict(ctx context.Context, record *counts.Record, m *router.Model, options *place.Options) error {
	switch {
	case len(o.Trace) > 0:
		return o.traced(ctx, record, m, options)
	case o.Campaign == "":
		options.NoTime = router.Warn("no_time", "", "why", "no_evidence")
		return nil
	}
	read, err := ReadCampaign(o.Campaign)
	if err != nil {
		return fmt.Errorf("--campaign: %w", err)
	}
	if !read.Curved() {
		return usagef("--campaign has the gain of one arm: give a campaign of several routers, or --trace")
	}
	topK, tokens := record.TopK, float64(o.StepTokens)
	if m != nil {
		topK = m.TopK
	}
	if tokens == 0 && !record.Window && topK > 0 {
		tokens = place.SlotsPerStep(record) / float64(topK)
	}
	options.Dose = &place.Dose{Source: o.Campaign, Tokens: tokens, Result: read.Result}
	return nil
}

// traced fits time to a trace and the counts of its run.
func (o *Timing) traced(ctx context.Context, record *counts.Record, m *router.Model, options *place.Options) error {
	paths, err := RunCaptures(o.Trace, nil)
	if err != nil {
		return err
	}
	statistics := Statistics{Path: cmp.Or(o.Counts, record.Source)}
	if m != nil {
		statistics.Shape = &m.Shape
	}
	t, err := Trace(ctx, paths, trace.Options{Threshold: options.Threshold, Converter: o.Converter}, statistics)
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	if o.Counts != "" {
		if record, err = ReadCounts(o.Counts, nil); err != nil {
			return err
		}
	}
	options.Cost, options.NoTime, err = place.FromTrace(t, record)
	return err
}
