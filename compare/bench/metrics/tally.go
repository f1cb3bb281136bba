package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// tally is what one format has found in an output so far.
type tally struct {
	format  string
	metrics []Metric
	lines   []int // where each metric was found
	work    Work
	proof   Proof
	steps   []Step
	cutRows int // iteration rows beyond MaxSteps
	notes   []string
	// inputLength and outputLength are means over the requests, for reports without
	// totals; undefined where the report does not give them.
	inputLength, outputLength router.Number
	generation                string // of trtllm-bench's labels: a, b or c
	// iterations is set by the first row of an iteration log.
	iterations *iterations
	found      bool  // the format has recognised itself
	err        error // the first contradiction
}

func newTally(format string) *tally {
	return &tally{format: format, inputLength: router.Undefined(), outputLength: router.Undefined()}
}

// demand fails when a report that was found lacks one of the metrics a whole
// one has, each given by its alternatives.
func (t *tally) demand(needs [][]string) {
	for _, alternatives := range needs {
		if !slices.ContainsFunc(t.metrics, func(m Metric) bool { return slices.Contains(alternatives, m.Name) }) {
			t.fail(fmt.Errorf("%s: the report has no %s: it is cut, or of a release that is not known", t.format, strings.Join(alternatives, ", ")))
		}
	}
}

// fail keeps the first error.
func (t *tally) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// metric records a metric. The same metric again must have the same value:
// a warm-up report and a main report in one output are two launches.
func (t *tally) metric(line int, m Metric) {
	for i, old := range t.metrics {
		if old.Name != m.Name {
			continue
		}
		if !sameNumber(old.Value, m.Value) || old.Definition != m.Definition {
			t.fail(fmt.Errorf("%s: metric %q %w: %g on line %d and %g on line %d; %s",
				t.format, m.Name, errTwice, float64(old.Value), t.lines[i], float64(m.Value), line, t.remedy()))
		}
		return
	}
	t.metrics, t.lines = append(t.metrics, m), append(t.lines, line)
}

// remedy is what to do about two values of one thing.
func (t *tally) remedy() string {
	if t.format == customFormat {
		return "let its rule match only one of them"
	}
	return "hand over the output of one launch"
}

// count records a number of things, which must not contradict an earlier one.
func (t *tally) count(line int, what string, into *Count, v float64) {
	n := Exactly(int64(v))
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || v > 1<<53 || v != math.Trunc(v):
		t.fail(fmt.Errorf("%s: line %d: want a whole number of %s, found %g", t.format, line, what, v))
	case into.Known && *into != n:
		t.fail(fmt.Errorf("%s: the number of %s %w: %d and, on line %d, %d; %s",
			t.format, what, errTwice, into.N, line, n.N, t.remedy()))
	default:
		*into = n
	}
}

// countTokens turns mean lengths into the token counts that were not given.
func (t *tally) countTokens() {
	if !t.work.Requests.Known {
		return
	}
	n := router.Number(t.work.Requests.N)
	if !t.work.InputTokens.Known {
		t.work.InputTokens = wholeTokens(n * t.inputLength)
	}
	if !t.work.OutputTokens.Known {
		t.work.OutputTokens = wholeTokens(n * t.outputLength)
	}
}

// wholeTokens is the count that requests times a mean length stands for.
func wholeTokens(v router.Number) Count {
	if !(v >= 0 && v <= 1<<53) {
		return Count{}
	}
	return Exactly(int64(math.Round(float64(v))))
}

func (t *tally) step(s Step) {
	if len(t.steps) >= MaxSteps {
		t.cutRows++
		return
	}
	t.steps = append(t.steps, s)
}

// noteOnce adds a warning that is not there yet.
func (t *tally) noteOnce(text string) {
	if !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

func (t *tally) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func sameNumber(a, b router.Number) bool {
	return a == b || !a.Defined() && !b.Defined()
}

// number is the float of a decoded value; an infinity or NaN is undefined.
func number(v any) (router.Number, bool) {
	x, ok := v.(float64)
	if !ok {
		return router.Undefined(), false
	}
	if math.IsInf(x, 0) {
		x = math.NaN()
	}
	return router.Number(x), true
}

// numbers are the floats of a decoded array, all of which must be numbers.
func numbers(v any) ([]router.Number, bool) {
	l, ok := v.(*list)
	if !ok {
		return nil, false
	}
	out := make([]router.Number, len(l.items))
	for i, item := range l.items {
		if out[i], ok = number(item); !ok {
			return nil, false
		}
	}
	return out, true
}

func notANumber(format string, line int, what, found string) error {
	return fmt.Errorf("%s: line %d: want a number for %s, found %q", format, line, what, found)
}
