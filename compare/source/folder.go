package source

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/router/input"
)

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
