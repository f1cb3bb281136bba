package source

import (
	"bytes"
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

// Classify says what an argument of a verb names: a file, a folder, a pattern, or several of these
// with commas between them. "runs" with run-normal/ and run-perfect/ in it → an
// input for each folder.
func Classify(arg string, skipped Skipped) (inputs []Input, err error) {
	for _, part := range splitList(arg) {
		paths, err := expand(part)
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
	}
	return inputs, nil
}

// classifyAll says what all arguments name, in their order.
func classifyAll(args []string, skipped Skipped) (inputs []Input, err error) {
	for _, arg := range args {
		found, err := Classify(arg, skipped)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	return inputs, nil
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

// splitList splits at commas, unless the whole is the name of a file.
func splitList(arg string) []string {
	if _, err := os.Stat(arg); err == nil {
		return []string{arg}
	}
	return strings.Split(arg, ",")
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
		return nil, usagef("%s is a cache of logits: give the JSON that 'moebalance logits verify --format json -o FILE %[1]s' "+
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
	if len(inputs) == 0 && len(files) == 0 {
		return nil, noFiles(path)
	}
	if len(inputs) == 0 {
		for _, file := range files {
			kind, err := kindOf(file)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, Input{kind, armOf(file), []string{file}})
		}
	}
	return inputs, nil
}

// noFiles is the error about a folder without files. It names folders in it, which may be meant.
func noFiles(path string) error {
	var folders []string
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() && len(folders) < 3 {
			folders = append(folders, filepath.Join(path, e.Name()))
		}
	}
	if len(folders) > 0 {
		return fmt.Errorf("folder %s contains no file, only folders: give %s", path, launch.Quote(folders))
	}
	return fmt.Errorf("folder %s contains no file: want the exports or traces of a run in it", path)
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
			if info, err := os.Stat(folder); armOf(e.Name()) != arm || err != nil || !info.IsDir() {
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

// folderFiles lists the files of a folder, sorted by name: its captures, or all files where there
// are none. Of one recording in two forms (a report and its export, a trace packed and not) or
// under two names, one is listed; exports and reports of nsys take precedence over other captures.
// Hidden files are not listed.
func folderFiles(folder string, skipped Skipped) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files, captures, profiles []string
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := os.Stat(path) // follows links, which cluster jobs like to leave
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		files = append(files, path)
		if !trace.Takes(path) || otherForm(path) || e.Type()&fs.ModeSymlink != 0 && linksWithin(path) {
			continue
		}
		captures = append(captures, path)
		if ext := filepath.Ext(path); ext == ".sqlite" || ext == ".nsys-rep" {
			profiles = append(profiles, path)
		}
	}
	taken := files
	for _, better := range [][]string{captures, profiles} {
		if len(better) > 0 {
			taken = better
		}
	}
	var left []string
	for _, path := range files {
		if !slices.Contains(taken, path) {
			left = append(left, filepath.Base(path))
		}
	}
	if skipped != nil && len(left) > 0 {
		skipped(folder, left)
	}
	return taken, nil
}

// linksWithin reports a link to a file of the same folder.
func linksWithin(path string) bool {
	to, err := os.Readlink(path)
	if err == nil && !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return err == nil && filepath.Dir(filepath.Clean(to)) == filepath.Dir(path)
}

// otherForm reports a capture beside which the same lies in the form that is read
// first: the export of a report, or the trace that is not packed.
func otherForm(path string) bool {
	for from, to := range map[string]string{".nsys-rep": ".sqlite", ".json.gz": ".json"} {
		if stem, ok := strings.CutSuffix(path, from); ok {
			if _, err := os.Stat(stem + to); err == nil {
				return true
			}
		}
	}
	return false
}

// repeated is the first path that is the same file as one before it, by whatever name.
func repeated(paths []string) (path string, ok bool) {
	var seen []os.FileInfo
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue // left to whoever reads it
		}
		if slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
			return path, true
		}
		seen = append(seen, info)
	}
	return "", false
}

// RunCaptures are the captures that arguments name, of one run.
func RunCaptures(args []string, skipped Skipped) (paths []string, err error) {
	inputs, err := classifyAll(args, skipped)
	if err != nil {
		return nil, err
	}
	arms := map[gain.Arm]bool{}
	for _, in := range inputs {
		switch path := in.Paths[0]; {
		case in.Kind == Results:
			return nil, judgedAlready(path)
		case in.Kind == Counts:
			return nil, &input.Error{File: path, Expected: "exports or traces", Found: "expert counts",
				Try: "'moebalance counts' reads them"}
		case in.Kind == Campaigns:
			return nil, usagef("%s is a campaign, which holds both arms: %s", path, campaignAlone(path))
		}
		arms[in.Arm] = true
		paths = append(paths, in.Paths...)
	}
	if arms[gain.Normal] && arms[gain.Perfect] {
		return nil, marked{fmt.Errorf("these captures are of both arms by their names, normal and perfect: compare them with: "+
			"moebalance compare %s; for one arm, give its captures alone", launch.Quote(args)), ErrNotComparable}
	}
	if twice, again := repeated(paths); again {
		return nil, usagef("%s is named twice", twice)
	}
	return paths, nil
}

func judgedAlready(path string) error {
	return usagef("%s is a JSON result, which is judged already: 'moebalance report' shows it; give captures, or "+
		"summaries of them (trace --summary)", path)
}

// campaignAlone says what shows a campaign.
func campaignAlone(path string) string {
	return fmt.Sprintf("moebalance compare %s shows its gain and its tables; to set it beside traces: moebalance compare "+
		"--campaign %[1]s NORMAL PERFECT", launch.Quote([]string{path}))
}
