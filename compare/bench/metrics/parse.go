package metrics

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrUnrecognised is wrapped when an output holds no format that is known and
// no custom metric was asked for.
var ErrUnrecognised = errors.New("no benchmark result found")

// layout is one kind of JSON object that a tool writes.
type layout struct {
	format string
	is     func(*object) bool
	read   func(o *object, line int, t *tally)
}

// layouts in the order they are tried; the first that fits takes the object.
var layouts = []layout{
	{workloadFormat, isWorkload, readWorkload},
	{iterationFormat, isIterationDict, readIterationDict},
	{iterationFormat, isIterationData, readIterationData},
	{trtllmReportFormat, isTRTLLMReport, readTRTLLMReport},
	{sglangFormat + "/json", isSGLang, readSGLang},
	{servingFormat + "/json", isServing, readServing},
	{vllmThroughputFormat + "/json", isVLLMThroughput, readVLLMThroughput},
	{vllmLatencyFormat + "/json", isVLLMLatency, readVLLMLatency},
	{oneBatchFormat, isOneBatch, readOneBatch},
	{oneBatchServerFormat, isOneBatchServer, readOneBatchServer},
	{aiperfFormat + "/aggregate", isAIPerfAggregate, refuse("this is AIPerf's summary over several runs: hand over the export of each run")},
	{aiperfFormat + "/records", isAIPerfRecord, refuse("these are AIPerf's rows per request: hand over profile_export_aiperf.json")},
	{aiperfFormat, isAIPerf, readAIPerf},
}

// Parse reads the output of one launch. Custom metrics must be found, too; with
// at least one of them the rest of the output need not be a known format.
//
// It is an error when nothing is recognised (ErrUnrecognised), when results of
// two tools or of two launches are in one output, when a required key is missing
// or contradicts itself, and when reading fails.
func Parse(r io.Reader, custom []Custom) (Result, error) {
	p := newParser(custom)
	src := newSource(r, len(custom) > 0)
	for {
		rec, err := src.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return Result{}, fmt.Errorf("reading the output, line %d: %w", src.in.line, err)
		}
		p.offer(rec)
	}
	if src.long > 0 {
		p.custom.note("%d text lines are longer than %d bytes: only their beginning was read", src.long, MaxLine)
	}
	return p.result(src.cut)
}

// ParseRuns reads a file of several launches, one JSON object each, such as the
// collected lines of the built-in workload or a client's JSON Lines, and returns
// one Result per object in order. Text between the objects is ignored.
func ParseRuns(r io.Reader, custom []Custom) ([]Result, error) {
	src := newSource(r, len(custom) > 0)
	var runs []Result
	for {
		rec, err := src.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the output, line %d: %w", src.in.line, err)
		}
		if rec.doc == nil {
			continue
		}
		p := newParser(custom)
		p.offer(rec)
		run, err := p.result(nil)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", rec.line, err)
		}
		runs = append(runs, run)
	}
	if src.cut != nil {
		return nil, src.cut
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%w: want one JSON object per launch", ErrUnrecognised)
	}
	return runs, nil
}

// parser offers every record to every format.
type parser struct {
	wanted  []Custom
	custom  *tally
	texts   []*tally // one for each of textFormats
	objects []*tally // of the layouts found, in the order they were found
	records int
	open    int // the line the output ends in, 0 when its last line is whole
}

func newParser(custom []Custom) *parser {
	p := &parser{wanted: custom, custom: newTally(customFormat)}
	for _, f := range textFormats {
		p.texts = append(p.texts, newTally(f.name))
	}
	return p
}

func (p *parser) offer(rec record) {
	if rec.doc == nil && rec.text == "" {
		return
	}
	p.records++
	if rec.doc != nil {
		p.object(rec)
		return
	}
	if rec.open {
		p.open = rec.line
	}
	for _, c := range p.wanted {
		c.text(rec, p.custom)
	}
	for i, f := range textFormats {
		f.line(rec, p.texts[i])
	}
}

func (p *parser) object(rec record) {
	for _, c := range p.wanted {
		c.object(rec, p.custom)
		at := rec
		for line := range strings.SplitSeq(rec.raw, "\n") {
			at.raw = line
			c.text(at, p.custom)
			at.line++
		}
	}
	for _, l := range layouts {
		if l.is(rec.doc) {
			t := p.layoutTally(l.format)
			t.found = true
			l.read(rec.doc, rec.line, t)
			return
		}
	}
}

