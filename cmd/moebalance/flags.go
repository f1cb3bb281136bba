package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/shown"
)

// defaultThreshold is the imbalance above which load and time are flagged.
const defaultThreshold = 0.10

// resultFlags are the flags of every verb that yields data.
type resultFlags struct {
	format             output.Format
	table              string
	top                int
	brief, wide, notes bool
	file               target.File
}

// bindTop adds --top where tables can be long.
func (f *resultFlags) bindTop(c *cobra.Command) {
	c.Flags().IntVar(&f.top, "top", output.Page,
		"`N`: print at most this many rows of a table as text, the largest; 0: all (default: a page)")
	c.Flags().Lookup("top").DefValue = "0" // which help leaves out
}

// bind adds the flags; tables are the names that --table takes.
func (f *resultFlags) bind(c *cobra.Command, tables func() []string) {
	flags.Choice(c, &f.format, "format", output.Text, "text, json, csv or md", output.Formats...)
	c.Flags().StringVar(&f.table, "table", "", "print this table only: "+strings.Join(tables(), ", "))
	c.Flags().BoolVar(&f.brief, "brief", false, "print the answer alone, in one line of text")
	c.Flags().BoolVar(&f.notes, "notes", false, "print all notes after the answer, and the names of the tables")
	c.Flags().BoolVar(&f.wide, "wide", false, "print all columns of a table, even on a narrow terminal")
	c.Flags().BoolFunc("json", "the same as --format json", func(string) error { return c.Flags().Set("format", "json") })
	f.file.Bind(c, "output", "o", "write the result to this `FILE` instead of stdout; .json, .csv and .md choose its format")
	_ = c.RegisterFlagCompletionFunc("table", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return tables(), cobra.ShellCompDirectiveNoFileComp
	})
}

// formatOfFile takes the format from the ending of the output's name, unless a flag gave one:
// x.csv → csv. Endings of other programs are refused.
func (f *resultFlags) formatOfFile(c *cobra.Command) error {
	if c.Flags().Changed("format") || f.brief {
		return nil
	}
	switch ext := strings.ToLower(filepath.Ext(f.file.Path)); ext {
	case ".json", ".csv", ".md":
		f.format = output.Format(ext[1:])
	case ".html", ".htm", ".pdf", ".xlsx", ".png", ".svg":
		return usagef("--output: no result is written as %s: want .txt, .json, .csv or .md; 'moebalance report -o r.html' "+
			"makes a page, which a browser prints to PDF", ext)
	}
	return nil
}

// write renders the document to stdout, or to the file.
func (f *resultFlags) write(c *cobra.Command, d output.Document) error {
	if f.top < 0 && c.Flags().Changed("top") {
		return usagef("--top: want 0 or more rows, have %d", f.top)
	}
	if f.brief {
		if f.format != output.Text || f.table != "" {
			return usagef("--brief is one line of text: remove --format and --table")
		}
		d = d.Brief()
	}
	if err := f.formatOfFile(c); err != nil {
		return err
	}
	view := output.View{Format: f.format, Table: f.table, Top: f.top, Wide: f.wide, Notes: f.notes}
	if f.file.Path == "" && !f.brief {
		view.Screen = output.ScreenOf(c.OutOrStdout(), os.Getenv)
	}
	render := func(w io.Writer) error {
		err := output.Write(w, view, d)
		if errors.Is(err, output.ErrNoTable) {
			return withCode(exitUsage, fmt.Errorf("--table: %w", err))
		}
		return err
	}
	err := f.file.WriteOr(c.OutOrStdout(), render)
	if err == nil && f.format == output.CSV {
		for i, note := range d.Notes {
			fmt.Fprintf(c.ErrOrStderr(), "[%d] %s\n", i+1, shown.Text(note))
		}
	}
	return err
}

// outputFlags say how a result is shown, and change nothing about it.
var outputFlags = []string{"format", "json", "table", "top", "brief", "notes", "wide", "output", "force"}

// sameResult are the arguments with which a verb gives the same result: its flags but for those of output
// and those named, and its files.
func sameResult(c *cobra.Command, files []string, but ...string) string {
	words := flags.Typed(c, func(f *pflag.Flag) bool {
		return !slices.Contains(outputFlags, f.Name) && !slices.Contains(but, f.Name)
	})
	return launch.Quote(append(words, source.Pattern(files)...))
}

// modelFlags name a model.
type modelFlags struct {
	model, config string
}

func (m *modelFlags) bind(c *cobra.Command) { bindModel(c, &m.model, &m.config) }

func bindModel(c *cobra.Command, model, config *string) {
	f := c.Flags()
	f.StringVar(model, "model", "",
		"preset such as deepseek-v3, see 'moebalance models', or the folder of a checkpoint")
	f.StringVar(config, "config", "", "Hugging Face config.json `FILE` of the model, or its folder")
	flags.Complete(c, "model", router.ModelNames()...)
}

// bindCounts binds them where recorded counts are judged.
func (m *modelFlags) bindCounts(c *cobra.Command) {
	m.bind(c)
	f := c.Flags().Lookup("model")
	f.Usage = "model of the counts: " + f.Usage
}

func (m *modelFlags) named() bool { return m.model != "" || m.config != "" }

// find is the named model.
func (m *modelFlags) find() (router.Model, error) {
	return source.FindModel(m.model, m.config, "")
}

// shape is that of the named model, nil without one.
func (m *modelFlags) shape() (*router.Shape, error) {
	if !m.named() {
		return nil, nil
	}
	found, err := m.find()
	return &found.Shape, err
}

// readOptions are the flags of the verbs that read exports: how they are read and
// judged, and where the result goes.
type readOptions struct {
	reading   source.Reading
	threshold flags.Share
	out       resultFlags
}

func (o *readOptions) bind(c *cobra.Command, tables func() []string) {
	f, r := c.Flags(), &o.reading
	f.StringArrayVar(&r.Ranks, "rank", nil,
		"`FILE=N`: rank of an export, overriding the recorded one; N alone where there is one export")
	bindSteps(c, &r.Steps)
	f.StringArrayVar(&r.StepPatterns, "step-pattern", nil,
		"`REGEX`: regular expression for range names with a group (?P<step>…), tried before the built-in ones")
	f.StringArrayVar(&r.LayerPatterns, "layer-pattern", nil, "`REGEX`: as --step-pattern, with (?P<layer>…)")
	f.StringArrayVar(&r.ExpertPatterns, "expert-pattern", nil, "`REGEX`: as --step-pattern, with (?P<expert>…)")
	f.StringArrayVar(&r.Phases, "phase", nil,
		"`PHASE=REGEX`: phase of the kernels whose names match, such as experts=my_gemm; repeatable")
	f.StringVar(&r.Rules, "phase-rules", "",
		"`FILE` with one PHASE=REGEX per line, after those of --phase; # begins a comment")
	o.out.bind(c, tables)
	o.out.bindTop(c)
}

// bindSteps adds the flag of the steps of exports that count.
func bindSteps(c *cobra.Command, into **trace.Steps) {
	flags.Parsed(c, into, trace.ParseSteps, "steps", "", "`A-B`: count only these steps, both ends included")
}

// check finds bad flags before a file is opened, and turns them into options.
// paths are the exports that --rank may name.
func (o *readOptions) check(paths []string) (trace.Options, error) {
	n, err := o.reading.Options(paths)
	n.Threshold = o.threshold.Fraction
	return n, err
}
