package counts

import (
	"bytes"
	"encoding/csv"
	"errors"
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

// layout says what the columns of a table hold: a count for each layer and expert, a count or a list
// of the parts of a layer, or one choice a row.
type layout struct {
	comma rune
	names []string         // as they are spelled
	at    map[string][]int // columns by name, and others under ""
	level string           // of the parts
	parts []int            // columns of one expert or rank each
	lists []int            // columns of a list of them
}

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
	l := &layout{comma: ',', at: map[string][]int{}}
	for _, other := range ";\t" { // as spreadsheets write where the comma is a decimal point
		if bytes.ContainsRune(line, other) && !bytes.ContainsRune(line, ',') {
			l.comma = other
		}
	}
	named, ordered, listed := false, true, "" // parts are more than numbers, and count from 0; the level of lists
	for i, spelling := range strings.Split(string(line), string(l.comma)) {
		spelling = strings.Trim(spelling, "\" \t\r")
		name, level, known := plainName(spelling), router.LevelExpert, ""
		for column, spellings := range csvNames {
			if slices.Contains(spellings, name) {
				known = column
			}
		}
		l.names, l.at[known] = append(l.names, spelling), append(l.at[known], i)
		if strings.Contains(name, "rank") || strings.HasPrefix(name, "gpu") {
			level = router.LevelRank
		}
		if m := csvPart.FindStringSubmatch(name); m != nil {
			number, _ := strconv.Atoi(m[2]) // five digits at most
			ordered = ordered && number == len(l.parts) && (number == 0 || level == l.level)
			l.level, l.parts, named = level, append(l.parts, i), named || m[1] != ""
		} else if csvList.MatchString(name) {
			l.lists, listed = append(l.lists, i), level
		}
	}
	if !ordered {
		l.parts = nil
	}
	switch {
	case l.at["layer"] != nil && l.at["expert"] != nil:
		l.parts, l.lists = nil, nil
	case len(l.parts) > 1 && (named || l.at["layer"] != nil):
		l.lists = nil
	case len(l.lists) != 1 || !bytes.Contains(rest, []byte(`"[`)):
		return nil
	default:
		l.parts, l.level = nil, listed
	}
	return l
}

// readCSV reads one count per layer and expert, or a row of them; per step, phase, model and
// dataset where it has such columns. Without a column of counts and any other, a row is one choice.
// Without steps, the counts are sums over the recording, without a layer they are of one.
func readCSV(d *document, c *collector) error {
	l := csvLayout(d.text)
	for _, name := range slices.Sorted(maps.Keys(csvNames)) {
		if at := l.at[name]; len(at) > 1 {
			return fmt.Errorf("header: want one column of the %s, have %q and %q; remove one", name,
				l.names[at[0]], l.names[at[1]])
		}
	}
	long := l.parts == nil && l.lists == nil
	choices := long && l.at["count"] == nil
	if other := l.at[""]; choices && other != nil {
		return fmt.Errorf("header: want a column of counts (%s), or a row for each choice and no column %q",
			strings.Join(csvNames["count"], ", "), l.names[other[0]])
	}
	c.Window, c.atLeast = l.at["step"] == nil, long
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(d.text, []byte(utf8Mark))))
	rows.ReuseRecord, rows.Comma, rows.Comment = true, l.comma, csvComment
	row, err := rows.Read() // the header
	for err == nil {
		if row, err = rows.Read(); err != nil {
			break
		}
		key, failed := l.key(row)
		if failed == nil {
			failed = l.add(c, c.at(key), row, choices)
		}
		if failed != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, failed)
		}
	}
	if err != io.EOF {
		return err
	}
	again := func(in *Step) bool { return slices.Max(in.Load.PerExpert) > 1 }
	if choices && c.Window && len(c.cells) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(c.cells)), again) {
		return errors.New("each expert comes once in each layer: want a row for each choice, or a column of counts")
	}
	return nil
}

// add adds one row.
func (l *layout) add(c *collector, into *Step, row []string, choice bool) error {
	level, first, slots := l.level, 0, []int64{1}
	switch {
	case l.parts != nil:
		slots = make([]int64, len(l.parts))
		for i, column := range l.parts {
			n, err := number(row[column], l.names[column], maxCount)
			if err != nil {
				return err
			}
			slots[i] = n
		}
	case l.lists != nil:
		list := strings.TrimSpace(row[l.lists[0]])
		if !strings.HasPrefix(list, "[") || !strings.HasSuffix(list, "]") {
			return fmt.Errorf("want a list of counts as %s, have %.40q", l.names[l.lists[0]], list)
		}
		a, err := numbers([]byte(list))
		if err == nil && (len(a.Shape) != 1 || len(a.Values) > maxExperts) {
			err = fmt.Errorf("want a list of counts, have %v", a.Shape)
		}
		if slots = a.Values; err != nil {
			return err
		}
	default:
		expert, err := number(row[l.at["expert"][0]], "expert", maxExperts-1)
		if err == nil && !choice {
			slots[0], err = number(row[l.at["count"][0]], "count", maxCount)
		}
		if level, first = router.LevelExpert, int(expert); err != nil {
			return err
		}
	}
	for i, n := range slots {
		if err := c.add(into, level, first+i, n, !choice); err != nil {
			return err
		}
	}
	return nil
}

// key is the step of a row: what the file labels apart is judged apart.
func (l *layout) key(row []string) (key stepKey, err error) {
	if at := l.at["layer"]; at != nil {
		layer, err := number(row[at[0]], "layer", maxLayers-1)
		if key.layer = int(layer); err != nil {
			return key, err
		}
	}
	if at := l.at["step"]; at != nil {
		if key.iteration, err = number(row[at[0]], "step", 1<<62); err != nil {
			return key, err
		}
	}
	if at := l.at["phase"]; at != nil {
		if key.phase, err = phaseOf(row[at[0]]); err != nil {
			return key, err
		}
	}
	for _, name := range [...]string{"model", "dataset"} {
		if at := l.at[name]; at != nil && row[at[0]] != "" {
			if key.phase != "" {
				key.phase += ", "
			}
			key.phase += Phase(row[at[0]])
		}
	}
	return key, nil
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
