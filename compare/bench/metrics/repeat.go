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
	return slices.ContainsFunc([]string{servingFormat, sglangFormat, aiperfFormat}, func(format string) bool {
		return r.Format == format || strings.HasPrefix(r.Format, format+"/")
	})
}

// Repeated makes one launch of the runs of a serving client in one file: a server that was
// started once serves them, as far as the file tells. Its metrics are the means of those
// that all runs have, its work is their sum. Not ok for reports of programs that start the
// engine themselves; an error for runs of different settings, whose mean is of nothing.
func Repeated(runs []Result) (one Result, ok bool, err error) {
	one = runs[0]
	for _, r := range runs {
		if !r.OfClient() || r.Format != one.Format {
			return one, false, nil
		}
		if found := otherSetting(one.Setup, r.Setup); found != "" {
			return one, true, fmt.Errorf("want repetitions of one run, have %s; give the runs of each setting in a file of its own",
				found)
		}
	}
	one.Steps = nil
	one.Metrics, one.Work = means(runs)
	return one, true, nil
}

// means averages the metrics that all runs have, and adds up their work.
func means(runs []Result) (all []Metric, work Work) {
	for _, m := range runs[0].Metrics {
		sum, in := router.Number(0), 0
		for _, r := range runs {
			if x, has := r.Metric(m.Name); has && m.Comparable(x) == nil {
				sum, in = sum+x.Value, in+1
			}
		}
		if m.Value = sum / router.Number(in); in == len(runs) {
			all = append(all, m)
		}
	}
	work = runs[0].Work
	for _, r := range runs[1:] {
		work = work.and(r.Work)
	}
	return all, work
}

// otherSetting names the first setting in which two runs differ, empty where none does.
func otherSetting(a, b map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if b[name] != a[name] {
			return name + " " + a[name] + " and " + b[name]
		}
	}
	return ""
}

// and is the work of two runs, unknown where either is.
func (w Work) and(o Work) Work {
	add := func(a, b Count) Count { return Count{N: a.N + b.N, Known: a.Known && b.Known} }
	return Work{add(w.Requests, o.Requests), add(w.InputTokens, o.InputTokens), add(w.OutputTokens, o.OutputTokens),
		add(w.Errors, o.Errors)}
}
