package page

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
)

// Page is a report, ready to be written. It is immutable.
type Page struct {
	title    string
	inputs   []source.Item
	arms     []plots.Arm // of the traces, normal before perfect
	compared []diff.Comparison
	facts    []fact
	sections []section
}

// fact is one of the numbers at the head of the page.
type fact struct {
	Name, Value, Note string
	Mark              mark
}

// New builds a page from at least one input. Without a title it is named after
// the inputs. It is an error when there is nothing to report.
func New(title string, inputs []source.Item) (Page, error) {
	p := Page{title: title, inputs: inputs}
	if len(inputs) == 0 {
		return Page{}, errors.New("building a report: want at least one result, have none")
	}
	for _, in := range inputs {
		if in.Results() != 1 {
			return Page{}, fmt.Errorf("building a report: input %q: want exactly one result, have %d", in.Name, in.Results())
		}
	}
	if title == "" {
		p.title = titleOf(inputs)
	}
	p.arms = armsOf(inputs)
	p.compared = comparisons(p.arms, inputs)
	for _, build := range []func() section{p.complete, p.imbalance, p.timeLoad, p.where, p.ceiling, p.placed, p.next} {
		s := build()
		if s.err != nil {
			return Page{}, fmt.Errorf("building a report: %w", s.err)
		}
		if s.Answer != "" || len(s.Blocks) > 0 {
			p.sections = append(p.sections, s)
		}
	}
	p.facts = p.summary()
	return p, nil
}

// armsOf names the traces: by their arm where the capture says it and no other
// trace has the same, by their input otherwise. The normal arm comes first and
// the perfect one second, so that an arm has the same colour on every page.
func armsOf(inputs []source.Item) []plots.Arm {
	times := map[string]int{}
	for _, in := range inputs {
		if in.Trace != nil {
			times[in.Trace.Arm]++
		}
	}
	var first, second, rest []plots.Arm
	for _, in := range inputs {
		switch t := in.Trace; {
		case t == nil:
		case t.Arm == "" || times[t.Arm] > 1:
			rest = append(rest, plots.NewArm(shorten(in.Name, 32), t))
		case t.Arm == string(gain.Normal):
			first = append(first, plots.NewArm(t.Arm, t))
		case t.Arm == string(gain.Perfect):
			second = append(second, plots.NewArm(t.Arm, t))
		default:
			rest = append(rest, plots.NewArm(shorten(t.Arm, 32), t))
		}
	}
	return append(append(first, second...), rest...)
}

// ranks is the number of ranks of the arm that has most.
func (p Page) ranks() (n int) {
	for _, a := range p.arms {
		n = max(n, len(a.Trace.Ranks))
	}
	return n
}

// campaigns, caches and counts are the inputs of those kinds.
func (p Page) campaigns() []source.Item {
	return p.only(func(in source.Item) bool { return in.Campaign != nil })
}
func (p Page) caches() []source.Item {
	return p.only(func(in source.Item) bool { return in.Cache != nil })
}
func (p Page) counts() []source.Item {
	return p.only(func(in source.Item) bool { return in.Counts != nil })
}

func (p Page) only(kind func(source.Item) bool) []source.Item {
	return slices.DeleteFunc(slices.Clone(p.inputs), func(in source.Item) bool { return !kind(in) })
}

// Figures are the page's figures in the order they appear. Their names are
// distinct.
func (p Page) Figures() (out []plots.Figure) {
	for _, s := range p.sections {
		for _, b := range s.Blocks {
			if b.Figure != nil {
				out = append(out, *b.Figure)
			}
		}
	}
	return out
}

// addFigure appends a figure unless there is nothing to draw in it.
func (s *section) addFigure(f plots.Figure, err error) {
	switch {
	case err == nil:
		s.Blocks = append(s.Blocks, block{Figure: &f})
	case !errors.Is(err, plots.ErrNothing):
		s.err = errors.Join(s.err, err)
	}
}

func (s *section) addText(text string) { s.Blocks = append(s.Blocks, block{Text: text}) }

// addList appends a list that has entries.
func (s *section) addList(list []string) {
	if len(list) > 0 {
		s.Blocks = append(s.Blocks, block{List: list})
	}
}

// addTable appends a table that has rows.
func (s *section) addTable(t table) {
	if len(t.Rows) > 0 {
		s.Blocks = append(s.Blocks, block{Table: &t})
	}
}

//go:embed page.html
var markup string

//go:embed page.css
var style string

var layout = template.Must(template.New("page").Funcs(template.FuncMap{"typeset": typeset, "says": strings.Contains}).Parse(markup))

// Write writes the page as one HTML document.
func (p Page) Write(w io.Writer) error {
	return layout.Execute(w, struct {
		Title    string
		Style    template.CSS
		Facts    []fact
		Sections []section
		Words    []word
	}{p.title, template.CSS(style), p.facts, p.sections, words})
}

// titleOf is the heading of a page that was given none: the benchmark's
// command, or else the names of the exports and other inputs.
func titleOf(inputs []source.Item) string {
	var names []string
	for _, in := range inputs {
		switch {
		case in.Campaign != nil && in.Campaign.Command != "":
			return shorten(in.Campaign.Command, 90)
		case in.Trace != nil && len(in.Trace.Exports) > 0:
			for _, e := range in.Trace.Exports {
				names = append(names, base(e.Path))
			}
		default:
			names = append(names, in.Name)
		}
	}
	return few(names)
}