// layoutTally is the tally of a format of objects. Rows of an iteration log go
// to one place whether they are objects or text.
func (p *parser) layoutTally(format string) *tally {
	for _, of := range [][]*tally{p.objects, p.texts} {
		for _, t := range of {
			if t.format == format {
				return t
			}
		}
	}
	t := newTally(format)
	p.objects = append(p.objects, t)
	return t
}

// found ends the formats that recognised themselves and returns them; an
// iteration log apart, for it may accompany any report.
func (p *parser) found() (reports []*tally, log *tally, err error) {
	for i, t := range p.texts {
		if !t.found {
			continue
		}
		if finish := textFormats[i].finish; finish != nil && t.err == nil {
			finish(t)
		}
		t.demand(textFormats[i].needs)
		if t.iterations != nil {
			log = t
		} else {
			reports = append(reports, t)
		}
	}
	reports = append(reports, p.objects...)
	for _, t := range append([]*tally{p.custom, log}, reports...) {
		if t != nil && t.err != nil {
			return nil, nil, t.err
		}
	}
	return reports, log, nil
}

// result puts the tallies together. cut is the first object that did not parse.
func (p *parser) result(cut error) (Result, error) {
	reports, log, err := p.found()
	if err != nil {
		return Result{}, err
	}
	for _, c := range p.wanted {
		if _, ok := (Result{Metrics: p.custom.metrics}).Metric(c.Name); !ok {
			return Result{}, fmt.Errorf("metric %q: %s matches nothing in the output", c.Name, c.definition())
		}
	}
	if len(reports) > 1 {
		var names []string
		for _, t := range reports {
			names = append(names, t.format)
		}
		return Result{}, fmt.Errorf("reports of several kinds in one output: %s; hand over one of them", strings.Join(names, ", "))
	}
	out := Result{Format: p.custom.format, Metrics: p.custom.metrics, Warnings: p.custom.notes}
	if log != nil {
		reports = append(reports, log)
	}
	if len(reports) == 0 && len(p.wanted) == 0 {
		return Result{}, p.nothing(cut)
	}
	for i, t := range reports {
		out.add(t, i == 0)
	}
	if p.open > 0 && slices.ContainsFunc(append(reports, p.custom), func(t *tally) bool { return slices.Contains(t.lines, p.open) }) {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the output ends without a line end after a number on line %d: the number may be cut", p.open))
	}
	out.Primary = out.primary(len(p.wanted) > 0)
	if cut != nil {
		out.Warnings = append(out.Warnings, cut.Error()+": not used")
	}
	return out, nil
}

// preferred are the metrics to compare by, best first: throughput of what the
// router works on, then of requests, then times.
var preferred = []string{
	"output_throughput", "token_throughput", "total_throughput", "request_throughput", "step_time_mean", "batch_latency_mean",
}

// primary is the metric to compare unless another is asked for: the first
// custom one, else the first preferred one, else the first of all.
func (r *Result) primary(custom bool) string {
	if len(r.Metrics) == 0 {
		return ""
	}
	for _, name := range preferred {
		if _, ok := r.Metric(name); ok && !custom {
			return name
		}
	}
	return r.Metrics[0].Name
}

// add takes over what a tally holds. Metrics that are there already stay: a
// custom metric hides the format's own of that name.
func (r *Result) add(t *tally, first bool) {
	if first {
		r.Format, r.Work, r.Proof = t.format, t.work, t.proof
	}
	for _, m := range t.metrics {
		if _, taken := r.Metric(m.Name); !taken {
			r.Metrics = append(r.Metrics, m)
		}
	}
	if len(t.steps) > 0 {
		r.Steps = t.steps
	}
	r.Warnings = append(r.Warnings, t.notes...)
	if t.cutRows > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d iteration rows beyond the first %d were not kept", t.cutRows, MaxSteps))
	}
}

// nothing says why no result was found.
func (p *parser) nothing(cut error) error {
	switch {
	case cut != nil:
		return fmt.Errorf("%w: %w", ErrUnrecognised, cut)
	case p.records == 0:
		return fmt.Errorf("%w: the output is empty", ErrUnrecognised)
	}
	return fmt.Errorf("%w in %d lines: name a number with --metric NAME=REGEX or NAME=$.json.path", ErrUnrecognised, p.records)
}
