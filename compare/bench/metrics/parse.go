package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// Parse reads the output of one launch, which errors call by its name. Custom metrics
// must be found. With at least one of them the rest of the output need not be a known
// format, and a report in it that cannot be used is a warning.
//
// Otherwise it is an *input.Error when nothing is recognized, when
// results of two tools or of two launches are in one output, when a required key is
// missing or contradicts itself, and when reading fails.
func Parse(name string, r io.Reader, custom []Custom) (Result, error) {
	p, src := newParser(custom), &source{from: r}
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

// ParseRuns reads a file of several launches, one JSON object each, such as the collected
// lines of the built-in workload or a client's JSON Lines, or reports that a serving client
// printed one behind the other, and returns one Result of each in order. Text before and
// between them is ignored.
func ParseRuns(name string, r io.Reader, custom []Custom) (runs []Result, err error) {
	src, printed := &source{from: r}, []*parser(nil)
	var failed error
	finish := func(p *parser) {
		run, err := p.result(nil)
		runs, failed = append(runs, run), cmp.Or(failed, err)
	}
	err = src.each(func(doc *document) {
		if strings.Trim(doc.text, "= ") == servingTitle {
			printed = append(printed, newParser(custom))
		}
		switch {
		case doc.text != "" && len(printed) > 0:
			printed[len(printed)-1].offer(doc)
		case doc.text == "" && doc.paths != nil && failed == nil:
			p := newParser(custom)
			p.offer(doc)
			finish(p)
		}
	})
	if len(runs) == 0 {
		for _, p := range printed {
			finish(p)
		}
	}
	for _, err := range []error{err, failed, src.cut} {
		if err != nil {
			return nil, named(name, err)
		}
	}
	if len(runs) == 0 {
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

// fault is an error without the name of the output.
func fault(err error) string {
	if e := (*input.Error)(nil); errors.As(err, &e) {
		return e.Fault()
	}
	return err.Error()
}

// parser offers every document to the rules and to the formats.
type parser struct {
	rules   []*rule
	custom  *report   // of the rules
	reports []*report // one for each of formats
	records int
	log     string // which option of the engine adds times to such a log, empty for no log of an engine
	open    int    // the line the output ends in, 0 when its last line is whole
}

func newParser(custom []Custom) *parser {
	p := &parser{custom: newReport(&format{name: customFormat})}
	for _, c := range custom {
		p.rules = append(p.rules, &rule{Custom: c})
	}
	for _, f := range formats {
		p.reports = append(p.reports, newReport(f))
	}
	return p
}

func (p *parser) offer(doc *document) {
	if doc.text == "" && doc.paths == nil {
		return
	}
	p.records++
	for _, engine := range engineLogs {
		if p.log == "" && strings.Contains(doc.raw, engine.sign) {
			p.log = engine.option
		}
	}
	for _, c := range p.rules {
		c.read(doc, p.custom)
	}
	if doc.open {
		p.open = doc.line
	}
	for _, r := range p.reports {
		switch printed := r.is == nil; {
		case printed && doc.text != "":
			r.read(doc)
		case !printed && len(doc.paths) > 0 && r.is(doc):
			r.known = true
			r.read(doc)
			return
		}
	}
}

// engineLogs are the signs of engines' logs, and what makes them say how long steps take.
var engineLogs = []struct{ sign, option string }{
	{"[TRT-LLM]", "a log of TensorRT-LLM: print_iter_log: true in its --config adds a line for each iteration"},
	{"server_args=ServerArgs(", "a log of SGLang: --decode-log-interval 1 adds a line for each decode step"},
}

// usable ends the formats that recognized themselves and returns them: one report
// at most, then an iteration log, which may accompany any report. Under custom
// metrics a report that cannot be used is only a warning.
func (p *parser) usable() (known []*report, err error) {
	var log []*report
	var names []string
	for _, r := range p.reports {
		if !r.known {
			continue
		}
		if r.end(); r.format.name == iterationFormat {
			log = append(log, r)
		} else {
			known, names = append(known, r), append(names, r.name)
		}
	}
	if len(known) > 1 {
		known[0].failed = &input.Error{Expected: "one report", Found: strings.Join(names, " and "),
			Try: "pass them one at a time"}
	}
	known = append(known, log...)
	for _, r := range known {
		if r.failed != nil && len(p.rules) > 0 {
			p.custom.warn("only --metric was read: " + fault(r.failed))
			return nil, nil
		} else if r.failed != nil {
			return nil, r.failed
		}
	}
	return known, nil
}

// result puts the reports together. cut is the first object that did not parse. Metrics that are there already
// stay: a custom metric hides the format's own of that name.
func (p *parser) result(cut error) (out Result, err error) {
	for _, c := range p.rules {
		c.choose(p.custom)
	}
	for _, c := range p.rules {
		if p.custom.failed == nil && p.custom.at(c.Name) < 0 {
			p.custom.failed = &input.Error{Expected: fmt.Sprintf("a match of metric %q, %s", c.Name, c.text()),
				Found: "none in " + quantity.Count(p.records, "line")}
		}
	}
	if p.custom.failed != nil {
		return out, p.custom.failed
	}
	reports, err := p.usable()
	switch {
	case err != nil:
		return out, err
	case len(reports) == 0 && len(p.rules) == 0:
		return out, p.nothing(cut)
	case len(reports) > 0:
		out = reports[0].out
	default:
		out.Format = customFormat
	}
	out.Metrics, out.Warnings = nil, nil
	p.custom.end()
	for _, r := range append([]*report{p.custom}, reports...) {
		for _, m := range r.out.Metrics {
			if _, taken := out.Metric(m.Name); !taken {
				out.Metrics = append(out.Metrics, m)
			}
		}
		if len(r.out.Steps) > 0 {
			out.Steps = r.out.Steps
		}
		out.Warnings = append(out.Warnings, r.out.Warnings...)
		if p.open > 0 && slices.ContainsFunc(r.found, func(f finding) bool { return f.line == p.open }) {
			out.Warnings = append(out.Warnings, fmt.Sprintf("line %d ends the output without a newline: its number may be cut",
				p.open))
			p.open = 0
		}
	}
	if out.Primary = out.preferred(); len(p.rules) > 0 {
		out.Primary = p.rules[0].Name
	}
	if cut != nil {
		out.Warnings = append(out.Warnings, "not used: "+fault(cut))
	}
	return out, nil
}

// preferred is the metric to compare by, best first: throughput of what the router
// works on, then of requests, then times, then the first of all.
func (r *Result) preferred() string {
	for _, name := range []string{"output_throughput", "token_throughput", "total_throughput", "request_throughput",
		"step_time_mean", "batch_latency_mean"} {
		if _, ok := r.Metric(name); ok {
			return name
		}
	}
	if len(r.Metrics) == 0 {
		return ""
	}
	return r.Metrics[0].Name
}

// nothing says why no result was found.
func (p *parser) nothing(cut error) error {
	e := input.Error{Expected: "a benchmark result", Found: "none in " + quantity.Count(p.records, "line"),
		Try: "name a number with --metric 'NAME:UNIT:higher=REGEX' (or :lower, or =$.json.path); 'moebalance counts' reads " +
			"expert counts"}
	switch {
	case p.log != "":
		e.Try = p.log + "; or " + e.Try
	case errors.As(cut, new(*input.Error)):
		at := *cut.(*input.Error)
		at.Try = e.Try
		return &at
	case p.records == 0:
		e.Found, e.Try = "an empty output", ""
	}
	return &e
}
