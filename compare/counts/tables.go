package counts

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// csvNames are the names of columns that people use, as plainName has them.
var csvNames = map[string][]string{
	"layer":  {"layer", "layerid", "layeridx", "layerindex", "moelayer"},
	"expert": {"expert", "expertid", "expertidx", "expertindex", "logicalexpertid"},
	"count": {"count", "counts", "tokens", "numtokens", "tokencount", "slots", "numslots", "load", "selectioncount",
		"activationcount"},
	"step":    {"step", "iteration", "iter", "forwardpassid"},
	"phase":   {"phase"},
	"model":   {"model", "modelname"},
	"dataset": {"dataset"},
}

var (
	csvPart = regexp.MustCompile(`^(|e|expert|rank|eprank|gpu)(\d{1,5})$`) // a column of one expert or rank
	csvList = regexp.MustCompile(`^(?:expert|rank)(?:s|distribution|counts?|loads?|tokens)$`)
)

// column is what a column of a table holds: a name of csvNames, csvPart for the slots of one expert or rank, csvLists
// for lists of them, or "" for anything else.
type column struct {
	spelling, is, level string
	part                int
}

const csvParts, csvLists = "part", "list"

// columnOf reads the head of a column: "Expert Idx" → expert, "rank3" → slots of rank 3.
func columnOf(spelling string) column {
	spelling = strings.Trim(spelling, "\" \t\r")
	name, c := plainName(spelling), column{spelling: spelling, level: router.LevelExpert}
	if strings.Contains(name, "rank") || strings.HasPrefix(name, "gpu") {
		c.level = router.LevelRank
	}
	for is, spellings := range csvNames {
		if slices.Contains(spellings, name) {
			c.is = is
		}
	}
	if m := csvPart.FindStringSubmatch(name); m != nil {
		c.is = csvParts
		c.part, _ = strconv.Atoi(m[2]) // five digits at most
	} else if c.is == "" && csvList.MatchString(name) {
		c.is = csvLists
	}
	return c
}

// layout is the columns of a table, and what is between them.
type layout struct {
	comma   rune
	columns []column
}

// all are the columns of a kind.
func (l *layout) all(is string) (list []column) {
	for _, c := range l.columns {
		if c.is == is {
			list = append(list, c)
		}
	}
	return list
}

func (l *layout) has(is string) bool { return len(l.all(is)) > 0 }

// csvComment begins the lines in which a file says where it comes from.
const csvComment = '#'

// utf8Mark begins texts that spreadsheets write.
const utf8Mark = "\ufeff"

// csvLayout reads the first line of a text that is no comment; nil where it is no header of
// counts: of layer and expert, of a column an expert or rank beside a layer or a name, or of a
// column whose cells are lists.
func csvLayout(text []byte) *layout {
	line, rest, more := bytes.Cut(bytes.TrimPrefix(text, []byte(utf8Mark)), []byte("\n"))
	for more && bytes.HasPrefix(line, []byte{csvComment}) {
		line, rest, more = bytes.Cut(rest, []byte("\n"))
	}
	if len(line) > 1<<16 {
		return nil
	}
	l := &layout{comma: ','}
	for _, other := range ";\t" { // as spreadsheets write where the comma is a decimal point
		if bytes.ContainsRune(line, other) && !bytes.ContainsRune(line, ',') {
			l.comma = other
		}
	}
	header := csv.NewReader(bytes.NewReader(line)) // a quoted name may hold the comma
	header.Comma = l.comma
	spellings, err := header.Read()
	if err != nil {
		return nil
	}
	for _, spelling := range spellings {
		l.columns = append(l.columns, columnOf(spelling))
	}
	parts := l.all(csvParts)
	named := l.has("layer")
	for i, c := range parts { // which count from 0
		if c.part != i || c.level != parts[0].level {
			parts = nil
			break
		}
		named = named || strings.Trim(c.spelling, "0123456789") != ""
	}
	switch { // what counts; other columns that could do not
	case l.has("layer") && l.has("expert") && l.has("count"):
		l.without(csvParts, csvLists)
	case len(parts) > 1 && named:
		l.without(csvLists, "expert", "count")
	case len(l.all(csvLists)) == 1 && bytes.Contains(rest, []byte(`"[`)):
		l.without(csvParts, "expert", "count")
	default:
		return nil
	}
	return l
}

