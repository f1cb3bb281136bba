package source

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

// Kind is what an input is, in words.
type Kind string

// The kinds.
const (
	Files      Kind = "" // without a mark: benchmark reports, expert counts, placements or anything
	Captures   Kind = "a trace"
	Campaigns  Kind = "a campaign" // a folder, or the JSON result of bench
	Results    Kind = "a JSON result"
	Counts     Kind = "a record of expert counts"
	Placements Kind = "a placement of experts"
	Reports    Kind = "a benchmark report"
	Caches     Kind = "a cache of logits"
)

// reads are the verbs, with what stands before the path, that read each kind.
var reads = map[Kind]string{Captures: "trace", Campaigns: "compare", Results: "report", Counts: "counts",
	Placements: "counts COUNTS --placement", Reports: "compare NORMAL", Caches: "logits verify"}

// Input is a file, or a folder of one campaign, of one set of expert statistics or of logits.
type Input struct {
	Kind Kind
	Path string
}

// Classify says what arguments name: "runs" with run-normal/ and run-perfect/ in it → the files in both folders.
// No file is named twice. skipped is told which files of a folder are not read; nil tells nobody.
func Classify(args []string, skipped func(paths []string)) (inputs []Input, err error) {
	paths, err := expanded(args)
	if err == nil {
		inputs, err = classifyAll(paths, skipped, deepest)
	}
	if err != nil {
		return nil, err
	}
	ranks := slices.DeleteFunc(slices.Clone(inputs), Input.frontEnd)
	if front := slices.DeleteFunc(inputs, func(in Input) bool { return !in.frontEnd() }); len(ranks) > 0 {
		if inputs = ranks; len(front) > 0 && skipped != nil {
			skipped(pathsOf(front))
		}
	}
	return inputs, noneTwice(pathsOf(inputs))
}

// frontEnd reports a trace of vLLM's server, without a kernel, which lies beside the ranks' in its profiler's folder:
// HOST_646.async_llm.1795941382107633907.pt.trace.json.gz.
func (in Input) frontEnd() bool {
	return in.Kind == Captures && strings.Contains(filepath.Base(in.Path), ".async_llm.")
}

// pathsOf are the paths of inputs.
func pathsOf(inputs []Input) (paths []string) {
	for _, in := range inputs {
		paths = append(paths, in.Path)
	}
	return paths
}

// expanded are the files and folders that arguments name: themselves, what patterns match, or several of these
// with commas between them.
func expanded(args []string) (paths []string, err error) {
	for _, arg := range args {
		found := []string{arg}
		switch _, missing := os.Stat(arg); {
		case missing == nil:
		case strings.Contains(arg, ","):
			found, err = expanded(strings.Split(arg, ","))
		case arg == "" || arg == "-":
			err = usagef("want the name of a file, have %q: standard input is not read", arg)
		case strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://"):
			err = usagef("%s: URLs are not read: download it, with curl -o FILE %[1]s, and give the file", arg)
		case !strings.ContainsAny(arg, "*?["):
			fault := &input.Error{File: arg, Expected: "a file, a folder or a pattern", Err: errors.Unwrap(missing),
				Try: "check its name and folder"}
			if err = fault; errors.Is(missing, fs.ErrNotExist) {
				fault.Found = "no such file"
			}
		default:
			if found, err = filepath.Glob(arg); err == nil && len(found) == 0 {
				err = fmt.Errorf("no file matches %q", arg)
			}
		}
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// kindOf is what a file is by how it begins.
func kindOf(path string) (Kind, error) {
	head, err := input.Head(path, 64)
	switch verb := resultHead.FindSubmatch(head); {
	case err != nil || verb == nil && !trace.Takes(path) || verb != nil && slices.Contains(unread, string(verb[1])):
		return Files, err
	case verb == nil:
		return Captures, nil
	case string(verb[1]) == "bench":
		return Campaigns, nil
	}
	return Results, nil
}

// resultHead is how the JSON of a verb begins.
var resultHead = regexp.MustCompile(`^\s*\{\s*"schema_version":\s*\d+,\s*"kind":\s*"([a-z ]+)"`)

// unread are kinds of JSON of ours that no verb reads as a result: the hook's proof stands beside its counts.
var unread = []string{"workload", "moebalance hook"}

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
		info, _ := os.Stat(path) // what is not there is left to whoever reads it
		if slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			return usagef("%s is named twice", path)
		}
		seen = append(seen, info)
	}
	return nil
}

