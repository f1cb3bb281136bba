package metrics

import (
	"cmp"
	"slices"
	"strings"
)

// format is one layout of a tool's output: a row of objectFormats or of printedFormats.
type format struct {
	name  string
	rule  string     // how the tool takes percentiles, see metric
	title string     // over printed labels, empty for any
	is    [][]string // a document of the format has all paths of one of these
	// means says which metric, or other number, stands at a path or label: "duration in s" is one in seconds.
	means map[string]string
	words []string // paths that are words of the vocabulary
	// stats are the same for families; "{stat}" in the path stands for a mean, a percentile and so on.
	stats  map[string]string
	own    map[string]string // definitions of metrics whose formula is another here
	needs  []string          // metrics that a whole report has
	also   func(*report, *document)
	finish func(*report) // draws conclusions from all documents
}

// fits recognizes a document of the format.
func (f *format) fits(d *document) bool {
	return (f.title == "" || f.title == d.title) &&
		slices.ContainsFunc(f.is, func(paths []string) bool { return d.has(paths...) })
}

// meaning is the metric of a path, with its unit in the output where the output does not say it.
//
//	"mean_ttft_ms" where stats has "{stat}_ttft_ms": "ttft"  → "ttft_mean", ""
//	"elapsed_time" where means has it as "duration in s"     → "duration", "s"
func (f *format) meaning(path string) (name, unit string) {
	path = strings.TrimPrefix(path, "records/") // AIPerf's releases of 2025
	if slices.Contains(f.words, path) {
		return path, ""
	}
	name, unit, _ = strings.Cut(f.means[path], " in ")
	for pattern, family := range f.stats {
		before, after, _ := strings.Cut(pattern, "{stat}")
		rest, begins := strings.CutPrefix(path, before)
		if text, ends := strings.CutSuffix(rest, after); begins && ends && name == "" && statistic(text) != "" {
			family, unit, _ = strings.Cut(family, " in ")
			return family + "_" + statistic(text), unit
		}
	}
	return name, unit
}

// knows reports whether a printed label is read; others are not kept.
func knows(label string) bool {
	return slices.ContainsFunc(printedFormats, func(f *format) bool {
		name, _ := f.meaning(label)
		return cmp.Or(name, printedSettings[label]) != ""
	})
}
