package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// OfClient reports whether a client measured a server that somebody else had started. Several such reports may come
// from one launch.
func (r Result) OfClient() bool {
	return strings.Contains(r.Format, "serving/") || r.Format == "aiperf"
}

// Launches are the launches that the runs of one file are: the runs of a serving client are repetitions on one server,
// as far as the file tells, and one launch, in which a metric or an amount of work that all have is its mean. Runs of
// programs that start the engine themselves are a launch each. Runs of different settings are an error, because their
// mean would say nothing.
func Launches(runs []Result) ([]Result, error) {
	for _, r := range runs {
		if len(runs) == 1 || !r.OfClient() || r.Format != runs[0].Format {
			return runs, nil
		}
		either := maps.Clone(runs[0].Setup)
		maps.Copy(either, r.Setup)
		for _, name := range slices.Sorted(maps.Keys(either)) {
			if a, b := runs[0].Setup[name], r.Setup[name]; a != b {
				return nil, fmt.Errorf("want repetitions of one run, have %s %s and %s; give the runs of each setting in "+
					"a file of its own", name, cmp.Or(a, "none"), cmp.Or(b, "none"))
			}
		}
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
