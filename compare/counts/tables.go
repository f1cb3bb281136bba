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

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

var (
	partColumn = regexp.MustCompile(`^(|e|expert|(?:rank|eprank|gpu))(\d{1,5})$`) // of one expert or rank
	listColumn = regexp.MustCompile(`^(expert|rank)(?:s|distribution|counts?|loads?|tokens)$`)
	labels     = []string{"phase", "model", "modelname", "dataset"}
)

// columns are the columns of a table: those that label a row or hold its count, by what they name; and the
// columns of the parts, each of one expert or rank from 0 on, or the one column of lists, where counts of
// all stand in one row.
type columns struct {
	names  []string // as plain has them
	is     []int    // a number, or isLabel or isNothing
	parts  []int
	listed bool // the one part is a column of lists
	counts payload
}

const isLabel, isNothing = -1, -2

// columnsOf reads the head of a table; not ok for no table of counts. Layer,Expert 0,Expert 1 → parts 1 and 2.
func columnsOf(head []string, lists bool) (c columns, ok bool, err error) {
	at, spelled, list := map[int]int{}, false, []int(nil)
	for i, spelling := range head {
		name, is := plain(strings.Trim(spelling, "\" \t\r")), isNothing
		if number, ok := names[name]; ok && number <= isCount {
			other, twice := at[number]
			if at[number], is = i, number; twice && err == nil {
				err = fmt.Errorf("header: want one column of the %s, have %q and %q; remove one", []string{"step", "layer",
					"expert", "rank", "count"}[is], head[other], head[i])
			}
		} else if slices.Contains(labels, name) {
			is = isLabel
		} else if m := partColumn.FindStringSubmatch(name); m != nil && m[2] == strconv.Itoa(len(c.parts)) {
			c.parts = append(c.parts, i)
			spelled = spelled || m[1] != ""
		} else if lists && listColumn.MatchString(name) {
			list = []int{i}
		}
		c.names, c.is = append(c.names, name), append(c.is, is)
	}
	_, layered := at[isLayer]
	_, expertly := at[isExpert]
	_, counted := at[isCount]
	if expertly && counted {
		c.parts = nil
		return c, true, err
	}
	if len(c.parts) < 2 || !layered && !spelled {
		c.parts, c.listed = list, true
	}
	if len(c.parts) == 0 {
		return c, false, nil
	}
	c.counts = layerCounts
	if name := c.names[c.parts[0]]; strings.HasPrefix(name, "gpu") || strings.Contains(name, "rank") {
		c.counts = rankCounts
	}
	for _, other := range []int{isExpert, isRank, isCount} {
		if i, ok := at[other]; ok {
			c.is[i] = isNothing
		}
	}
	return c, true, err
}

// openTable opens a text as a table: its columns, and the rows below the header, which is the first line that does not
// begin with #; nil for a text that is no table of counts.
func openTable(d *document) (c columns, rows *csv.Reader, err error) {
	text := bytes.TrimPrefix(d.text, []byte("\ufeff")) // which spreadsheets write
	header := text
	for bytes.HasPrefix(header, []byte("#")) {
		_, header, _ = bytes.Cut(header, []byte("\n"))
	}
	header, rest, _ := bytes.Cut(header, []byte("\n"))
	if !d.isText() || len(header) > 1<<16 {
		return c, nil, nil
	}
	rows = csv.NewReader(bytes.NewReader(text))
	rows.ReuseRecord, rows.Comment = true, '#'
	for _, other := range ";\t" { // as spreadsheets write where the comma is a decimal point
		if bytes.ContainsRune(header, other) && !bytes.ContainsRune(header, ',') {
			rows.Comma = other
		}
	}
	head, _ := rows.Read() // none where that is no CSV
	c, ok, err := columnsOf(slices.Clone(head), bytes.Contains(rest, []byte(`"[`)))
	if !ok {
		return c, nil, nil
	}
	return c, rows, err
}

// isTable reports a table of counts.
func isTable(d *document) bool {
	_, rows, _ := openTable(d)
	return rows != nil
}

// readTable reads one count per layer and expert, or a row of them, as the fields of an object are read. Without steps,
// the counts are sums over the recording, without a layer they are of one.
func readTable(d *document, c *collector) error {
	columns, rows, err := openTable(d)
	c.lined = true
	for err == nil {
		var cells []string
		if cells, err = rows.Read(); err == io.EOF {
			return nil
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return fmt.Errorf("line %d: want %d fields as in the header, quoted as in CSV, have others", bad.Line,
				len(columns.names))
		}
		if err == nil {
			err = columns.add(c, cells)
		}
		if err != nil {
			line, _ := rows.FieldPos(0)
			err = fmt.Errorf("line %d: %w", line, err)
		}
	}
	return err
}

// add adds one row.
func (columns columns) add(c *collector, cells []string) (err error) {
	of := nothing()
	of.numbers[isLayer] = 0 // where no column says
	for i, is := range columns.is {
		if is >= 0 && cells[i] == "" {
			err = errors.New("want a whole number, have none")
		} else if is >= 0 {
			err = of.number(is, value{cell: cells[i]})
		} else if is == isLabel {
			err = c.describe(&of, columns.names[i], value{cell: cells[i]})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", columns.names[i], err)
		}
	}
	switch {
	case columns.parts == nil:
		return c.cell(of)
	case columns.listed:
		i := columns.parts[0]
		list := celled(cells[i])
		if !list.isNumbers() {
			return fmt.Errorf("want a list of counts as %s, have %q", columns.names[i], list.cell)
		}
		return c.payload(columns.counts, list, of)
	}
	counts := tensor.Array{Shape: []int64{int64(len(columns.parts))}}
	for _, i := range columns.parts {
		n, err := whole(cells[i])
		if err != nil {
			return fmt.Errorf("%w as %s", err, columns.names[i])
		}
		counts.Values = append(counts.Values, n)
	}
	return c.payload(columns.counts, value{item: counts}, of)
}
