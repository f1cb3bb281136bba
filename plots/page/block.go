package page

import (
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
)

// section is one question with its answer and what supports it.
type section struct {
	ID, Title string
	Answer    string
	Blocks    []block
}

// block is one piece of a section; exactly one of its fields is set.
type block struct {
	Text   string
	List   []string
	Figure *plots.Figure
	Table  *table
}

// SVG is the figure's drawing. Figures escape their own text.
func (b block) SVG() template.HTML { return template.HTML(b.Figure.Inline()) }

// table is rows of finished text. Folded tables open on demand and in print.
type table struct {
	Caption string
	Columns []column
	Rows    [][]cell
	Folded  bool
}

// column is a heading; numbers are set to the right.
type column struct {
	Name    string
	Numeric bool
}

func text(names ...string) []column    { return columns(false, names) }
func numeric(names ...string) []column { return columns(true, names) }

func columns(numeric bool, names []string) (out []column) {
	for _, n := range names {
		out = append(out, column{n, numeric})
	}
	return out
}

// Cells is a row with the alignment of its columns.
func (t table) Cells(row []cell) []cell {
	out := slices.Clone(row)
	for i := range out {
		out[i].Numeric = t.Columns[i].Numeric
	}
	return out
}

// mark says how a cell is to be read; the text says it too.
type mark string

const (
	plain mark = ""
	good  mark = "good"
	warn  mark = "warn"
	bad   mark = "bad"
)

// cell is one entry of a table.
type cell struct {
	Text    string
	Mark    mark
	Numeric bool
}

// Class is the cell's style: numbers to the right, marks in colour, sentences
// broken into lines.
func (c cell) Class() string {
	var names []string
	if c.Numeric {
		names = append(names, "n")
	}
	if c.Mark != plain {
		names = append(names, string(c.Mark))
	}
	if len(c.Text) > longText {
		names = append(names, "long")
	}
	return strings.Join(names, " ")
}

// longText is the length from which a cell breaks into lines.
const longText = 36

// row makes unmarked cells of text, integers, Wholes, Numbers (as ratios) and cells.
func row(values ...any) (out []cell) {
	for _, v := range values {
		switch v := v.(type) {
		case cell:
			out = append(out, v)
		case router.Whole:
			out = append(out, cell{Text: number(v)})
		case router.Number:
			out = append(out, cell{Text: ratio(v)})
		default:
			out = append(out, cell{Text: fmt.Sprint(v)})
		}
	}
	return out
}

// missing stands for what is undefined.
const missing = "–"

// ratio writes a dimensionless number with three decimals.
func ratio(v router.Number) string {
	if !v.Defined() {
		return missing
	}
	return strconv.FormatFloat(v.Float64(), 'f', 3, 64)
}

// share writes a fraction as a percentage with one decimal.
func share(v router.Number) string { return plots.Percent(v.Float64()) }

// change writes a fraction as a signed percentage.
func change(v router.Number) string { return plots.Change(v.Float64()) }

func duration(ns router.Number) string { return plots.Duration(ns.Float64()) }

// typewritten is a negative number in a sentence, with the hyphen of terminals.
var typewritten = regexp.MustCompile(`(^|[ (])-([0-9])`)

// typeset writes a sentence, which may come from a package that writes for
// terminals too, with the minus signs and unbroken percentages of the page.
func typeset(sentence string) string {
	sentence = typewritten.ReplaceAllString(sentence, "${1}−${2}")
	return strings.ReplaceAll(sentence, " %", "\u00a0%")
}

// number writes a layer, step or expert, and what stands for none of them.
func number(n router.Whole) string {
	if !n.Defined() {
		return missing
	}
	return strconv.FormatInt(int64(n), 10)
}

// amount writes a value of unknown size with four significant digits.
func amount(v router.Number) string {
	x := v.Float64()
	if !v.Defined() {
		return missing
	}
	if math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}
