// Package table is the one model of a table: typed cells below columns that are described
// once. Text, Markdown, CSV and HTML are written from it.
package table

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/router/shown"
)

// Kind is how people read a column; CSV writes its raw value whatever the kind.
type Kind string

// The kinds of columns, with the raw unit of their cells.
const (
	Label    Kind = "label"    // text, left-aligned
	Short    Kind = "short"    // text, of which people are shown 70 characters
	Path     Kind = "path"     // text, of which people are shown the last part, where these differ
	Count    Kind = "count"    // integers
	Ratio    Kind = "ratio"    // dimensionless, three decimals: 1.234
	Percent  Kind = "percent"  // a fraction, shown as 12.3 %
	Duration Kind = "duration" // nanoseconds, shown in the unit that fits the column
	Bytes    Kind = "bytes"    // bytes, shown as KiB, MiB or GiB
	Real     Kind = "real"     // a number of no fixed unit: four significant digits, more only before the point
)

// Column is a heading with its cells, one for each row: string, bool, any integer or float type. A NaN, an infinity,
// nil, or a number that itself says so (Defined) means undefined: "–" for people, an empty cell in CSV.
type Column struct {
	Key  string // the CSV header, with the unit: "total_ns"
	Name string // for people
	Kind Kind   // "" is Label
	// Group tells columns of a kind apart that are not read against each other, such
	// as totals and the statistics of one instance. Within a group, and so by default
	// within a table, all columns of a kind share a unit.
	Group string
	Cells []any
}

// Table is columns of equal length.
type Table struct {
	Name    string // selects the table with --table
	Title   string
	Columns []Column
	Left    int      // rows that were cut
	Leading []string // keys of columns: a table that is cut keeps the rows that are largest in these
}

// Len is the number of rows.
func (t Table) Len() int {
	if len(t.Columns) == 0 {
		return 0
	}
	return len(t.Columns[0].Cells)
}

// LeadBy names the columns whose largest rows are kept where the table is cut.
func (t Table) LeadBy(keys ...string) Table {
	t.Leading = keys
	return t
}

// Cell computes the cells of a column that is no field of its items.
type Cell struct {
	key string
	of  func(item any) any
}

// Computed is the cell of a column for an item.
func Computed[T any](key string, of func(T) any) Cell {
	return Cell{key, func(item any) any { return of(item.(T)) }}
}

