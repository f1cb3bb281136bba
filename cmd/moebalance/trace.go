package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	readOptions
	counts    string
	model     modelFlags // of the counts
	summary   target.File
	failAbove flags.Share
}

func traceCmd() *cobra.Command {
	var o traceOptions
	c := command("trace", argCount(1, -1, "at least one export"), o.run)
	f := c.Flags()
	o.readOptions.bind(c, func() []string { return render.Trace(&trace.Trace{}, "").TableNames() })
	f.StringVar(&o.counts, "counts", "", "`PATH`: folder or file of expert counts from the same run")
	o.model.bindCounts(c)
	o.summary = target.File{Replaces: trace.IsSummary}
	o.summary.Bind(c, "summary", "",
		"write a small summary to this `FILE`, for a later trace that merges ranks of many nodes")
	o.threshold.Fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "flag imbalance above this")
	f.Var(&o.failAbove, "fail-above", "exit 3 if the expert-time imbalance over ranks of any layer is above this")
	return c
}

// beside lists, for each flag that replaces the trace by another output, the flags
// that it can be combined with.
var beside = map[string][]string{
	"summary": {"rank", "step-pattern", "layer-pattern", "expert-pattern", "phase", "phase-rules"},
}

// check finds bad flags before a file is opened, and turns them into options.
func (o *traceOptions) check(c *cobra.Command, paths []string) (trace.Options, error) {
	n, err := o.readOptions.check(paths)
	switch {
	case err != nil:
		return n, err
	case o.model.named() && o.counts == "":
		return n, usagef("--model and --config describe recorded counts: add --counts")
	}
	return n, checkBeside(c)
}

// checkBeside refuses flags without effect.
func checkBeside(c *cobra.Command) error {
	var given []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "force" { // which is about any output
			given = append(given, f.Name)
		}
	})
	for _, name := range given {
		kept, instead := beside[name]
		if !instead {
			continue
		}
		var idle []string
		for _, other := range given {
			if other != name && !slices.Contains(kept, other) {
				idle = append(idle, "--"+other)
			}
		}
		if len(idle) > 0 {
			return usagef("--%s replaces the trace: remove %s", name, strings.Join(idle, ", "))
		}
	}
	return nil
}

func (o *traceOptions) run(c *cobra.Command, args []string) error {
	paths, err := source.RunCaptures(args, tellSkipped(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	options, err := o.check(c, paths)
	if err != nil {
		return err
	}
	options.Converter = reportConverter()
	read, done := progress.Reading(c.ErrOrStderr(), paths)
	defer done()
	options.Progress = read
	if o.summary.Path != "" {
		err := o.summary.Write(func(w io.Writer) error { return trace.Summarize(c.Context(), w, paths, options) })
		return withRankHint(err, rankFlag)
	}
	shape, err := o.model.shape()
	if err != nil {
		return err
	}
	t, err := source.Trace(c.Context(), paths, options, source.Statistics{Path: o.counts, Shape: shape})
	done()
	if err != nil {
		return withRankHint(err, rankFlag)
	}
	if err := o.out.write(c, render.Trace(t, sameResult(c, args, "fail-above"))); err != nil {
		return err
	}
	switch doubt := t.Doubt(); {
	case o.failAbove.Given:
		return traceGate(t, o.failAbove.Fraction)
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
const rankFlag = "give those of one run only; --rank FILE=N gives an export its rank"

// withRankHint adds what to try where two exports are of one rank.
func withRankHint(err error, hint string) error {
	if errors.Is(err, trace.ErrSameRank) {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}
