package page

import (
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
	"github.com/moebalance/moebalance/router/table"
)

// figure is a drawing on the page.
type figure struct {
	plots.Figure
	Beside bool // text
	Leads  bool // it shows the answer
}

// Wide is the drawing. Figures escape their own text.
func (f figure) Wide() template.HTML {
	if f.Beside {
		return template.HTML(f.Inline(plots.BesideText))
	}
	return template.HTML(f.Inline(0))
}

// mostTwice is the size of a drawing from which on it stands on the page once.
const mostTwice = 60_000

// Narrow is the drawing for phones; empty for a large one, which scrolls there, unless it leads.
func (f figure) Narrow() template.HTML {
	drawing := f.Inline(plots.Phone)
	if len(drawing) > mostTwice && !f.Leads {
		return ""
	}
	return template.HTML(drawing)
}

// mostRows is how many rows of a table the page holds, the largest.
const mostRows = 50

// viewOf is a table without the columns that no row has a value of, cut to the rows that matter.
func viewOf(t table.Table, of string) table.Table {
	var empty []string
	for i, c := range t.Shown() {
		if !slices.ContainsFunc(c.Cells, func(cell string) bool { return cell != "" && cell != quantity.Unknown }) {
			empty = append(empty, t.Columns[i].ID())
		}
	}
	t = t.Without(empty...).Cut(mostRows)
	t.Title = of + t.Title
	return t
}

// marks color the words of checks and of proof, which say it too.
var marks = map[string]string{"pass": "good", "warn": "warn", "fail": "bad", "measured": "good", "claimed": "warn",
	"none": "bad"}

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

// chip is one label of evidence: all caveats of a code and weight, which open as sentences.
type chip struct {
	Label    string
	Severity answer.Severity
	Texts    []string
}

// signs say how much a caveat weighs.
var signs = map[answer.Severity]string{answer.Unknown: "? ", answer.Doubt: "✗ ", answer.Warn: "▲ ", answer.Note: "○ "}

// Chips are the caveats of the answer by code, in their order.
func (p program) Chips() (out []chip) {
	for _, c := range p.Answer.Caveats {
		label := signs[c.Severity] + c.Label()
		at := slices.IndexFunc(out, func(o chip) bool { return o.Label == label })
		if at < 0 {
			at, out = len(out), append(out, chip{Label: label, Severity: c.Severity})
		}
		out[at].Texts = append(out[at].Texts, c.String())
	}
	for i, c := range out {
		if n := len(c.Texts); n > 1 {
			out[i].Label += fmt.Sprintf(" (%d)", n)
		}
	}
	return out
}

// beyondChips are the notes on an input that do not stand beside the answer.
func (p *program) beyondChips(in Input) []string {
	return slices.DeleteFunc(slices.Clone(in.Notes), func(note string) bool {
		return slices.ContainsFunc(p.Answer.Caveats, func(c answer.Caveat) bool {
			return strings.HasSuffix(note, c.String())
		})
	})
}

// unbroken is the space between a number and its unit.
var unbroken = regexp.MustCompile(`([0-9–]) (%|×|(?:ns|µs|ms|s|B|KiB|MiB|GiB|slots)\b)`)

// typeset leaves secrets out and keeps numbers and their units on one line.
func typeset(text string) string {
	return unbroken.ReplaceAllString(shown.Masked(text), "$1\u00a0$2")
}

// sentence begins with a capital letter, unless with the name of a file, and ends with a stop.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	if !strings.Contains(word, ".") {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	return typeset(strings.TrimSuffix(text, ".") + ".")
}

// shorten keeps the start of a long name.
func shorten(name string, most int) string {
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return name
}
