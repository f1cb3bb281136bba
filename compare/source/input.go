package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
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

// Input is files of one kind that stand together: one file, or what a folder holds.
type Input struct {
	Kind  Kind
	Arm   gain.Arm // that the files or their folder are named after; "" for none, or both
	Paths []string
}

// Skipped is told which files of a folder are not read. Nil tells nobody.
type Skipped func(folder string, names []string)

// Classify says what arguments name: "runs" with run-normal/ and run-perfect/ in it → an input for each folder.
func Classify(args []string, skipped Skipped) (inputs []Input, err error) {
	paths, err := Expanded(args)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		found, err := classify(path, skipped)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return inputs, nil
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
			found, err := expand(part)
			if err != nil {
				return nil, err
			}
			paths = append(paths, found...)
		}
	}
	return paths, nil
}

// expand is the path, or what a pattern matches.
func expand(path string) ([]string, error) {
	_, err := os.Stat(path)
	switch {
	case path == "":
		return nil, usagef("want the name of a file, have none")
	case strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://"):
		return nil, usagef("%s: URLs are not read: download it, with curl -o FILE %[1]s, and give the file", path)
	case path == "-":
		return nil, usagef("standard input is not read: write it to a file, and give the file")
	case err == nil:
		return []string{path}, nil
	case strings.ContainsAny(path, "*?["):
	case errors.Is(err, fs.ErrNotExist):
		return nil, &input.Error{File: path, Expected: "a file, a folder or a pattern", Found: "no such file",
			Err: fs.ErrNotExist}
	default:
		return nil, fmt.Errorf("want a file, a folder or a pattern: %w", err)
	}
	found, err := filepath.Glob(path)
	if err != nil {
		return nil, usagef("pattern %q: %w", path, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no file matches %q", path)
	}
	return found, nil
}

// classify is what a file is, or what a folder holds: a campaign, captures, expert statistics,
// folders named after the arms, or else its files.
func classify(path string, skipped Skipped) ([]Input, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		kind, err := kindOf(path)
		return []Input{{kind, armOf(path), []string{path}}}, err
	case bench.IsCampaign(path):
		return []Input{{Campaigns, "", []string{path}}}, nil
	case logits.IsCache(path):
		folder := launch.Quote([]string{path})
		return nil, usagef("%s is a cache of logits: give the JSON that 'moebalance logits verify --format json -o FILE "+
			"%[1]s' "+
			"writes", folder)
	}
	files, err := folderFiles(path, skipped)
	if err != nil {
		return nil, err
	}
	switch {
	case len(files) > 0 && trace.Takes(files[0]):
		return byArm(Captures, files), nil
	case len(counts.Files(path)) > 0:
		return []Input{{Counts, armOf(path), []string{path}}}, nil
	}
	inputs, err := armFolders(path, skipped)
	if err != nil {
		return nil, err
	}
	switch {
	case len(inputs) > 0:
		return inputs, nil
	case len(files) == 0 || onlyFolders(path) != nil:
		return nil, cmp.Or(onlyFolders(path),
			fmt.Errorf("folder %s contains no file: want the exports or traces of a run in it", path))
	}
	for _, file := range files {
		kind, err := kindOf(file)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, Input{kind, armOf(file), []string{file}})
	}
	return inputs, nil
}

// onlyFolders refuses a folder that has only folders, perhaps beside a README.md, and names them; nil for any other.
func onlyFolders(path string) error {
	held, _ := filepath.Glob(filepath.Join(path, "*"))
	held = slices.DeleteFunc(held, func(path string) bool { return filepath.Ext(path) == ".md" })
	if len(held) == 0 || !slices.ContainsFunc(held, isFolder) || slices.ContainsFunc(held, isFile) {
		return nil
	}
	return fmt.Errorf("folder %s has only folders: give %s", path, launch.Quote(held[:min(len(held), 3)]))
}

// holds reports a folder that is another one or holds it, as links can: following it would not end.
func holds(folder, other string) bool {
	folder, err := filepath.EvalSymlinks(folder)
	other, otherErr := filepath.EvalSymlinks(other)
	return err == nil && otherErr == nil && strings.HasPrefix(other+"/", folder+"/")
}

