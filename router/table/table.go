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
	Short    Kind = "short"    // text, of which people are shown the beginning
	Path     Kind = "path"     // text, of which people are shown the last part, where these differ
	Count    Kind = "count"    // integers
	Ratio    Kind = "ratio"    // dimensionless, three decimals: 1.234
	Percent  Kind = "percent"  // a fraction, shown as 12.3 %
	Duration Kind = "duration" // nanoseconds, shown in the unit that fits the column
	Bytes    Kind = "bytes"    // bytes, shown as KiB, MiB or GiB
	Real     Kind = "real"     // a number of no fixed unit: four significant digits, more only before the point
)

// Column is a heading. Name is for people; Key is the CSV header and carries
// the unit ("total_ns"). An empty Key means Name.
type Column struct {
	Name string
	Key  string
	Kind Kind // "" is Label
	// Group tells columns of a kind apart that are not read against each other, such
	// as totals and the statistics of one instance. Within a group, and so by default
	// within a table, all columns of a kind share a unit.
	Group string

	path string // to the cell in an item, see wayTo
}

// Table holds rows of cells: string, bool, any integer or float type. A NaN, an
// infinity, nil, or a number that itself says so (definite) means undefined: "–" for
// people, an empty cell in CSV.
type Table struct {
	Name    string // selects the table with --table
	Title   string
	Columns []Column
	Rows    [][]any
	Left    int      // rows that were cut
	Leading []string // keys of columns: a table that is cut keeps the rows that are largest in these
}

// LeadBy names the columns whose largest rows are kept where the table is cut.
func (t Table) LeadBy(keys ...string) Table {
	t.Leading = keys
	return t
}

// New is a table without rows. The description lists its columns by key, with commas between them,
// each with what its key and its cells do not tell: key:kind@group=name for people. So
// "rank:count, total_ns, share:percent=of step" are the columns rank, total (in a unit of time)
// and "of step".
func New(name, title, columns string) Table {
	t := Table{Name: name, Title: title}
	for text := range strings.SplitSeq(columns, ", ") {
		text, name, _ := strings.Cut(text, "=")
		text, group, _ := strings.Cut(text, "@")
		text, kind, _ := strings.Cut(text, ":")
		key, path, _ := strings.Cut(text, "<")
		t.Columns = append(t.Columns, Column{Key: key, Name: cmp.Or(name, nameOf(key)), Group: group, path: cmp.Or(path, key),
			Kind: cmp.Or(Kind(kind), kindOf(key))})
	}
	return t
}

// nameOf is a key in words: "total_ns" → "total", "rank_max_over_mean" → "rank max/mean".
func nameOf(key string) string {
	return strings.NewReplacer("_over_", "/", "_", " ").Replace(strings.TrimSuffix(key, "_ns"))
}

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

// Cell computes the cells of a column that is no field of its items.
type Cell struct {
	key string
	of  func(item any) any
}

// Computed is the cell of a column for an item.
func Computed[T any](key string, of func(T) any) Cell {
	return Cell{key, func(item any) any { return of(item.(T)) }}
}

// Of is a table with a row for each item. Cells that are not computed are the field whose JSON key is the
// column's, or behind < the path to it: "low<gain.low:percent" is a column low of the field low in the
// field gain, "share<Share" what the method Share of an item returns. A column that is neither is a programming
// error, and panics.
func Of[T any](name, title string, items []T, columns string, computed ...Cell) Table {
	t := New(name, title, columns)
	t.Rows = make([][]any, len(items))
	for i := range t.Columns {
		c := &t.Columns[i]
		var cell func(item any) any
		if at := slices.IndexFunc(computed, func(o Cell) bool { return o.key == c.Key }); at >= 0 {
			cell = computed[at].of
		} else {
			cell = c.field(reflect.TypeFor[T]())
		}
		for row, item := range items {
			t.Rows[row] = append(t.Rows[row], cell(item))
		}
	}
	return t
}

// field is the cell of an item at the column's path. Its type tells the column's kind, where nothing else does.
func (c *Column) field(item reflect.Type) func(item any) any {
	way, of := wayTo(item, c.path)
	switch {
	case way == nil:
		panic(fmt.Sprintf("column %s: %v has no field with the JSON key %q", c.Key, item, c.path))
	case c.Kind != "" || !of.ConvertibleTo(real) || of.Kind() == reflect.String:
	case reflect.Zero(of).CanFloat():
		c.Kind = Real
	default:
		c.Kind = Count
	}
	return func(item any) any {
		v := way(reflect.ValueOf(item))
		if !v.IsValid() {
			return nil
		}
		if numbers, ok := v.Interface().([]int); ok && len(numbers) > 0 {
			return quantity.Ranges(numbers)
		}
		return v.Interface()
	}
}

var real = reflect.TypeFor[float64]()

