package metrics

import (
	"cmp"
	_ "embed" // of the table
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// format is one layout of a tool's output: how it is recognized, and what it does differently from others. Most paths
// mean the same in all formats, see the dictionary.
type format struct {
	Format  string
	Title   string            // over printed labels, empty for any
	Paths   [][]string        // a document has all of one of these, where there are any
	One     string            // a list that must hold one run, and how to choose one
	Needs   []string          // metrics that a whole report has
	Rule    string            // how the tool takes percentiles, see metric
	Without *regexp.Regexp    // what is left out of its paths
	Means   map[string]string // paths whose names are too general for the dictionary
}

// more is what formats have that a table does not tell.
var more = map[string]func(*report, *document){"moebalance-workload": readWorkload, "aiperf": readExport,
	"sglang-serving/json": readClient, "serving/json": readClient, "trtllm-bench-moe/json": readMoE}

//go:embed formats.yaml
var formatTable string

// iterations recognizes the rows of engines' iteration logs, which are objects or lines. The other formats are tried in
// order; the first that fits takes an object, or the labels under a title.
var iterations, formats = readFormats(formatTable)

// readFormats reads the table, and panics at a key that it does not have.
func readFormats(table string) (first *format, others []*format) {
	var all []*format
	if err := yaml.Load([]byte(table), &all, yaml.WithKnownFields()); err != nil {
		panic(err)
	}
	return all[0], all[1:]
}

// fits recognizes a document of the format.
func (f *format) fits(d *document) bool {
	has := func(paths []string) bool { return d.has(paths...) }
	return (f.Title == "" || f.Title == d.title) && (f.Paths == nil || slices.ContainsFunc(f.Paths, has))
}

// plain spells paths and labels alike, without units: "[TTFT] P50", "ttft_percentiles/p50" → "ttft_p50".
var (
	plain = strings.NewReplacer("_percentiles_ms/", "_", "_percentiles/", "_", "_token_throughput", "_throughput",
		" token throughput", "_throughput", " per second", "_s", "_per_second", "_s", "_per_sec", "_s", " (tokens)", "",
		"average", "avg", "[", "", "]", "", ". ", "_", "-", "_", " ", "_", "/", "_")
	unitEnds = regexp.MustCompile(`^throughput_|_(?:ms|tok_s|req_s)$`)
)

// meaning is the metric of a path, with its unit in the output where the output does not say it.
//
//	"median_ttft_ms"  → "ttft_p50", ""
//	"elapsed_time"    → "duration", "s"
func (f *format) meaning(path string) (name, unit string) {
	if f.Without != nil {
		path = f.Without.ReplaceAllString(path, "")
	}
	path = unitEnds.ReplaceAllString(plain.Replace(strings.ToLower(path)), "")
	of := func(key string) string { return cmp.Or(f.Means[key], meanings[key]) }
	for _, whole := range []string{path, strings.TrimSuffix(strings.TrimSuffix(path, "_avg"), "_mean")} {
		name, unit, _ = strings.Cut(of(whole), " in ")
		if rate := strings.HasSuffix(vocabulary[whole].unit, "/s"); rate || name != "" && !isFamily(name) {
			return cmp.Or(name, whole), unit
		}
		for _, at := range statistic.FindAllStringIndex(whole, -1) {
			word, family := whole[at[0]:at[1]], strings.Trim(strings.ReplaceAll(whole[:at[0]]+whole[at[1]:], "__", "_"), "_")
			of100, _ := strconv.ParseFloat(strings.TrimPrefix(word, "p"), 64) // p99, 50, 99.9
			name, unit, _ = strings.Cut(cmp.Or(of(family), family), " in ")
			if isFamily(name) && (statistics[word] != "" || of100 > 0 && of100 < 100) {
				return name + "_" + cmp.Or(statistics[word], "p"+strings.TrimPrefix(word, "p")), unit
			}
		}
	}
	return "", ""
}
