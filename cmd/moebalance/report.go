package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/plots/page"
)

type reportOptions struct {
	Title string        `flag:"title"`
	PNG   target.Folder `flag:"png"`
	SVG   target.Folder `flag:"svg"`
	*resultFlags
}

func reportCmd(r *resultFlags) *cobra.Command {
	o := reportOptions{resultFlags: r}
	return r.fileOnly(verb("report", argCount(1, -1, "at least one campaign folder, result, export or file of expert counts"),
		&o, o.run))
}

func (o *reportOptions) run(c *cobra.Command, paths []string) error {
	if ext := filepath.Ext(o.File.Path); slices.Contains([]string{".pdf", ".json", ".csv", ".md"}, ext) {
		return usagef("--output: a page is HTML, have %s: name it .html, and let a browser print it for a PDF; 'moebalance "+
			"trace', 'counts' and 'compare' write results as .json, .csv and .md", ext)
	}
	items, err := source.Gather(c.Context(), paths, source.GatherOptions{Threshold: defaultThreshold,
		Converter: reportConverter(), Skipped: tellSkipped(c.ErrOrStderr()),
		Progress: func(paths []string) (func(int64), func()) { return progress.Reading(c.ErrOrStderr(), paths) }})
	if err != nil {
		return withRankHint(err, rankOfResult)
	}
	var inputs []page.Input
	for _, in := range items {
		d := render.Of(in)
		inputs = append(inputs, page.Input{Item: in, Notes: d.Notes, Tables: d.Tables})
	}
	date := time.Now()
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		date = time.Unix(seconds, 0) // for pages that are equal byte for byte
	}
	p, err := page.New(o.Title, []page.Fact{{Name: "Report",
		Value: date.UTC().Format("2006-01-02 15:04 UTC") + ", moebalance " + build()}}, inputs...)
	if err != nil {
		return err
	}
	return cmp.Or(o.writePage(c, p), refused(items))
}

// writePage writes the page and its figures, to where each was asked for.
func (o *reportOptions) writePage(c *cobra.Command, p page.Page) error {
	figures := p.Figures()
	if err := errors.Join(writeFigures(c, figures, &o.PNG, "png", plots.Figure.PNG),
		writeFigures(c, figures, &o.SVG, "svg", plots.Figure.SVG)); err != nil {
		return err
	}
	if o.File.Path == "" && (o.PNG.Path != "" || o.SVG.Path != "") {
		return nil
	}
	return o.File.WriteOr(c.OutOrStdout(), p.Write)
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
