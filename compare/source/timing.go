package source

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/place"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// Timing is what is known of the time of expert work, as flags give it, and about the price of
// weights.
type Timing struct {
	Trace      []string
	Counts     string // of the traced run; the first record's where it is empty
	Steps      *nsys.Steps
	Campaign   string
	Table      string
	StepTokens int
	StepTime   time.Duration
	WeightBits int
	Bandwidth  float64 // GB/s
	Converter  capture.Converter
}

// Check finds flags that do not go together.
func (o *Timing) Check() error {
	switch {
	case len(o.Trace) > 0 && o.Table != "":
		return usagef("want one of --trace and --cost-table, have both")
	case (o.Counts != "" || o.Steps != nil) && len(o.Trace) == 0:
		return usagef("--counts and --steps are of a trace: add --trace")
	case o.StepTime != 0 && len(o.Trace) == 0 && o.Table == "" || o.StepTime != 0 && o.Campaign != "":
		return usagef("--step-time: want --trace or --cost-table with it, and no --campaign")
	case o.StepTokens > 0 && len(o.Trace) == 0 && o.Table == "" && o.Campaign == "":
		return usagef("--step-tokens is of the time of steps: add --trace, --cost-table or --campaign")
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
		read, err := ReadCampaign(ctx, o.Campaign, options.Threshold)
		if err != nil {
			return fmt.Errorf("--campaign: %w", err)
		}
		measured = &read.Result
		if tokens := o.tokens(record, topK); measured.Curved() {
			options.Dose = &place.Dose{Source: o.Campaign, Tokens: tokens, Result: *measured}
		} else if len(o.Trace) == 0 && o.Table == "" {
			return usagef("--campaign has the time of steps and not of slots: add --trace or --cost-table, or give a " +
				"campaign of several --routers")
		}
	}
	options.Cost, options.NoTime, err = o.cost(ctx, first, record, m, topK, options.Threshold)
	if options.Cost == nil || err != nil || measured == nil {
		return err
	}
	if why := options.Cost.WithCampaign(*measured, float64(o.StepTokens)); why.Code != "" {
		return usagef("--campaign: %s", caveat.Text(why))
	}
	return nil
}

// tokens are those of a step of all ranks, 0 where they are not known.
func (o *Timing) tokens(record *counts.Record, topK int) float64 {
	if o.StepTokens > 0 || record.Window || topK == 0 {
		return float64(o.StepTokens)
	}
	return place.SlotsPerStep(record) / float64(topK)
}

// cost is that of expert work; the reason says why there is none, and what to give.
func (o *Timing) cost(ctx context.Context, first string, record *counts.Record, m *router.Model, topK int,
	threshold float64) (cost *place.Cost, reason router.Warning, err error) {
	switch {
	case len(o.Trace) == 0 && o.Table == "" && o.Campaign != "":
		return nil, reason, nil
	case o.StepTokens > 0 && topK == 0:
		return nil, reason, usagef(
			"--step-tokens: name the model with --model or --config, for the experts per token are not recorded")
	case len(o.Trace) > 0:
		cost, reason, err = o.traced(ctx, first, topK, m, threshold)
	case o.Table == "":
		return nil, router.Warn("no_time", "", "why", "no_evidence"), nil
	case m == nil || m.Hidden == 0:
		return nil, reason, usagef("--cost-table: name the model with --model or --config")
	default:
		cost, reason, err = o.tabled(record, *m)
	}
	if cost != nil && o.StepTime > 0 {
		cost.StepNS, cost.StepBasis = router.Number(o.StepTime), "measured"
	}
	return cost, reason, err
}

// traced fits the cost to a trace, or to a result of the built-in workload, and the counts
// of its run.
func (o *Timing) traced(ctx context.Context, first string, topK int, m *router.Model,
	threshold float64) (cost *place.Cost, reason router.Warning, err error) {
	if res, ok := readWorkload(o.Trace[0]); ok && len(o.Trace) == 1 {
		record, err := ReadCounts(ctx, cmp.Or(o.Counts, first), nil)
		if err != nil {
			return nil, reason, err
		}
		return place.FromTimes(o.Trace[0], res.StepExpertsMS, res.StepMS, record)
	}
	paths, err := Exports(o.Trace, nil)
	if err != nil {
		return nil, reason, err
	}
	statistics := Statistics{Path: cmp.Or(o.Counts, first)}
	if m != nil {
		statistics.Shape = &m.Shape
	}
	t, err := Trace(ctx, paths, nsys.Options{Threshold: threshold, Steps: o.Steps, Converter: o.Converter},
		statistics)
	if err != nil {
		return nil, reason, fmt.Errorf("--trace: %w", err)
	}
	record, err := ReadCounts(ctx, statistics.Path, nil)
	if err != nil {
		return nil, reason, err
	}
	return place.FromTrace(t, record, float64(o.StepTokens*topK), topK)
}

// readWorkload reads a result of the built-in workload; not ok if the file is something else.
func readWorkload(path string) (res stepTimes, ok bool) {
	file, err := input.Open(path)
	if err != nil {
		return res, false
	}
	defer file.Close()
	head := make([]byte, 64)
	if n, _ := io.ReadFull(file, head); !bytes.Contains(head[:n], []byte(`"kind":"workload"`)) {
		return res, false
	}
	return res, json.UnmarshalRead(io.MultiReader(bytes.NewReader(head), file), &res) == nil
}

// stepTimes are what a result of the built-in workload says of its time.
type stepTimes struct {
	StepExpertsMS [][][]float64 `json:"step_experts_ms"`
	StepMS        float64       `json:"step_ms"`
}

// tabled fits the cost to a table.
func (o *Timing) tabled(record *counts.Record, m router.Model) (cost *place.Cost, reason router.Warning, err error) {
	tokens := o.tokens(record, m.TopK)
	if tokens == 0 {
		return nil, router.Warn("no_time", "", "why", "window"), nil
	}
	file, err := input.Open(o.Table)
	if err != nil {
		return nil, reason, err
	}
	defer file.Close()
	cost, err = place.FromTable(o.Table, file, m, tokens)
	return cost, reason, err
}
