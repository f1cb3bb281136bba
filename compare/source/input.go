package source

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
)

// Kind is what an input is.
type Kind int

// The kinds.
const (
	Reports   Kind = iota // benchmark reports, or files that no other kind claims
	Captures              // nsys exports, torch traces or summaries of them
	Campaigns             // folders of campaigns, and JSON results of bench
	Results               // JSON results of other verbs
	Counts                // folders of expert statistics
)

// Input is a file, or a folder of one campaign or of one set of expert statistics.
type Input struct {
	Kind Kind
	Path string
}

// Skipped is told which files of a folder are not read. Nil tells nobody.
type Skipped func(folder string, names []string)

// Classify says what arguments name: "runs" with run-normal/ and run-perfect/ in it → the files in both folders.
// No file is named twice.
func Classify(args []string, skipped Skipped) (inputs []Input, err error) {
	paths, err := Expanded(args)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		found, err := classify(path, skipped, deepest)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return inputs, noneTwice(pathsOf(inputs))
}

// pathsOf are the paths of inputs.
func pathsOf(inputs []Input) (paths []string) {
	for _, in := range inputs {
		paths = append(paths, in.Path)
	}
	return paths
}

// Expanded are the files and folders that arguments name: themselves, what patterns match, or several of these
// with commas between them.
func Expanded(args []string) (paths []string, err error) {
	for _, arg := range args {
		parts := strings.Split(arg, ",")
		if _, err := os.Stat(arg); err == nil { // a file with a comma in its name
			parts = []string{arg}
		}
		for _, part := range parts {
			found, err := matches(part)
			if err != nil {
				return nil, err
			}
			paths = append(paths, found...)
		}
	}
	return paths, nil
}

// matches are the files that a pattern names: the one of that name, or else those that it matches.
func matches(pattern string) ([]string, error) {
	_, missing := os.Stat(pattern)
	switch {
	case missing == nil:
		return []string{pattern}, nil
	case pattern == "":
		return nil, usagef("want the name of a file, have none")
	case strings.HasPrefix(pattern, "http://") || strings.HasPrefix(pattern, "https://"):
		return nil, usagef("%s: URLs are not read: download it, with curl -o FILE %[1]s, and give the file", pattern)
	case pattern == "-":
		return nil, usagef("standard input is not read: write it to a file, and give the file")
	case !strings.ContainsAny(pattern, "*?["):
		return nil, &input.Error{File: pattern, Expected: "a file, a folder or a pattern", Err: errors.Unwrap(missing),
			Try: "check its name and folder"}
	}
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no file matches %q", pattern)
	}
	return found, err
}

// deepest is how deep folders of arms may be nested: links may lead in circles.
const deepest = 3

// classify is what a file is, or what a folder holds: a campaign, captures, expert statistics,
// folders named after the arms, such as normal/normal-node0, or else its files.
func classify(path string, skipped Skipped, depth int) (inputs []Input, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		kind, err := kindOf(path)
		return []Input{{kind, path}}, err
	case bench.IsCampaign(path):
		return []Input{{Campaigns, path}}, nil
	case logits.IsCache(path):
		return nil, usagef("%s is a cache of logits: give the JSON that 'moebalance logits verify --format json -o FILE "+
			"%[1]s' writes", launch.Quote([]string{path}))
	}
	files, folders, err := list(path, skipped)
	captures := len(files) > 0 && trace.Takes(files[0])
	switch {
	case err != nil:
		return nil, err
	case !captures && len(counts.Files(path)) > 0:
		return []Input{{Counts, path}}, nil
	case !captures && depth > 0 && (depth == deepest || len(files) == 0):
		for _, folder := range folders {
			if armOf(filepath.Base(folder)) == "" {
				continue
			}
			held, err := classify(folder, skipped, depth-1)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, held...)
		}
	}
	switch {
	case len(inputs) > 0:
		return inputs, nil
	case len(files) == 0 && len(folders) > 0:
		return nil, fmt.Errorf("folder %s has only folders: give %s", path, launch.Quote(folders[:min(len(folders), 3)]))
	case len(files) == 0:
		return nil, fmt.Errorf("folder %s contains no file: want the files of a run in it", path)
	}
	for _, file := range files {
		kind, err := kindOf(file)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, Input{kind, file})
	}
	return inputs, nil
}

// kindOf is what a file is by how it begins.
func kindOf(path string) (Kind, error) {
	head, err := input.Head(path, 64)
	switch verb := resultHead.FindSubmatch(head); {
	case err != nil:
		return Reports, err
	case trace.Takes(path):
		return Captures, nil
	case verb == nil || string(verb[1]) == "workload":
		return Reports, nil
	case string(verb[1]) == "bench":
		return Campaigns, nil
	}
	return Results, nil
}

// resultHead is how the JSON of a verb begins.
var resultHead = regexp.MustCompile(`^\s*\{\s*"schema_version":\s*\d+,\s*"kind":\s*"([a-z ]+)"`)

// Learned are the records to learn a placement from: the ones named after perfect routing say nothing of
// traffic, and are left out where there are others.
func Learned(paths []string) []string {
	learned := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return armOf(path) == gain.Perfect })
	if len(learned) == 0 {
		return paths
	}
	return learned
}

// armOf is the arm that a file, or else its folder, is named after; "" for none, or both.
func armOf(path string) gain.Arm {
	for _, name := range []string{filepath.Base(path), filepath.Base(filepath.Dir(path))} {
		for i, arm := range gain.Arms {
			if strings.Contains(name, string(arm)) && !strings.Contains(name, string(gain.Arms[1-i])) {
				return arm
			}
		}
	}
	return ""
}

// noneTwice refuses a file that is named twice, by whatever names.
func noneTwice(paths []string) error {
	var seen []os.FileInfo
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue // left to whoever reads it
		}
		if slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			return usagef("%s is named twice", path)
		}
		seen = append(seen, info)
	}
	return nil
}

// RunCaptures are the captures that arguments name, of one run.
func RunCaptures(args []string, skipped Skipped) ([]string, error) {
	inputs, err := Classify(args, skipped)
	arms := map[gain.Arm]bool{}
	for _, in := range inputs {
		err = cmp.Or(err, in.notCompared())
		arms[armOf(in.Path)] = true
	}
	if err == nil && arms[gain.Normal] && arms[gain.Perfect] {
		err = marked{fmt.Errorf("these captures are of both arms by their names, normal and perfect: compare them "+
			"with: moebalance compare %s; for one arm, give its captures alone", launch.Quote(args)), ErrNotComparable}
	}
	return pathsOf(inputs), err
}

// notCompared is an error about an input that is neither a capture nor a report: it names the verb that takes it.
func (in Input) notCompared() error {
	what := map[Kind]string{Results: "is a JSON result, which is judged already: 'moebalance report' shows it",
		Counts: "holds expert counts: 'moebalance counts' reads them, and trace --counts sets them beside a trace",
		Campaigns: "is a campaign, which holds both arms: moebalance compare %[1]s shows its gain; to set it beside " +
			"traces: moebalance compare --campaign %[1]s NORMAL PERFECT"}[in.Kind]
	if what == "" {
		return nil
	}
	return usagef("%s "+what, launch.Quote([]string{in.Path}))
}