// Of is a table with a row for each item. The description lists its columns by key, with commas between them,
// each with what its key and its cells do not tell: key<path:kind@group=name for people. So
// "rank:count, total_ns, share:percent=of step" are the columns rank, total (in a unit of time) and "of step". Cells
// that are not computed are the field whose JSON key is the column's, or behind < the path to it:
// "low<gain.low:percent" is a column low of the field low in the field gain, "share<Share" what the method Share of an
// item returns. A column that is neither is a programming error, and panics.
func Of[T any](name, title string, items []T, columns string, computed ...Cell) Table {
	t := Table{Name: name, Title: title}
	for text := range strings.SplitSeq(columns, ", ") {
		text, name, _ := strings.Cut(text, "=")
		text, group, _ := strings.Cut(text, "@")
		text, kind, _ := strings.Cut(text, ":")
		key, path, _ := strings.Cut(text, "<")
		name = cmp.Or(name, words.Replace(strings.TrimSuffix(key, "_ns")))
		c := Column{Key: key, Name: name, Group: group, Kind: cmp.Or(Kind(kind), kindOf(key))}
		var cell func(item any) any
		if at := slices.IndexFunc(computed, func(o Cell) bool { return o.key == key }); at >= 0 {
			cell = computed[at].of
		} else {
			cell = c.field(reflect.TypeFor[T](), cmp.Or(path, key))
		}
		for _, item := range items {
			c.Cells = append(c.Cells, cell(item))
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}

// words spells a key: "rank_max_over_mean" → "rank max/mean".
var words = strings.NewReplacer("_over_", "/", "_", " ")

// kindOf is the kind that a key tells, "" where it tells none.
func kindOf(key string) Kind {
	switch {
	case strings.HasSuffix(key, "_ns"):
		return Duration
	case strings.HasSuffix(key, "bytes"):
		return Bytes
	case strings.HasSuffix(key, "max_over_mean"), strings.HasSuffix(key, "floor"), strings.HasPrefix(key, "null_"),
		key == "balancedness":
		return Ratio
	}
	return ""
}

// field is the cell of an item at a path of JSON keys, fields and, last, a method. It is nil behind a pointer that is
// nil, and for a field that JSON omits. Its type tells the column's kind, where nothing else does.
func (c *Column) field(t reflect.Type, path string) func(item any) any {
	var index []int
	method, omitted := "", false
	for key := range strings.SplitSeq(path, ".") {
		of := t
		if t.Kind() == reflect.Pointer {
			of = t.Elem()
		}
		if m, ok := t.MethodByName(key); ok {
			method, t = key, m.Type.Out(0)
			continue
		}
		var fields []reflect.StructField
		if of.Kind() == reflect.Struct {
			fields = reflect.VisibleFields(of)
		}
		at := slices.IndexFunc(fields, func(f reflect.StructField) bool {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == key || f.Name == key
		})
		if at < 0 {
			panic(fmt.Sprintf("column %s: %v has no field with the JSON key %q", c.Key, of, key))
		}
		index, t = append(index, fields[at].Index...), fields[at].Type
		omitted = strings.HasSuffix(fields[at].Tag.Get("json"), ",omitempty")
	}
	switch {
	case c.Kind != "" || !t.ConvertibleTo(real) || t.Kind() == reflect.String:
	case reflect.Zero(t).CanFloat():
		c.Kind = Real
	default:
		c.Kind = Count
	}
	return func(item any) any {
		v, err := reflect.ValueOf(item).FieldByIndexErr(index)
		if err != nil || omitted && v.IsZero() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil
		}
		if method != "" {
			v = v.MethodByName(method).Call(nil)[0]
		}
		if numbers, ok := v.Interface().([]int); ok && len(numbers) > 0 {
			return quantity.Ranges(numbers)
		}
		return v.Interface()
	}
}

var real = reflect.TypeFor[float64]()

// Numeric reports a column that is set to the right.
func (c Column) Numeric() bool { return !slices.Contains([]Kind{"", Label, Short, Path}, c.Kind) }

// keep is the table with the wanted columns alone.
func (t Table) keep(wanted func(Column) bool) *Table {
	t.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c Column) bool { return !wanted(c) })
	return &t
}

// Without is the table without the columns of these keys.
func (t Table) Without(keys ...string) *Table {
	return t.keep(func(c Column) bool { return !slices.Contains(keys, c.Key) })
}

// Filled is the table without the columns in which no row has a value.
func (t Table) Filled() Table {
	return *t.keep(func(c Column) bool {
		return len(c.Cells) == 0 || slices.ContainsFunc(c.Cells, func(cell any) bool { return raw(cell) != "" })
	})
}

// Cut is the table with the first n rows in the order of the leading columns, each of them
// from the largest down: texts by letter, numbers by their distance from 0.
// Rows in which a number is undefined come last.
func (t Table) Cut(n int) Table {
	rows := make([]int, t.Len())
	for i := range rows {
		rows[i] = i
	}
	for _, key := range slices.Backward(t.Leading) {
		if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Key == key }); i >= 0 {
			cells := t.Columns[i].Cells
			slices.SortStableFunc(rows, func(a, b int) int { return bySize(cells[b], cells[a]) })
		}
	}
	n = min(n, len(rows))
	t.Left, t.Columns = len(rows)-n, slices.Clone(t.Columns)
	for i, c := range t.Columns {
		t.Columns[i].Cells = nil
		for _, row := range rows[:n] {
			t.Columns[i].Cells = append(t.Columns[i].Cells, c.Cells[row])
		}
	}
	return t
}

// bySize compares two cells: texts, and numbers by their distance from 0. An undefined number is least.
func bySize(a, b any) int {
	x, isNumber := number(a)
	y, ok := number(b)
	if isNumber && ok {
		return cmp.Compare(math.Abs(x), math.Abs(y))
	}
	return strings.Compare(raw(a), raw(b))
}

// Shown is a column as people read it.
type Shown struct {
	Column
	Head  string // with the unit
	Cells []string
}

// Shown are the columns with their cells, each in its unit.
func (t Table) Shown() []Shown {
	columns := make([]Shown, len(t.Columns))
	for i, c := range t.Columns {
		unit := t.unit(c)
		columns[i] = Shown{Column: c, Head: shown.Text(c.Name)}
		if unit.Name != "" {
			columns[i].Head += " (" + unit.Name + ")"
		}
		for _, cell := range c.Cells {
			columns[i].Cells = append(columns[i].Cells, c.cell(cell, unit.Per))
		}
		if c.Kind == Path {
			columns[i].Cells = bases(columns[i].Cells)
		}
	}
	return columns
}

