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
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
)

type compareOptions struct {
	Normal  string `flag:"counts-normal"`
	Perfect string `flag:"counts-perfect"`
	modelFlags
	Threshold      flags.Value[float64] `flag:"threshold"`
	Metric         string               `flag:"metric"`
	Arms           []string             `flag:"arm"`
	Trust          bool                 `flag:"trust-arms"`
	Campaign       string               `flag:"campaign"`
	StepTokens     int                  `flag:"step-tokens"`
	RequireVerdict bool                 `flag:"require-verdict"`
	resultFlags

	builds gain.Builds // that --arm names
}

func compareCmd() *cobra.Command {
	o := compareOptions{Threshold: flags.Share(defaultThreshold), resultFlags: newResult()}
	return tabled(verb("compare", argCount(1, -1, "the normal side and the perfect side"), &o, o.run),
		render.ComparisonTables...)
}

// effective are the flags that change what is said of inputs of a kind, whose name comes first.
var effective = map[source.Kind][]string{
	source.Campaigns: {"a campaign alone, which is shown as bench judged it", "require-verdict"},
	source.Reports:   {"benchmark reports", "require-verdict", "threshold", "metric", "arm", "trust-arms"},
	source.Captures: {"traces", "counts-normal", "counts-perfect", "model", "threshold", "arm", "trust-arms",
		"campaign", "step-tokens"},
}

func (o *compareOptions) run(c *cobra.Command, args []string) error {
	arms, err := source.ReadArms(args, tellSkipped(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	kind := effective[arms.Kind]
	if err := cmp.Or(o.check(), only(c, "compare: "+kind[0], kind[1:]...)); err != nil {
		return err
	}
	switch arms.Kind {
	case source.Campaigns:
		return o.campaign(c, arms.Sides[0].Paths[0])
	case source.Reports:
		return o.reports(c, arms.Sides)
	}
	return o.traces(c, arms.Sides)
}

// check finds flags that do not go together.
func (o *compareOptions) check() (err error) {
	o.builds, err = gain.NewBuilds(o.Arms)
	switch {
	case err != nil:
		return usagef("compare: --arm: %w", err)
	case o.named() && o.Normal+o.Perfect == "":
		return usagef("--model describes recorded counts: add --counts-normal or --counts-perfect")
	case o.StepTokens < 0 || o.StepTokens > 0 && o.Campaign == "":
		return usagef("--step-tokens: want a number of tokens above 0, and --campaign")
	case o.builds.Named() && (o.Trust || o.Campaign != ""):
		return usagef("--arm compares two builds: remove --trust-arms and --campaign")
	}
	return nil
}

// traces compares the traces of both arms.
func (o *compareOptions) traces(c *cobra.Command, sides [2]source.Side) error {
	shape, err := o.shape()
	if err != nil {
		return err
	}
	var measured source.Campaign
	if o.Campaign != "" {
		if measured, err = source.ReadCampaign(o.Campaign); err != nil {
			return fmt.Errorf("--campaign: %w", err)
		}
	}
	read, done := progress.Reading(c.ErrOrStderr(), slices.Concat(sides[0].Paths, sides[1].Paths))
	defer done()
	options := trace.Options{Threshold: o.Threshold.Is, Converter: reportConverter(),
		Progress: read}
	var arms [2]*trace.Trace
	for i, s := range sides {
		if s.Unsorted != nil {
			s.Arm = o.builds.Names()[i]
		}
		recorded := source.Statistics{Path: [2]string{o.Normal, o.Perfect}[i], Shape: shape}
		if arms[i], err = s.Trace(c.Context(), options, recorded); err != nil {
			return fmt.Errorf("%s side: %w", gain.Arms[i], err)
		}
		switch {
		case arms[i].Arm == "" && sides[0].Named == gain.Perfect && sides[1].Named == gain.Normal && !o.builds.Named():
			arms[i] = diff.NamedArm(arms[i], s.Named)
		case o.Trust:
			arms[i] = diff.AssumeArm(arms[i], gain.Arms[i])
		}
	}
	done()
	result := diff.CompareBuilds(arms[0], arms[1], o.builds)
	if o.Campaign != "" {
		result.WithCampaign(measured.Result, float64(o.StepTokens))
	}
	if err := o.write(c, render.Comparison(result)); err != nil || result.Comparable {
		return err
	}
	return o.judged(exitNotComparable, string(result.Verdict), fmt.Sprintf("%s; try %s",
		strings.Join(answer.Refusals(&result), "; "), answer.OfComparison(&result).Next[0].Command))
}

// campaign shows a campaign as bench judged it.
func (o *compareOptions) campaign(c *cobra.Command, path string) error {
	result, err := source.ReadCampaign(path)
	if err != nil {
		return err
	}
	return cmp.Or(o.write(c, render.Campaign(result)), o.gates(result.Result))
}

// reports judges the launches that two sets of benchmark reports hold.
func (o *compareOptions) reports(c *cobra.Command, sides [2]source.Side) error {
	name, custom, err := metrics.ParseWanted(o.Metric)
	if err != nil {
		return usagef("--metric: %w", err)
	}
	if o.builds.Named() && !o.Threshold.Given {
		o.Threshold.Is = 0
	}
	set, err := source.ReadReports(sides, source.ReportOptions{
		Metric: name, Custom: custom, Trust: o.Trust, Builds: o.builds,
		Threshold: o.Threshold.Is,
	})
	if err != nil {
		return err
	}
	result := gain.Judge(set.Campaign)
	return cmp.Or(o.write(c, render.Reports(result, set)), o.gates(result))
}

// gates turns the verdict on launches into an exit code.
func (o *compareOptions) gates(result gain.Result) error {
	switch why := answer.Why(result, gain.Run{}); {
	case result.Verdict.Refused():
		return o.judged(exitNotComparable, string(result.Verdict), why)
	case result.Verdict.Open() && o.RequireVerdict:
		return o.judged(exitInconclusive, string(result.Verdict), why)
	}
	return nil
}
