package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/plots/page"
)

type reportOptions struct {
	Title   string        `flag:"title"`
	Apart   []string      `flag:"apart"`
	PNG     target.Folder `flag:"png"`
	SVG     target.Folder `flag:"svg"`
	Normal  string        `flag:"counts-normal"`
	Perfect string        `flag:"counts-perfect"`
	Ranks   int           `flag:"ep"`
	modelFlags
	StepTokens float64 `flag:"step-tokens"`
	*resultFlags
}

func reportCmd(r *resultFlags) *cobra.Command {
	o := reportOptions{resultFlags: r}
	return r.fileOnly(verb("report", argCount(1, -1, "at least one campaign folder, result, export or file of expert counts"), &o,
		o.run))
}

func (o *reportOptions) run(c *cobra.Command, paths []string) error {
	if ext := filepath.Ext(o.File.Path); slices.Contains([]string{".pdf", ".json", ".csv", ".md"}, ext) {
		return usagef("--output: a page is HTML, have %s: name it .html, and let a browser print it for a PDF; 'moebalance "+
			"trace', 'counts' and 'compare' write results as .json, .csv and .md", ext)
	}
	if !(o.StepTokens >= 0) {
		return usagef("--step-tokens: want a number of tokens above 0, have %g", o.StepTokens)
	}
	shape, err := o.shape()
	if err != nil {
		return err
	}
	options := source.GatherOptions{
		Threshold: defaultThreshold, Counts: map[string]string{}, Shape: shape, Ranks: o.Ranks,
		StepTokens: o.StepTokens, Converter: reportConverter(), Skipped: tellSkipped(c.ErrOrStderr()),
		Progress: func(paths []string) (func(int64), func()) { return progress.Reading(c.ErrOrStderr(), paths) },
	}
	for i, path := range []string{o.Normal, o.Perfect} {
		if path != "" {
			options.Counts[string(gain.Arms[i])] = path
		}
	}
	items, err := o.gather(c.Context(), paths, options)
	if err != nil {
		return err
	}
	counted := func(in source.Item) bool { return in.Counts != nil }
	if o.named() && len(options.Counts) == 0 && !slices.ContainsFunc(items, counted) {
		return usagef("--model describes expert counts: add them, or --counts-normal or --counts-perfect")
	}
	programs := programsOf(items)
	options.Counts = nil
	for _, list := range o.Apart {
		apart, err := o.gather(c.Context(), strings.Split(list, ","), options)
		if err != nil {
			return fmt.Errorf("--apart: %w", err)
		}
		items, programs = append(items, apart...), append(programs, programsOf(apart)...)
	}
	return cmp.Or(o.draw(c, programs), refused(items))
}

// gather reads inputs of one program.
func (o *reportOptions) gather(ctx context.Context, paths []string, options source.GatherOptions) ([]source.Item,
	error) {
	items, err := source.Gather(ctx, paths, options)
	return items, withRankHint(err, rankOfResult)
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

func (o *reportOptions) draw(c *cobra.Command, programs []page.Program) error {
	date := time.Now()
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		date = time.Unix(seconds, 0) // for pages that are equal byte for byte
	}
	p, err := page.New(o.Title, []page.Fact{{Name: "Report",
		Value: date.UTC().Format("2006-01-02 15:04 UTC") + ", moebalance " + build()}}, programs...)
	if err != nil {
		return err
	}
	figures := p.Figures()
	if err := errors.Join(writeFigures(c, figures, &o.PNG, "png", plots.Figure.PNG),
		writeFigures(c, figures, &o.SVG, "svg", plots.Figure.SVG)); err != nil {
		return err
	}
	switch {
	case o.File.Path != "":
		return o.File.Write(p.Write)
	case o.PNG.Path == "" && o.SVG.Path == "":
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
