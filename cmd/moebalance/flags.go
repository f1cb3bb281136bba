package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/flags"
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/shown"
)

// defaultThreshold is the imbalance above which load and time are flagged.
const defaultThreshold = "10%"

// outputFlag is the file that a verb writes instead of stdout.
type outputFlag struct {
	File target.File `flag:"output,o"`
}

// resultFlags say how a result is shown, and change nothing about it.
type resultFlags struct {
	Format flags.Value[output.Format] `flag:"format"`
	JSON   bool                       `flag:"json"`
	Table  string                     `flag:"table"`
	Brief  bool                       `flag:"brief"`
	outputFlag
	read bool // by people, on stdout, with the reasons of its verdict
}

// newResult are the flags before they are given.
func newResult() resultFlags {
	return resultFlags{Format: flags.Read(output.ParseFormat, "text")}
}

// outputFlags are the names of the flags that change nothing about a result.
var outputFlags = []string{"format", "json", "table", "brief", "output", "force"}

// tabled tells help the tables in the results of a verb.
func tabled(c *cobra.Command, names ...string) *cobra.Command {
	c.Long += "\n\n" + text.WrapSoft("Tables: "+strings.Join(names, ", "), helpWidth)
	return c
}

// format is the wanted one: as a flag says, else as the output's name ends, x.csv → csv. Endings
// of other programs are refused.
func (f *resultFlags) format() (output.Format, error) {
	switch ext := strings.ToLower(filepath.Ext(f.File.Path)); {
	case f.Brief && (f.JSON || f.Format.Given || f.Table != ""):
		return "", usagef("--brief is one line of text: remove --format and --table")
	case f.JSON:
		return output.JSON, nil
	case f.Format.Given || f.Brief:
	case slices.Contains([]string{".json", ".csv", ".md"}, ext):
		return output.Format(ext[1:]), nil
	case slices.Contains([]string{".html", ".htm", ".pdf", ".xlsx", ".png", ".svg"}, ext):
		return "", usagef("--output: no result is written as %s: want .txt, .json, .csv or .md; 'moebalance "+
			"report -o r.html' "+
			"makes a page, which a browser prints to PDF", ext)
	}
	return f.Format.Is, nil
}

// write renders the document to stdout, or to the file.
func (f *resultFlags) write(c *cobra.Command, d output.Document) error {
	format, err := f.format()
	if err != nil {
		return err
	}
	view := output.View{Format: format, Table: f.Table, Brief: f.Brief}
	if f.File.Path == "" {
		view.Width = output.Width(c.OutOrStdout())
	}
	f.read = f.File.Path == "" && !f.Brief && (format == output.Text || format == output.Markdown)
	err = f.File.WriteOr(c.OutOrStdout(), func(w io.Writer) error { return output.Write(w, view, d) })
	switch {
	case errors.Is(err, output.ErrNoTable):
		return withCode(exitUsage, fmt.Errorf("--table: %w", err))
	case err == nil && format == output.CSV:
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

// only refuses flags that were given and have no effect on inputs of a kind, but for output flags.
func only(c *cobra.Command, kind string, names ...string) error {
	if idle := flags.Given(c, append(names, outputFlags...)...); len(idle) > 0 {
		return usagef("%s: remove %s", kind, strings.Join(idle, ", "))
	}
	return nil
}

// sameResult are the arguments with which a verb gives the same result: its flags, without the output
// flags and the ones named, and its files.
func sameResult(c *cobra.Command, files []string, but ...string) string {
	return launch.Quote(append(flags.Typed(c, append(but, outputFlags...)...), source.Pattern(files)...))
}

// modelFlags name a model.
type modelFlags struct {
	Model string `flag:"model"`
}

func (m *modelFlags) named() bool { return m.Model != "" }

// find is the named model.
func (m *modelFlags) find() (router.Model, error) { return router.ReadModel(m.Model, "") }

// shape is the shape of the named model, nil without one.
func (m *modelFlags) shape() (*router.Shape, error) {
	if !m.named() {
		return nil, nil
	}
	found, err := m.find()
	return &found.Shape, err
}

// gateFlags name a router, and the ranks that hold its experts.
type gateFlags struct {
	modelFlags
	Method    flags.Value[router.Method] `flag:"method"`
	Placement string                     `flag:"placement"`
}

func newGate() gateFlags {
	return gateFlags{Method: flags.Read(router.ParseMethod, "")}
}

// gate is the router, with its model.
func (g *gateFlags) gate() (m router.Model, gate router.Gate, err error) {
	if !g.named() {
		return m, gate, usagef("want --model: a preset, a config.json, or experts and top-k such as e256k8")
	}
	if m, err = router.ReadModel(g.Model, g.Method.Is); err != nil {
		return m, gate, err
	}
	gate = router.Gate{Method: cmp.Or(g.Method.Is, m.Method), Shape: m.Shape, Scale: m.Scale}
	return m, gate, withCode(exitUsage, gate.Validate())
}

// layout places the experts of the gate: as the file says, or contiguously on so many ranks.
func (g *gateFlags) layout(experts, ranks int) (router.Layout, error) {
	if g.Placement == "" {
		l, err := router.Contiguous(experts, ranks)
		return l, withCode(exitUsage, err)
	}
	l, err := router.ReadLayout(g.Placement, experts)
	if err != nil {
		return l, fmt.Errorf("--placement: %w", err)
	}
	return l, nil
}
