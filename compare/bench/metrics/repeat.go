package metrics

import (
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
// that all runs have, its work is their sum. False for reports of programs that start the
// engine themselves.
func Repeated(runs []Result) (one Result, ok bool) {
	for _, r := range runs {
		if !r.OfClient() || r.Format != runs[0].Format {
			return one, false
		}
	}
	one = runs[0]
	one.Metrics, one.Steps = nil, nil
	for _, m := range runs[0].Metrics {
		sum, in := router.Number(0), 0
		for _, r := range runs {
			if x, has := r.Metric(m.Name); has && m.Comparable(x) == nil {
				sum, in = sum+x.Value, in+1
			}
		}
		if m.Value = sum / router.Number(in); in == len(runs) {
			one.Metrics = append(one.Metrics, m)
		}
	}
	for _, r := range runs[1:] {
		one.Work = one.Work.and(r.Work)
	}
	return one, true
}
