package counts

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

var (
	partColumn = regexp.MustCompile(`^(|e|expert|(?:rank|eprank|gpu))(\d{1,5})$`) // of one expert or rank
	listColumn = regexp.MustCompile(`^(?:expert|rank)(?:s|distribution|counts?|loads?|tokens)$`)
	labels     = []string{"phase", "model", "modelname", "dataset"}
)

// table is a text whose rows are counts. Layer,Expert 0,Expert 1 and 3,5,7 → layer 3, expertcounts [5,7].
type table struct {
	*csv.Reader
	columns []column
	parts   []int  // the columns of experts or ranks from 0 on, or the one column of lists
	counts  string // the payload that these are
}

// column is what a column says: a number, a label, or nothing.
type column struct {
	name   string
	number int // unknown for a label
}

// openTable opens a text as a table, whose header is the first line that does not begin with #; nil for a text that is
// no table of counts. Spreadsheets put semicolons where the comma is a decimal point.
func openTable(d *document) *table {
	text := bytes.TrimPrefix(d.text, []byte("\ufeff")) // which spreadsheets write
	if bytes.IndexByte(text[:min(len(text), 1<<16)], '\n') < 0 {
		return nil
	}
	for _, comma := range ",;\t" {
		t := &table{Reader: csv.NewReader(bytes.NewReader(text)), counts: "expertcounts"}
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
	at, spelled, list := map[int]string{}, false, []int(nil)
	var again [2]string // columns of one kind
	for i, spelling := range head {
		name := plain(strings.Trim(spelling, "\" \t\r"))
		c := column{name, unknown}
		switch number, isNumber := names[name]; {
		case isNumber && number <= isCount:
			if c.number = number; at[number] != "" {
				again = [2]string{at[number], spelling}
			}
			at[number] = spelling
		case !slices.Contains(labels, name):
			if m := partColumn.FindStringSubmatch(name); m != nil && m[2] == strconv.Itoa(len(t.parts)) {
				t.parts, spelled = append(t.parts, i), spelled || m[1] != ""
			} else if lists && listColumn.MatchString(name) {
				list = []int{i}
			}
			c.name = ""
		}
		t.columns = append(t.columns, c)
	}
	layered := at[isLayer] != ""
	cells := at[isCount] != "" && (at[isExpert] != "" || at[isRank] != "" && layered)
	switch {
	case cells:
		t.parts = nil
	case len(t.parts) < 2 || !layered && !spelled:
		t.parts = list
	}
	if !cells && t.parts == nil {
		return false
	}
	if again[0] != "" {
		fail("header: want one column of a kind, have %q and %q; remove one", again[0], again[1])
	}
	if cells {
		return true
	}
	if first := plain(head[t.parts[0]]); strings.HasPrefix(first, "gpu") || strings.Contains(first, "rank") {
		t.counts = "rankcounts"
	}
	for i, c := range t.columns {
		if c.number >= isExpert {
			t.columns[i] = column{"", unknown}
		}
	}
	return true
}

// readTable reads one count per layer and expert, or a row of them. Without steps, the counts are sums over the
// recording, without a layer they are of one.
func (c *collector) readTable(t *table) {
	c.unit = "line"
	for {
		cells, err := t.Read()
		if err == io.EOF {
			break
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			c.number = bad.Line
			fail("want %d fields as in the header, quoted as in CSV, have others", len(t.columns))
		}
		c.number, _ = t.FieldPos(0)
		of := nothing()
		for i, column := range t.columns {
			switch {
			case column.name == "":
			case column.number == unknown:
				of.describe(column.name, cells[i])
			default:
				n, err := whole(cells[i])
				if err != nil || n < 0 {
					fail("%s: want a whole number from 0 on, have %q", column.name, cells[i])
				}
				of.numbers[column.number] = n
			}
		}
		if t.parts == nil {
			c.cell(of)
		} else {
			c.keys = []string{t.counts}
			c.payload(payloads[t.counts], t.list(cells), nil, of)
			c.keys = nil
		}
	}
	c.Format = "expert counts CSV"
}

// list are the counts of a row.
func (t *table) list(cells []string) any {
	var list []string
	for _, i := range t.parts {
		list = append(list, cells[i])
	}
	text := strings.Join(list, ",")
	if !strings.HasPrefix(text, "[") {
		text = "[" + text + "]"
	}
	counts, ok := celled(text).(tensor.Stored)
	if !ok {
		fail("want whole numbers, have %.60q", text)
	}
	return counts
}
