package source

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
)

// Reading is how exports are to be read, as flags give it.
type Reading struct {
	Ranks  []string      `flag:"rank"`
	Ranges []string      `flag:"range"`
	Phases []kernel.Rule `flag:"phase"`
}

// Options are the flags as a trace takes them. paths are the exports that Ranks may name.
func (r *Reading) Options(paths []string) (o trace.Options, err error) {
	o.Phases = r.Phases
	if o.Patterns, err = ranges.NewPatterns(r.Ranges...); err != nil {
		return o, marked{err, ErrUsage}
	}
	o.Rank, err = r.rankOf(paths)
	return o, err
}

// rankOf is the ranks given by hand, FILE=N or N, by path or base name, "" for the only export.
func (r *Reading) rankOf(paths []string) (map[string]int, error) {
	ranks := map[string]int{}
	for _, text := range r.Ranks {
		at := max(0, strings.LastIndex(text, "="))
		file := text[:at]
		rank, err := strconv.Atoi(strings.TrimPrefix(text[at:], "="))
		_, twice := ranks[file]
		named := func(path string) bool { return path == file || filepath.Base(path) == file }
		switch {
		case err != nil || rank < 0 || rank >= capture.MaxRanks || twice:
			return nil, usagef("--rank: want FILE=N with N from 0 to %d, once for each export, have %q",
				capture.MaxRanks-1, text)
		case !slices.ContainsFunc(paths, named) && (file != "" || len(paths) > 1):
			return nil, usagef("--rank %s: want an export among the %d given, such as --rank %s=0", text, len(paths),
				filepath.Base(append(paths, "FILE")[0]))
		}
		ranks[file] = rank
	}
	return ranks, nil
}
