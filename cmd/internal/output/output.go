// Package output is the single place where a result becomes text, in four
// formats: aligned text for people, JSON for programs, CSV for one table of raw
// numbers, Markdown for a pull request. It knows no word of the domain.
//
// A verb builds one Document: the answer, tables of typed cells, and the value that JSON
// carries. People see the answer with one table; they ask for the others by name.
package output

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
)

// Format is a way of writing a Document.
type Format string

// The formats.
const (
	Text     Format = "text"
	JSON     Format = "json"
	CSV      Format = "csv"
	Markdown Format = "md"
)

// Formats lists them in the order help shows them.
var Formats = []Format{Text, JSON, CSV, Markdown}

// Kind is how people read a column; CSV writes its raw value whatever the kind.
type Kind int

// The kinds of columns, with the raw unit of their cells.
const (
	Label    Kind = iota // text, left-aligned
	Count                // integers
	Ratio                // dimensionless, three decimals: 1.234
	Percent              // a fraction, shown as 12.3 %
	Duration             // nanoseconds, shown in the unit that fits the column
	Bytes                // bytes, shown as KiB, MiB or GiB
	Real                 // a number of no fixed unit: four significant digits, more only before the point
)

// Column is a heading. Name is for people; Key is the CSV header and carries
// the unit ("total_ns"). An empty Key means Name.
type Column struct {
	Name string
	Key  string
	Kind Kind
	// Group tells columns of a kind apart that are not read against each other, such
	// as totals and the statistics of one instance. Within a group, and so by default
	// within a table, all columns of a kind share a unit.
	Group string
	// Width is how much of a longer text people are shown, 0 for all of it.
	Width int
	// Alarm are the cells, as people read them, that mark a row to look at.
	Alarm []string
	// Cell computes the cell of an item, for columns that are no field of it.
	Cell func(item any) any
}

// Table holds rows of cells: string, bool, any integer or float type. A NaN, an
// infinity, nil, or a number that itself says so (definite) means undefined: "–" for
// people, an empty cell in CSV.
type Table struct {
	Name    string // selects the table with --table
	Title   string
	Columns []Column
	Rows    [][]any
	left    int      // rows that were cut
	Leading []string // keys of columns: a table that is cut keeps the rows that are largest in these
	Minor   []string // keys of the columns that a narrow screen hides first
}

// LeadBy names the columns whose largest rows are kept where the table is cut.
func (t Table) LeadBy(keys ...string) Table {
	t.Leading = keys
	return t
}

// Least names the columns that a narrow screen hides first, in this order. After them it
// hides from the right.
func (t Table) Least(keys ...string) Table {
	t.Minor = keys
	return t
}

