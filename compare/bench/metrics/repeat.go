package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
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
			return one, true, &input.Error{Expected: "repetitions of one run", Found: found,
				Try: "give the runs of each setting in a file of its own"}
		}
	}
	one.Steps = nil
	one.Metrics, one.Work = means(runs)
	return one, true, nil
}

// means are those of the metrics that all runs have, beside the sum of their work.
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

// readSweepRun takes a run of a sweep into the report. vLLM's sweep writes the runs of one combination of
// parameters into a summary.json: reports of its serving client, each with a run_number
// (vllm/benchmarks/sweep/serve.py). One server serves them all, so they are one launch.
func readSweepRun(r *report, doc *document) {
	if _, ok := r.number(doc, "run_number"); !ok {
		r.fail(doc.line, input.Error{Expected: "a number in \"run_number\"", Found: "none"})
		return
	}
	run := newReport(&format{format: servingFormat, percentiles: servingRule, is: r.is, means: clientMeans,
		statistics: clientStatistics, families: clientFamilies, also: readClient})
	run.read(doc)
	run.set("run_number", fmt.Sprint(doc.values["run_number"]))
	if run.err != nil {
		r.err = run.err
	}
	found := ""
	for _, earlier := range r.runs {
		if earlier.Setup["run_number"] == run.setup["run_number"] {
			found = "run_number " + run.setup["run_number"] + " twice"
		}
	}
	if len(r.runs) > 0 && found == "" {
		first := maps.Clone(r.runs[0].Setup)
		delete(first, "run_number")
		found = otherSetting(first, run.setup)
	}
	if found != "" {
		r.fail(doc.line, input.Error{Expected: "the runs of one combination of parameters", Found: found,
			Try: "pass the summary.json of one combination"})
	}
	r.runs = append(r.runs, Result{Metrics: run.metrics, Work: run.work, Setup: run.setup})
}

// finishSweep makes one launch of the runs.
func finishSweep(r *report) {
	all, work := means(r.runs)
	for _, m := range all {
		m.Definition += "; mean of the runs of one server"
		r.metric(0, m)
	}
	r.work = work
	r.warn("means over " + quantity.Count(len(r.runs), "run") + " of one server, which count as one launch")
}
