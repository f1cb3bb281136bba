package metrics

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/input"
)

// Parse reads the output of one launch, which errors call by its name. Custom metrics
// must be found. With at least one of them the rest of the output need not be a known
// format, and a report in it that cannot be used is a warning.
//
// Otherwise it is an *input.Error when nothing is recognized, when
// results of two tools or of two launches are in one output, when a required key is
// missing or contradicts itself, and when reading fails.
func Parse(name string, r io.Reader, custom []Custom) (Result, error) {
	runs, err := ParseRuns(name, r, custom)
	switch {
	case err != nil:
		return Result{}, err
	case len(runs) > 1:
		return Result{}, &input.Error{File: name, Expected: "the output of one launch",
			Found: fmt.Sprintf("%d reports of %s that differ", len(runs), runs[0].Format)}
	}
	return runs[0], nil
}

// ParseRuns is Parse for a file that may hold several launches, one JSON object each, such as the collected
// lines of the built-in workload or a client's JSON Lines, or reports that a serving client printed one
// behind the other. It returns one Result of each in order.
func ParseRuns(name string, r io.Reader, custom []Custom) (runs []Result, err error) {
	text, failed := readText(r, maxOutput)
	if failed == nil {
		p := parser{text: text, out: output{text: text, line: 1}, labels: document{line: 1}}
		for _, c := range custom {
			p.rules = append(p.rules, &rule{c, report{format: customRows}})
		}
		for p.out.text != "" {
			p.offer(p.out.next())
		}
		runs, failed = p.runs()
	}
	if failed != nil {
		failed.File = name
		return nil, failed
	}
	return runs, nil
}

// parser offers every record to the rules, and every document to the formats.
type parser struct {
	text    string
	out     output
	rules   []*rule
	labels  document  // those printed since the last title
	reports []*report // of the formats that recognized themselves
}

// title is a line over the labels behind it: "=== Serving Benchmark Result ===", and "Benchmark ..." of SGLang's
// bench_one_batch.
var title = regexp.MustCompile(`^=+ (.*\S) +=+$|^((?:Warmup|Benchmark) \.\.\.)$`)

func (p *parser) offer(r *record) {
	for _, c := range p.rules {
		c.read(r)
	}
	m := title.FindStringSubmatch(r.printed)
	switch {
	case r.printed == "", readRow(&r.document, r.printed):
		p.read(&r.document, objectFormats)
	case m != nil:
		p.read(&p.labels, printedFormats)
		p.labels = document{line: r.line, title: m[1] + m[2]}
	case strings.HasPrefix(r.printed, "= DECODING STATISTICS"):
		p.labels.set("decoding_stats", value{is: object(0)})
	default:
		readLabels(r.printed, func(label string, v value) {
			if v.line = r.line; knows(label) {
				p.labels.set(label, v)
			}
		})
	}
}

// read takes a document into a report of its own, or a row into the report of all rows. Objects, and labels under a
// title of their own, are of one format; other labels may be of several. A warm-up is no report.
func (p *parser) read(d *document, formats []*format) {
	for _, f := range formats {
		if !f.fits(d) || d.title == "Warmup Begin" {
			continue
		}
		i := slices.IndexFunc(p.reports, func(r *report) bool { return r.format == f && f == iterations })
		if i < 0 {
			i, p.reports = len(p.reports), append(p.reports, &report{format: f})
		}
		if p.reports[i].read(d); d.title == f.title {
			break
		}
	}
}

// runs ends the reports. They are of one format, and an iteration log may accompany one. Reports that are all the same
// are one run. Custom metrics stand before the format's own of that name; where there are some, reports that
// cannot be used are only a warning.
func (p *parser) runs() (runs []Result, err *input.Error) {
	p.read(&p.labels, printedFormats)
	var custom, log Result
	differ := false
	for _, c := range p.rules {
		if err := c.end(&custom); err != nil {
			return nil, err
		}
	}
	for _, r := range p.reports {
		out, failed := r.end()
		switch {
		case failed != nil:
		case out.Format == iterations.name:
			log = out
		case len(runs) > 0 && (runs[0].Format != out.Format || len(p.rules) > 0):
			failed = &input.Error{Expected: "one report", Found: runs[0].Format + " and " + out.Format,
				Try: "pass them one at a time"}
		default:
			differ = differ || len(runs) > 0 && !slices.EqualFunc(runs[0].Metrics, out.Metrics, same)
			runs = append(runs, out)
		}
		if err == nil {
			err = failed
		}
	}
	switch {
	case len(p.rules) > 0 && err != nil:
		custom.Warnings = append(custom.Warnings, "only --metric was read: "+err.Fault())
		runs, log = nil, Result{}
	case err != nil:
		return nil, err
	case len(p.rules)+len(p.reports) == 0:
		return nil, p.nothing()
	}
	if !differ && len(runs) > 1 {
		runs = runs[:1]
	}
	if len(runs) == 0 && log.Format != "" {
		runs, log = []Result{log}, Result{}
	} else if len(runs) == 0 {
		runs = []Result{{Format: customRows.name}}
	}
	for i := range runs {
		out := &runs[i]
		out.Metrics = slices.Concat(custom.Metrics, out.Metrics, log.Metrics)
		out.Warnings = slices.Concat(custom.Warnings, out.Warnings, log.Warnings, p.cut(out.Metrics))
		if out.Primary = custom.Primary; out.Primary == "" {
			out.Primary = out.preferred()
		}
	}
	return runs, nil
}

// cut says what of an output is cut: an object, or the line of a number.
func (p *parser) cut(metrics []Metric) (warnings []string) {
	open := strings.TrimRight(p.text, "}]") == p.text
	if open && slices.ContainsFunc(metrics, func(m Metric) bool { return m.line == p.out.line }) {
		warnings = append(warnings, fmt.Sprintf("line %d ends the output without a newline: its number may be cut", p.out.line))
	}
	if p.out.cut != nil {
		warnings = append(warnings, "not used: "+p.out.cut.Fault())
	}
	return warnings
}

// engineLogs are the signs of engines' logs, and what makes them say how long steps take.
var engineLogs = [][2]string{
	{"[TRT-LLM]", "a log of TensorRT-LLM: print_iter_log: true in its --config adds a line for each iteration; or "},
	{"server_args=ServerArgs(", "a log of SGLang: --decode-log-interval 1 adds a line for each decode step; or "},
}

// nothing says why no result was found.
func (p *parser) nothing() *input.Error {
	e := &input.Error{Expected: "a benchmark result", Found: "none"}
	if p.out.cut != nil {
		e = p.out.cut
	} else if strings.TrimSpace(p.text) == "" {
		e.Found = "an empty output"
	}
	for _, engine := range engineLogs {
		if strings.Contains(p.text, engine[0]) {
			e.Try += engine[1]
		}
	}
	e.Try += "name a number with --metric 'NAME:UNIT:higher=REGEX' (or :lower, or =$.json.path); 'moebalance counts' " +
		"reads expert counts"
	return e
}
