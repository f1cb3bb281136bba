package source

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// Knows reports whether a reader of ours knows a file: as a trace, counts, a placement,
// the configuration of a model, or the output of a benchmark. What cannot be asked, or is
// larger than settings are, counts as known.
func Knows(path string) bool {
	text, err := input.ReadFile(path, maxSettings)
	if err != nil || trace.Takes(path) {
		return true
	}
	if _, err := router.ParseConfig(text, ""); err == nil {
		return true
	}
	_, err = counts.Read(path)
	if err == nil || slices.Contains(counts.Files(filepath.Dir(path)), filepath.Clean(path)) {
		return true
	}
	if _, err := counts.ReadPlacement(path, 0); err == nil || errors.Is(err, counts.ErrRanks) {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	_, err = metrics.Parse(path, f, nil)
	return err == nil
}

// Behind lists the files that a verb reads where it is given a path: those of a folder, those
// that a pattern matches, or those of the index of a sharded checkpoint.
func Behind(path string) []string {
	info, err := os.Stat(path)
	switch {
	case err != nil && isPattern(path):
		found, _ := filepath.Glob(path) // the verb says what is wrong with it
		return found
	case err == nil && strings.HasSuffix(path, ".index.json"):
		shards, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.safetensors"))
		return shards
	case err != nil || !info.IsDir():
		return nil
	}
	recorded := counts.Files(path)
	files, err := folderFiles(path, nil)
	if err == nil && (len(recorded) == 0 || trace.Takes(files[0])) {
		recorded = append(recorded, files...)
	}
	return recorded
}
