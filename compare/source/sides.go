package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router/quantity"
)

// Kind is what the files of a side are.
type Kind int

// The kinds.
const (
	BenchmarkReports Kind = iota // benchmark reports
	Captures                     // nsys exports, torch traces or summaries of them
	TraceResults                 // JSON results of the verb trace
)

// Side is the files of one arm, all of one kind.
type Side struct {
	Paths []string
	Kind  Kind
	// Arm is the arm whose steps count, of captures that hold both: ranges name those of
	// each step, or else Unsorted says why the files are no sides.
	Arm      string
	Unsorted error
}

// Sides resolves the arguments of a comparison into the sides of gain.Arms. Two
// arguments are a side each; more, or the contents of a single folder, are sorted by the
// arm that they, or else their folders, are named after. Captures that are not named so,
// and a single one, may hold both arms (see Side.Arm).
func Sides(args []string, skipped Skipped) (sides [2]Side, err error) {
	named := [2][]string{splitList(args[0]), splitList(args[len(args)-1])}
	if len(args) == 1 {
		given := args[0]
		if args, err = folderOfBoth(given, skipped); err != nil {
			if paths, ok := captures(given); ok {
				return bothOf(paths, err), nil
			}
		}
		named = [2][]string{}
	}
	if err == nil && (len(args) != 2 || named[0] == nil) {
		if named, err = namedSides(args); err != nil && mayHoldBoth(args) {
			return bothOf(args, err), nil
		}
	}
	if err != nil {
		return sides, err
	}
	for i, parts := range named {
		if sides[i], err = openSide(parts, skipped); err != nil {
			return sides, fmt.Errorf("%s side: %w", gain.Arms[i], err)
		}
	}
	if (sides[0].Kind == BenchmarkReports) != (sides[1].Kind == BenchmarkReports) {
		return sides, usagef("one side is traces and the other benchmark reports: want two sides of one kind")
	}
	if sides[0].Kind == BenchmarkReports {
		if path, same := repeated(slices.Concat(sides[1].Paths, sides[0].Paths)); same {
			return sides, marked{fmt.Errorf("%s is on both sides: want launches of the two arms", path),
				ErrNotComparable}
		}
	}
	return sides, nil
}

// bothOf are the sides of captures that hold both arms, if ranges name those of steps; err
// says what is wrong if they do not.
func bothOf(paths []string, err error) (sides [2]Side) {
	for i, arm := range gain.Arms {
		sides[i] = Side{Paths: paths, Kind: Captures, Arm: string(arm), Unsorted: err}
	}
	return sides
}

// captures resolves the captures of a list or a pattern; not ok where it names anything else.
func captures(list string) (paths []string, ok bool) {
	for _, part := range splitList(list) {
		info, err := os.Stat(part)
		if err == nil && info.IsDir() {
			return nil, false
		}
		found, err := expand(part, nil)
		if err != nil {
			return nil, false
		}
		paths = append(paths, found...)
	}
	return paths, mayHoldBoth(paths)
}

// mayHoldBoth reports captures that are not named after one arm.
func mayHoldBoth(paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		_, ofOne := namedArm(filepath.Base(path))
		return ofOne || !trace.Takes(path)
	})
}

// folderOfBoth lists the files of a folder that holds both arms, or else its folders that
// are named after an arm.
func folderOfBoth(folder string, skipped Skipped) (parts []string, err error) {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		if _, err := kindOf(folder); err != nil {
			return nil, err
		}
		return nil, usagef("compare: want the normal side and the perfect side, or a folder that holds both, have only %s; "+
			"'moebalance trace' reads one arm alone", folder)
	}
	files, noFiles := folderFiles(folder, skipped)
	if noFiles == nil && trace.Takes(files[0]) {
		return files, nil
	}
	for _, arm := range gain.Arms {
		found, _ := filepath.Glob(filepath.Join(folder, "*"+string(arm)+"*"))
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				parts = append(parts, path)
			}
		}
	}
	if len(parts) > 0 {
		return parts, nil
	}
	return files, noFiles
}

func namedSides(args []string) (named [2][]string, err error) {
	for _, arg := range args {
		arm, ok := armOf(arg)
		if !ok {
			if recorded, err := trace.ReadArm(context.Background(), arg, trace.Options{}); err == nil {
				arm = slices.Index(gain.Arms[:], gain.Arm(recorded))
				ok = arm >= 0
			}
		}
		if !ok {
			return named, usagef(
				"sides by name: the name of %q contains neither normal nor perfect, and it records no arm: give two sides, with "+
					"patterns in quotes or commas between files", arg)
		}
		named[arm] = append(named[arm], arg)
	}
	for i, arm := range gain.Arms {
		if len(named[i]) == 0 {
			return named, usagef(
				"none of %s has %s in its name: give two sides; 'moebalance trace' reads one arm alone",
				quantity.Count(len(args), "file"), arm)
		}
	}
	return named, nil
}

