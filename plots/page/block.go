package page

import (
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// section is one question with its answer and what supports it.
type section struct {
	ID, Title string
	Answer    string
	Blocks    []block
	err       error // of drawing its figures
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

// columns are headings; those that begin with # are of numbers.
func columns(names ...string) (out []column) {
	for _, n := range names {
		name, numeric := strings.CutPrefix(n, "#")
		out = append(out, column{name, numeric})
	}
	return out
}

// yesNo marks one of the two answers or both.
func yesNo(is bool, yes, no mark) cell {
	if is {
		return cell{Text: "yes", Mark: yes}
	}
	return cell{Text: "no", Mark: no}
}

func (t *table) add(values ...any) { t.Rows = append(t.Rows, row(values...)) }

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
	Text string
	Mark mark
}

// Class is the style of a cell in a column: numbers to the right, marks in color,
// sentences broken into lines.
func (t table) Class(column int, c cell) string {
	names := []string{string(c.Mark)}
	if t.Columns[column].Numeric {
		names = append(names, "n")
	}
	if len(c.Text) > longText {
		names = append(names, "long")
	}
	slices.Sort(names) // the name of an unmarked cell is empty
	return strings.TrimSpace(strings.Join(names, " "))
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
			out = append(out, cell{Text: quantity.Ratio(v)})
		default:
			out = append(out, cell{Text: fmt.Sprint(v)})
		}
	}
	return out
}

// unbroken is the space between a number and its unit.
var unbroken = regexp.MustCompile(`([0-9–]) (%|(?:ns|µs|ms|s|B|KiB|MiB|GiB|slots)\b)`)

// typeset keeps numbers and their units on one line.
func typeset(text string) string { return unbroken.ReplaceAllString(text, "$1\u00a0$2") }

// number writes a layer, step, rank or expert, and what stands for none of them.
func number(n router.Whole) string {
	if !n.Defined() {
		return quantity.Unknown
	}
	return strconv.FormatInt(int64(n), 10)
}
