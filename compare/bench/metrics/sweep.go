package metrics

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// vLLM's sweep writes the runs of one combination of parameters into a summary.json:
// reports of its serving client, each with a run_number (vllm/benchmarks/sweep/serve.py).
// One server serves them all, so they are one launch, of which their means are taken.

const sweepFormat = "vllm-sweep/json"

// sweepRun takes a run into the report: its metrics are added to those of the earlier
// runs, and the last step is finishSweep.
func (rep *report) sweepRun(f fields) {
	number := f.need("run_number")
	if rep.err != nil {
		return
	}
	run := newReport(rep.format)
	run.rule = servingRule
	of := fields{o: f.o, line: f.line, rep: run}
	readServing(of)
	of.setup()
	if rep.err == nil {
		rep.err = run.err
	}
	found := ""
	if len(rep.runs) > 0 {
		found = otherSetting(rep.runs[0].Setup, run.setup)
	}
	if slices.Contains(rep.runNumbers, number) {
		found = fmt.Sprintf("run_number %g twice", number)
	}
	if found != "" {
		rep.fail(f.line, input.Error{Expected: "the runs of one combination of parameters", Found: found,
			Try: "pass the summary.json of one combination"})
	}
	rep.runs = append(rep.runs, Result{Metrics: run.metrics, Work: run.work, Setup: run.setup})
	rep.runNumbers = append(rep.runNumbers, number)
}

// finishSweep makes one launch of the runs.
func (rep *report) finishSweep() {
	all, work := means(rep.runs)
	for _, m := range all {
		m.Definition += "; mean of the runs of one server"
		rep.metric(0, m)
	}
	rep.work = work
	rep.warn("means over " + quantity.Count(len(rep.runs), "run") + " of one server, which count as one launch")
}
