package output

import (
	"encoding/csv"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router/table"
	"github.com/moebalance/moebalance/testdata/require"
)

// made is a table of these rows.
func made(name, title, columns string, rows ...[]any) table.Table {
	var cells []table.Cell
	for i, column := range strings.Split(columns, ", ") {
		key := column[:strings.IndexAny(column+"=", ":@=")]
		cells = append(cells, table.Computed(key, func(row []any) any { return row[i] }))
	}
	return table.Of(name, title, rows, columns, cells...)
}

func sample() Document {
	phases := made("phases", "Phases", "phase, instances:count=launches, total_ns, max_over_mean, "+
		"imbalance:percent, size_bytes=size",
		[]any{"experts", int64(384), int64(9_007_199_254_740_993), 1.25, 0.25, int64(3 << 20)},
		[]any{"a | b", 1, int64(2_500_000), math.NaN(), nil, int64(1 << 19)})
	return Document{
		Headline: "Rank 2 waits least.",
		Tables:   []table.Table{phases, made("empty", "", "only")},
		Notes:    []string{"time is kernel time"},
		Value:    map[string]any{"schema_version": 1, "note": "<a>"},
	}
}

func render(t *testing.T, f Format, table string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Write(&b, View{Format: f, Table: table}, sample()))
	return b.String()
}

