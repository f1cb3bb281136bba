package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
)

type compareOptions struct {
	read       readOptions
	counts     [2]string  // by arm
	model      modelFlags // of the counts
	metric     string
	trust      bool
	arms       string
	builds     gain.Builds
	confidence flags.Share
	campaign   string // of unprofiled launches of the same arms
	stepTokens int

	requireVerdict bool
}

func compareCmd() *cobra.Command {
	var o compareOptions
	c := command("compare", argCount(1, -1, "the normal side and the perfect side"), o.run)
	f := c.Flags()
	o.read.bind(c, func() []string { return render.Comparison(diff.Comparison{}).TableNames() })
	f.StringVar(&o.counts[0], "counts-normal", "", "`PATH`: folder or file of expert counts from the normal run")
	f.StringVar(&o.counts[1], "counts-perfect", "", "`PATH`: the same of the perfect run")
	o.model.bindCounts(c)
	o.read.threshold.Fraction = gain.DefaultThreshold
	f.Var(&o.read.threshold, "threshold", "gain (reports) or imbalance (traces) that counts as significant")
	f.StringVar(&o.metric, "metric", "",
		"`NAME`: metric of the reports (default throughput); or one to read, as NAME:UNIT:higher=REGEX or "+
			"NAME:UNIT:lower=JSONPATH")
	flags.Complete(c, "metric", metrics.Names()...)
	f.StringVar(&o.arms, "arms", "", "`A,B`: compare two builds of these names instead of a normal and a perfect arm")
	f.BoolVar(&o.trust, "trust-arms", false, "accept the arms as labeled, without proof")
	o.confidence.Fraction = gain.DefaultConfidence
	f.Var(&o.confidence, "confidence", "confidence level of the gain's interval: 95% and 0.95 are the same")
	f.StringVar(&o.campaign, "campaign", "",
		"campaign folder or JSON `RESULT` of bench, for the measured gain and step time")
	f.IntVar(&o.stepTokens, "step-tokens", 0, "tokens of all ranks in one step, for a --campaign in tokens per second")
	f.BoolVar(&o.requireVerdict, "require-verdict", false, "exit 5 if the verdict on reports is inconclusive")
	return c
}

func (o *compareOptions) run(c *cobra.Command, args []string) error {
	if err := o.checkArms(); err != nil {
		return err
	}
	if c := o.confidence.Fraction; !(c > 0 && c < 1) {
		return usagef("--confidence: want more than 0 %% and less than 100 %%, have %v", &o.confidence)
	}
	if len(args) == 1 && source.HoldsCampaign(args[0]) {
		return o.shown(c, args[0])
	}
	skipped := tellSkipped(c.ErrOrStderr())
	if records, err := source.RecordsOf(args); err != nil || len(records) > 0 {
		return o.records(c, records, err)
	}
	sides, err := source.Sides(args, skipped)
	if err != nil {
		return err
	}
	options, err := o.read.check(slices.Concat(sides[0].Paths, sides[1].Paths))
	switch {
	case err != nil:
		return err
	case sides[0].Kind != source.Reports:
		return o.traces(c, sides, options)
	case o.counts != [2]string{} || o.model.named() || o.campaign != "":
		return usagef("--counts-normal, --counts-perfect, --model, --config and --campaign go with traces, not with " +
			"benchmark reports")
	}
	return o.reports(c, sides)
}

// checkArms reads the names of --arms.
func (o *compareOptions) checkArms() (err error) {
	switch {
	case o.arms == "":
		return nil
	case o.trust || o.campaign != "":
		return usagef("--arms compares two builds: remove --trust-arms and --campaign")
	}
	if o.builds, err = gain.ParseBuilds(o.arms); err != nil {
		return withCode(exitUsage, err)
	}
	return nil
}

