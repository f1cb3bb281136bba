package metrics

import (
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
		for _, name := range slices.Sorted(maps.Keys(runs[0].Setup)) {
			if a, b := runs[0].Setup[name], r.Setup[name]; a != b {
				return one, true, fmt.Errorf("want repetitions of one run, have %s %s and %s; give the runs of each setting in "+
					"a file of its own", name, a, b)
			}
		}
	}
	sums, in := map[string]float64{}, map[string]int{} // by definition or name, which is in so many runs
	add := func(name string, v float64) { sums[name], in[name] = sums[name]+v/float64(len(runs)), in[name]+1 }
	for _, r := range runs {
		for _, m := range r.Metrics {
			add(m.Definition, float64(m.Value))
		}
		for name, n := range r.Work {
			add(name, n)
		}
	}
	one = runs[0]
	one.Metrics, one.Work = nil, map[string]float64{}
	for _, m := range runs[0].Metrics {
		if m.Value = router.Number(sums[m.Definition]); in[m.Definition] == len(runs) {
			one.Metrics = append(one.Metrics, m)
		}
	}
	for name := range runs[0].Work {
		if in[name] == len(runs) {
			one.Work[name] = sums[name]
		}
	}
	return one, true, nil
}
