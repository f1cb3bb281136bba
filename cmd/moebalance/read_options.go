package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/capture"
)

// readOptions are the flags of the verbs that read exports: how they are read and
// judged, and where the result goes.
type readOptions struct {
	ranks     []string
	steps     []string
	layers    []string
	experts   []string
	phases    []string
	rules     string
	threshold share
	out       resultFlags
}

func (o *readOptions) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&o.ranks, "rank", nil, "`FILE=N` or N: rank of an export, overriding the recorded one")
	f.StringArrayVar(&o.steps, "step-pattern", nil, "regular expression for range names with a group (?P<step>…), tried before the built-in ones")
	f.StringArrayVar(&o.layers, "layer-pattern", nil, "as --step-pattern, with (?P<layer>…)")
	f.StringArrayVar(&o.experts, "expert-pattern", nil, "as --step-pattern, with (?P<expert>…)")
	f.StringArrayVar(&o.phases, "phase", nil, "`PHASE=REGEX`: phase of the kernels whose names match, before all other evidence, such as experts=my_grouped_gemm; can be repeated")
	f.StringVar(&o.rules, "phase-rules", "", "`FILE` with one PHASE=REGEX a line, after those of --phase; # begins a comment")
	o.out.bind(c)
}

// check finds bad flags before a file is opened, and turns them into options.
// paths are the exports that --rank may name.
func (o *readOptions) check(paths []string) (nsys.Options, error) {
	n := nsys.Options{Threshold: o.threshold.fraction}
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

// kernelPhases are the user's rules for names of kernels.
func (o *readOptions) kernelPhases() (list []nsys.KernelPhase, err error) {
	given := slices.Clone(o.phases)
	if o.rules != "" {
		text, err := os.ReadFile(o.rules)
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
		k, err := nsys.ParseKernelPhase(text)
		if err != nil {
			return nil, usagef("--phase: %v", err)
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
	}{{"step-pattern", "step", o.steps}, {"layer-pattern", "layer", o.layers}, {"expert-pattern", "expert", o.experts}} {
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
