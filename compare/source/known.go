package source

import (
	"os"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// mostAsked is the size of a file above which Knows does not ask the readers.
const mostAsked = 64 << 20

// Knows reports whether a reader of ours knows a file: as a trace, counts, a placement,
// the configuration of a model, or the output of a benchmark. What cannot be asked counts
// as known.
func Knows(path string) bool {
	text, err := input.ReadFile(path, mostAsked)
	if err != nil || nsys.Takes(path) {
		return true
	}
	if _, err := router.ParseConfig(text, ""); err == nil {
		return true
	}
	if _, err := counts.Read(path); err == nil {
		return true
	}
	for _, ranks := range []int{0, 1} {
		if _, err := counts.ReadPlacement(path, ranks); err == nil {
			return true
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	_, err = metrics.Parse(path, f, nil)
	return err == nil
}