// wayTo is the way to what a path of JSON keys, fields and methods names in a type, and its type; nil where there
// is none. It ends early at pointers that are nil, and at fields that JSON omits.
func wayTo(t reflect.Type, path string) (way func(reflect.Value) reflect.Value, of reflect.Type) {
	key, rest, deeper := strings.Cut(path, ".")
	if t.Kind() == reflect.Pointer {
		way, of = wayTo(t.Elem(), path)
		return unless(reflect.Value.IsNil, reflect.Value.Elem, way), of
	}
	if m, ok := t.MethodByName(key); ok {
		return func(v reflect.Value) reflect.Value { return v.Method(m.Index).Call(nil)[0] }, m.Type.Out(0)
	}
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag != key && f.Name != key {
			continue
		}
		field := func(v reflect.Value) reflect.Value { return v.FieldByIndex(f.Index) }
		if way, of = func(v reflect.Value) reflect.Value { return v }, f.Type; deeper {
			way, of = wayTo(f.Type, rest)
		}
		omitted := func(v reflect.Value) bool { return options == "omitempty" && field(v).IsZero() }
		return unless(omitted, field, way), of
	}
	return nil, nil
}

// unless is a step and the way behind it, which ends before the step where none leads on.
func unless(ends func(reflect.Value) bool, step,
	way func(reflect.Value) reflect.Value) func(reflect.Value) reflect.Value {
	if way == nil {
		return nil
	}
	return func(v reflect.Value) reflect.Value {
		if ends(v) {
			return reflect.Value{}
		}
		return way(step(v))
	}
}

// id is the column's key.
func (c Column) id() string { return cmp.Or(c.Key, c.Name) }

// Numeric reports a column that is set to the right.
func (c Column) Numeric() bool { return !slices.Contains([]Kind{"", Label, Short, Path}, c.Kind) }

// keep is the table with the wanted columns alone.
func (t Table) keep(wanted func(i int) bool) *Table {
	out := t
	out.Columns, out.Rows = nil, make([][]any, len(t.Rows))
	for i, c := range t.Columns {
		if !wanted(i) {
			continue
		}
		out.Columns = append(out.Columns, c)
		for r, row := range t.Rows {
			out.Rows[r] = append(out.Rows[r], row[i])
		}
	}
	return &out
}

// Without is the table without the columns of these keys.
func (t Table) Without(keys ...string) *Table {
	return t.keep(func(i int) bool { return !slices.Contains(keys, t.Columns[i].id()) })
}

// Filled is the table without the columns that no row has a value of.
func (t Table) Filled() Table {
	return *t.keep(func(i int) bool {
		return len(t.Rows) == 0 || slices.ContainsFunc(t.Rows, func(row []any) bool { return raw(row[i]) != "" })
	})
}

// Cut is the table with the first n rows in the order of the leading columns, each of them
// from the largest down: texts by letter, numbers by their distance from 0.
// Rows in which a number is undefined come last.
func (t Table) Cut(n int) Table {
	n = min(n, len(t.Rows))
	rows := slices.Clone(t.Rows)
	for _, key := range slices.Backward(t.Leading) {
		if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.id() == key }); i >= 0 {
			slices.SortStableFunc(rows, func(a, b []any) int { return bySize(b[i], a[i]) })
		}
	}
	t.Rows, t.Left = rows[:n], len(rows)-n
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
		for _, row := range t.Rows {
			columns[i].Cells = append(columns[i].Cells, c.cell(row[i], unit.Per))
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
	for i, c := range t.Columns {
		for _, row := range t.Rows {
			if x, ok := number(row[i]); ok && c.Kind == column.Kind && c.Group == column.Group {
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

// mostShort is how many characters of a Short text people are shown.
const mostShort = 70

// cell writes a value for people, in multiples of per.
func (c Column) cell(v any, per float64) string {
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.String:
		text := shown.Text(strings.ReplaceAll(x.String(), "\n", " ")) // a row stays one line
		if runes := []rune(text); c.Kind == Short && len(runes) > mostShort {
			text = string(runes[:mostShort-1]) + "…"
		}
		return text
	case reflect.Bool:
		return map[bool]string{true: "yes", false: "no"}[x.Bool()]
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
	case x != 0 && math.Abs(x) < 0.005: // and no zero
		return map[bool]string{true: "<0.01", false: ">−0.01"}[x > 0]
	}
	return quantity.Decimals(x, 2)
}

// writers write the numbers of kinds that are not shown in units.
var writers = map[Kind]func(float64) string{"": quantity.Plain[float64], Label: quantity.Plain[float64],
	Count: quantity.Plain[float64], Ratio: quantity.Ratio[float64], Percent: quantity.Percent[float64],
	Real: quantity.Digits4[float64]}

// CSV writes the raw values.
func (t Table) CSV(w io.Writer) error {
	var head []string
	for _, c := range t.Columns {
		head = append(head, c.id())
	}
	lines := [][]string{head}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = raw(v)
		}
		lines = append(lines, cells)
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
