package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"

	"github.com/moebalance/moebalance/compare/bench"
)

// sideKind is what the files of a side are.
type sideKind int

const (
	ofReports sideKind = iota // of benchmarks
	ofExports                 // nsys exports or summaries of them
	ofResults                 // the JSON of the verb trace
)

// side is the files of one arm.
type side struct {
	paths []string
	kind  sideKind
}

// twoSides gives each of two arguments a side, and sorts more of them by the arm
// that they, or else their folders, are named after.
func twoSides(args []string) (named [2][]string, err error) {
	if len(args) == 2 {
		return [2][]string{splitList(args[0]), splitList(args[1])}, nil
	}
	for _, arg := range args {
		arm, ok := namedArm(filepath.Base(arg))
		if !ok {
			arm, ok = namedArm(filepath.Base(filepath.Dir(arg)))
		}
		if !ok {
			return named, usagef("more than two arguments, and %q does not name its arm: give two sides, with patterns in quotes or with commas between files", arg)
		}
		named[arm] = append(named[arm], arg)
	}
	for i, arm := range gain.Arms {
		if len(named[i]) == 0 {
			return named, usagef("none of the %d arguments is named after the %s arm: give two sides", len(args), arm)
		}
	}
	return named, nil
}

// namedArm is the place in gain.Arms of the only arm that a name holds.
func namedArm(name string) (arm int, ok bool) {
	normal, perfect := strings.Contains(name, string(gain.Normal)), strings.Contains(name, string(gain.Perfect))
	if perfect {
		arm = 1
	}
	return arm, normal != perfect
}

// openSide resolves the parts of a side, each a file, a folder or a pattern.
func openSide(parts []string) (side, error) {
	var s side
	for _, part := range parts {
		paths, err := resolve(part)
		if err != nil {
			return s, err
		}
		s.paths = append(s.paths, paths...)
	}
	for i, path := range s.paths {
		kind, err := sideKindOf(path)
		switch {
		case err != nil:
			return s, err
		case i > 0 && kind != s.kind:
			return s, fmt.Errorf("%s and %s are not of a kind: want traces only, or benchmark reports only", s.paths[0], path)
		}
		s.kind = kind
	}
	if twice, ok := namedTwice(s.paths); ok {
		return s, usagef("%s is named twice", twice)
	}
	if s.kind == ofResults && len(s.paths) > 1 {
		return s, usagef("want one JSON result of trace, have %d: summaries (trace --summary) can be put together, results cannot", len(s.paths))
	}
	return s, nil
}

// onBothSides is the first file of the normal side that is on the other side, too,
// by whatever name.
func onBothSides(sides [2]side) (path string, same bool) {
	for _, a := range sides[0].paths {
		one, err := os.Stat(a)
		if err != nil {
			continue // reading it says what is wrong
		}
		for _, b := range sides[1].paths {
			if other, err := os.Stat(b); err == nil && os.SameFile(one, other) {
				return a, true
			}
		}
	}
	return "", false
}

func sideKindOf(path string) (sideKind, error) {
	head, err := headOf(path)
	switch {
	case err != nil:
		return 0, err
	case nsys.Takes(path):
		return ofExports, nil
	case traceResult.Match(head):
		return ofResults, nil
	}
	return ofReports, nil
}

// traceResult is how the JSON of the verb trace begins.
var traceResult = regexp.MustCompile(`^\s*\{\s*"schema_version":\s*\d+,\s*"kind":\s*"trace"`)

func isTraceResult(path string) bool {
	kind, err := sideKindOf(path)
	return err == nil && kind == ofResults
}

// trace reads the traces of a side, with the expert statistics beside them.
func (s side) trace(ctx context.Context, o nsys.Options, recorded statistics) (*nsys.Trace, error) {
	if s.kind != ofResults {
		return readTrace(ctx, s.paths, o, recorded)
	}
	if recorded.path != "" {
		return nil, usagef("%s is a JSON result of trace, which is judged already: make it with trace --counts %s", s.paths[0], recorded.path)
	}
	b, err := os.ReadFile(s.paths[0])
	if err != nil {
		return nil, err
	}
	var t nsys.Trace
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("reading %s: want the JSON result of trace: %w", s.paths[0], err)
	}
	if t.SchemaVersion != nsys.SchemaVersion {
		return nil, fmt.Errorf("reading %s: want schema_version %d of a trace, have %d", s.paths[0], nsys.SchemaVersion, t.SchemaVersion)
	}
	return &t, nil
}

// splitList splits at commas, unless the whole is the name of a file.
func splitList(arg string) []string {
	if _, err := os.Stat(arg); err == nil {
		return []string{arg}
	}
	return strings.Split(arg, ",")
}

// resolve lists the files that a path, folder or pattern stands for, in the
// order of their names. Of a folder with exports only those count, and of one
// with reports of the profiler only those.
func resolve(path string) ([]string, error) {
	if path == "" {
		return nil, usagef("want the name of a file, have none")
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return []string{path}, nil
	case err == nil:
		return folderFiles(path)
	case !strings.ContainsAny(path, "*?["):
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

// exportPaths resolves the arguments that are a folder or a pattern. Reading the
// others says what is wrong with them.
func exportPaths(args []string) (paths []string, err error) {
	for _, arg := range args {
		found := []string{arg}
		info, missing := os.Stat(arg)
		if missing == nil && info.IsDir() || missing != nil && strings.ContainsAny(arg, "*?[") {
			if found, err = resolve(arg); err != nil {
				return nil, err
			}
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

func folderFiles(folder string) ([]string, error) {
	if bench.IsCampaign(folder) {
		return nil, usagef("%s is a campaign, which holds both arms: 'moebalance bench --resume %s' shows its gain, 'moebalance report %s' draws it", folder, folder, folder)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	byKind := map[string][]string{}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := os.Stat(path) // follows links, which cluster jobs like to leave
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		ext := filepath.Ext(e.Name())
		if ext != ".sqlite" && ext != ".nsys-rep" {
			ext = ""
		}
		byKind[ext] = append(byKind[ext], path)
	}
	for _, ext := range []string{".sqlite", ".nsys-rep", ""} {
		if len(byKind[ext]) > 0 {
			return byKind[ext], nil
		}
	}
	return nil, fmt.Errorf("folder %s holds no file", folder)
}

// headOf is the first bytes of a file, fewer if it is shorter.
func headOf(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: want a file, have something else (%s)", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return head[:n], nil
}
