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

	"github.com/moebalance/moebalance/router"
)

var (
	partColumn = regexp.MustCompile(`^(|e|expert|rank|eprank|gpu)(\d{1,5})$`) // of one expert or rank
	listColumn = regexp.MustCompile(`^(expert|rank)(?:s|distribution|counts?|loads?|tokens)$`)
	commented  = regexp.MustCompile(`^# ?(?i:layer,)`) // a header, as numpy.savetxt writes it
)

// table is a text whose rows hold one count each, or the counts of all experts or ranks, in columns or in a list:
// layer,expert 0,expert 1 and 3,5,7 → in layer 3 experts 0 and 1 have 5 and 7.
type table struct {
	*csv.Reader
	names   []string
	columns []column
	unknown []string // other columns
	parts   []int    // the columns of experts or ranks from 0 on, or the column of lists; nil where a row is one count
	holds   payload  // the counts in parts
}

// column says something of all counts in a row, by one of names.
type column struct {
	at, number int
	name       string
}

// openTable opens a text as a table, whose header is the first line that does not begin with #; nil for a text that is
// no table of counts. Spreadsheets put semicolons where the comma is a decimal point.
func openTable(text []byte) *table {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // which spreadsheets write
	if commented.Match(text) {
		text = bytes.TrimLeft(text, "# ")
	}
	for _, comma := range ",;\t" {
		t := &table{Reader: csv.NewReader(bytes.NewReader(text)), holds: layerCounts}
		t.Comment, t.Comma = '#', comma
		t.names, _ = t.Read() // none where that is no CSV
		t.ReuseRecord = true
		if t.headed(t.names, bytes.Contains(text, []byte(`"[`))) {
			return t
		}
	}
	return nil
}

// headed finds what the columns of a header say; false for no table of counts. Lists in cells are in quotes.
func (t *table) headed(head []string, lists bool) bool {
	spelled, list, level := map[int]string{}, false, "" // of numbers
	for i, spelling := range head {
		name := plain(strings.Trim(spelling, "\" \t\r"))
		number, known := names[name]
		part, whole := partColumn.FindStringSubmatch(name), listColumn.FindStringSubmatch(name)
		switch {
		case known && (number <= isCount || number > numbersOf):
			if spelled[number] != "" && number <= isCount {
				fail("header: want one column of a kind, have %q and %q; remove one", spelled[number], spelling)
			}
			spelled[number] = spelling
			t.columns = append(t.columns, column{i, number, name})
		case payloads[name].axes.areChoices():
			t.parts, list, t.holds = []int{i}, true, choices
		case lists && whole != nil && len(t.parts) > 1:
			fail("header: want counts in columns or in a list, have both; remove one")
		case lists && whole != nil:
			t.parts, list, level = []int{i}, true, whole[1]
		case !list && part != nil && part[2] == strconv.Itoa(len(t.parts)):
			t.parts, level = append(t.parts, i), part[1]
		case spelling != "":
			t.unknown = append(t.unknown, strconv.Quote(spelling))
		}
	}
	if spelled[isCount] == "hits" && slices.Contains(head, "misses") {
		fail("want one count of an expert, have hits and misses: leave their sum")
	}
	layered := spelled[isLayer] != ""
	switch {
	case spelled[isCount] != "" && (spelled[isExpert] != "" || spelled[isRank] != "" && layered):
		t.parts = nil
	case t.holds.axes.areChoices() && spelled[isCount] != "", !list && (len(t.parts) < 2 || !layered && level == ""):
		return false
	}
	if level == "gpu" || strings.HasSuffix(level, router.LevelRank) {
		t.holds = rankCounts
	}
	return true
}

// readTable reads one count per layer and expert, or a row of them. Without steps, the counts are sums over the
// recording, without a layer they are of one.
func (c *collector) readTable(t *table) {
	line := 0
	err := attempt(func() {
		for cells, err := t.Read(); err != io.EOF; cells, err = t.Read() {
			if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
				line = bad.Line
				fail("want %d fields as in the header, quoted as in CSV, have others", t.FieldsPerRecord)
			}
			line, _ = t.FieldPos(0)
			c.tableRow(t, cells)
		}
	})
	if errors.Is(err, errTwice) && len(t.unknown) > 0 {
		fail("line %d: %w, and what else may tell rows apart is not known: keep the rows of one value of %s", line, err,
			strings.Join(t.unknown[:min(len(t.unknown), 3)], ", "))
	} else if err != nil {
		fail("line %d: %w", line, err)
	}
	c.Format, c.atLeast = "expert counts CSV", t.parts == nil
}

// tableRow reads one row.
func (c *collector) tableRow(t *table, cells []string) {
	of := nothing()
	for _, column := range t.columns {
		if cell := cells[column.at]; column.number > numbersOf {
			of.describe(column.name, cell)
		} else if n, err := number(cell); err == nil && n >= 0 {
			of.numbers[column.number] = n
		} else if t.parts == nil || column.number <= isLayer {
			fail("%s: want a whole number from 0 on, have %q", column.name, cell)
		}
	}
	if t.parts == nil {
		c.cell(of)
		return
	}
	list := celled(cells[t.parts[0]])
	if ids := strings.Fields(word(list)); t.holds.axes.areChoices() && len(ids) > 0 { // 52 40 85
		list = celled("[" + strings.Join(ids, ",") + "]")
	}
	if shape, _ := shapeOf(list); len(t.parts) == 1 && len(shape) != 1 {
		fail("want a list of counts, have %.60q", cells[t.parts[0]])
	} else if len(t.parts) > 1 {
		row := make([]int64, len(t.parts))
		for part, i := range t.parts {
			n, err := number(cells[i])
			if row[part] = n; err != nil {
				fail("column %s: %w", t.names[i], err)
			}
		}
		list = row
	}
	c.payload(t.holds, list, nil, of)
}
