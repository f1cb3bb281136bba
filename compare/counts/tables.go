package counts

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

var (
	partColumn = regexp.MustCompile(`^(|e|expert|rank|eprank|gpu)(\d{1,5})$`) // of one expert or rank
	listColumn = regexp.MustCompile(`^(expert|rank)(?:s|distribution|counts?|loads?|tokens)$`)
	labels     = []string{"phase", "model", "modelname", "dataset"}
)

// table is a text whose rows hold one count each, or the counts of all experts or ranks, in columns or in a list:
// layer,expert 0,expert 1 and 3,5,7 → in layer 3 experts 0 and 1 have 5 and 7.
type table struct {
	*csv.Reader
	names []string // of the columns, "" where one says nothing
	parts []int    // the columns of experts or ranks from 0 on, or the column of lists; nil where a row is one count
	holds string   // the name of the counts in parts
}

// openTable opens a text as a table, whose header is the first line that does not begin with #; nil for a text that is
// no table of counts. Spreadsheets put semicolons where the comma is a decimal point.
func openTable(text []byte) *table {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // which spreadsheets write
	if bytes.IndexByte(text[:min(len(text), 1<<16)], '\n') < 0 {
		return nil
	}
	for _, comma := range ",;\t" {
		t := &table{Reader: csv.NewReader(bytes.NewReader(text))}
		t.ReuseRecord, t.Comment, t.Comma = true, '#', comma
		head, _ := t.Read() // none where that is no CSV
		if t.headed(head, bytes.Contains(text, []byte(`"[`))) {
			return t
		}
	}
	return nil
}

// headed finds what the columns of a header say; false for no table of counts. Lists in cells are in quotes.
func (t *table) headed(head []string, lists bool) bool {
	columns, twice, list, level := map[int]string{}, "", false, "" // of numbers
	for i, spelling := range head {
		name := plain(strings.Trim(spelling, "\" \t\r"))
		number, isNumber := names[name]
		part, whole := partColumn.FindStringSubmatch(name), listColumn.FindStringSubmatch(name)
		switch {
		case isNumber && number <= isCount:
			if columns[number] != "" {
				twice = fmt.Sprintf("%q and %q", columns[number], spelling)
			}
			columns[number] = spelling
		case slices.Contains(labels, name):
		case lists && whole != nil && len(t.parts) > 1:
			fail("header: want counts in columns or in a list, have both; remove one")
		case lists && whole != nil:
			t.parts, list, level, name = []int{i}, true, whole[1], ""
		case !list && part != nil && part[2] == strconv.Itoa(len(t.parts)):
			t.parts, level, name = append(t.parts, i), part[1], ""
		default:
			name = ""
		}
		t.names = append(t.names, name)
	}
	layered := columns[isLayer] != ""
	switch {
	case columns[isCount] != "" && (columns[isExpert] != "" || columns[isRank] != "" && layered):
		t.parts = nil
	case !list && (len(t.parts) < 2 || !layered && level == ""):
		return false
	}
	t.holds = "expert_counts"
	if level == "gpu" || strings.HasSuffix(level, router.LevelRank) {
		t.holds = "rank_counts"
	}
	if twice != "" {
		fail("header: want one column of a kind, have %s; remove one", twice)
	}
	return true
}

// readTable reads one count per layer and expert, or a row of them. Without steps, the counts are sums over the
// recording, without a layer they are of one.
func (c *collector) readTable(t *table) {
	for {
		cells, err := t.Read()
		if err == io.EOF {
			break
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			fail("line %d: want %d fields as in the header, quoted as in CSV, have others", bad.Line, len(t.names))
		}
		line, _ := t.FieldPos(0)
		of := nothing()
		within(fmt.Sprint("line ", line), func() { c.walk(t.object(cells), &of) })
	}
	c.Format, c.atLeast = tableFormat, t.parts == nil
}

// object is a row as JSON would say it: layer 3, expert_counts [5, 7].
func (t *table) object(cells []string) map[string]any {
	row := map[string]any{}
	for i, name := range t.names {
		if number, isNumber := names[name]; isNumber && (t.parts == nil || number <= isLayer) {
			row[name] = counted(name, cells[i])
		} else {
			row[name] = cells[i]
		}
	}
	switch list := make([]any, len(t.parts)); {
	case len(t.parts) == 1:
		if row[t.holds] = celled(cells[t.parts[0]]); !isArray(row[t.holds]) ||
			len(arrayOf(row[t.holds]).Shape) != 1 {
			fail("want a list of counts, have %.60q", cells[t.parts[0]])
		}
	case t.parts != nil:
		for part, i := range t.parts {
			list[part] = counted(strconv.Itoa(part), cells[i])
		}
		row[t.holds] = list
	}
	return row
}

// counted is the number in a cell of a column.
func counted(column, cell string) int64 {
	n, err := number(cell)
	if err != nil || n < 0 {
		fail("%s: want a whole number from 0 on, have %q", column, cell)
	}
	return n
}