// without takes the meaning of some columns away.
func (l *layout) without(kinds ...string) {
	for i, c := range l.columns {
		if slices.Contains(kinds, c.is) {
			l.columns[i].is = ""
		}
	}
}

// readCSV reads one count per layer and expert, or a row of them; per step, phase, model and dataset where it has such
// columns. Without steps, the counts are sums over the recording, without a layer they are of one.
func readCSV(d *document, c *collector) error {
	l := csvLayout(d.text)
	for _, name := range slices.Sorted(maps.Keys(csvNames)) {
		if at := l.all(name); len(at) > 1 {
			return fmt.Errorf("header: want one column of the %s, have %q and %q; remove one", name, at[0].spelling,
				at[1].spelling)
		}
	}
	c.Window, c.atLeast = !l.has("step"), l.has("expert")
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(d.text, []byte(utf8Mark))))
	rows.ReuseRecord, rows.Comma, rows.Comment = true, l.comma, csvComment
	row, err := rows.Read() // the header
	for err == nil {
		if row, err = rows.Read(); err != nil {
			break
		}
		if failed := l.add(c, row); failed != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, failed)
		}
	}
	if err != io.EOF {
		return err
	}
	return nil
}

// add adds one row, which holds a count of one expert or of all parts. What the file labels apart is judged apart.
func (l *layout) add(c *collector, row []string) (err error) {
	var key stepKey
	var layer, first, count int64
	var slots []int64
	var labels []string
	level := router.LevelExpert
	for i, of := range l.columns {
		switch field := row[i]; of.is {
		case "layer":
			layer, err = number(field, of.is, maxLayers-1)
		case "step":
			key.iteration, err = number(field, of.is, 1<<62)
		case "phase":
			key.phase, err = phaseOf(field)
		case "model", "dataset":
			labels = append(labels, field)
		case "expert":
			first, err = number(field, of.is, maxExperts-1)
		case "count", csvParts:
			count, err = number(field, of.spelling, maxCount)
			slots, level = append(slots, count), of.level
		case csvLists:
			slots, err = listOf(field, of.spelling)
			level = of.level
		}
		if err != nil {
			return err
		}
	}
	labels = slices.DeleteFunc(append([]string{string(key.phase)}, labels...), func(s string) bool { return s == "" })
	key.layer, key.phase = int(layer), Phase(strings.Join(labels, ", "))
	into := c.at(key)
	for i, n := range slots {
		if err == nil {
			err = c.add(into, level, int(first)+i, n, true)
		}
	}
	return err
}

// listOf reads a cell that holds a list of counts.
func listOf(field, name string) ([]int64, error) {
	list := strings.TrimSpace(field)
	if !strings.HasPrefix(list, "[") || !strings.HasSuffix(list, "]") {
		return nil, fmt.Errorf("want a list of counts as %s, have %.40q", name, list)
	}
	a, err := numbers([]byte(list))
	if err == nil && (len(a.Shape) != 1 || len(a.Values) > maxExperts) {
		err = fmt.Errorf("want a list of counts, have %v", a.Shape)
	}
	return a.Values, err
}

// number reads one field of a row.
func number(field, name string, limit int64) (int64, error) {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		field = strings.TrimSpace(field)
		if n, err = whole([]byte(field)); err != nil {
			return 0, fmt.Errorf("want a whole number as %s, have %q", name, field)
		}
	}
	if n < 0 || n > limit {
		return 0, fmt.Errorf("want the %s from 0 to %d, have %d", name, limit, n)
	}
	return n, nil
}
