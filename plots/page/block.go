package page

import (
	"errors"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
	"github.com/moebalance/moebalance/router/table"
)

// section is one question with its answer and what supports it.
type section struct {
	ID, Title, Short string
	Answer           string
	Key, KeyOf       string // the number beside Short in the contents, if it has one, and what of
	Blocks           []block
	tableGroup       string // of its tables
	err              error  // of drawing its figures
}

// block is one piece of a section: a text with or without notes, a figure or a table.
type block struct {
	Text     string
	Notes    []string
	Figure   *plots.Figure
	Table    *table.Table
	Folded   bool   // of a table, which opens on demand and in print
	Constant string // columns that a table need not repeat
	Beside   bool   // a figure beside text
	Leads    bool   // the figure that shows the answer
}

// Wide is the figure's drawing. Figures escape their own text.
func (b block) Wide() template.HTML {
	if b.Beside {
		return template.HTML(b.Figure.InlineAt(plots.BesideText))
	}
	return template.HTML(b.Figure.Inline())
}

// mostTwice is the size of a drawing from which on it stands on the page once.
const mostTwice = 60_000

// Narrow is the drawing for phones; empty for a large one, which scrolls there, unless
// it leads.
func (b block) Narrow() template.HTML {
	drawing := b.Figure.InlineAt(plots.Phone)
	if len(drawing) > mostTwice && !b.Leads {
		return ""
	}
	return template.HTML(drawing)
}

// mostColumns is how many columns a table of the page has room for.
const mostColumns = 9

// tableBlock shows a table without the columns that say the same in every row, or nothing, and,
// where it is too wide, those that matter least. A wide row stands upright.
func tableBlock(t table.Table, folded bool) block {
	b := block{Folded: folded || len(t.Rows) >= longTable}
	var same, said []string
	for i, c := range t.Shown() {
		blank := c.Cells[0] == "" || c.Cells[0] == quantity.Unknown
		switch {
		case slices.ContainsFunc(c.Cells, func(cell string) bool { return cell != c.Cells[0] }):
			continue
		case blank:
		case len(t.Rows) == 1, len(t.Rows) == 2 && c.Numeric() && c.Kind != table.Count: // by chance
			continue
		default:
			said = append(said, c.Head+" "+c.Cells[0])
		}
		same = append(same, t.Columns[i].ID())
	}
	if len(same) < len(t.Columns)-1 {
		t, b.Constant = *t.Without(same...), strings.Join(said, " · ")
	}
	for _, key := range t.Minor {
		if len(t.Columns) <= mostColumns {
			break
		}
		t = *t.Without(key)
	}
	if len(t.Rows) == 1 && len(t.Columns) >= mostColumns {
		t = upright(t)
	}
	t = t.Cut(mostRows)
	b.Table = &t
	return b
}

// upright is a table of one row with a row for each of its columns.
func upright(t table.Table) table.Table {
	out := table.Table{Name: t.Name, Title: t.Title, Columns: []table.Column{{Name: "quantity"}, {Name: "value"}}}
	for _, c := range t.Shown() {
		out.Rows = append(out.Rows, []any{c.Head, c.Cells[0]})
	}
	return out
}

// tableGroups are the tables of each section in their order, as kind of result and name of
// table. Those behind ~ are always folded.
var tableGroups = map[string][]string{
	"gain": {"bench/points", "bench/dose", "bench/arms", "bench/gain", "compare/gain", "bench/secondary", "bench/pairs",
		"bench/steps", "compare/bound"},
	"where": {"compare/work", "compare/kinds", "compare/phases", "compare/waits", "compare/stragglers",
		"compare/hardware", "~compare/steps", "~compare/kernels", "trace/kinds", "trace/waits",
		"trace/stragglers", "~trace/time", "~trace/variants", "~trace/kernels"},
	"imbalance": {"counts/summary", "compare/balance", "trace/imbalance", "counts/imbalance", "counts/reported"},
	"place":     {"place/placements", "place/workloads", "place/price", "~place/layers"},
	"data": {"bench/checks", "~bench/proof", "bench/profiled", "cache/failed", "cache/balance", "trace/coverage",
		"trace/graphs", "~trace/exports", "~trace/ranks"},
}

