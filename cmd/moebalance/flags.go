package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/manual"
	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
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
		"`N`: rows of a table to print as text, the largest; 0 prints all (default: a page)")
	c.Flags().Lookup("top").DefValue = "0" // which help leaves out
	section(c, outputSection)
}

// bind adds the flags; tables are the names that --table takes.
func (f *resultFlags) bind(c *cobra.Command, tables func() []string) {
	section(c, manual.OwnSection)
	choice(c, &f.format, "format", output.Text, "text, json, csv or md", output.Formats...)
	c.Flags().StringVar(&f.table, "table", "", "print this table only")
	c.Flags().BoolVar(&f.brief, "brief", false, "print the answer alone, in one line of text")
	c.Flags().BoolVar(&f.notes, "notes", false, "print all notes after the answer, and the names of the tables")
	c.Flags().BoolVar(&f.wide, "wide", false, "print all columns of a table, also on a narrow terminal")
	f.file.Bind(c, "output", "o", "write the result to this `FILE` instead of stdout")
	section(c, outputSection)
	_ = c.RegisterFlagCompletionFunc("table", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return tables(), cobra.ShellCompDirectiveNoFileComp
	})
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
	var err error
	if f.file.Path == "" {
		err = render(c.OutOrStdout())
	} else {
		err = f.file.Write(render)
	}
	if err == nil && f.format == output.CSV {
		for i, note := range d.Notes {
			fmt.Fprintf(c.ErrOrStderr(), "[%d] %s\n", i+1, shown.Text(note))
		}
	}
	return err
}

// modelFlags name a model.
type modelFlags struct {
	model, config string
	method        router.Method // in the place of the config's; bound where it can be given
}

func (m *modelFlags) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&m.model, "model", "",
		"preset such as deepseek-v3, see 'moebalance models', or the folder of a checkpoint")
	f.StringVar(&m.config, "config", "", "Hugging Face config.json `FILE` of the model")
	complete(c, "model", router.ModelNames()...)
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
	return source.FindModel(m.model, m.config, m.method)
}

// shape is that of the named model, nil without one.
func (m *modelFlags) shape() (*router.Shape, error) {
	if !m.named() {
		return nil, nil
	}
	found, err := m.find()
	return &found.Shape, err
}

// share is a flag for a fraction that people write as a percentage: 10% and 0.1
// are the same. A bare number above 1 is refused, because it could mean either.
type share struct {
	fraction float64
	given    bool
}

// Set reads a percentage or a fraction.
func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil || !(v >= 0) || v > 1e6:
		return errors.New("want a percentage such as 10%, or a fraction such as 0.1")
	case percent:
		v /= 100
	case v > 1:
		return errors.New("want " + number + "% if a percentage is meant, or a fraction from 0 to 1")
	}
	s.fraction, s.given = v, true
	return nil
}

// String is the percentage, empty before one was given.
func (s *share) String() string {
	if s.fraction == 0 && !s.given {
		return ""
	}
	return strconv.FormatFloat(100*s.fraction, 'g', -1, 64) + "%"
}

// Type is the word that help shows for the value.
func (s *share) Type() string { return "percent" }

// parsed is a flag whose text becomes a value, or is refused, as flags are read.
type parsed[T any] struct {
	into  *T
	text  string
	parse func(string) (T, error)
}

// bindParsed adds such a flag. Without a preset the value stays zero.
func bindParsed[T any](c *cobra.Command, into *T, parse func(string) (T, error), flag, preset, usage string,
	completions ...string) {
	p := &parsed[T]{into, preset, parse}
	if preset != "" {
		_ = p.Set(preset)
	}
	c.Flags().Var(p, flag, usage)
	complete(c, flag, completions...)
}

// choice adds a flag that is one of several words.
func choice[T ~string](c *cobra.Command, into *T, flag string, preset T, usage string, among ...T) {
	words := make([]string, len(among))
	for i, word := range among {
		words[i] = string(word)
	}
	bindParsed(c, into, func(text string) (T, error) {
		if !slices.Contains(among, T(text)) {
			return "", errors.New("want one of " + strings.Join(words, ", "))
		}
		return T(text), nil
	}, flag, string(preset), usage, words...)
}

// bindNumbers adds a flag of whole numbers and ranges of them. Given again, it adds to them.
func bindNumbers(c *cobra.Command, into *[]int, flag, preset, usage string) {
	if !strings.Contains(usage, "`") {
		usage = "`LIST`: " + usage
	}
	bindParsed(c, into, func(text string) ([]int, error) {
		list, err := input.Numbers(text)
		if c.Flags().Changed(flag) {
			list = append(*into, list...)
		}
		return list, err
	}, flag, preset, usage+"; such as 1,8,64, 1-16 or 1-64:8")
}

// complete makes the shell complete the values of a flag.
func complete(c *cobra.Command, flag string, values ...string) {
	if len(values) > 0 {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// Set reads the text.
func (p *parsed[T]) Set(text string) (err error) {
	p.text = text
	*p.into, err = p.parse(text)
	return err
}

// String is the text as given.
func (p *parsed[T]) String() string { return p.text }

// Type makes help show the flag as one of text.
func (p *parsed[T]) Type() string { return "string" }

// readOptions are the flags of the verbs that read exports: how they are read and
// judged, and where the result goes.
type readOptions struct {
	reading   source.Reading
	threshold share
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
		"`PHASE=REGEX`: phase of the kernels whose names match, such as experts=my_gemm; can be repeated")
	f.StringVar(&r.Rules, "phase-rules", "",
		"`FILE` with one PHASE=REGEX a line, after those of --phase; # begins a comment")
	section(c, "What to read")
	o.out.bind(c, tables)
	o.out.bindTop(c)
}

// bindSteps adds the flag of the steps of exports that count.
func bindSteps(c *cobra.Command, into **nsys.Steps) {
	bindParsed(c, into, nsys.ParseSteps, "steps", "", "`A-B`: only these steps of exports count, both ends included")
}

// check finds bad flags before a file is opened, and turns them into options.
// paths are the exports that --rank may name.
func (o *readOptions) check(paths []string) (nsys.Options, error) {
	n, err := o.reading.Options(paths)
	n.Threshold = o.threshold.fraction
	return n, err
}
