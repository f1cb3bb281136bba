package metrics

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// report is what one format has found in an output so far.
type report struct {
	format   string
	rule     string // how the tool takes percentiles, see metricOf
	metrics  []Metric
	lines    []int // where each metric was found
	work     Work
	lengths  Lengths
	proof    Proof
	setup    map[string]string
	steps    []Step
	cutRows  int // iteration rows beyond maxSteps
	warnings []string
	// inputLength and outputLength are means over the requests, for reports without
	// totals; undefined where the report does not give them.
	inputLength, outputLength router.Number
	generation                string // of trtllm-bench's labels: "" for a, b or c
	// log is set by the first row of an iteration log.
	log *iterationLog
	// matches are the numbers found so far for rules that pick one of several, by metric.
	matches map[string][]router.Number
	// The runs of a sweep, and their numbers.
	runs       []Result
	runNumbers []router.Number

	warmup bool // lines of a warm-up are being passed over

	found bool  // the format has recognized itself
	err   error // the first fault
}

func newReport(format string) *report {
	return &report{format: format, inputLength: router.Undefined(), outputLength: router.Undefined()}
}

// errTwice is the cause of an error about two values of one thing.
var errTwice = errors.New("two values")

// fail keeps the first fault. Line 0 is the whole report.
func (rep *report) fail(line int, e input.Error) {
	if rep.err != nil {
		return
	}
	e.Position = rep.format + " report"
	if line > 0 {
		e.Position = "line " + strconv.Itoa(line) + " (" + rep.format + ")"
	}
	rep.err = &e
}

// failTwice is about two values of one thing.
func (rep *report) failTwice(line int, what, first, second string) {
	try := "pass the output of one launch"
	if rep.format == customFormat {
		try = "make the --metric rule match only one of them"
	}
	rep.fail(line, input.Error{Expected: what + " = " + first + " as before", Found: second, Try: try, Err: errTwice})
}

// demand fails when a report that was found lacks a metric that a whole one has.
func (rep *report) demand(needs []string) {
	for _, name := range needs {
		if !slices.ContainsFunc(rep.metrics, func(m Metric) bool { return m.Name == name }) {
			rep.fail(0, input.Error{Expected: name, Found: "none: the output is cut or from an unknown release"})
		}
	}
}

// metric records a metric. The same metric again must have the same value:
// a warm-up report and a main report in one output are two launches.
func (rep *report) metric(line int, m Metric) {
	for i, old := range rep.metrics {
		if old.Name != m.Name {
			continue
		}
		if !sameNumber(old.Value, m.Value) || old.Definition != m.Definition {
			at := strconv.FormatFloat(float64(old.Value), 'g', -1, 64) + " (line " + strconv.Itoa(rep.lines[i]) + ")"
			rep.failTwice(line, m.Name, at, strconv.FormatFloat(float64(m.Value), 'g', -1, 64))
		}
		return
	}
	rep.metrics, rep.lines = append(rep.metrics, m), append(rep.lines, line)
}

// count records a number of things, which must not contradict an earlier one.
func (rep *report) count(line int, what string, into *Count, v float64) {
	n := Exactly(int64(v))
	switch {
	case !(v >= 0 && v <= 1<<53) || v != math.Trunc(v):
		rep.fail(line, input.Error{Expected: "a whole number of " + what, Found: strconv.FormatFloat(v, 'g', -1, 64)})
	case into.Known && *into != n:
		rep.failTwice(line, what, strconv.FormatInt(into.N, 10), strconv.FormatInt(n.N, 10))
	default:
		*into = n
	}
}

// countTokens turns mean lengths into the token counts that were not given.
func (rep *report) countTokens() {
	if !rep.work.Requests.Known {
		return
	}
	n := router.Number(rep.work.Requests.N)
	if !rep.work.InputTokens.Known {
		rep.work.InputTokens = wholeTokens(n * rep.inputLength)
	}
	if !rep.work.OutputTokens.Known {
		rep.work.OutputTokens = wholeTokens(n * rep.outputLength)
	}
}

// wholeTokens is the count that requests times a mean length stands for.
func wholeTokens(v router.Number) Count {
	if !(v >= 0 && v <= 1<<53) {
		return Count{}
	}
	return Exactly(int64(math.Round(float64(v))))
}

func (rep *report) step(s Step) {
	if len(rep.steps) >= maxSteps {
		rep.cutRows++
		return
	}
	rep.steps = append(rep.steps, s)
}

// timed adds steps of which nothing but their times is known.
func (rep *report) timed(times []router.Number, factor router.Number, clock string) {
	for i, t := range times {
		rep.step(Step{Iter: int64(i), Rank: router.NoID, Requests: router.NoID, ContextTokens: router.NoID,
			GeneratedTokens: router.NoID, TimeMS: factor * t, Clock: clock})
	}
}

// warn adds a warning that is not there yet.
func (rep *report) warn(text string) {
	if !slices.Contains(rep.warnings, text) {
		rep.warnings = append(rep.warnings, text)
	}
}

// end adds the warnings that are known only at the end.
func (rep *report) end() {
	if rep.cutRows > 0 {
		rep.warn(quantity.Count(rep.cutRows, "iteration row") + " beyond the first " + strconv.Itoa(maxSteps) +
			" were dropped")
	}
}

func sameNumber(a, b router.Number) bool {
	return a == b || !a.Defined() && !b.Defined()
}

// number is the float of a decoded value; an infinity or NaN is undefined.
func number(v any) (router.Number, bool) {
	x, ok := v.(float64)
	if !ok || math.IsInf(x, 0) {
		return router.Undefined(), ok
	}
	return router.Number(x), true
}
