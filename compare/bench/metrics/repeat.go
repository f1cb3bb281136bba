package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// OfClient reports whether the report is of a program that measures a server that somebody else has
// started, so that several may be of one launch.
func (r Result) OfClient() bool {
	tool, _, _ := strings.Cut(r.Format, "/")
	return slices.Contains([]string{servingFormat, sglangFormat, aiperfFormat}, tool)
}

// Repeated makes one launch of the runs of a serving client in one file: a server that was
// started once serves them, as far as the file tells. Its metrics and its work are the means of those
// that all runs have. Not ok for reports of programs that start the
// engine themselves; an error for runs of different settings, whose mean is of nothing.
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
	one = runs[0]
	one.Metrics, one.Work = nil, map[string]float64{}
	for _, m := range runs[0].Metrics {
		sum, in := router.Number(0), 0
		for _, r := range runs {
			if x, has := r.Metric(m.Name); has && m.Metric == x.Metric {
				sum, in = sum+x.Value, in+1
			}
		}
		if m.Value = sum / router.Number(in); in == len(runs) {
			one.Metrics = append(one.Metrics, m)
		}
	}
	for name := range runs[0].Work {
		sum, in := 0.0, 0
		for _, r := range runs {
			if x, has := r.Work[name]; has {
				sum, in = sum+x, in+1
			}
		}
		if in == len(runs) {
			one.Work[name] = sum / float64(in)
		}
	}
	return one, true, nil
}
