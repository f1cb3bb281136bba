package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/capture"
	"github.com/moebalance/moebalance/compare/nsys/kernel"
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
	section(c, ownSection)
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
	complete(c, "model", modelNames()...)
}

func modelNames() (names []string) {
	for _, m := range router.Models() {
		names = append(names, m.Name)
	}
	return names
}

// bindCounts binds them where recorded counts are judged.
func (m *modelFlags) bindCounts(c *cobra.Command) {
	m.bind(c)
	f := c.Flags().Lookup("model")
	f.Usage = "model of the counts: " + f.Usage
}

func (m *modelFlags) named() bool { return m.model != "" || m.config != "" }

// find is the named model. A config.json, or the folder of a checkpoint as engines take it, may stand in the preset's
// place.
func (m *modelFlags) find() (router.Model, error) {
	switch {
	case m.model != "" && m.config != "":
		return router.Model{}, usagef("want one of --model and --config, have both")
	case m.config != "" || isFile(m.model):
		return readModelConfig(m.config+m.model, m.method) // one of them is empty
	case m.model != "" && isFile(filepath.Join(m.model, "config.json")):
		return readModelConfig(filepath.Join(m.model, "config.json"), m.method)
	}
	found, err := router.FindModel(m.model)
	return found, withCode(exitUsage, err)
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
	ranks     []string
	steps     []string
	layers    []string
	experts   []string
	phases    []string
	rules     string
	chosen    *nsys.Steps
	threshold share
	out       resultFlags
}

func (o *readOptions) bind(c *cobra.Command, tables func() []string) {
	f := c.Flags()
	f.StringArrayVar(&o.ranks, "rank", nil, "`FILE=N`: rank of an export, overriding the recorded one; N alone where there is one export")
	bindSteps(c, &o.chosen)
	f.StringArrayVar(&o.steps, "step-pattern", nil,
		"`REGEX`: regular expression for range names with a group (?P<step>…), tried before the built-in ones")
	f.StringArrayVar(&o.layers, "layer-pattern", nil, "`REGEX`: as --step-pattern, with (?P<layer>…)")
	f.StringArrayVar(&o.experts, "expert-pattern", nil, "`REGEX`: as --step-pattern, with (?P<expert>…)")
	f.StringArrayVar(&o.phases, "phase", nil,
		"`PHASE=REGEX`: phase of the kernels whose names match, such as experts=my_gemm; can be repeated")
	f.StringVar(&o.rules, "phase-rules", "",
		"`FILE` with one PHASE=REGEX a line, after those of --phase; # begins a comment")
	section(c, "Reading of exports")
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
	n := nsys.Options{Threshold: o.threshold.fraction, Steps: o.chosen}
	var err error
	if n.Rank, err = o.rankOf(paths); err != nil {
		return n, err
	}
	if n.Patterns, err = o.patterns(); err != nil {
		return n, err
	}
	n.Phases, err = o.kernelPhases()
	return n, err
}

// maxSettings is the most bytes of a file of settings: a model's, a placement, rules.
const maxSettings = 64 << 20

// kernelPhases are the user's rules for names of kernels.
func (o *readOptions) kernelPhases() (list []kernel.Rule, err error) {
	given := slices.Clone(o.phases)
	if o.rules != "" {
		text, err := input.ReadFile(o.rules, maxSettings)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				given = append(given, line)
			}
		}
	}
	for _, text := range given {
		k, err := kernel.ParseRule(text)
		if err != nil {
			return nil, usagef("--phase or --phase-rules: %v", err)
		}
		list = append(list, k)
	}
	return list, nil
}

// rankOf is the ranks given by hand, by path or base name, "" for every export.
func (o *readOptions) rankOf(paths []string) (map[string]int, error) {
	ranks := map[string]int{}
	for _, r := range o.ranks {
		file, number, named := strings.Cut(r, "=")
		if !named {
			file, number = "", r
		}
		rank, err := strconv.Atoi(number)
		if err != nil || rank < 0 || rank >= capture.MaxRanks {
			return nil, usagef("--rank: want FILE=N or N with N from 0 to %d, have %q", capture.MaxRanks-1, r)
		}
		known := func(path string) bool { return path == file || filepath.Base(path) == file }
		if named && !slices.ContainsFunc(paths, known) {
			return nil, usagef("--rank: no export %q among those given", file)
		}
		if other, given := ranks[file]; given && other != rank {
			return nil, usagef("--rank %s: rank %d is given for the same export: want one", r, other)
		}
		ranks[file] = rank
	}
	return ranks, nil
}

// patterns puts the user's patterns before the built-in ones.
func (o *readOptions) patterns() (*nsys.Patterns, error) {
	var user []string
	for _, p := range []struct {
		flag, group string
		given       []string
	}{{"step-pattern", "step", o.steps}, {"layer-pattern", "layer", o.layers},
		{"expert-pattern", "expert", o.experts}} {
		for _, text := range p.given {
			if !strings.Contains(text, "(?P<"+p.group+">") && !strings.Contains(text, "(?<"+p.group+">") {
				return nil, usagef("--%s: want a group (?P<%s>…) in %q", p.flag, p.group, text)
			}
			user = append(user, text)
		}
	}
	patterns, err := nsys.NewPatterns(user...)
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	return patterns, nil
}