// armFolders is what the folders in a folder hold that are named after one arm: run/1-normal, run/1-perfect.
func armFolders(path string, skipped Skipped) (inputs []Input, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, arm := range gain.Arms {
		for _, e := range entries {
			folder := filepath.Join(path, e.Name())
			if info, err := os.Stat(folder); armOf(e.Name()) != arm || err != nil || !info.IsDir() || holds(folder, path) {
				continue
			}
			held, err := classify(folder, skipped)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, held...)
		}
	}
	return inputs, nil
}

// byArm are files of one kind, those named after one arm apart.
func byArm(kind Kind, paths []string) (inputs []Input) {
	for _, arm := range append([]gain.Arm{""}, gain.Arms[:]...) {
		if of := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return armOf(p) != arm }); len(of) > 0 {
			inputs = append(inputs, Input{kind, arm, of})
		}
	}
	return inputs
}

// Learned are the records to learn a placement from: without those named after perfect routing where
// others are named normal, as it says nothing of traffic.
func Learned(paths []string) []string {
	is := func(arm gain.Arm) func(string) bool { return func(path string) bool { return armOf(path) == arm } }
	if slices.ContainsFunc(paths, is(gain.Normal)) {
		return slices.DeleteFunc(slices.Clone(paths), is(gain.Perfect))
	}
	return paths
}

// armOf is the arm that a file, or else its folder, is named after; "" for none, or both.
func armOf(path string) gain.Arm {
	for _, name := range []string{filepath.Base(path), filepath.Base(filepath.Dir(path))} {
		normal, perfect := strings.Contains(name, string(gain.Normal)), strings.Contains(name, string(gain.Perfect))
		switch {
		case normal && !perfect:
			return gain.Normal
		case perfect && !normal:
			return gain.Perfect
		}
	}
	return ""
}

// resultHead is how the JSON of a verb begins.
var resultHead = regexp.MustCompile(`^\s*\{\s*"schema_version":\s*\d+,\s*"kind":\s*"([a-z ]+)"`)

// kindOf is the kind of a file.
func kindOf(path string) (Kind, error) {
	head, err := headOf(path)
	if err != nil {
		return Reports, err
	}
	verb := resultHead.FindSubmatch(head)
	switch {
	case trace.Takes(path):
		return Captures, nil
	case verb == nil || string(verb[1]) == "workload":
		return Reports, nil
	case string(verb[1]) == "bench":
		return Campaigns, nil
	}
	return Results, nil
}

// errPointer is wrapped by the error about a pointer to a file that git has not fetched.
var errPointer = errors.New("pointer")

// headOf is the first bytes of a regular file, at most 64.
func headOf(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, &input.Error{File: path, Expected: "a regular file", Found: "a device or a pipe"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64))
	switch {
	case err != nil:
		return nil, &input.Error{File: path, Err: err}
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return nil, marked{&input.Error{File: path, Expected: "the file itself", Found: "a Git LFS pointer to it",
			Try: "run 'git lfs pull'"}, errPointer}
	}
	return head, nil
}

// once refuses a file that is named twice, by whatever names.
func once(paths []string) error {
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
func RunCaptures(args []string, skipped Skipped) (paths []string, err error) {
	inputs, err := Classify(args, skipped)
	if err != nil {
		return nil, err
	}
	arms := map[gain.Arm]bool{}
	for _, in := range inputs {
		if err := in.judged(); err != nil {
			return nil, err
		}
		arms[in.Arm] = true
		paths = append(paths, in.Paths...)
	}
	if arms[gain.Normal] && arms[gain.Perfect] {
		return nil, marked{fmt.Errorf("these captures are of both arms by their names, normal and perfect: compare them "+
			"with: "+
			"moebalance compare %s; for one arm, give its captures alone", launch.Quote(args)), ErrNotComparable}
	}
	return paths, once(paths)
}

// judged says of what is neither a capture nor a report which verb takes it; nil for these two.
func (in Input) judged() error {
	switch path := in.Paths[0]; in.Kind {
	case Results:
		return usagef("%s is a JSON result, which is judged already: 'moebalance report' shows it; give captures, or "+
			"summaries of them (trace --summary)", path)
	case Counts:
		return usagef("%s holds expert counts: 'moebalance counts' reads them, 'moebalance place' learns a placement from "+
			"them, and trace --counts sets them beside a trace", path)
	case Campaigns:
		return usagef("%s is a campaign, which holds both arms: moebalance compare %s shows its gain and its tables; to set "+
			"it beside traces: moebalance compare --campaign %[2]s NORMAL PERFECT", path, launch.Quote([]string{path}))
	}
	return nil
}
