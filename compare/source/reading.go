package source

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
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
	Ranks  []string `flag:"rank"`
	Ranges []string `flag:"range"`
	Phases []string `flag:"phase"`
}

// Options are the flags as a trace takes them. paths are the exports that Ranks may name.
func (r *Reading) Options(paths []string) (o trace.Options, err error) {
	if o.Rank, err = r.rankOf(paths); err != nil {
		return o, err
	}
	if o.Patterns, err = ranges.NewPatterns(r.Ranges...); err != nil {
		return o, marked{err, ErrUsage}
	}
	for _, text := range r.Phases {
		rule, err := kernel.ParseRule(text)
		if err != nil {
			return o, usagef("--phase: %v", err)
		}
		o.Phases = append(o.Phases, rule)
	}
	return o, nil
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

// FindModel is the named model: a preset, what a config.json or the folder of a checkpoint says, as
// engines take it, or one that is named by its shape. A method given stands in the place of the
// config's. "e256k8g8-4" → 256 experts, top-8, 4 of 8 groups.
func FindModel(name string, method router.Method) (router.Model, error) {
	if isFile(name) || strings.HasSuffix(name, ".json") || name != "" && isFile(filepath.Join(name, configName)) {
		return readModel(name, method)
	}
	if shape := shapeName.FindStringSubmatch(name); shape != nil {
		return ofShape(shape)
	}
	found, err := router.FindModel(name)
	return found, asUsage(err)
}

// shapeName is the name of a model that is known by its shape alone.
var shapeName = regexp.MustCompile(`^e(\d{1,6})k(\d{1,6})(?:g(\d{1,6})-(\d{1,6}))?$`)

func ofShape(parts []string) (router.Model, error) {
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(parts[i+1]) // "" is none
	}
	m := router.Model{Name: parts[0], Scale: 1, LogitsDType: "bf16", Method: router.Renormalize,
		Shape: router.Shape{Experts: n[0], TopK: n[1], Groups: n[2], TopKGroups: n[3]}}
	if m.Grouped() {
		m.Method, m.LogitsDType = router.DeepSeekV3, "f32"
	}
	return m, asUsage(m.Shape.Validate())
}

const configName = "config.json" // in the folder of a checkpoint

// readModel reads a model from its config.json, or the folder that holds it, and names the
// file as its source.
func readModel(path string, method router.Method) (router.Model, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, configName)
	}
	text, err := input.ReadFile(path, maxSettings)
	if err != nil {
		return router.Model{}, err
	}
	m, err := router.ParseConfig(text, method)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return router.Model{}, &input.Error{File: path, Expected: "a Hugging Face config.json", Err: syntax,
			Try: "copy it from the checkpoint again"}
	} else if err != nil {
		return router.Model{}, &input.Error{File: path, Err: err}
	}
	m.Source = path
	return m, nil
}

// ReadLayout places experts as the JSON list of the experts of each rank in a file says.
func ReadLayout(path string, experts int) (router.Layout, error) {
	text, err := input.ReadFile(path, maxSettings)
	if err != nil {
		return router.Layout{}, err
	}
	var held [][]int32
	if err := json.Unmarshal(text, &held); err != nil {
		return router.Layout{}, &input.Error{File: path, Expected: "a JSON list of the experts of each rank",
			Err: err, Try: "write one such as [[0,1],[2,3]]"}
	}
	return router.Placed(experts, held)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
