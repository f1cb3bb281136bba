package source

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/trace"
)

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
