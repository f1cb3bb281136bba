package counts

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	partColumn = regexp.MustCompile(`^(|e|expert|rank|eprank|gpu)(\d{1,5})$`) // of one expert or rank
	listColumn = regexp.MustCompile(`^(?:expert|rank)(?:s|distribution|counts?|loads?|tokens)$`)
	labels     = []string{"phase", "model", "modelname", "dataset"}
)

// table is a text whose rows hold one count each, or the counts of all experts or ranks, in columns or in a list:
// layer,expert 0,expert 1 and 3,5,7 → in layer 3 experts 0 and 1 have 5 and 7.
type table struct {
	*csv.Reader
	names []string // of the columns, "" where one says nothing
	parts []int    // the columns of experts or ranks from 0 on, or the column of lists; none where a row is one count
	list  bool
	level int // isExpert or isRank, of the parts
}

// openTable opens a text as a table, whose header is the first line that does not begin with #; nil for a text that is
// no table of counts. Spreadsheets put semicolons where the comma is a decimal point.
func openTable(d *document) *table {
	text := bytes.TrimPrefix(d.text, []byte("\ufeff")) // which spreadsheets write
	if bytes.IndexByte(text[:min(len(text), 1<<16)], '\n') < 0 {
		return nil
	}
	for _, comma := range ",;\t" {
		t := &table{Reader: csv.NewReader(bytes.NewReader(text)), level: isExpert}
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
	at, first, spelled, both := map[int][]string{}, "", false, false // spellings by number, the name of the first part
	for i, spelling := range head {
		name := plain(strings.Trim(spelling, "\" \t\r"))
		number, isNumber := names[name]
		m := partColumn.FindStringSubmatch(name)
		switch {
		case isNumber && number <= isCount:
			at[number] = append(at[number], spelling)
		case slices.Contains(labels, name):
		case !t.list && m != nil && m[2] == strconv.Itoa(len(t.parts)):
			t.parts, spelled = append(t.parts, i), spelled || m[1] != ""
			first, name = cmp.Or(first, name), ""
		case lists && listColumn.MatchString(name):
			both = both || len(t.parts) > 1
			t.parts, t.list, first, name = []int{i}, true, name, ""
		default:
			name = ""
		}
		t.names = append(t.names, name)
	}
	if both {
		fail("header: want counts in columns or in a list, have both; remove one")
	}
	layered := at[isLayer] != nil
	switch {
	case at[isCount] != nil && (at[isExpert] != nil || at[isRank] != nil && layered):
		t.parts = nil
	case !t.list && (len(t.parts) < 2 || !layered && !spelled):
		return false
	case strings.HasPrefix(first, "gpu") || strings.Contains(first, "rank"):
		t.level = isRank
	}
	for number, same := range at {
		if len(same) > 1 {
			fail("header: want one column of a kind, have %q and %q; remove one", same[0], same[1])
		} else if t.parts != nil && number >= isExpert {
			t.names[slices.Index(head, same[0])] = ""
		}
	}
	return true
}

// readTable reads one count per layer and expert, or a row of them. Without steps, the counts are sums over the
// recording, without a layer they are of one.
func (c *collector) readTable(t *table) {
	c.unit = "line"
	for width := 0; ; {
		cells, err := t.Read()
		if err == io.EOF {
			break
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			c.number = bad.Line
			fail("want %d fields as in the header, quoted as in CSV, have others", len(t.names))
		}
		c.number, _ = t.FieldPos(0)
		of := nothing()
		for i, name := range t.names {
			if number, ok := names[name]; ok {
				of.numbers[number] = counted(name, cells[i])
			} else if name != "" {
				of.describe(name, cells[i])
			}
		}
		if t.parts == nil {
			c.cell(of)
			continue
		}
		counts := t.counts(cells)
		if width = cmp.Or(width, len(counts)); width != len(counts) {
			fail("want counts of %d experts or ranks as before, have %d", width, len(counts))
		}
		for part, n := range counts {
			of.numbers[t.level], of.numbers[isCount] = int64(part), n
			c.cell(of)
		}
	}
	c.Format, c.atLeast = "expert counts CSV", t.parts == nil
}

// counted is the number in a cell of a column.
func counted(column, cell string) int64 {
	n, err := whole(cell)
	if err != nil || n < 0 {
		fail("%s: want a whole number from 0 on, have %q", column, cell)
	}
	return n
}

// counts are the counts of all experts or ranks in a row.
func (t *table) counts(cells []string) (list []int64) {
	if t.list {
		a := arrayOf(celled(cells[t.parts[0]]))
		if len(a.Shape) != 1 || len(a.Values) == 0 {
			fail("want a list of counts, have %.60q", cells[t.parts[0]])
		}
		return a.Values
	}
	for part, i := range t.parts {
		list = append(list, counted(strconv.Itoa(part), cells[i]))
	}
	return list
}