// Of is a table with a row for each item. Unless a column computes its cells, they are
// the field whose JSON key is the column's; a column that is neither is a programming
// error, and panics.
func Of[T any](name, title string, items []T, columns ...Column) Table {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[key] = f.Index
	}
	t := Table{Name: name, Title: title, Columns: columns}
	for i, c := range columns {
		if c.Cell != nil {
			continue
		}
		index, ok := fields[c.key()]
		if !ok {
			panic(fmt.Sprintf("table %s: %T has no field with the JSON key %q", name, *new(T), c.key()))
		}
		columns[i].Cell = func(item any) any { return reflect.ValueOf(item).FieldByIndex(index).Interface() }
	}
	for _, item := range items {
		row := make([]any, len(columns))
		for i, c := range columns {
			row[i] = c.Cell(item)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (c Column) key() string { return cmp.Or(c.Key, c.Name) }

// Document is one result.
type Document struct {
	Answer *Answer // nil for listings, which answer nothing
	Lead   *Table  // what people see with the answer; nil for none

	Headline string // of a listing
	Tables   []Table
	Notes    []string // shown on demand beside an answer
	Value    any      // what JSON carries
}

// Named is a copy of the table of this name, empty where there is none.
func (d Document) Named(name string) *Table {
	t, _ := d.table(name)
	return &t
}

// Only is the table with the columns of these keys alone.
func (t Table) Only(keys ...string) *Table {
	var others []string
	for _, c := range t.Columns {
		if !slices.Contains(keys, c.key()) {
			others = append(others, c.key())
		}
	}
	t.Title = ""
	return t.Without(others...)
}

// Without is the table without the columns of these keys.
func (t Table) Without(keys ...string) *Table {
	out := t
	out.Columns, out.Rows = nil, make([][]any, len(t.Rows))
	for i, c := range t.Columns {
		if slices.Contains(keys, c.key()) {
			continue
		}
		out.Columns = append(out.Columns, c)
		for r, row := range t.Rows {
			out.Rows[r] = append(out.Rows[r], row[i])
		}
	}
	return &out
}

// Answer is what people read first.
type Answer struct {
	Line    string // the answer, in one sentence
	Verdict string
	Tone    Tone   // of the verdict
	Basis   string // what the verdict rests on
	Numbers []string
	Reasons []string
	Next    []string // commands as typed
	Notes   string   // how many notes there are, in words; empty for none
}

// Tone is how a verdict is colored.
type Tone int

// The tones, with their colors.
const (
	Undecided Tone = iota // yellow
	Fine                  // green
	Costs                 // red
)

// Brief is the answer's line alone.
func (d Document) Brief() Document {
	if d.Answer != nil {
		return Document{Headline: d.Answer.Line, Value: d.Value}
	}
	first, _, _ := strings.Cut(d.Headline, "\n")
	return Document{Headline: first, Value: d.Value}
}

// ErrNoTable is wrapped by the error about a table that a document lacks.
var ErrNoTable = errors.New("no such table in this result")

// Page is the number of rows of "what a page holds": a few of each of several tables, or
// one table.
const Page = -1

// View is what is shown of a document, and how.
type View struct {
	Format Format
	Table  string // the only table, by name; "" is all of them, for CSV the first
	Top    int    // people are shown at most so many rows of a table: 0 is all, Page what a page holds
	Wide   bool   // all columns, also where the screen is narrower
	Notes  bool   // all notes, not their number
	Screen Screen
}

// Write renders d. An unknown table is an ErrNoTable that lists the known ones.
func Write(w io.Writer, v View, d Document) error {
	switch v.Format {
	case JSON:
		e := jsontext.NewEncoder(w, jsontext.WithIndent("  ")) // as it goes: traces of large captures have millions of lines
		return json.MarshalEncode(e, d.Value, jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), json.WithMarshalers(masked()))
	case CSV:
		t, err := d.table(v.Table)
		if err != nil {
			return err
		}
		return t.csv(w)
	}
	tables, fits, most := d.lead(), 20, 12
	if d.Answer != nil {
		fits, most = 10, 10
	}
	if v.Table != "" {
		t, err := d.table(v.Table)
		if err != nil {
			return err
		}
		tables, fits, most = []Table{t}, 60, 50
	}
	if v.Top >= 0 {
		fits, most = v.Top, v.Top
	}
	for i, t := range tables {
		if v.Top != 0 && len(t.Rows) > fits {
			tables[i].Rows = t.largest(most)
			tables[i].left = len(t.Rows) - most
		}
	}
	if v.Format != Text {
		v.Screen = Screen{}
	}
	_, err := io.WriteString(w, d.render(v, tables))
	return err
}

// masked writes texts without secrets. Names of kernels come again and again.
func masked() *json.Marshalers {
	known := map[string]string{}
	return json.MarshalToFunc(func(e *jsontext.Encoder, text string) error {
		clean, ok := known[text]
		if !ok {
			clean = shown.Masked(text)
			known[text] = clean
		}
		return e.WriteToken(jsontext.String(clean))
	})
}

// largest is the first n rows in the order of the leading columns, each of them from the
// largest down: texts by letter, ratios by their distance from 1, other numbers from 0.
// Rows in which a number is undefined come last.
func (t Table) largest(n int) [][]any {
	rows := slices.Clone(t.Rows)
	for _, key := range slices.Backward(t.Leading) {
		i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.key() == key })
		if i < 0 {
			continue
		}
		size := func(row []any) float64 {
			x, ok := number(row[i])
			if t.Columns[i].Kind == Ratio {
				x--
			}
			if !ok {
				return -1
			}
			return math.Abs(x)
		}
		slices.SortStableFunc(rows, func(a, b []any) int {
			if t.Columns[i].Kind == Label {
				return strings.Compare(fmt.Sprint(b[i]), fmt.Sprint(a[i]))
			}
			return cmp.Compare(size(b), size(a))
		})
	}
	return rows[:n]
}

