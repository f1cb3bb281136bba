package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/plots/page"
)

type reportOptions struct {
	title     string
	date      string
	apart     []string
	file      target.File
	png, svg  target.Folder
	counts    [2]string  // of exports, by arm
	model     modelFlags // of these and of folders of expert statistics
	ranks     int
	steps     *trace.Steps
	perStep   float64 // tokens
	threshold flags.Share
}

func reportCmd() *cobra.Command {
	var o reportOptions
	c := command("report", argCount(1, -1, "at least one campaign folder, result, export or file of expert counts"),
		o.run)
	f := c.Flags()
	f.StringVar(&o.title, "title", "", "`TEXT`: heading of the page (default: benchmark command or inputs)")
	f.StringVar(&o.date, "date", "", "`DATE` as the page prints it (default: now)")
	f.StringArrayVar(&o.apart, "apart", nil,
		"`PATHS` of another program's results, with commas between them, for a part of their own; repeatable")
	o.file.Bind(c, "output", "o", "write the page to this `FILE`")
	o.png.Bind(c, "png", "", "`DIR` for the figures as PNG, created if missing")
	o.svg.Bind(c, "svg", "", "`DIR` for the figures as SVG")
	f.StringVar(&o.counts[0], "counts-normal", "", "`PATH`: folder or file of expert counts from the normal run")
	f.StringVar(&o.counts[1], "counts-perfect", "", "`PATH`: the same of the perfect run")
	f.IntVar(&o.ranks, "ep", 0, "place the experts of counts contiguously on this many ranks (default as recorded)")
	o.model.bindCounts(c)
	bindSteps(c, &o.steps)
	f.Float64Var(&o.perStep, "step-tokens", 0,
		"tokens of all ranks in one step: turns a campaign's tokens/s into the step time of traces")
	o.threshold.Fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "flag imbalance above this, in exports and expert counts")
	return c
}

func (o *reportOptions) run(c *cobra.Command, paths []string) error {
	if !(o.perStep >= 0) {
		return usagef("--step-tokens: want a number of tokens above 0, have %g", o.perStep)
	}
	if ext := filepath.Ext(o.file.Path); ext == ".pdf" || ext == ".json" || ext == ".csv" || ext == ".md" {
		return usagef("--output: a page is HTML, have %s: name it .html, and let a browser print it for a PDF; 'moebalance "+
			"trace', 'counts' and 'compare' write results as .json, .csv and .md", ext)
	}
	shape, err := o.model.shape()
	if err != nil {
		return err
	}
	options := source.GatherOptions{
		Threshold: o.threshold.Fraction, Counts: map[string]string{}, Shape: shape, Ranks: o.ranks, Steps: o.steps,
		StepTokens: o.perStep,
		Converter:  reportConverter(), Skipped: tellSkipped(c.ErrOrStderr()),
		Progress: func(paths []string) (func(int64), func()) { return progress.Reading(c.ErrOrStderr(), paths) },
	}
	for i, arm := range gain.Arms {
		if o.counts[i] != "" {
			options.Counts[string(arm)] = o.counts[i]
		}
	}
	items, err := o.gather(c.Context(), paths, options)
	if err != nil {
		return err
	}
	counted := func(in source.Item) bool { return in.Counts != nil }
	if o.model.named() && len(options.Counts) == 0 && !slices.ContainsFunc(items, counted) {
		return usagef("--model and --config describe expert counts: add them, or --counts-normal or --counts-perfect")
	}
	programs := programsOf(items)
	options.Counts = nil
	for _, list := range o.apart {
		apart, err := o.gather(c.Context(), strings.Split(list, ","), options)
		if err != nil {
			return fmt.Errorf("--apart: %w", err)
		}
		items, programs = append(items, apart...), append(programs, programsOf(apart)...)
	}
	return cmp.Or(o.write(c, programs), refused(items))
}

// gather reads inputs of one program.
func (o *reportOptions) gather(ctx context.Context, paths []string, options source.GatherOptions) ([]source.Item,
	error) {
	items, err := source.Gather(ctx, paths, options)
	return items, withRankHint(err,
		"use the JSON of 'moebalance trace --rank FILE=N --format json', which sets the rank of an export")
}

// programsOf are the inputs by program.
func programsOf(items []source.Item) (programs []page.Program) {
	for _, group := range source.Programs(items) {
		var p page.Program
		for _, in := range group {
			d := render.Of(in)
			shown := page.Input{Item: in, Notes: d.Notes}
			for _, t := range d.Tables {
				shown.Tables = append(shown.Tables, t)
			}
			p.Inputs = append(p.Inputs, shown)
		}
		programs = append(programs, p)
	}
	return programs
}

func (o *reportOptions) write(c *cobra.Command, programs []page.Program) error {
	date := cmp.Or(o.date, time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	p, err := page.New(o.title, []page.Fact{{Name: "Report", Value: date + ", moebalance " + build()}}, programs...)
	if err != nil {
		return err
	}
	figures := p.Figures()
	if err := errors.Join(writeFigures(c, figures, &o.png, "png", plots.Figure.PNG),
		writeFigures(c, figures, &o.svg, "svg", plots.Figure.SVG)); err != nil {
		return err
	}
	switch {
	case o.file.Path != "":
		return o.file.Write(p.Write)
	case o.png.Path == "" && o.svg.Path == "":
		return p.Write(c.OutOrStdout())
	}
	return nil
}

// refused is the error of sides that are not comparable, nil where there are none.
func refused(items []source.Item) error {
	if name, why := render.NotComparable(items); name != "" {
		return withCode(exitNotComparable, fmt.Errorf("%s: not comparable: %s", name, why))
	}
	return nil
}

// writeFigures writes each figure to a file of its own in dir, or says that there is none;
// an empty dir writes nothing.
func writeFigures(c *cobra.Command, figures []plots.Figure, dir *target.Folder, suffix string,
	write func(plots.Figure, io.Writer) error) error {
	if dir.Path == "" {
		return nil
	}
	for _, f := range figures {
		name := f.Name + "." + suffix
		if err := dir.Write(name, func(w io.Writer) error { return write(f, w) }); err != nil {
			return fmt.Errorf("figure %s: %w", f.Name, err)
		}
	}
	if len(figures) == 0 {
		fmt.Fprintf(c.ErrOrStderr(), "--%s: these inputs have no figure\n", suffix)
	}
	return nil
}