// kindOf is that of a result, as tables are known by.
func kindOf(in source.Item) string {
	switch {
	case in.Campaign != nil:
		return "bench"
	case in.Trace != nil:
		return "trace"
	case in.Compared != nil:
		return "compare"
	case in.Counts != nil:
		return "counts"
	case in.Place != nil:
		return "place"
	}
	return "cache"
}

// compared are tables of traces that their comparison has, too.
var compared = []string{"waits", "stragglers"}

// longTable is the number of rows from which a table is folded.
const longTable = 13

// mostRows is how many rows of a table the page holds, the largest.
const mostRows = 150

// addTables appends the tables of the section that have rows.
func (s *section) addTables(p *program) {
	for _, place := range tableGroups[s.tableGroup] {
		name, folded := strings.CutPrefix(place, "~")
		kind, name, _ := strings.Cut(name, "/")
		if kind == "trace" && slices.Contains(compared, name) && len(p.of(isCompared)) > 0 {
			continue
		}
		same := p.of(func(in source.Item) bool { return kindOf(in) == kind })
		for _, in := range same {
			for _, t := range in.Tables {
				if t.Name != name || len(t.Rows) == 0 || name == "kinds" && len(t.Rows) == 1 {
					continue
				}
				if len(same) > 1 {
					t.Title = p.called(in) + ": " + t.Title
				}
				s.Blocks = append(s.Blocks, tableBlock(t, folded))
			}
		}
	}
}

// keyed sets the number beside the section in the contents, unless there is one.
func (s *section) keyed(shown, of string) {
	if s.Key == "" {
		s.Key, s.KeyOf = shown, of
	}
}

// contents says what is in a section that has no answer of its own.
func (s section) contents() (title string) {
	for _, b := range s.Blocks {
		switch {
		case b.Figure != nil:
			return b.Figure.Title
		case b.Table != nil && title == "":
			title = b.Table.Title
		}
	}
	return title
}

// called is the name of an input among others: for traces that of the arm.
func (p *program) called(in Input) string {
	for _, a := range p.arms {
		if a.Trace == in.Trace && in.Trace != nil {
			return a.Name
		}
	}
	return in.Name
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

// marks color the words of verdicts and checks, which say it too.
var marks = map[string]string{
	"pass": "good", "warn": "warn", "fail": "bad", "measured": "good", "claimed": "warn", "none": "bad",
	"imbalance significant": "bad", "not significant": "good", "inconclusive": "warn", "invalid": "bad",
}

// longText is the length from which a cell breaks into lines.
const longText = 36

// class is the style of a cell in a column: numbers to the right, marks in color,
// sentences broken into lines.
func class(c table.Shown, cell string) string {
	names := []string{marks[cell]}
	if c.Numeric() {
		names = append(names, "n")
	}
	if len(cell) > longText {
		names = append(names, "long")
	}
	return strings.TrimSpace(strings.Join(names, " "))
}

// unbroken is the space between a number and its unit.
var unbroken = regexp.MustCompile(`([0-9–]) (%|×|(?:ns|µs|ms|s|B|KiB|MiB|GiB|slots)\b)`)

// typeset leaves secrets out and keeps numbers and their units on one line.
func typeset(text string) string {
	return unbroken.ReplaceAllString(shown.Masked(text), "$1\u00a0$2")
}

func lines(text string) []string { return strings.Split(text, "\n") }

// sentence begins with a capital letter, unless with the name of a file, and ends with a
// stop.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if first, size := utf8.DecodeRuneInString(text); size > 0 && strings.Contains(word, ".") {
		text = strings.TrimSuffix(text, ".") + "."
	} else if size > 0 {
		text = string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
	}
	return typeset(text)
}

// shorten keeps the start of a long name.
func shorten(name string, most int) string {
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return name
}
