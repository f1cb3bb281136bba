package metrics

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// vLLM's sweep writes the runs of one combination of parameters into a summary.json:
// reports of its serving client, each with a run_number (vllm/benchmarks/sweep/serve.py).
// One server serves them all, so they are one launch, of which their means are taken.

const sweepFormat = "vllm-sweep/json"

// isSweepRun recognizes one of them.
func isSweepRun(o *object) bool {
	return o.has("run_number", "completed", "request_throughput", "output_throughput", "duration")
}

// sweepParameters are what the serving client repeats of its options: runs with
// different ones are different points, not repetitions.
var sweepParameters = []string{"max_concurrency", "request_rate", "num_prompts", "model_id"}

// sweepRun takes a run into the report: its metrics are added to those of the earlier
// runs, and the last step is finishSweep.
func (rep *report) sweepRun(f fields) {
	number := f.need("run_number")
	if rep.err != nil {
		return
	}
	run := newReport(rep.format)
	run.rule = servingRule
	readServing(fields{o: f.o, line: f.line, rep: run})
	if rep.err == nil {
		rep.err = run.err
	}
	for _, key := range sweepParameters {
		v, _ := f.value(key)
		if text := fmt.Sprint(v); len(rep.runs) == 0 {
			rep.parameters = append(rep.parameters, text)
		} else if before := rep.parameters[slices.Index(sweepParameters, key)]; before != text {
			rep.notOnePoint(f.line, key+" "+before+" and "+text)
		}
	}
	if slices.Contains(rep.runNumbers, number) {
		rep.notOnePoint(f.line, fmt.Sprintf("run_number %g twice", number))
	}
	rep.runs, rep.runNumbers = append(rep.runs, run), append(rep.runNumbers, number)
}

func (rep *report) notOnePoint(line int, found string) {
	rep.fail(line, input.Error{Expected: "the runs of one combination of parameters", Found: found,
		Try: "pass the summary.json of one combination"})
}

// finishSweep takes the mean of every metric that all runs have, and the sum of their
// work.
func (rep *report) finishSweep() {
	for _, m := range rep.runs[0].metrics {
		sum, in := router.Number(0), 0
		for _, run := range rep.runs {
			if x, ok := (Result{Metrics: run.metrics}).Metric(m.Name); ok {
				sum, in = sum+x.Value, in+1
			}
		}
		if in == len(rep.runs) {
			m.Value = sum / router.Number(in)
			m.Definition += "; mean of the runs of one server"
			rep.metric(0, m)
		}
	}
	rep.work = rep.runs[0].work
	for _, run := range rep.runs[1:] {
		rep.work = rep.work.and(run.work)
	}
	rep.warn("means over " + quantity.Count(len(rep.runs), "run") + " of one server, which count as one launch")
}

// and is the work of two runs, unknown where either is.
func (w Work) and(o Work) Work {
	add := func(a, b Count) Count { return Count{N: a.N + b.N, Known: a.Known && b.Known} }
	return Work{add(w.Requests, o.Requests), add(w.InputTokens, o.InputTokens), add(w.OutputTokens, o.OutputTokens),
		add(w.Errors, o.Errors)}
}