// bases are the last parts of paths, and whole paths where two would look alike: a/x, b/y → x, y.
func bases(paths []string) []string {
	whole, out := map[string]string{}, make([]string, len(paths))
	for i, path := range paths {
		out[i] = filepath.Base(path)
		if other, ok := whole[out[i]]; ok && other != path {
			return paths
		}
		whole[out[i]] = path
	}
	return out
}

// unit is what a column is shown in. The largest cell of the column and of the columns it
// is read against has at least 10 of it, so that smaller ones keep their digits.
func (t Table) unit(column Column) quantity.Unit {
	most := 0.0
	for _, c := range t.Columns {
		for _, cell := range c.Cells {
			if x, ok := number(cell); ok && c.Kind == column.Kind && c.Group == column.Group {
				most = max(most, math.Abs(x))
			}
		}
	}
	switch column.Kind {
	case Duration:
		return quantity.TimeUnit(most / 10)
	case Bytes:
		return quantity.SizeUnit(most)
	}
	return quantity.Unit{Per: 1}
}

// number is the numeric value of a cell, false for text and undefined.
func number(v any) (float64, bool) {
	if d, ok := v.(interface{ Defined() bool }); ok && !d.Defined() {
		return 0, false
	}
	x := reflect.ValueOf(v)
	if !x.IsValid() || !x.CanConvert(real) {
		return 0, false
	}
	n := x.Convert(real).Float()
	return n, quantity.Known(n)
}

// cell writes a value for people, in multiples of per.
func (c Column) cell(v any, per float64) string {
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.String:
		text := shown.Text(strings.ReplaceAll(x.String(), "\n", " ")) // a row stays one line
		if runes := []rune(text); c.Kind == Short && len(runes) > 70 {
			text = string(runes[:69]) + "…"
		}
		return text
	case reflect.Bool:
		if x.Bool() {
			return "yes"
		}
		return "no"
	}
	x, ok := number(v)
	x /= per
	switch write, own := writers[c.Kind]; {
	case !ok:
		return quantity.Unknown
	case own:
		return write(x)
	case per == 1:
		return quantity.Decimals(x, 0)
	case x > 0 && x < 0.005: // and no zero
		return "<0.01"
	case x < 0 && x > -0.005:
		return ">−0.01"
	}
	return quantity.Decimals(x, 2)
}

// writers write the numbers of kinds that are not shown in units.
var writers = map[Kind]func(float64) string{"": quantity.Plain[float64], Label: quantity.Plain[float64],
	Count: quantity.Plain[float64], Ratio: quantity.Ratio[float64], Percent: quantity.Percent[float64],
	Real: quantity.Digits4[float64]}

// CSV writes the raw values.
func (t Table) CSV(w io.Writer) error {
	if len(t.Columns) == 0 {
		return nil // a line of no cells would be blank
	}
	lines := make([][]string, 1+t.Len())
	for _, c := range t.Columns {
		lines[0] = append(lines[0], c.Key)
		for row, cell := range c.Cells {
			lines[row+1] = append(lines[row+1], raw(cell))
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// raw writes a value for programs: integers digit for digit, for times exceed
// 2^53, and floats so that reading gives the same bits. No spreadsheet takes a text for a formula.
func raw(v any) string {
	x := reflect.ValueOf(v)
	n, ok := number(v)
	switch {
	case x.Kind() == reflect.String:
		text := shown.Text(x.String())
		first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, " "))
		if _, err := strconv.ParseFloat(text, 64); err != nil && strings.ContainsRune("=+-@＝＋－＠", first) {
			return "'" + text
		}
		return text
	case x.Kind() == reflect.Bool:
		return strconv.FormatBool(x.Bool())
	case !ok:
		return ""
	case x.CanFloat() && n == math.Trunc(n) && math.Abs(n) < 1e15: // times in whole nanoseconds
		return strconv.FormatFloat(n, 'f', -1, 64)
	case x.CanFloat():
		return strconv.FormatFloat(n, 'g', -1, x.Type().Bits()) // a float32 2.827 stays 2.827
	}
	return fmt.Sprintf("%d", v)
}
