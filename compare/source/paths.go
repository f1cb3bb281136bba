package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router/input"
)

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

// splitList splits at commas, unless the whole is the name of a file.
func splitList(arg string) []string {
	if _, err := os.Stat(arg); err == nil {
		return []string{arg}
	}
	return strings.Split(arg, ",")
}

// Skipped is told which files of a folder are not read. Nil tells nobody.
type Skipped func(folder string, names []string)

// expand lists the files that a path, folder or pattern names, sorted by name; of a
// folder as folderFiles does.
func expand(path string, skipped Skipped) ([]string, error) {
	if path == "" {
		return nil, usagef("want the name of a file, have none")
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return []string{path}, nil
	case err == nil:
		return folderFiles(path, skipped)
	case !isPattern(path) && errors.Is(err, fs.ErrNotExist):
		return nil, &input.Error{File: path, Expected: "a file, a folder or a pattern", Found: "no such file",
			Err: fs.ErrNotExist}
	case !isPattern(path):
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

func isPattern(path string) bool { return strings.ContainsAny(path, "*?[") }

// Exports resolves the arguments that are a folder or a pattern; other arguments
// stay as they are.
func Exports(args []string, skipped Skipped) (paths []string, err error) {
	for _, arg := range args {
		found := []string{arg}
		info, missing := os.Stat(arg)
		if missing == nil && info.IsDir() || missing != nil && isPattern(arg) {
			if found, err = expand(arg, skipped); err != nil {
				return nil, err
			}
			if missing == nil && !trace.Takes(found[0]) {
				return nil, &input.Error{File: arg, Expected: "a folder with exports or traces", Found: "none in it",
					Try: "'moebalance counts' reads expert counts"}
			}
		}
		paths = append(paths, found...)
	}
	if info, err := os.Stat(args[0]); len(args) == 1 && err == nil && info.IsDir() && bothNamed(paths) {
		return nil, usagef("%s holds both arms: compare them with: moebalance compare %s%s", args[0],
			launch.Quote(args), oneArm(args[0], paths))
	}
	return paths, nil
}

// oneArm suggests a pattern for the captures of the learned router in a folder, and
// nothing where it would take other files too.
func oneArm(folder string, captures []string) string {
	normal := slices.DeleteFunc(slices.Clone(captures), func(path string) bool {
		arm, ok := armOf(path)
		return !ok || gain.Arms[arm] != gain.Normal
	})
	for _, end := range []string{"", filepath.Ext(captures[0])} {
		pattern := filepath.Join(folder, "*"+string(gain.Normal)+"*"+end)
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 && slices.Equal(found, normal) {
			return "; for one arm, use a pattern such as " + launch.Quote([]string{pattern})
		}
	}
	return ""
}

// bothNamed reports files of which some are named after one arm and some after the other.
func bothNamed(paths []string) bool {
	var seen [len(gain.Arms)]bool
	for _, path := range paths {
		if arm, ok := armOf(path); ok {
			seen[arm] = true
		}
	}
	return seen[0] && seen[1]
}

// folderFiles lists the files of a folder that is no campaign, sorted by name: its
// captures, or all files where there are none. Of one recording in two forms (a report
// and its export, a trace packed and not) or under two names, one is listed; exports and
// reports of nsys take precedence over other captures. Hidden files are not listed.
func folderFiles(folder string, skipped Skipped) ([]string, error) {
	if bench.IsCampaign(folder) {
		return nil, usagef("%s is a campaign, which holds both arms: %s", folder, campaignAlone(folder))
	}
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
	if len(captures) > 0 {
		taken = captures
	}
	if len(profiles) > 0 {
		taken = profiles
	}
	if len(taken) == 0 {
		return nil, fmt.Errorf("folder %s contains no file: want the exports or traces of a run in it", folder)
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

// headOf is the first bytes of a regular file, at most 64.
func headOf(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &input.Error{File: path, Expected: "a regular file", Found: "a device or a pipe"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return nil, &input.Error{File: path, Err: err}
	}
	return head, nil
}
