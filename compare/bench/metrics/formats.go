package metrics

import (
	"cmp"
	_ "embed" // of the table
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// format is one layout of a tool's output: how it is recognized, and what it does differently from others. Most paths
// mean the same in all formats, see the dictionary.
type format struct {
	name    string
	title   string            // over printed labels, empty for any
	is      [][]string        // a document of the format has all paths of one of these, where there are any
	one     string            // a list that must hold one run, and how to choose one
	needs   []string          // metrics that a whole report has
	rule    string            // how the tool takes percentiles, see metric
	without *regexp.Regexp    // what is left out of its paths
	means   map[string]string // paths whose names are too general for the dictionary
	also    func(*report, *document)
}

// more is what formats have that a table does not tell.
var more = map[string]func(*report, *document){"moebalance-workload": readWorkload, "aiperf": readExport,
	"sglang-serving/json": readClient, "serving/json": readClient, "trtllm-bench-moe/json": readMoE}

//go:embed formats.txt
var formatTable string

// iterations recognizes the rows of engines' iteration logs, which are objects or lines. The other formats are tried in
// order; the first that fits takes an object, or the labels under a title.
var iterations, formats = readFormats(formatTable)

// readFormats reads the table, and panics at a key that it does not have.
func readFormats(table string) (first *format, others []*format) {
	var all []*format
	for block := range strings.SplitSeq(table, "\n\n") {
		of, means := map[string]string{}, map[string]string{}
		for line := range strings.Lines(block) {
			key, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			if of[key] = strings.TrimSpace(text); !strings.Contains(" # format title paths one needs rule without means ",
				" "+key+" ") {
				panic("formats.txt: no such key: " + line)
			}
		}
		for pair := range strings.SplitSeq(of["means"], "; ") {
			path, what, _ := strings.Cut(pair, " = ")
			means[path] = what
		}
		var is [][]string
		for paths := range strings.SplitSeq(of["paths"], " | ") {
			is = append(is, strings.Split(paths, ", "))
		}
		if name := of["format"]; name != "" {
			all = append(all, &format{name, of["title"], is, of["one"], strings.Fields(of["needs"]), of["rule"],
				regexp.MustCompile(of["without"]), means, more[name]})
		}
	}
	return all[0], all[1:]
}

// fits recognizes a document of the format.
func (f *format) fits(d *document) bool {
	has := func(paths []string) bool { return paths[0] == "" || d.has(paths...) }
	return (f.title == "" || f.title == d.title) && slices.ContainsFunc(f.is, has)
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
	path = f.without.ReplaceAllString(path, "")
	path = unitEnds.ReplaceAllString(plain.Replace(strings.ToLower(path)), "")
	of := func(key string) string { return cmp.Or(f.means[key], meanings[key]) }
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
