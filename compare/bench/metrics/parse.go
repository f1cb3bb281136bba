package metrics

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// jsonFormat is one kind of JSON object that a tool writes.
type jsonFormat struct {
	format string
	is     func(*object) bool
	rule   string // how the tool takes percentiles, see metricOf
	read   func(fields)
}

// jsonFormats in the order they are tried; the first that fits takes the object.
var jsonFormats = []jsonFormat{
	{workloadFormat, has("perfect_router", "ranks", "tokens_per_rank", "tokens_per_second"), workloadFormat +
		", linear", readWorkload},
	{iterationFormat, isIterationDict, "", readIterationDict},
	{trtllmReportFormat, has("performance", "request_info", "engine"), trtllmRule, readTRTLLMReport},
	{trtllmReportFormat, has("performance", "world_info"), trtllmRule, readTRTLLMReport},
	{sglangFormat + "/json", isSGLang, sglangRule, readSGLang},
	{offlineFormat + "/json", has("successful_requests", "total_latency", "output_throughput", "request_throughput"),
		"", func(f fields) { f.record(offlineMembers) }},
	{benchMoEFormat, isBenchMoE, "", readBenchMoE},
	{oneBatchFormat, has("overall_throughput", "total_latency", "prefill_latency", "batch_size"), "", readOneBatch},
	{sweepFormat, has("run_number", "completed", "request_throughput", "output_throughput", "duration"), servingRule,
		func(f fields) { f.rep.sweepRun(f) }},
	{servingFormat + "/json", has("completed", "request_throughput", "output_throughput", "duration"), servingRule,
		readServing},
	{vllmThroughputFormat + "/json", has("elapsed_time", "num_requests", "total_num_tokens", "requests_per_second",
		"tokens_per_second"), "", readVLLMThroughput},
	{vllmLatencyFormat + "/json", has("avg_latency", "latencies", "percentiles"), vllmRule, readVLLMLatency},
	{aiperfFormat, isAIPerf, "", readAIPerf},
}

// has recognizes objects with all the keys.
func has(keys ...string) func(*object) bool {
	return func(o *object) bool { return o.has(keys...) }
}

// Parse reads the output of one launch, which errors call by its name. Custom metrics
// must be found. With at least one of them the rest of the output need not be a known
// format, and a report in it that cannot be used is a warning.
//
// Otherwise it is an *input.Error when nothing is recognized, when
// results of two tools or of two launches are in one output, when a required key is
// missing or contradicts itself, and when reading fails.
func Parse(name string, r io.Reader, custom []Custom) (Result, error) {
	p := newParser(custom)
	src := newSource(r, len(custom) > 0)
	if err := src.each(p.offer); err != nil {
		return Result{}, named(name, err)
	}
	if src.long > 0 {
		p.custom.warn(fmt.Sprintf("%s longer than %d bytes: only the beginning was read",
			quantity.Count(src.long, "text line"), maxLine))
	}
	result, err := p.result(src.cut)
	return result, named(name, err)
}

// ParseRuns reads a file of several launches, one JSON object each, such as the
// collected lines of the built-in workload or a client's JSON Lines, and returns
// one Result per object in order. Text between the objects is ignored.
func ParseRuns(name string, r io.Reader, custom []Custom) ([]Result, error) {
	src := newSource(r, len(custom) > 0)
	var runs []Result
	var failed error
	err := src.each(func(rec record) {
		if rec.doc == nil || failed != nil {
			return
		}
		p := newParser(custom)
		p.offer(rec)
		run, err := p.result(nil)
		runs, failed = append(runs, run), err
	})
	switch {
	case err != nil:
		return nil, named(name, err)
	case failed != nil:
		return nil, named(name, failed)
	case src.cut != nil:
		return nil, named(name, src.cut)
	case len(runs) == 0:
		return nil, &input.Error{File: name, Expected: "one JSON object per launch", Found: "none"}
	}
	return runs, nil
}

// named puts the name of the output into an error about it.
func named(name string, err error) error {
	if e := (*input.Error)(nil); errors.As(err, &e) {
		e.File = name
	}
	return err
}

// parser offers every record to every format.
type parser struct {
	wanted  []Custom
	custom  *report
	texts   []*report // one for each of textFormats
	objects []*report // of the layouts found, in the order they were found
	records int
	open    int // the line the output ends in, 0 when its last line is whole
}

