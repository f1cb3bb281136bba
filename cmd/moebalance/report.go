package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/plots/page"
)

type reportOptions struct {
	title     string
	file      target.File
	png, svg  target.Folder
	counts    [2]string  // of exports, by arm
	model     modelFlags // of these and of folders of expert statistics
	steps     *nsys.Steps
	threshold share
}

func reportCmd() *cobra.Command {
	var o reportOptions
	c := command("report", argCount(1, -1, "at least one campaign folder, result or export"), o.run)
	f := c.Flags()
	f.StringVar(&o.title, "title", "", "heading of the page (default: benchmark command or inputs)")
	o.file.Bind(c, "output", "o", "write the page to this `FILE`")
	o.png.Bind(c, "png", "", "`DIR` for the figures as PNG, created if missing")
	o.svg.Bind(c, "svg", "", "`DIR` for the figures as SVG")
	f.StringVar(&o.counts[0], "counts-normal", "", "`DIR` or file of expert statistics of the normal run")
	f.StringVar(&o.counts[1], "counts-perfect", "", "`DIR` or file of expert statistics of the perfect run")
	o.model.bindCounts(c)
	bindSteps(c, &o.steps)
	o.threshold.fraction = defaultThreshold
	f.Var(&o.threshold, "threshold", "flag imbalance above this, in exports and expert statistics")
	return c
}

func (o *reportOptions) run(c *cobra.Command, paths []string) error {
	shape, err := o.model.shape()
	if err != nil {
		return err
	}
	options := source.GatherOptions{
		Threshold: o.threshold.fraction, Counts: map[string]string{}, Shape: shape, Steps: o.steps, Converter: reportConverter(), Skipped: tellSkipped(c.ErrOrStderr()),
		Progress: func(paths []string) (func(int64), func()) { return showReading(c.ErrOrStderr(), paths) },
	}
	for i, arm := range gain.Arms {
		if o.counts[i] != "" {
			options.Counts[string(arm)] = o.counts[i]
		}
	}
	items, err := source.Gather(c.Context(), paths, options)
	if err != nil {
		return withRankHint(err, "use the JSON of 'moebalance trace --rank FILE=N --format json', which sets the rank of an export")
	}
	counted := func(in source.Item) bool { return in.Counts != nil }
	if o.model.named() && len(options.Counts) == 0 && !slices.ContainsFunc(items, counted) {
		return usagef("--model and --config describe expert statistics: add a folder of them, --counts-normal or --counts-perfect")
	}
	p, err := page.New(o.title, items)
	if err != nil {
		return err
	}
	if err := writeFigures(p.Figures(), &o.png, "png", plots.Figure.PNG); err != nil {
		return err
	}
	if err := writeFigures(p.Figures(), &o.svg, "svg", plots.Figure.SVG); err != nil {
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

// writeFigures writes each figure to a file of its own in dir; an empty dir
// writes nothing.
func writeFigures(figures []plots.Figure, dir *target.Folder, suffix string, write func(plots.Figure, io.Writer) error) error {
	if dir.Path == "" {
		return nil
	}
	for _, f := range figures {
		name := f.Name + "." + suffix
		if err := dir.Write(name, func(w io.Writer) error { return write(f, w) }); err != nil {
			return fmt.Errorf("writing %s: %w", filepath.Join(dir.Path, name), err)
		}
	}
	return nil
}
