package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// ofClient finds the formats of clients.
var ofClient = regexp.MustCompile(`serving/|aiperf|evalscope|ais_bench|guidellm|inference|llmperf|mini-sglang`)

// OfClient reports whether a client measured a server that somebody else had started. Several such reports may come
// from one launch.
func (r Result) OfClient() bool { return ofClient.MatchString(r.Format) }

// Apart finds what shows that runs are points of a curve and no repetitions: "max_concurrency 8 and 16". It is a
// setting, but for the router, which is proved elsewhere, and the engine's own, or twice the work,
// unless requests failed.
func Apart(a, b Result) string {
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(a.Setup)), slices.Sorted(maps.Keys(b.Setup))) {
		x, y := a.Setup[name], b.Setup[name]
		told := a.Format == b.Format || min(x, y) != "" // JSON tells more than what is printed
		if told && x != y && name != "router" && !strings.HasPrefix(name, "runtime ") {
			return fmt.Sprintf("%s %s and %s", name, cmp.Or(x, "none"), cmp.Or(y, "none"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Work)) {
		x, y := a.Work[name], b.Work[name]
		same := a.Work[failures]+b.Work[failures] > 0 || name == gain.WorkImplied
		if !same && min(x, y) > 0 && max(x, y) >= 2*min(x, y) {
			return fmt.Sprintf("%s %s and %s", name, quantity.Plain(x), quantity.Plain(y))
		}
	}
	return ""
}

// Launches are the launches that the runs of one file are: the runs of a serving client are repetitions on one server,
// as far as the file tells, and one launch, in which a metric or an amount of work that all have is its mean. Runs of
// programs that start the engine themselves are a launch each. Points of a curve are an error, because their mean would
// say nothing.
func Launches(runs []Result) ([]Result, error) {
	client := len(runs) > 1
	for _, r := range runs {
		if points := Apart(runs[0], r); points != "" {
			return nil, fmt.Errorf("want repetitions of one run, have %s; give the runs of each setting in a file of its own",
				points)
		}
		client = client && r.OfClient() && r.Format == runs[0].Format
	}
	if !client {
		return runs, nil
	}
	one := runs[0]
	one.Warnings = slices.Concat([]string{quantity.Count(len(runs), "run") + " of a client count as one launch, by " +
		"their means; give the runs of each launch of the server in a file of its own"}, one.Warnings)
	one.Metrics, one.Work = nil, maps.Clone(runs[0].Work)
	n := float64(len(runs))
	for _, m := range runs[0].Metrics {
		m.Value = 0
		if !slices.ContainsFunc(runs, func(r Result) bool {
			other, _ := r.Metric(m.Name)
			m.Value += other.Value / router.Number(n)
			return other.Metric != m.Metric
		}) {
			one.Metrics = append(one.Metrics, m)
		}
	}
	maps.DeleteFunc(one.Work, func(name string, _ float64) bool {
		one.Work[name] = 0
		return slices.ContainsFunc(runs, func(r Result) bool {
			amount, there := r.Work[name]
			one.Work[name] += amount / n
			return !there
		})
	})
	return []Result{one}, nil
}
