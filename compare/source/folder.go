package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/trace"
)

// list lists the files and folders in a folder, sorted by name: its captures alone, or all files where there
// are none. Of one recording in two forms (a report and its export, a trace packed and not) or under two names,
// one is listed; exports and reports of nsys take precedence over other captures. Hidden files and what says
// "read me" (*.md) are not listed.
func list(folder string, skipped Skipped) (files, folders []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	home, _ := filepath.EvalSymlinks(folder)
	var worth [3][]string // other files, captures, profiles of nsys
	for _, e := range entries {
		path, ext := filepath.Join(folder, e.Name()), filepath.Ext(e.Name())
		info, err := os.Stat(path) // follows links, which cluster jobs like to leave
		real, _ := filepath.EvalSymlinks(path)
		switch again := filepath.Dir(real) == home && filepath.Base(real) != e.Name(); {
		case err != nil || strings.HasPrefix(e.Name(), ".") || ext == ".md":
		case info.IsDir():
			folders = append(folders, path)
		case !info.Mode().IsRegular():
		case !trace.Takes(path) || again || otherForm(path):
			worth[0] = append(worth[0], path)
		case ext == ".sqlite" || ext == ".nsys-rep":
			worth[2] = append(worth[2], path)
		default:
			worth[1] = append(worth[1], path)
		}
	}
	var left []string
	for _, of := range worth {
		if len(of) > 0 {
			files, left = of, append(left, files...)
		}
	}
	if slices.Sort(left); skipped != nil && len(left) > 0 {
		for i, path := range left {
			left[i] = filepath.Base(path)
		}
		skipped(folder, left)
	}
	return files, folders, nil
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
