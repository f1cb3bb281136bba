package metrics

import (
	"errors"
	"fmt"
	"io"
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
}

// Parse reads the output of one launch. Custom metrics must be found, too; with
// at least one of them the rest of the output need not be a known format.
//
// It is an error when nothing is recognised (ErrUnrecognised), when results of
// two tools or of two launches are in one output, when a required key is missing
// or contradicts itself, and when reading fails.
func Parse(r io.Reader, custom []Custom) (Result, error) {
	p := newParser(custom)
	src := newSource(r)
	for {
		rec, err := src.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return Result{}, fmt.Errorf("reading the output, line %d: %w", src.line, err)
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
	src := newSource(r)
	var runs []Result
	for {
		rec, err := src.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the output, line %d: %w", src.line, err)
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
	tallies []*tally // of the formats found, in the order they were found
	records int
}

func newParser(custom []Custom) *parser {
	return &parser{wanted: custom, custom: &tally{format: "custom"}}
}

func (p *parser) tally(format string) *tally {
	for _, t := range p.tallies {
		if t.format == format {
			return t
		}
	}
	t := &tally{format: format}
	p.tallies = append(p.tallies, t)
	return t
}

func (p *parser) offer(rec record) {
	if rec.doc == nil && rec.text == "" {
		return
	}
	p.records++
	for _, c := range p.wanted {
		if rec.doc != nil {
			c.object(rec, p.custom)
		} else {
			c.text(rec, p.custom)
		}
	}
	if rec.doc == nil {
		return
	}
	for _, l := range layouts {
		if l.is(rec.doc) {
			l.read(rec.doc, rec.line, p.tally(l.format))
			return
		}
	}
}

// result puts the tallies together.
func (p *parser) result(cut error) (Result, error) {
	for _, t := range append([]*tally{p.custom}, p.tallies...) {
		if t.err != nil {
			return Result{}, t.err
		}
	}
	for _, c := range p.wanted {
		if _, ok := (Result{Metrics: p.custom.metrics}).Metric(c.Name); !ok {
			return Result{}, fmt.Errorf("metric %q: %s matches nothing in the output", c.Name, c.definition())
		}
	}
	var formats []string
	for _, t := range p.tallies {
		formats = append(formats, t.format)
	}
	switch {
	case len(formats) > 1:
		return Result{}, fmt.Errorf("results of several tools in one output: %s; hand over the output of one", strings.Join(formats, ", "))
	case len(formats) == 0 && len(p.wanted) == 0:
		return Result{}, p.nothing(cut)
	case len(formats) == 0:
		return Result{Format: p.custom.format, Primary: p.wanted[0].Name, Metrics: p.custom.metrics, Warnings: p.custom.notes}, nil
	}
	t := p.tallies[0]
	out := Result{Format: t.format, Work: t.work, Proof: t.proof, Steps: t.steps, Warnings: append(p.custom.notes, t.notes...)}
	out.Metrics = p.custom.metrics
	for _, m := range t.metrics {
		if _, taken := out.Metric(m.Name); !taken {
			out.Metrics = append(out.Metrics, m)
		}
	}
	if len(out.Metrics) > 0 {
		out.Primary = out.Metrics[0].Name
	}
	if t.cutRows > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d iteration rows beyond the first %d were not kept", t.cutRows, MaxSteps))
	}
	return out, nil
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
