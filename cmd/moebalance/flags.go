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
	Format flags.Value[output.Format] `flag:"format"`
	JSON   bool                       `flag:"json"`
	Table  string                     `flag:"table"`
	Brief  bool                       `flag:"brief"`
	File   target.File                `flag:"output,o"`
	read   bool                       // by people, on stdout, with the reasons of its verdict
}

// newResult are the flags before they are given.
func newResult() resultFlags { return resultFlags{Format: flags.OneOf(output.Formats...)} }

// tabled is the verb with the names that --table takes in its help.
func tabled(c *cobra.Command, tables []string) *cobra.Command {
	f := c.Flags().Lookup("table")
	f.Usage += " " + strings.Join(tables, ", ")
	c.Flags().Lookup("json").Hidden = true
	flags.Complete(c, "table", append(tables, output.Notes)...)
	return c
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
