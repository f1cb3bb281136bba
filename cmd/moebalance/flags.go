package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
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

// resultFlags are the flags of all verbs, and say how a result is shown.
type resultFlags struct {
	Format flags.Value[output.Format] `flag:"format"`
	JSON   bool                       `flag:"json"`
	Table  string                     `flag:"table"`
	Brief  bool                       `flag:"brief"`
	File   target.File                `flag:"output,o"`
	read   bool                       // by people, on stdout, with the reasons of its verdict
	tables map[*cobra.Command]func() []string
}

// newResult binds the flags to the root, for all verbs.
func newResult(root *cobra.Command) *resultFlags {
	f := &resultFlags{Format: flags.OneOf(output.Formats...), tables: map[*cobra.Command]func() []string{}}
	set := root.PersistentFlags()
	set.SortFlags = false
	flags.Bind(root, set, f, func(name string) string { return usageOf("", name) })
	set.Lookup("json").Hidden = true
	flags.Complete(root, "table", func(c *cobra.Command) []string { return append(f.tablesOf(c), output.Notes) })
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if names := f.tablesOf(c); len(names) > 0 {
			c.Long += "\n\n" + text.WrapSoft("Tables: "+strings.Join(names, ", "), helpWidth)
		}
		show(c, args)
	})
	return f
}

// tabled is the verb, whose results have tables of these names.
func (f *resultFlags) tabled(c *cobra.Command, names func() []string) *cobra.Command {
	f.tables[c], c.Annotations[yields] = names, "results"
	return c
}

// fileOnly is the verb, which writes to the file of --output and has no table.
func (f *resultFlags) fileOnly(c *cobra.Command) *cobra.Command {
	return f.tabled(c, func() []string { return nil })
}

func (f *resultFlags) tablesOf(c *cobra.Command) []string {
	if names := f.tables[c]; names != nil {
		return names()
	}
	return nil
}

// check refuses the flags on verbs that they do nothing for.
func (f *resultFlags) check(c *cobra.Command) error {
	names, writes := f.tables[c]
	if writes && len(names()) > 0 || c.HasSubCommands() {
		return nil
	}
	var idle []string
	c.InheritedFlags().VisitAll(func(g *pflag.Flag) {
		if g.Changed && g.Name != "force" && !(writes && g.Name == "output") {
			idle = append(idle, "--"+g.Name)
		}
	})
	if len(idle) > 0 {
		return usagef("%s: gives no result with tables: remove %s", verbOf(c), strings.Join(idle, ", "))
	}
	return nil
}

// format is the wanted one: as a flag says, else as the output's name ends, x.csv → csv. Endings
// of other programs are refused.
func (f *resultFlags) format(c *cobra.Command) (output.Format, error) {
	ext := strings.ToLower(filepath.Ext(f.File.Path))
	switch {
	case f.Brief && (f.JSON || c.Flags().Changed("format") || f.Table != ""):
		return "", usagef("--brief is one line of text: remove --format and --table")
	case f.JSON:
		return output.JSON, nil
	case c.Flags().Changed("format") || f.Brief:
	case slices.Contains([]string{".json", ".csv", ".md"}, ext):
		return output.Format(ext[1:]), nil
	case slices.Contains([]string{".html", ".htm", ".pdf", ".xlsx", ".png", ".svg"}, ext):
		return "", usagef("--output: no result is written as %s: want .txt, .json, .csv or .md; 'moebalance report -o r.html' "+
			"makes a page, which a browser prints to PDF", ext)
	}
	return f.Format.Is, nil
}

// write renders the document to stdout, or to the file.
func (f *resultFlags) write(c *cobra.Command, d output.Document) error {
	format, err := f.format(c)
	if err != nil {
		return err
	}
	if f.Brief {
		d = d.Brief()
	}
	view := output.View{Format: format, Table: f.Table}
	if f.File.Path == "" && !f.Brief {
		view.Screen = output.ScreenOf(c.OutOrStdout(), os.Getenv)
	}
	err = f.File.WriteOr(c.OutOrStdout(), func(w io.Writer) error {
		err := output.Write(w, view, d)
		if errors.Is(err, output.ErrNoTable) {
			return withCode(exitUsage, fmt.Errorf("--table: %w", err))
		}
		return err
	})
	f.read = f.File.Path == "" && !f.Brief && (format == output.Text || format == output.Markdown)
	if err == nil && format == output.CSV {
		for i, note := range d.Notes {
			fmt.Fprintf(c.ErrOrStderr(), "[%d] %s\n", i+1, shown.Text(note))
		}
	}
	return err
}

// judged is the error of a verdict. Its reasons are said where the result was not read with them.
func (f *resultFlags) judged(code int, verdict, reasons string) error {
	if f.read {
		return withCode(code, errors.New(verdict))
	}
	return withCode(code, fmt.Errorf("%s: %s", verdict, reasons))
}

// outputFlags say how a result is shown, and change nothing about it.
var outputFlags = []string{"format", "json", "table", "brief", "output", "force"}

// sameResult are the arguments with which a verb gives the same result: its flags, without the output
// flags and the ones named, and its files.
func sameResult(c *cobra.Command, files []string, but ...string) string {
	words := flags.Typed(c, func(f *pflag.Flag) bool {
		return !slices.Contains(outputFlags, f.Name) && !slices.Contains(but, f.Name)
	})
	return launch.Quote(append(words, source.Pattern(files)...))
}

// modelFlags name a model.
type modelFlags struct {
	Model string `flag:"model"`
}

func (m *modelFlags) named() bool { return m.Model != "" }

// find is the named model.
func (m *modelFlags) find() (router.Model, error) { return source.FindModel(m.Model, "") }

// shape is the shape of the named model, nil without one.
func (m *modelFlags) shape() (*router.Shape, error) {
	if !m.named() {
		return nil, nil
	}
	found, err := m.find()
	return &found.Shape, err
}

// newSteps is --steps, the steps of exports that count.
func newSteps() flags.Value[*trace.Steps] { return flags.Read(trace.ParseSteps, "") }
