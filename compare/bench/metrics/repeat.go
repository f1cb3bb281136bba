package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// OfClient reports whether a client measured a server that somebody else had started. Several such reports may come
// from one launch.
func (r Result) OfClient() bool {
	return strings.Contains(r.Format, "serving/") || r.Format == "aiperf"
}

// Repeated makes one launch of the runs of a serving client in one file: as far as the file tells, one server
// served them. A metric or an amount of work that all runs have becomes its mean. Not ok are reports of programs that
// start the engine themselves. Runs of different settings are an error, because their mean would say nothing.
func Repeated(runs []Result) (one Result, ok bool, err error) {
	for _, r := range runs {
		if !r.OfClient() || r.Format != runs[0].Format {
			return runs[0], false, nil
		}
		either := maps.Clone(runs[0].Setup)
		maps.Copy(either, r.Setup)
		for _, name := range slices.Sorted(maps.Keys(either)) {
			if a, b := runs[0].Setup[name], r.Setup[name]; a != b {
				return one, true, fmt.Errorf("want repetitions of one run, have %s %s and %s; give the runs of each setting in "+
					"a file of its own", name, cmp.Or(a, "none"), cmp.Or(b, "none"))
			}
		}
	}
	one = runs[0]
	one.Metrics, one.Work = nil, maps.Clone(runs[0].Work)
	n, others := float64(len(runs)), runs[1:]
	for _, m := range runs[0].Metrics {
		m.Value /= router.Number(n)
		if !slices.ContainsFunc(others, func(r Result) bool {
			other, _ := r.Metric(m.Name)
			m.Value += other.Value / router.Number(n)
			return other.Metric != m.Metric
		}) {
			one.Metrics = append(one.Metrics, m)
		}
	}
	for name := range one.Work {
		one.Work[name] /= n
		for _, r := range others {
			one.Work[name] += r.Work[name] / n
		}
	}
	maps.DeleteFunc(one.Work, func(name string, _ float64) bool {
		return slices.ContainsFunc(others, func(r Result) bool { _, there := r.Work[name]; return !there })
	})
	return one, true, nil
}
