package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/progress"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
)

// parsers read the texts of flags, by the type that they return.
var parsers = []any{target.ParseFile, target.ParseFolder, output.ParseFormat, counts.ParseAxes, router.ParseMethod,
	router.ParseMode, logits.ParseDType, bench.ParseTreatment, bench.ParseArm, points.Parse, kernel.ParseRule,
	metrics.ParseWanted, parseWords, parseModel}

// words are the words of a command.
type words []string

func parseWords(text string) (words, error) { return launch.Words(text) }

func parseModel(text string) (router.Model, error) { return router.ReadModel(text, "") }

// outputFlag is the file that a verb writes instead of stdout.
type outputFlag struct {
	File target.File `flag:"output,o"`
}

// ending is how the output's name ends, in small letters. Endings of the other formats that programs know files by
// are refused: x.PDF for a result.
func (o *outputFlag) ending(what string, ours ...string) (string, error) {
	ending := strings.ToLower(filepath.Ext(o.File.Path))
	known := []string{".json", ".csv", ".md", ".html", ".htm", ".pdf", ".xlsx", ".png", ".svg"}
	if slices.Contains(known, ending) && !slices.Contains(ours, ending) {
		return "", usagef("--output: no %s is written as %s: want %s; 'moebalance report' writes pages (-o) and figures "+
			"(--png, --svg)", what, ending, strings.Join(ours, ", "))
	}
	return ending, nil
}

// call is a run of a verb: its context, streams and flags, and its other words.
type call struct {
	*cobra.Command
	args []string
}

func (c call) given(flag string) bool { return c.Flags().Changed(flag) }

// only refuses flags that were given and have no effect on inputs of a kind, but for output flags.
func (c call) only(kind string, names ...string) error {
	if idle, _ := flags.Given(c.Command, append(names, outputFlags...)...); len(idle) > 0 {
		return usagef("%s: remove %s", kind, strings.Join(idle, ", "))
	}
	return nil
}

// same are the arguments with which a verb gives the same result: its flags, without the output
// flags and the ones named, and its files.
func (c call) same(files []string, but ...string) string {
	_, typed := flags.Given(c.Command, append(but, outputFlags...)...)
	return launch.Quote(append(typed, source.Pattern(files)...))
}

// skipped names on stderr the files of a folder that are not read.
func (c call) skipped(paths []string) {
	fmt.Fprintf(c.ErrOrStderr(), "skipped: %s\n", shown.Text(strings.Join(paths, ", ")))
}

// progress is a line that shows on a terminal how far the verb is.
func (c call) progress() *progress.Line { return progress.New(c.ErrOrStderr()) }

// resultFlags say how a result is shown, and change nothing about it.
type resultFlags struct {
	output.View
	outputFlag
}

// outputFlags are the names of the flags that change nothing about a result.
var outputFlags = []string{"format", "json", "table", "brief", "output", "force"}

// answering is the options of a verb that answers. The document is shown also where an error comes with it, the
// word of a gate.
type answering interface {
	answer(c call) (document, error)
	result() *resultFlags
}

type document = output.Document

func (f *resultFlags) result() *resultFlags { return f }

// show runs a verb with a result, whose tables may be the named ones, and shows it.
func show(c call, o answering, tables []string) error {
	f := o.result()
	if err := cmp.Or(f.choose(c), usage(output.CheckTable(f.Table, tables))); err != nil {
		return err
	}
	d, judged := o.answer(c)
	if d.Headline == "" {
		return judged
	}
	if err := f.File.Write(c.OutOrStdout(), func(w io.Writer) error { return output.Write(w, f.View, d) }); err != nil {
		return err
	}
	for i, note := range d.Notes {
		if f.Format == output.CSV {
			fmt.Fprintf(c.ErrOrStderr(), "[%d] %s\n", i+1, shown.Text(note))
		}
	}
	read := f.File.Path == "" && !f.Brief && (f.Format == output.Text || f.Format == output.Markdown)
	if judged != nil && d.Why != "" && !read {
		return fmt.Errorf("%w: %s", judged, d.Why)
	}
	return judged
}

// choose takes the format as a flag says, else as the output's name ends: x.csv is csv.
func (f *resultFlags) choose(c call) error {
	for _, apart := range [][]string{{"json", "format"}, {"brief", "json"}, {"brief", "format"}, {"brief", "table"}} {
		if c.given(apart[0]) && c.given(apart[1]) {
			return usagef("want --%s or --%s, not both", apart[0], apart[1])
		}
	}
	ending, err := f.ending("result", ".txt", ".json", ".csv", ".md")
	switch at := slices.Index(output.Formats, output.Format(strings.TrimPrefix(ending, "."))); {
	case f.JSON:
		f.Format = output.JSON
	case at >= 0 && !c.given("format") && !f.Brief:
		f.Format = output.Formats[at]
	}
	if f.File.Path == "" {
		f.Width = output.Width(c.OutOrStdout())
	}
	return err
}

// gainGates are gates on the gain of a campaign.
type gainGates struct {
	RequireVerdict bool     `flag:"require-verdict"`
	FailAbove      *float64 `flag:"fail-above" in:"%"`
}

// judge turns a campaign into the exit code that was asked for.
func (g *gainGates) judge(r source.Campaign) error {
	gated := g.FailAbove != nil
	switch {
	case r.Verdict.Refused():
		return failf(exitNotComparable, "%s", r.Verdict)
	case gated && (r.Verdict == gain.NoVerdict || !r.Gain.Low.Defined() || r.Undone()):
		return failf(exitInconclusive, "--fail-above: no verdict, no interval of the gain, or a check undoes it")
	case gated && r.Gain.Low.Float64() > *g.FailAbove:
		return failf(exitGate, "gain above %s", quantity.Confidence(*g.FailAbove))
	case gated && r.Gain.High.Float64() > *g.FailAbove:
		return failf(exitInconclusive, "--fail-above: the interval holds %s", quantity.Confidence(*g.FailAbove))
	case g.RequireVerdict && r.Verdict.Open():
		return failf(exitInconclusive, "%s", r.Verdict)
	}
	return nil
}
