package source

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// maxSettings is the most bytes of a file of settings: a model's, a placement, rules.
const maxSettings = 64 << 20

// Reading is how exports are to be read, as flags give it.
type Reading struct {
	Ranks                                       []string // FILE=N, or N for every export
	StepPatterns, LayerPatterns, ExpertPatterns []string
	Phases                                      []string // PHASE=REGEX
	Rules                                       string   // a file with such lines
	Steps                                       *trace.Steps
}

// Options are those of the flags. paths are the exports that Ranks may name.
func (r *Reading) Options(paths []string) (o trace.Options, err error) {
	o.Steps = r.Steps
	if o.Rank, err = r.rankOf(paths); err != nil {
		return o, err
	}
	if o.Patterns, err = r.patterns(); err != nil {
		return o, err
	}
	o.Phases, err = r.kernelPhases()
	return o, err
}

// kernelPhases are the user's rules for names of kernels.
func (r *Reading) kernelPhases() (list []kernel.Rule, err error) {
	given := slices.Clone(r.Phases)
	if r.Rules != "" {
		text, err := input.ReadFile(r.Rules, maxSettings)
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
func (r *Reading) rankOf(paths []string) (map[string]int, error) {
	ranks := map[string]int{}
	for _, text := range r.Ranks {
		file, number, named := strings.Cut(text, "=")
		if !named {
			file, number = "", text
		}
		rank, err := strconv.Atoi(number)
		known := func(path string) bool { return path == file || filepath.Base(path) == file }
		switch other, given := ranks[file]; {
		case err != nil || rank < 0 || rank >= capture.MaxRanks:
			return nil, usagef("--rank: want FILE=N or N with N from 0 to %d, have %q", capture.MaxRanks-1, text)
		case named && !slices.ContainsFunc(paths, known):
			return nil, usagef("--rank: no export %q among those given", file)
		case given && other != rank:
			return nil, usagef("--rank %s: rank %d is given for the same export: want one", text, other)
		}
		ranks[file] = rank
	}
	return ranks, nil
}

// patterns puts the user's patterns before the built-in ones.
func (r *Reading) patterns() (*trace.Patterns, error) {
	var user []string
	for i, given := range [][]string{r.StepPatterns, r.LayerPatterns, r.ExpertPatterns} {
		group := []string{"step", "layer", "expert"}[i]
		for _, text := range given {
			if !strings.Contains(text, "(?P<"+group+">") && !strings.Contains(text, "(?<"+group+">") {
				return nil, usagef("--%s-pattern: want a group (?P<%[1]s>…) in %q", group, text)
			}
			user = append(user, text)
		}
	}
	patterns, err := ranges.NewPatterns(user...)
	if err != nil {
		return nil, marked{err, ErrUsage}
	}
	return patterns, nil
}

// FindModel is the named model: a preset, or what a config.json or the folder of a checkpoint
// says, as engines take it. A method given stands in the place of the config's.
func FindModel(name, config string, method router.Method) (router.Model, error) {
	switch {
	case name != "" && config != "":
		return router.Model{}, usagef("want one of --model and --config, have both")
	case config != "" || isFile(name) || name != "" && isFile(filepath.Join(name, configName)):
		return ReadModel(config+name, method) // one of them is empty
	}
	found, err := router.FindModel(name)
	if err != nil {
		err = marked{err, ErrUsage}
	}
	return found, err
}

const configName = "config.json" // in the folder of a checkpoint

// ReadModel reads a model from its config.json, or the folder that holds it, and names the
// file as its source.
func ReadModel(path string, method router.Method) (router.Model, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, configName)
	}
	text, err := input.ReadFile(path, maxSettings)
	if err != nil {
		return router.Model{}, err
	}
	m, err := router.ParseConfig(text, method)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return router.Model{}, &input.Error{File: path, Expected: "a Hugging Face config.json", Found: notJSON(syntax)}
	} else if err != nil {
		return router.Model{}, &input.Error{File: path, Err: err}
	}
	m.Source = path
	return m, nil
}

// readLayout places experts as the JSON list of the experts of each rank in a file says.
func readLayout(path string, experts int) (router.Layout, error) {
	text, err := input.ReadFile(path, maxSettings)
	if err != nil {
		return router.Layout{}, err
	}
	var held [][]int32
	if err := json.Unmarshal(text, &held); err != nil {
		return router.Layout{}, &input.Error{File: path, Expected: "a JSON list of the experts of each rank",
			Found: notJSON(err)}
	}
	return router.Placed(experts, held)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