// armOf is the index in gain.Arms of the arm that a file, or else its folder, is named after.
func armOf(path string) (arm int, ok bool) {
	if arm, ok = namedArm(filepath.Base(path)); !ok {
		arm, ok = namedArm(filepath.Base(filepath.Dir(path)))
	}
	return arm, ok
}

// namedArm is the index in gain.Arms of the only arm that a name contains.
func namedArm(name string) (arm int, ok bool) {
	normal, perfect := strings.Contains(name, string(gain.Normal)), strings.Contains(name, string(gain.Perfect))
	if perfect {
		arm = 1
	}
	return arm, normal != perfect
}

// openSide resolves the parts of a side, each a file, a folder or a pattern.
func openSide(parts []string, skipped Skipped) (side Side, err error) {
	for _, part := range parts {
		paths, err := expand(part, skipped)
		if err != nil {
			return side, err
		}
		side.Paths = append(side.Paths, paths...)
	}
	for i, path := range side.Paths {
		kind, err := kindOf(path)
		switch {
		case err != nil:
			return side, err
		case i > 0 && kind != side.Kind:
			return side, fmt.Errorf("%s and %s are of different kinds: want traces only, or benchmark reports only",
				side.Paths[0], path)
		}
		side.Kind = kind
	}
	if twice, ok := repeated(side.Paths); ok {
		return side, usagef("%s is named twice", twice)
	}
	if side.Kind == TraceResults && len(side.Paths) > 1 {
		return side, usagef("want one JSON result of trace, have %d: summaries (trace --summary) can be merged, "+
			"results cannot", len(side.Paths))
	}
	return side, nil
}

func kindOf(path string) (Kind, error) {
	head, err := headOf(path)
	switch {
	case err != nil:
		return 0, err
	case trace.Takes(path):
		return Captures, nil
	}
	switch verbOf(head) {
	case "":
		return BenchmarkReports, nil
	case "bench":
		return 0, usagef("%s is a result of bench, which holds both arms: %s", path, campaignAlone(path))
	}
	return TraceResults, nil
}

// campaignAlone says what shows a campaign.
func campaignAlone(path string) string {
	quoted := launch.Quote([]string{path})
	return fmt.Sprintf("moebalance compare %s shows its gain and its tables; to set it beside traces: moebalance compare "+
		"--campaign %[1]s NORMAL PERFECT", quoted)
}

// verbOf is the verb whose JSON result begins so: trace, bench, or none.
func verbOf(head []byte) string {
	if kind := resultHead.FindSubmatch(head); kind != nil {
		return string(kind[1])
	}
	return ""
}

// resultHead is how the JSON of these verbs begins.
var resultHead = regexp.MustCompile(`^\s*\{\s*"schema_version":\s*\d+,\s*"kind":\s*"(trace|bench)"`)

// CheckExports refuses paths that are not exports of one run: a file named twice, files
// named after both arms, or a result of the verb trace.
func CheckExports(paths []string) error {
	if bothNamed(paths) {
		return marked{errors.New(
			"the exports are of both arms by their names, normal and perfect: 'moebalance compare' takes both; for one arm, " +
				"pass its exports alone"), ErrNotComparable}
	}
	if twice, again := repeated(paths); again {
		return usagef("%s is named twice", twice)
	}
	if i := slices.IndexFunc(paths, func(path string) bool {
		kind, err := kindOf(path)
		return err == nil && kind == TraceResults
	}); i >= 0 {
		return usagef("%s is a JSON result of trace, not an export; compare and report take it", paths[i])
	}
	return nil
}

// Trace reads the traces of a side, with the expert statistics of the same run.
func (s Side) Trace(ctx context.Context, o trace.Options, recorded Statistics) (*trace.Trace, error) {
	if s.Kind != TraceResults {
		o.Arm = s.Arm
		t, err := Trace(ctx, s.Paths, o, recorded)
		if errors.Is(err, trace.ErrArm) && s.Unsorted != nil {
			err = s.Unsorted
		}
		return t, err
	}
	path := s.Paths[0]
	if o.Steps != nil {
		return nil, usagef("%s is a JSON result of trace, which is judged already: make it with trace --steps %s", path,
			o.Steps)
	}
	if recorded.Path != "" {
		return nil, usagef("%s is a JSON result of trace, which is judged already: make it with trace --counts %s",
			path, recorded.Path)
	}
	result, err := ReadResult(path)
	return result.Trace, err
}
