package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
)

type traceOptions struct {
	source.Reading
	Steps  flags.Value[*trace.Steps] `flag:"steps"`
	Counts string                    `flag:"counts"`
	modelFlags
	Summary   target.File `flag:"summary"`
	Threshold flags.Share `flag:"threshold"`
	FailAbove flags.Share `flag:"fail-above"`
	*resultFlags
}

func traceCmd(r *resultFlags) *cobra.Command {
	o := traceOptions{Steps: newSteps(), Threshold: flags.Share{Fraction: defaultThreshold}, resultFlags: r}
	return r.tabled(verb("trace", argCount(1, -1, "at least one export"), &o, o.run),
		func() []string { return render.Trace(&trace.Trace{}, "").TableNames() })
}

// whileSummarizing are the flags that can stand beside --summary.
var whileSummarizing = []string{"summary", "rank", "range", "phase", "force"}

// check finds flags without effect before a file is opened.
func (o *traceOptions) check(c *cobra.Command) error {
	if o.named() && o.Counts == "" {
		return usagef("--model describes recorded counts: add --counts")
	}
	if idle := flags.Given(c, whileSummarizing...); o.Summary.Path != "" && len(idle) > 0 {
		return usagef("--summary replaces the trace: remove %s", strings.Join(idle, ", "))
	}
	return nil
}

func (o *traceOptions) run(c *cobra.Command, args []string) error {
	paths, err := source.RunCaptures(args, tellSkipped(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	options, err := o.Options(paths)
	if err := cmp.Or(err, o.check(c)); err != nil {
		return err
	}
	read, done := progress.Reading(c.ErrOrStderr(), paths)
	defer done()
	options.Threshold, options.Steps, options.Converter, options.Progress = o.Threshold.Fraction, o.Steps.Is,
		reportConverter(), read
	if o.Summary.Path != "" {
		err := o.Summary.Write(func(w io.Writer) error { return trace.Summarize(c.Context(), w, paths, options) })
		return withRankHint(err, rankFlag)
	}
	shape, err := o.shape()
	if err != nil {
		return err
	}
	t, err := source.Trace(c.Context(), paths, options, source.Statistics{Path: o.Counts, Shape: shape})
	done()
	if err != nil {
		return withRankHint(err, rankFlag)
	}
	if err := o.write(c, render.Trace(t, sameResult(c, args, "fail-above"))); err != nil {
		return err
	}
	switch doubt := t.Doubt(); {
	case o.FailAbove.Given:
		return traceGate(t, o.FailAbove.Fraction)
	case doubt.Code == trace.CountsContradict:
		return withCode(exitInconclusive, errors.New(caveat.Text(doubt)))
	}
	return nil
}

// reportConverter finds the profiler's own program, for reports given in place
// of exports; without one they are refused with the command to run.
func reportConverter() capture.Converter {
	program, err := exec.LookPath("nsys")
	if err != nil {
		return capture.Converter{}
	}
	return capture.Converter{Nsys: program}
}

// tellSkipped names on stderr the files of a folder that are not read.
func tellSkipped(stderr io.Writer) source.Skipped {
	return func(folder string, names []string) {
		const most = 8
		more := ""
		if len(names) > most {
			more = fmt.Sprintf(" and %d more", len(names)-most)
		}
		fmt.Fprintln(stderr, shown.Text(fmt.Sprintf("skipped in %s: %s%s", folder,
			strings.Join(names[:min(len(names), most)], ", "), more)))
	}
}

// traceGate fails on the layer that is furthest above its floor, in steps of any kind.
func traceGate(t *trace.Trace, limit float64) error {
	worst := imbalance.Furthest(t.Imbalance, router.LevelRank, imbalance.Time)
	switch {
	case t.Undecided().Code != "":
		return withCode(exitInconclusive, fmt.Errorf("--fail-above: imbalance is uncertain: %s",
			caveat.Text(t.Undecided())))
	case worst == nil:
		return withCode(exitInconclusive, fmt.Errorf("--fail-above: no layer has expert time on two or more ranks"))
	case router.Above(worst.MaxOverMean, worst.Floor, limit):
		return withCode(exitGate, fmt.Errorf("expert-time imbalance of %s is %s, limit %s",
			answer.LayerName(t, worst.Layer), quantity.Percent(worst.Imbalance), quantity.Confidence(limit)))
	case !worst.Layer.Defined():
		return withCode(exitInconclusive,
			fmt.Errorf("--fail-above: layers are unknown, and the busy ranks of different layers cancel; name layers by "+
				"NVTX ranges"))
	}
	for _, k := range t.StepKinds { // those that the answer is not of; of few steps the noise is not known
		if k.Time.WorstFloor.Defined() && router.Above(k.Time.WorstMaxOverMean, k.Time.WorstFloor, limit) {
			return withCode(exitGate, fmt.Errorf("expert-time imbalance of %s is %s in %s (%s), limit %s",
				answer.LayerName(t, k.Time.WorstLayer), quantity.Percent(k.Time.WorstMaxOverMean-1),
				quantity.Numbered("step", k.Steps), k.Name, quantity.Confidence(limit)))
		}
	}
	return nil
}

// rankFlag is the hint of the verbs that have the flag.
const rankFlag = "give the exports of one run only; --rank FILE=N gives an export its rank"

// rankOfResult is the hint of the verbs that have not.
const rankOfResult = "give the exports of one run only, or the JSON of 'moebalance trace --rank FILE=N -o FILE.json', which " +
	"sets the rank of an export"

// withRankHint adds what to try where two exports are of one rank.
func withRankHint(err error, hint string) error {
	if errors.Is(err, trace.ErrSameRank) {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}