// taken refuses the first input of a kind that a verb does not take, and names the verb that does: "r.json is a JSON
// result, not a trace: read it with: moebalance report r.json".
func taken(inputs []Input, kinds ...Kind) error {
	for _, in := range inputs {
		if verb := reads[in.Kind]; verb != "" && !slices.Contains(kinds, in.Kind) {
			return usagef("%s is %s, not %s: read it with: moebalance %s %[1]s", launch.Quote([]string{in.Path}), in.Kind,
				kinds[0], verb)
		}
	}
	return nil
}

// Meant is the error, if any, about what a verb could not read as one of the kinds that it takes: it names the verb
// that can. Of a folder, files without a mark are not looked into.
func Meant(path string, err error, kinds ...Kind) error {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return err
	}
	inputs, _ := classify(path, nil, 0)
	if len(inputs) == 1 && inputs[0] == (Input{Files, path}) {
		inputs[0].Kind = inside(path)
	}
	return cmp.Or(taken(inputs, kinds...), err)
}

// inside is what a file without a mark holds. It reads the whole file, after a verb has failed on it.
func inside(path string) Kind {
	if _, err := counts.Read(path); err == nil {
		return Counts
	} else if _, err := counts.ReadPlacement(path, 1); err == nil {
		return Placements
	} else if _, err := readRuns(path, nil); !errors.As(err, new(*input.Error)) { // also points of a curve
		return Reports
	}
	return Files
}

// RunCaptures are the captures that arguments name, of one run.
func RunCaptures(args []string, skipped func(paths []string)) ([]string, error) {
	inputs, err := Classify(args, skipped)
	paths := pathsOf(inputs)
	of := func(arm gain.Arm) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return armOf(path) == arm })
	}
	if err = cmp.Or(err, taken(inputs, Captures)); err == nil && of(gain.Normal) && of(gain.Perfect) {
		err = marked{fmt.Errorf("these captures are of both arms by their names, normal and perfect: compare them "+
			"with: moebalance compare %s; for one arm, give its captures alone", launch.Quote(args)), ErrNotComparable}
	}
	return paths, err
}

// deepest is how deep folders of arms may be nested: links may lead in circles.
const deepest = 3

// classify is what a file is, or what a folder holds: a campaign, captures, expert statistics,
// folders named after the arms, such as normal/normal-node0, or else its files.
func classify(path string, skipped func(paths []string), depth int) ([]Input, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil || !info.IsDir():
		kind, err := kindOf(path)
		return []Input{{kind, path}}, err
	case bench.IsCampaign(path):
		return []Input{{Campaigns, path}}, nil
	case filepath.Base(path) == "launches" && bench.IsCampaign(filepath.Join(path, "..")):
		return []Input{{Campaigns, filepath.Join(path, "..")}}, nil
	case logits.IsCache(path):
		return []Input{{Caches, path}}, nil
	}
	captures, files, folders, err := list(path)
	unnamed := func(folder string) bool { return armOf(filepath.Base(folder)) == "" }
	arms := slices.DeleteFunc(slices.Clone(folders), unnamed)
	switch {
	case err != nil:
		return nil, err
	case len(captures) > 0:
		if len(files) > 0 && skipped != nil {
			skipped(files)
		}
		files = captures
	case slices.ContainsFunc(files, counts.InFolder):
		return []Input{{Counts, path}}, nil
	case len(arms) > 0 && depth > 0 && (depth == deepest || len(files) == 0):
		files = arms
	case len(files) == 0:
		return nil, &input.Error{File: path, Expected: "files of a run in this folder",
			Found: cmp.Or(launch.Quote(folders[:min(len(folders), 3)]), "none")}
	}
	return classifyAll(files, skipped, depth-1)
}

// classifyAll is what several files and folders are or hold.
func classifyAll(paths []string, skipped func(paths []string), depth int) (inputs []Input, err error) {
	for _, path := range paths {
		found, err := classify(path, skipped, depth)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return inputs, nil
}

// list lists the captures, other files and folders in a folder, sorted by name. Of a report and its export, the
// export is a capture. Hidden files and what says "read me" (*.md) are not listed.
func list(folder string) (captures, files, folders []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		path, ext := filepath.Join(folder, e.Name()), filepath.Ext(e.Name())
		info, err := os.Stat(path) // follows links, which cluster jobs like to leave
		_, unexported := os.Stat(strings.TrimSuffix(path, ext) + ".sqlite")
		switch {
		case err != nil || strings.HasPrefix(e.Name(), ".") || ext == ".md":
		case info.IsDir():
			folders = append(folders, path)
		case !info.Mode().IsRegular():
		case trace.Takes(path) && (ext != ".nsys-rep" || unexported != nil):
			captures = append(captures, path)
		default:
			files = append(files, path)
		}
	}
	return captures, files, folders, err
}
