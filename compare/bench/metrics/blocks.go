package metrics

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// blockTitles are the lines that begin a printed report.
var blockTitles = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^.*= (?:Serving|Offline Throughput) Benchmark Result =.*$`),
	regexp.MustCompile(`(?m)^.*= (?:ENGINE DETAILS|PYTORCH BACKEND|PyTorch backend)\s*$`),
	regexp.MustCompile(`(?m)^.*Throughput: [0-9.]+ requests/s.*$`),
	regexp.MustCompile(`(?m)^.*Avg latency: [0-9.]+ seconds.*$`),
}

// printedLoads are how reports name the load they are of, by the name of the load.
var printedLoads = map[string]*regexp.Regexp{
	"concurrency":  regexp.MustCompile(`(?:Maximum request concurrency:\s*|"max_concurrency":\s*)([0-9.]+)`),
	"request_rate": regexp.MustCompile(`(?:Traffic request rate:\s*|"request_rate":\s*)([0-9.]+)`),
	"batch_size":   regexp.MustCompile(`"batch_size":\s*([0-9.]+)`),
}

// ParseBlocks reads the output of one launch that measured several loads and holds n
// reports, one after another: printed under a title each, or a JSON object each. With
// custom metrics whose pattern matches n times, each match begins a report. The i-th
// number printed is the value of the load that the i-th report names; without such, all
// are undefined.
func ParseBlocks(name string, text []byte, custom []Custom, n int, load string) (results []Result,
	printed []router.Number, err error) {
	printed = make([]router.Number, n)
	for i := range printed {
		printed[i] = router.Undefined()
	}
	key := strings.TrimPrefix(strings.ReplaceAll(load, "-", "_"), "max_")
	if pattern := printedLoads[key]; pattern != nil {
		if found := pattern.FindAllSubmatch(text, -1); len(found) == n {
			for i, m := range found {
				v, err := strconv.ParseFloat(string(m[1]), 64)
				if err == nil {
					printed[i] = router.Number(v)
				}
			}
		}
	}
	titles, most := blockTitles, 0
	for _, c := range custom {
		if c.Pattern != nil {
			titles = append(titles[:len(titles):len(titles)], c.Pattern)
		}
	}
	for _, title := range titles {
		at := title.FindAllIndex(text, -1)
		most = max(most, len(at))
		if len(at) != n {
			continue
		}
		for i := range at {
			from, end := at[i][0], len(text)
			if i+1 < n {
				end = bytes.LastIndexByte(text[:at[i+1][0]], '\n') + 1
			}
			one, err := Parse(name, bytes.NewReader(text[bytes.LastIndexByte(text[:from], '\n')+1:end]), custom)
			if err != nil {
				return nil, nil, err
			}
			results = append(results, one)
		}
		return results, printed, nil
	}
	runs, err := ParseRuns(name, bytes.NewReader(text), custom)
	if err == nil && len(runs) == n {
		return runs, printed, nil
	}
	return nil, nil, &input.Error{File: name, Expected: quantity.Count(n, "report") + ", one for each point",
		Found: strconv.Itoa(max(most, len(runs))),
		Try: "let the command print a report for each value of {points}, or write {" + load +
			"} in it to run it once for each"}
}
