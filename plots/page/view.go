package page

import (
	"regexp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/router/shown"
	"github.com/moebalance/moebalance/router/table"
)

// mostRows is how many rows of a table the page holds, the largest.
const mostRows = 50

// viewOf is a table without the columns that no row has a value of, cut to the rows that matter.
// A kernel's name comes first: it stays in sight where the table is wider than the page.
func viewOf(t table.Table, of string) table.Table {
	t = t.Filled().Cut(mostRows)
	t.Title = of + t.Title
	if at := slices.IndexFunc(t.Columns, func(c table.Column) bool { return c.Kind == table.Short }); at > 0 {
		t.Columns = slices.Concat(t.Columns[at:at+1], t.Columns[:at], t.Columns[at+1:])
	}
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
	styles := marks[cell]
	if c.Numeric() {
		styles += " n"
	}
	if len(cell) > longText {
		styles += " long"
	}
	return strings.TrimSpace(styles)
}

// beyondAnswer are the notes on an input that do not stand below the answer.
func (p *Page) beyondAnswer(in Input) []string {
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

// sentence is a text typeset as one.
func sentence(text string) string { return typeset(answer.Sentence(text)) }

// shorten keeps both ends of a long name: run-2026…-17.csv.
func shorten(name string, most int) string {
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most/2]) + "…" + string(runes[len(runes)-most/2:])
	}
	return name
}
