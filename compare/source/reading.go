package source

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

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
	if o.Rank, err = r.rankOf(paths); err != nil {
		return o, err
	}
	if o.Patterns, err = ranges.NewPatterns(r.Ranges...); err != nil {
		return o, marked{err, ErrUsage}
	}
	o.Phases = r.Phases
	return o, nil
}

// rankFlag is FILE=N or N.
var rankFlag = regexp.MustCompile(`^(?:(.+)=)?(\d{1,9})$`)

// rankOf is the ranks given by hand, by path or base name, "" for every export.
func (r *Reading) rankOf(paths []string) (map[string]int, error) {
	ranks := map[string]int{}
	for _, text := range r.Ranks {
		m := append(rankFlag.FindStringSubmatch(text), "", "", "")
		file := m[1]
		rank, err := strconv.Atoi(m[2])
		switch known := func(path string) bool { return path == file || filepath.Base(path) == file }; {
		case err != nil || rank >= capture.MaxRanks:
			return nil, usagef("--rank: want FILE=N or N with N from 0 to %d, have %q", capture.MaxRanks-1, text)
		case file != "" && !slices.ContainsFunc(paths, known):
			return nil, usagef("--rank: no export %q among those given", file)
		}
		if file == "" && len(paths) > 1 {
			return nil, usagef("--rank: %s is of one export, and %d are given: name each, such as --rank %s=%[1]s", text,
				len(paths), filepath.Base(paths[0]))
		}
		if _, twice := ranks[file]; twice {
			return nil, usagef("--rank: %q follows another rank of the same exports", text)
		}
		ranks[file] = rank
	}
	return ranks, nil
}
