package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/plots/page"
)

type reportOptions struct {
	Title string        `flag:"title"`
	PNG   target.Folder `flag:"png"`
	SVG   target.Folder `flag:"svg"`
	outputFlag
}

func (o *reportOptions) run(c call) error {
	if _, err := o.ending("page", ".html", ".htm"); err != nil {
		return err
	}
	items, err := source.Gather(c.Context(), c.args, c.skipped, c.progress().Reading)
	if err != nil {
		return err
	}
	var inputs []page.Input
	judged := slices.ContainsFunc(items, func(in source.Item) bool { return in.Campaign != nil })
	var refused error
	for _, in := range items {
		d := render.Of(in, items...)
		if d.Answer.Verdict == answer.Verdict(gain.NotComparable) && (in.Campaign != nil || !judged) {
			refused = cmp.Or(refused, failf(exitNotComparable, "%s: not comparable: %s", in.Name, d.Why))
		}
		inputs = append(inputs, page.Input{Item: in, Answer: *d.Answer, Tables: d.Tables, Notes: d.Notes})
	}
	p := page.New(o.Title, []page.Fact{{Name: "Report",
		Value: time.Now().UTC().Format("2006-01-02 15:04 UTC") + ", moebalance " + build()}}, inputs...)
	return cmp.Or(o.writeFiles(c, p), refused)
}

// writeFiles writes the figures to the folders that were asked for, and the page unless figures alone were.
func (o *reportOptions) writeFiles(c call, p page.Page) error {
	figures := p.Figures()
	for _, as := range []struct {
		suffix string
		dir    *target.Folder
		write  func(plots.Figure, io.Writer) error
	}{{"png", &o.PNG, plots.Figure.PNG}, {"svg", &o.SVG, plots.Figure.SVG}} {
		switch {
		case as.dir.Path == "":
			continue
		case len(figures) == 0:
			fmt.Fprintf(c.ErrOrStderr(), "--%s: these inputs have no figure\n", as.suffix)
		}
		for _, f := range figures {
			if err := as.dir.Write(f.Name+"."+as.suffix, func(w io.Writer) error { return as.write(*f, w) }); err != nil {
				return fmt.Errorf("figure %s: %w", f.Name, err)
			}
		}
	}
	if o.File.Path == "" && o.PNG.Path+o.SVG.Path != "" {
		return nil
	}
	return o.File.Write(c.OutOrStdout(), p.Write)
}