// A duration above 2^53 must reach CSV digit for digit; undefined cells are
// empty, never 0 and never NaN.
func TestCSVIsRaw(t *testing.T) {
	want := "phase,instances,total_ns,max_over_mean,imbalance,size_bytes\n" +
		"experts,384,9007199254740993,1.25,0.25,3145728\n" +
		"a | b,1,2500000,,,524288\n"
	if got := render(t, CSV, ""); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A table that this result has none of is empty, and the others are named.
func TestNoSuchTable(t *testing.T) {
	if got := render(t, Text, "dose"); !strings.Contains(got, "dose: none in this result, which has phases, empty") {
		t.Error(got)
	}
	if got := render(t, CSV, "dose"); got != "" {
		t.Errorf("CSV of a table that is not there: %q", got)
	}
}

// absent is a number that has no value below 0.
type absent int

func (a absent) Defined() bool { return a >= 0 }

// Every type of number is written, whole numbers digit for digit.
func TestCellsOfEveryType(t *testing.T) {
	type named float64
	for _, c := range []struct {
		value     any
		text, csv string
	}{
		{"a\x1b[2Jb", `a\x1b[2Jb`, `a\x1b[2Jb`}, {true, "yes", "true"}, {nil, "–", ""}, {struct{}{}, "–", ""},
		{uint64(math.MaxUint64), "1.845e+19", "18446744073709551615"}, {int8(-3), "−3", "-3"}, {uint16(7), "7", "7"},
		{float32(0.5), "0.5", "0.5"}, {named(0.12345), "0.1235", "0.12345"}, {named(math.NaN()), "–", ""},
		{math.Inf(1), "–", ""},
		{absent(-1), "–", ""}, {absent(4), "4", "4"}, {18711.4, "18711", "18711.4"}, {0.09375, "0.09375", "0.09375"},
		{1234.56, "1235", "1234.56"}, {2.5e9, "2.5e+09", "2500000000"},
	} {
		d := Document{Tables: []table.Table{made("", "", "x:real", []any{"x"}, []any{c.value})}}
		for format, want := range map[Format]string{Text: c.text, CSV: c.csv} {
			var b strings.Builder
			require.NoError(t, Write(&b, View{Format: format}, d))
			lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			if got := strings.Trim(lines[len(lines)-1], ` "`); got != want {
				t.Errorf("%v (%T) as %s: %q, want %q", c.value, c.value, format, got, want)
			}
		}
	}
}

// Times of a table share the unit of the largest, so that no column can be misread
// beside another; only columns of another group have a unit of their own.
func TestColumnsShareAUnit(t *testing.T) {
	d := Document{Tables: []table.Table{made("", "", "a_ns, b_ns, c_ns@each", []any{12e6, 500, 500})}}
	var b strings.Builder
	require.NoError(t, Write(&b, View{Format: Text}, d))
	for _, want := range []string{"a (ms)  b (ms)  c (ns)", " 12.00   <0.01     500"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Rows are the fields with the JSON keys of the columns, promoted ones among them, or
// what a column computes.
func TestTableOfFields(t *testing.T) {
	type inner struct {
		Total int64 `json:"total_ns"`
	}
	type item struct {
		Name string `json:"name,omitempty"`
		inner
		Below *inner `json:"below"`
	}
	of := table.Of("t", "", []item{{"a", inner{3}, &inner{4}}, {"b", inner{5}, nil}},
		"name, total_ns, twice:percent@own=of it, deep_ns<below.total_ns",
		table.Computed("twice", func(i item) any { return 2 * i.Total }))
	want := []table.Column{{Name: "name", Key: "name", Cells: []any{"a", "b"}},
		{Name: "total", Key: "total_ns", Kind: table.Duration, Cells: []any{int64(3), int64(5)}},
		{Name: "of it", Key: "twice", Kind: table.Percent, Group: "own", Cells: []any{int64(6), int64(10)}},
		{Name: "deep", Key: "deep_ns", Kind: table.Duration, Cells: []any{int64(4), nil}}}
	if !reflect.DeepEqual(of.Columns, want) {
		t.Errorf("columns %+v, want %+v", of.Columns, want)
	}
	defer func() {
		if fault := recover(); fault == nil || !strings.Contains(fault.(string), `"other"`) {
			t.Errorf("a column without a field: %v", fault)
		}
	}()
	table.Of("t", "", []item{}, "other")
}

// People are shown the largest rows of a long table, and how many more there are; CSV is
// whole.
func TestTop(t *testing.T) {
	var rows [][]any
	for rank := range 61 {
		rows = append(rows, []any{rank, []string{"expert", "rank"}[rank%2], 1 + float64(rank%40)/100})
	}
	rows[0][2] = math.NaN()
	d := Document{Tables: []table.Table{made("long", "", "rank:count, level, max_over_mean", rows...).LeadBy("level",
		"max_over_mean")}}
	for _, c := range []struct {
		format Format
		table  string
		rows   int
		first  string
		more   string
	}{
		{Text, "", 20, "  39  rank      1.390", "… and 41 more (largest first; --table long shows all)"},
		{Text, "long", 61, "   0  expert         –", ""},
		{Markdown, "", 20, "| 39 | rank | 1.390 |", "|\n\n… and 41 more"},
		{CSV, "", 61, "0,expert,", ""},
	} {
		var b strings.Builder
		require.NoError(t, Write(&b, View{Format: c.format, Table: c.table}, d))
		rows := strings.Count(b.String(), "expert") + strings.Count(b.String(), "rank") - 1 // the heading
		if rows != c.rows || !strings.Contains(b.String(), c.first) || !strings.Contains(b.String(), c.more) ||
			c.more == "" && strings.Contains(b.String(), "more") {
			t.Errorf("%s %q: want %d rows from %q and %q, have %d of\n%s", c.format, c.table, c.rows,
				c.first, c.more, rows, b.String())
		}
	}
	if d.Tables[0].Columns[0].Cells[0] != 0 || d.Tables[0].Len() != 61 {
		t.Error("the document was changed")
	}
}

// largestWrite is how many bytes came, and how many at once.
type largestWrite struct{ all, most int }

func (w *largestWrite) Write(b []byte) (int, error) {
	w.all, w.most = w.all+len(b), max(w.most, len(b))
	return len(b), nil
}

// A list that is nil is no unknown: readers go through it.
func TestNoListIsNull(t *testing.T) {
	var w strings.Builder
	if err := Write(&w, View{Format: JSON}, Document{Value: struct{ Rows []int }{}}); err != nil ||
		!strings.Contains(w.String(), `"Rows": []`) {
		t.Errorf("%v: %s", err, w.String())
	}
}

// JSON is written as it is made: as one text, a large trace would take more memory than the
// trace.
func TestJSONIsWrittenInPieces(t *testing.T) {
	var w largestWrite
	require.NoError(t, Write(&w, View{Format: JSON}, Document{Value: make([]struct{ Name string }, 100_000)}))
	if w.all < 2e6 || w.most > w.all/20 {
		t.Errorf("%d bytes, up to %d at once", w.all, w.most)
	}
}

// Names come from files of others. None is read as HTML, a link, a cell more, a formula
// or an order to the terminal, and no secret in them is shown, whatever the format.
func TestHostileNames(t *testing.T) {
	names := []string{
		"<script>alert(1)</script>", "a|b", "![x](http://evil/)", "`x` *y*", "=1+1", "+SUM(A1)", "-2+3", "@cmd", " =x",
		"＝1", "a\u202eb", "\x1b[2J",
		"run ?api_key=hunter2", "sk-abc123def456", "-1.5", "a&lt;b", `back\|slash`,
	}
	d := Document{Headline: names[0], Notes: names, Tables: []table.Table{table.Of("t", names[0], names, "name",
		table.Computed("name", func(name string) any { return name }))}, Value: names}
	written := map[Format]string{}
	for _, f := range Formats {
		b := strings.Builder{}
		require.NoError(t, Write(&b, View{Format: f}, d))
		written[f] = b.String()
		for _, bad := range []string{"hunter2", "sk-abc", "\x1b", "\u202e"} {
			if strings.Contains(b.String(), bad) && (f != JSON || bad != "\u202e") {
				t.Errorf("%s holds %q:\n%s", f, bad, b.String())
			}
		}
	}
	for _, want := range []string{"| &lt;script&gt;alert(1)&lt;/script&gt; |", `| a\|b |`, `| !\[x\](http://evil/) |`, "| \\`x\\` \\*y\\* |", "| a&amp;lt;b |", `| back\\\|slash |`, "### &lt;script&gt;", `\[1\] &lt;script&gt;`, `a\\u202eb`} {
		if !strings.Contains(written[Markdown], want) {
			t.Errorf("Markdown lacks %q:\n%s", want, written[Markdown])
		}
	}
	rows := require.Value(csv.NewReader(strings.NewReader(written[CSV])).ReadAll())
	for i, want := range []string{"'=1+1", "'+SUM(A1)", "'-2+3", "'@cmd", "' =x", "'＝1", `a\u202eb`, `\x1b[2J`} {
		if got := rows[5+i][0]; got != want {
			t.Errorf("CSV: have %q, want %q", got, want)
		}
	}
	if got := rows[15][0]; got != "-1.5" {
		t.Errorf("CSV: a number became %q", got)
	}
}