// TableNames are the names of the tables, in their order.
func (d Document) TableNames() []string {
	names := make([]string, len(d.Tables))
	for i, t := range d.Tables {
		names[i] = t.Name
	}
	return names
}

func (d Document) table(name string) (Table, error) {
	for _, t := range d.Tables {
		if name == "" || t.Name == name {
			return t, nil
		}
	}
	names := d.TableNames()
	return Table{}, fmt.Errorf("%w: %q; want one of %s%s", ErrNoTable, name, strings.Join(names, ", "), router.Near(name, names))
}

// lead are the tables that people see who ask for none: that beside an answer, or those of
// a listing.
func (d Document) lead() []Table {
	if d.Answer == nil {
		return slices.Clone(d.Tables)
	}
	if d.Lead == nil || len(d.Lead.Rows) == 0 {
		return nil
	}
	return []Table{*d.Lead}
}

func (d Document) render(v View, tables []Table) string {
	w := writer{View: v}
	switch a := d.Answer; {
	case v.Table != "":
		w.table(tables[0])
		return strings.TrimPrefix(w.String(), "\n")
	case a == nil:
		w.headline(d.Headline)
		for _, t := range tables {
			w.WriteString("\n")
			w.table(t)
		}
		w.notes(d.Notes)
	default:
		w.answer(a)
		for _, t := range tables {
			w.table(t)
		}
		w.follow(a)
		if v.Notes {
			w.notes(append(slices.Clone(d.Notes), "tables: --table "+strings.Join(d.filled(), ", ")))
		} else if a.Notes != "" {
			w.line("", "Notes: "+a.Notes+": --notes shows "+them(len(d.Notes)))
		}
	}
	return w.String()
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// filled names the tables with rows.
func (d Document) filled() (names []string) {
	for _, t := range d.Tables {
		if len(t.Rows) > 0 {
			names = append(names, t.Name)
		}
	}
	return names
}

// prose is a text for the screen, or for Markdown.
func (v View) prose(words, indent string) string {
	if v.Format == Markdown {
		return markdown.Replace(shown.Text(words))
	}
	return v.Screen.prose(words, indent)
}

// markdown keeps names from being read as markup: as HTML, links, code or emphasis. Of
// bars in cells the table takes care.
var markdown = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "~", `\~`)

// pretty draws the table for people, and names the columns for which the screen is too
// narrow.
func (t Table) pretty(v View) (drawn string, hidden []string) {
	s := t.sheet()
	if !v.Wide && v.Screen.Width > 0 {
		hidden = s.fit(v.Screen.Width, t.Minor)
	}
	p := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", gap
	p.SetStyle(style)
	p.SuppressTrailingSpaces()
	head := make(table.Row, len(s.columns))
	configs := make([]table.ColumnConfig, len(s.columns))
	for i, c := range s.columns {
		head[i] = c.head
		configs[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight, VAlignHeader: text.VAlignBottom}
		if c.Kind == Label {
			configs[i].Align, configs[i].AlignHeader = text.AlignLeft, text.AlignLeft
		}
	}
	p.SetColumnConfigs(configs)
	p.AppendHeader(head)
	for row := range t.Rows {
		cells := make(table.Row, len(s.columns))
		for i, c := range s.columns {
			if cells[i] = c.cells[row]; v.Format == Markdown {
				cells[i] = markdown.Replace(c.cells[row])
			}
			if s.alarms[row] && (c.Kind == Ratio || c.Kind == Percent || slices.Contains(c.Alarm, c.cells[row])) {
				cells[i] = v.Screen.warn(c.cells[row])
			}
		}
		p.AppendRow(cells)
	}
	if v.Format == Markdown {
		return p.RenderMarkdown(), nil
	}
	return p.Render(), hidden
}

