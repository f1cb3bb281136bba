package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

type compareOptions struct {
	Normal  string        `flag:"counts-normal"`
	Perfect string        `flag:"counts-perfect"`
	Model   *router.Model `flag:"model"`
	Arms    []string      `flag:"arm"`
	source.ReportOptions
	source.StepTime
	gainGates
	resultFlags
}

// effective are the flags that change what is said of inputs of a kind, whose name comes first.
var effective = map[source.Kind][]string{
	source.Campaigns: {"a campaign alone, which is shown as bench judged it", "require-verdict", "fail-above"},
	source.Files:     {"benchmark reports", "require-verdict", "fail-above", "threshold", "metric", "arm", "trust-arms"},
	source.Captures: {"traces", "model", "counts-normal", "counts-perfect", "threshold", "arm", "trust-arms",
		"campaign", "step-tokens"},
}

func (o *compareOptions) answer(c call) (d document, err error) {
	given, sides, err := source.ReadArms(c.args, c.skipped)
	if err != nil {
		return d, err
	}
	kind := effective[given]
	if err := cmp.Or(o.check(), c.only(kind[0], kind[1:]...)); err != nil {
		return d, err
	}
	switch given {
	case source.Captures:
		return o.traces(c, sides)
	case source.Files:
		return o.reports(c, sides)
	}
	result, err := source.ReadCampaign(sides[0].Paths[0])
	if err != nil {
		return d, err
	}
	return render.Campaign(result), o.judge(result)
}

// check finds flags that do not go together.
func (o *compareOptions) check() (err error) {
	o.Builds, err = gain.NewBuilds(o.Arms)
	switch {
	case err != nil:
		return usagef("--arm: %w", err)
	case o.Model != nil && o.Normal+o.Perfect == "":
		return usagef("--model describes recorded counts: add --counts-normal or --counts-perfect")
	case o.Builds.Named() && (o.Trust || o.Campaign != ""):
		return usagef("--arm compares two builds: remove --trust-arms and --campaign")
	}
	return o.StepTime.Check()
}

// traces compares the traces of both arms.
func (o *compareOptions) traces(c call, sides [2]source.Side) (d document, err error) {
	read, done := c.progress().Reading(slices.Concat(sides[0].Paths, sides[1].Paths))
	defer done()
	options := trace.Options{Threshold: o.Threshold, Progress: read}
	var arms [2]*trace.Trace
	for i, s := range sides {
		if s.Arm != "" {
			s.Arm = o.Builds.Names()[i]
		}
		record, err := source.ReadCounts([2]string{o.Normal, o.Perfect}[i], nil)
		if options.Arm = string(s.Arm); err == nil {
			arms[i], err = source.Trace(c.Context(), s.Paths, options, record, o.Model.Sizes())
		}
		if err != nil && len(c.args) == 2 { // the side may be of both arms, by its names
			_, both := source.RunCaptures(c.args[i:i+1], nil)
			err = cmp.Or(both, err)
		}
		if err != nil {
			return d, fmt.Errorf("%s side: %w", gain.Arms[i], err)
		}
		switch {
		case arms[i].Arm == "" && swapped(sides) && !o.Builds.Named():
			arms[i] = diff.AssumeArm(arms[i], s.Named())
			arms[i].ArmEvidence = "by its name"
		case o.Trust:
			arms[i] = diff.AssumeArm(arms[i], gain.Arms[i])
		}
	}
	result := diff.Compare(arms[0], arms[1], o.Builds)
	if c.given("threshold") {
		result.Threshold = &o.Threshold
	}
	if o.Campaign != "" {
		measured, err := source.ReadCampaign(o.Campaign)
		if err != nil {
			return d, err
		}
		result.WithCampaign(measured.Result, measured.Run, float64(o.StepTokens))
	}
	given := answer.Compared{Normal: ofSide(sides[0]), Perfect: ofSide(sides[1])}
	if o.Normal != "" {
		given.Counts = c.same([]string{o.Normal}, effective[source.Captures][2:]...) // with the model
	}
	if d = render.Comparison(result, given); !result.Comparable {
		err = failf(exitNotComparable, "%s", result.Verdict)
	}
	return d, err
}

// ofSide are the files of a side as arguments.
func ofSide(s source.Side) string { return launch.Quote(source.Pattern(s.Paths)) }

// swapped reports sides that are named after each other's arm.
func swapped(sides [2]source.Side) bool {
	return sides[0].Named() == gain.Perfect && sides[1].Named() == gain.Normal
}

// reports judges the launches that two sets of benchmark reports hold.
func (o *compareOptions) reports(c call, sides [2]source.Side) (d document, err error) {
	if o.Builds.Named() && !c.given("threshold") {
		o.Threshold = 0
	}
	if o.Trust && swapped(sides) {
		return d, usagef("--trust-arms: the first side is named perfect and the second normal: give the normal side first")
	}
	result, err := source.ReadReports(sides, o.ReportOptions)
	if err != nil {
		return d, err
	}
	return render.Campaign(result), o.judge(result)
}