func newParser(custom []Custom) *parser {
	p := &parser{wanted: custom, custom: newReport(customFormat)}
	for _, f := range textFormats {
		rep := newReport(f.name)
		rep.rule = f.rule
		p.texts = append(p.texts, rep)
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
	for i := range textFormats {
		textFormats[i].read(rec, p.texts[i])
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
	for _, l := range jsonFormats {
		if l.is(rec.doc) {
			rep := p.reportOf(l.format)
			rep.found, rep.rule = true, l.rule
			f := fields{o: rec.doc, line: rec.line, rep: rep}
			l.read(f)
			f.setup()
			return
		}
	}
}

// reportOf is the report of a format of objects. Rows of an iteration log go
// to one place whether they are objects or text.
func (p *parser) reportOf(format string) *report {
	for _, of := range [][]*report{p.objects, p.texts} {
		for _, rep := range of {
			if rep.format == format {
				return rep
			}
		}
	}
	rep := newReport(format)
	p.objects = append(p.objects, rep)
	return rep
}

// reports ends the formats that recognized themselves and returns them: one report
// at most, then an iteration log, which may accompany any report. Under custom
// metrics a report that cannot be used is only a warning.
func (p *parser) reports() ([]*report, error) {
	var found, logs []*report
	for i, rep := range p.texts {
		if !rep.found {
			continue
		}
		if finish := textFormats[i].finish; finish != nil && rep.err == nil {
			finish(rep)
		}
		rep.demand(textFormats[i].needs)
		if rep.log != nil {
			logs = append(logs, rep)
		} else {
			found = append(found, rep)
		}
	}
	for _, rep := range p.objects {
		if rep.format == sweepFormat && rep.err == nil {
			rep.finishSweep()
		}
	}
	found = append(found, p.objects...)
	if len(found) > 1 {
		var formats []string
		for _, rep := range found {
			formats = append(formats, rep.format)
		}
		found[0].err = &input.Error{Expected: "one report", Found: strings.Join(formats, " and "),
			Try: "pass them one at a time"}
	}
	for _, rep := range append(slices.Clip(found), logs...) {
		switch {
		case rep.err == nil:
		case len(p.wanted) == 0:
			return nil, rep.err
		default:
			p.custom.warn("only --metric was read: " + fault(rep.err))
			return nil, nil
		}
	}
	return append(found, logs...), nil
}

// fault is an error without the name of the output.
func fault(err error) string {
	if e := (*input.Error)(nil); errors.As(err, &e) {
		return e.Fault()
	}
	return err.Error()
}

// result puts the reports together. cut is the first object that did not parse.
func (p *parser) result(cut error) (Result, error) {
	if p.custom.err != nil {
		return Result{}, p.custom.err
	}
	for _, c := range p.wanted {
		c.pick(p.custom)
		if _, ok := (Result{Metrics: p.custom.metrics}).Metric(c.Name); !ok {
			return Result{}, &input.Error{Expected: "a match of metric " + strconv.Quote(c.Name) + ", " + c.rule(),
				Found: "none in " + quantity.Count(p.records, "line")}
		}
	}
	reports, err := p.reports()
	if err != nil {
		return Result{}, err
	}
	if len(reports) == 0 && len(p.wanted) == 0 {
		return Result{}, p.nothing(cut)
	}
	out := Result{Format: p.custom.format, Metrics: p.custom.metrics, Warnings: p.custom.warnings}
	for i, rep := range reports {
		out.add(rep, i == 0)
	}
	if p.open > 0 && slices.ContainsFunc(append(reports, p.custom),
		func(rep *report) bool { return slices.Contains(rep.lines, p.open) }) {
		out.Warnings = append(out.Warnings,
			fmt.Sprintf("line %d ends the output without a newline: its number may be cut", p.open))
	}
	out.Primary = out.primary(len(p.wanted) > 0)
	if cut != nil {
		out.Warnings = append(out.Warnings, "not used: "+fault(cut))
	}
	return out, nil
}

// preferred are the metrics to compare by, best first: throughput of what the
// router works on, then of requests, then times.
var preferred = []string{
	"output_throughput", "token_throughput", "total_throughput", "request_throughput", "step_time_mean",
	"batch_latency_mean",
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

// add takes over what a report holds. Metrics that are there already stay: a
// custom metric hides the format's own of that name.
func (r *Result) add(rep *report, first bool) {
	if first {
		r.Format, r.Work, r.Lengths, r.Proof, r.Setup = rep.format, rep.work, rep.lengths, rep.proof, rep.setup
	}
	for _, m := range rep.metrics {
		if _, taken := r.Metric(m.Name); !taken {
			r.Metrics = append(r.Metrics, m)
		}
	}
	if len(rep.steps) > 0 {
		r.Steps = rep.steps
	}
	rep.end()
	r.Warnings = append(r.Warnings, rep.warnings...)
}

// nothing says why no result was found.
func (p *parser) nothing(cut error) error {
	e := input.Error{Expected: "a benchmark result", Found: "none in " + quantity.Count(p.records, "line"),
		Try: "name a number with --metric 'NAME:UNIT:higher=REGEX' (or :lower, or =$.json.path); 'moebalance counts' reads " +
			"expert counts"}
	switch {
	case errors.As(cut, new(*input.Error)):
		at := *cut.(*input.Error)
		at.Try = e.Try
		return &at
	case p.records == 0:
		e.Found, e.Try = "an empty output", ""
	}
	return &e
}