// shortened cuts a text to a width, with a sign that there is more.
func shortened(text string, width int) string {
	runes := []rune(text)
	if width == 0 || len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

// unit is what a column is shown in. The largest cell of the column and of those it
// is read against has at least 10 of it, so that smaller ones keep their digits.
func (t Table) unit(col int) quantity.Unit {
	kind, most := t.Columns[col].Kind, 0.0
	if kind != Duration && kind != Bytes {
		return quantity.Unit{Per: 1}
	}
	for i, c := range t.Columns {
		if c.Kind != kind || c.Group != t.Columns[col].Group {
			continue
		}
		for _, row := range t.Rows {
			if x, ok := number(row[i]); ok {
				most = max(most, math.Abs(x))
			}
		}
	}
	if kind == Duration {
		return quantity.TimeUnit(most / 10)
	}
	return quantity.SizeUnit(most)
}

// definite is a number that knows whether it has a value.
type definite interface{ Defined() bool }

// number is the numeric value of a cell, false for text and undefined.
func number(v any) (float64, bool) {
	if d, ok := v.(definite); ok && !d.Defined() {
		return 0, false
	}
	x := reflect.ValueOf(v)
	switch {
	case x.CanInt():
		return float64(x.Int()), true
	case x.CanUint():
		return float64(x.Uint()), true
	case x.CanFloat():
		return x.Float(), !math.IsNaN(x.Float()) && !math.IsInf(x.Float(), 0)
	}
	return 0, false
}

// cell writes a value for people, in multiples of per.
func (c Column) cell(v any, per float64) string {
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.String:
		return shown.Text(strings.ReplaceAll(x.String(), "\n", " ")) // a row stays one line
	case reflect.Bool:
		if x.Bool() {
			return "yes"
		}
		return "no"
	}
	x, ok := number(v)
	if !ok {
		return quantity.Unknown
	}
	switch x /= per; {
	case c.Kind == Count || c.Kind == Label:
		return quantity.Plain(x)
	case c.Kind == Ratio:
		return quantity.Ratio(x)
	case c.Kind == Percent:
		return quantity.Percent(x)
	case c.Kind == Real:
		return quantity.Digits4(x)
	case per == 1:
		return quantity.Decimals(x, 0)
	case x > 0 && x < 0.005: // and no zero
		return "<0.01"
	case x < 0 && x > -0.005:
		return ">−0.01"
	}
	return quantity.Decimals(x, 2)
}

func (t Table) csv(w io.Writer) error {
	c := csv.NewWriter(w)
	head := make([]string, len(t.Columns))
	for i, col := range t.Columns {
		head[i] = col.key()
	}
	if err := c.Write(head); err != nil {
		return err
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = raw(v)
		}
		if err := c.Write(cells); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// cellText is a text that no spreadsheet takes for a formula.
func cellText(text string) string {
	text = shown.Text(text)
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " "))
	if _, err := strconv.ParseFloat(text, 64); err != nil && strings.ContainsRune("=+-@＝＋－＠", first) {
		return "'" + text
	}
	return text
}

// raw writes a value for programs: integers digit for digit, for times exceed
// 2^53, and floats so that reading gives the same bits.
func raw(v any) string {
	n, ok := number(v)
	switch x := reflect.ValueOf(v); {
	case x.Kind() == reflect.String:
		return cellText(x.String())
	case x.Kind() == reflect.Bool:
		return strconv.FormatBool(x.Bool())
	case !ok:
		return ""
	case x.CanInt():
		return strconv.FormatInt(x.Int(), 10)
	case x.CanUint():
		return strconv.FormatUint(x.Uint(), 10)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}
