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
	listColumn = regexp.MustCompile(`^(?:expert|rank)(?:s|distribution|counts?|loads?|tokens)$`)
	labels     = []string{"phase", "model", "modelname", "dataset"}
)

// table is a text whose rows are objects. Layer,Expert 0,Expert 1 and 3,5,7 → layer 3, expertcounts [5,7].
type table struct {
	*csv.Reader
	fields []string // of each column, "" where it says nothing
	parts  []int    // the columns of experts or ranks from 0 on, or the one column of lists
	counts string   // the field that these make
}

// openTable opens a text as a table, whose header is the first line that does not begin with #; nil for a text that is
// no table of counts. Spreadsheets put semicolons where the comma is a decimal point.
func openTable(d *document) (*table, error) {
	text := bytes.TrimPrefix(d.text, []byte("\ufeff")) // which spreadsheets write
	if bytes.IndexByte(text[:min(len(text), 1<<16)], '\n') < 0 {
		return nil, nil
	}
	for _, comma := range ",;\t" {
		t := &table{Reader: csv.NewReader(bytes.NewReader(text)), counts: "expertcounts"}
		t.ReuseRecord, t.Comment, t.Comma = true, '#', comma
		head, _ := t.Read() // none where that is no CSV
		if ok, err := t.columns(head, bytes.Contains(text, []byte(`"[`))); ok {
			return t, err
		}
	}
	return nil, nil
}

// columns finds what the columns of a header say; not ok for no table of counts. Lists in cells are in quotes.
func (t *table) columns(head []string, lists bool) (ok bool, err error) {
	at, spelled, list := map[int]string{}, false, []int(nil)
	for i, spelling := range head {
		name := plain(strings.Trim(spelling, "\" \t\r"))
		number, isNumber := names[name]
		if isNumber && number <= isCount {
			if at[number] != "" {
				err = fmt.Errorf("header: want one column of a kind, have %q and %q; remove one", at[number], spelling)
			}
			at[number] = spelling
		} else if !slices.Contains(labels, name) {
			if m := partColumn.FindStringSubmatch(name); m != nil && m[2] == strconv.Itoa(len(t.parts)) {
				t.parts, spelled = append(t.parts, i), spelled || m[1] != ""
			} else if lists && listColumn.MatchString(name) {
				list = []int{i}
			}
			name = ""
		}
		t.fields = append(t.fields, name)
	}
	layered := at[isLayer] != ""
	if at[isCount] != "" && (at[isExpert] != "" || at[isRank] != "" && layered) {
		t.parts = nil
		return true, err
	}
	if len(t.parts) < 2 || !layered && !spelled {
		t.parts = list
	}
	if t.parts == nil {
		return false, nil
	}
	if first := plain(head[t.parts[0]]); strings.HasPrefix(first, "gpu") || strings.Contains(first, "rank") {
		t.counts = "rankcounts"
	}
	for i, name := range t.fields {
		if number, ok := names[name]; ok && number >= isExpert {
			t.fields[i] = ""
		}
	}
	return true, err
}

// readTable reads one count per layer and expert, or a row of them. Without steps, the counts are sums over the
// recording, without a layer they are of one.
func (c *collector) readTable(t *table) error {
	for {
		cells, err := t.Read()
		if err == io.EOF {
			c.Format = "expert counts CSV"
			return nil
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return fmt.Errorf("line %d: want %d fields as in the header, quoted as in CSV, have others", bad.Line,
				len(t.fields))
		}
		var row *tensor.Parts
		if row, err = t.object(cells); err == nil {
			of := nothing()
			err = c.walk(row, &of)
		}
		if err != nil {
			line, _ := t.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// object is a row.
func (t *table) object(cells []string) (*tensor.Parts, error) {
	row := make(tensor.Parts, 0, len(t.fields)+1)
	for i, name := range t.fields {
		if name != "" {
			row = append(row, tensor.Part{Name: name, Value: cell(cells[i])})
		}
	}
	if t.parts == nil {
		return &row, nil
	}
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
		return nil, fmt.Errorf("%s: want whole numbers, have %.60q", t.counts, text)
	}
	row = append(row, tensor.Part{Name: t.counts, Value: counts})
	return &row, nil
}