// traces compares the traces of both arms.
func (o *compareOptions) traces(c *cobra.Command, sides [2]source.Side, options trace.Options) error {
	if o.metric != "" || o.requireVerdict {
		return usagef("--metric and --require-verdict go with benchmark reports, not with traces")
	}
	if o.model.named() && o.counts == [2]string{} {
		return usagef("--model and --config describe recorded counts: add --counts-normal or --counts-perfect")
	}
	if o.stepTokens < 0 || o.stepTokens > 0 && o.campaign == "" {
		return usagef("--step-tokens: want a number of tokens above 0, and --campaign")
	}
	shape, err := o.model.shape()
	if err != nil {
		return err
	}
	var measured source.Campaign
	if o.campaign != "" {
		if measured, err = source.ReadCampaign(o.campaign); err != nil {
			return fmt.Errorf("--campaign: %w", err)
		}
	}
	options.Converter = reportConverter()
	read, done := progress.Reading(c.ErrOrStderr(), slices.Concat(sides[0].Paths, sides[1].Paths))
	defer done()
	options.Progress = read
	var arms [2]*trace.Trace
	for i, s := range sides {
		if s.Unsorted != nil {
			s.Arm = o.builds.Names()[i]
		}
		if arms[i], err = s.Trace(c.Context(), options, source.Statistics{Path: o.counts[i],
			Shape: shape}); err != nil {
			return fmt.Errorf("%s side: %w", gain.Arms[i], withRankHint(err, rankFlag))
		}
		if o.trust {
			arms[i] = diff.AssumeArm(arms[i], gain.Arms[i])
		}
	}
	done()
	result := diff.CompareBuilds(arms[0], arms[1], o.builds)
	if o.campaign != "" {
		result.WithCampaign(measured.Result, float64(o.stepTokens))
	}
	if err := o.read.out.write(c, render.Comparison(result)); err != nil {
		return err
	}
	if !result.Comparable {
		return withCode(exitNotComparable, fmt.Errorf("%s: %s; try %s", result.Verdict,
			strings.Join(answer.Refusals(&result), "; "), answer.OfComparison(&result).Next[0].Command))
	}
	return nil
}

// records judges launches that held both arms.
func (o *compareOptions) records(c *cobra.Command, paths []string, err error) error {
	if err != nil {
		return err
	}
	judged := bench.Spec{Threshold: o.read.threshold.Fraction, Confidence: o.confidence.Fraction,
		WorkTolerance: gain.DefaultTolerance}
	name, custom, err := metrics.ParseWanted(o.metric)
	if err != nil {
		return withCode(exitUsage, fmt.Errorf("--metric: %w", err))
	}
	if judged.Metric = name; custom != nil {
		judged.Custom = []string{o.metric}
	}
	result, err := source.JudgeRecords(paths, judged)
	if err != nil {
		return err
	}
	if err := o.read.out.write(c, render.Campaign(result)); err != nil {
		return err
	}
	return o.gates(result.Result)
}

// shown shows a campaign as bench judged it.
func (o *compareOptions) shown(c *cobra.Command, path string) error {
	for _, name := range []string{"counts-normal", "counts-perfect", "model", "config", "threshold", "metric", "arms",
		"trust-arms", "confidence", "campaign", "step-tokens"} {
		if c.Flags().Changed(name) {
			return usagef("--%s does not go with a campaign alone, which is shown as bench judged it", name)
		}
	}
	result, err := source.ReadCampaign(path)
	if err != nil {
		return err
	}
	return cmp.Or(o.read.out.write(c, render.Campaign(result)), o.gates(result.Result))
}

// gates turns the verdict on launches into an exit code.
func (o *compareOptions) gates(result gain.Result) error {
	switch why := answer.Why(result, gain.Run{}); {
	case result.Verdict.Refused():
		return withCode(exitNotComparable, fmt.Errorf("%s: %s", result.Verdict, why))
	case result.Verdict.Open() && o.requireVerdict:
		return withCode(exitInconclusive, fmt.Errorf("%s: %s", result.Verdict, why))
	}
	return nil
}

// reports judges the launches that two sets of benchmark reports hold.
func (o *compareOptions) reports(c *cobra.Command, sides [2]source.Side) error {
	name, custom, err := metrics.ParseWanted(o.metric)
	if err != nil {
		return withCode(exitUsage, fmt.Errorf("--metric: %w", err))
	}
	if o.builds.Named() && !o.read.threshold.Given {
		o.read.threshold.Fraction = 0
	}
	set, err := source.ReadReports(sides, source.ReportOptions{
		Metric: name, Custom: custom, Trust: o.trust, Builds: o.builds,
		Criteria: gain.Criteria{Threshold: o.read.threshold.Fraction, Confidence: o.confidence.Fraction,
			Tolerance: gain.DefaultTolerance},
	})
	if err != nil {
		return err
	}
	result := gain.Judge(set.Campaign)
	if err := o.read.out.write(c, render.Reports(result, set)); err != nil {
		return err
	}
	return o.gates(result)
}
