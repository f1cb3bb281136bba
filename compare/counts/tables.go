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

// csvNames are the names of columns that people use, without case, spaces, hyphens and
// underscores.
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

// layout says what the columns of a table hold.
type layout struct {
	comma   rune
	columns map[string][]int // by name, and others under ""
	names   []string         // as they are spelled
	parts   []csvCell        // columns of one expert or rank each
	lists   []csvCell        // columns of a list in each cell
}

type csvCell struct {
	column int
	level  string
	number int
}

// csvComment begins the lines in which a file says where it comes from.
const csvComment = '#'

// csvLayout reads the first line of a text that is no comment; nil where it is no header of
// counts: one of layer and expert, of a column an expert or rank beside a layer or a name, or of a
// column whose cells are lists.
func csvLayout(text []byte) *layout {
	line, rest, more := bytes.Cut(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\n"))
	for more && bytes.HasPrefix(line, []byte{csvComment}) {
		line, rest, more = bytes.Cut(rest, []byte("\n"))
	}
	if len(line) > 1<<16 {
		return nil
	}
	l := &layout{comma: ',', columns: map[string][]int{}}
	for _, other := range ";\t" { // as spreadsheets write where the comma is a decimal point
		if bytes.ContainsRune(line, other) && !bytes.ContainsRune(line, ',') {
			l.comma = other
		}
	}
	named := false
	for i, field := range strings.Split(string(line), string(l.comma)) {
		spelling := strings.Trim(field, "\" \t\r")
		name := strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(spelling))
		known := ""
		for column, spellings := range csvNames {
			if slices.Contains(spellings, name) {
				known = column
			}
		}
		level := router.LevelExpert
		if strings.Contains(name, "rank") || strings.HasPrefix(name, "gpu") {
			level = router.LevelRank
		}
		if m := csvPart.FindStringSubmatch(name); m != nil {
			number, _ := strconv.Atoi(m[2]) // five digits at most
			l.parts, named = append(l.parts, csvCell{i, level, number}), named || m[1] != ""
		} else if csvList.MatchString(name) {
			l.lists = append(l.lists, csvCell{i, level, 0})
		}
		l.names, l.columns[known] = append(l.names, spelling), append(l.columns[known], i)
	}
	for i, p := range l.parts {
		if p.number != i || p.level != l.parts[0].level {
			l.parts = nil
			break
		}
	}
	switch {
	case l.columns["layer"] != nil && l.columns["expert"] != nil:
		l.parts, l.lists = nil, nil
	case len(l.parts) > 1 && (named || l.columns["layer"] != nil):
		l.lists = nil
	case len(l.lists) != 1 || !bytes.Contains(rest, []byte(`"[`)):
		return nil
	default:
		l.parts = nil
	}
	return l
}

// readCSV reads one count per layer and expert, or a row of them; per step, phase, model and
// dataset where it has such columns. Without a column of counts and any other, a row is one choice.
// Without steps, the counts are sums over the recording, without a layer they are of one.
func readCSV(d *document, r *Record) error {
	l := csvLayout(d.text)
	for _, name := range slices.Sorted(maps.Keys(csvNames)) {
		if at := l.columns[name]; len(at) > 1 {
			return fmt.Errorf("header: want one column of the %s, have %q and %q; remove one", name,
				l.names[at[0]], l.names[at[1]])
		}
	}
	long := l.parts == nil && l.lists == nil
	choices := long && l.columns["count"] == nil
	if other := l.columns[""]; choices && other != nil {
		return fmt.Errorf("header: want a column of counts (%s), or a row for each choice and no column %q",
			strings.Join(csvNames["count"], ", "), l.names[other[0]])
	}
	r.Window, r.atLeast = l.columns["step"] == nil, long
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(d.text, []byte("\ufeff"))))
	rows.ReuseRecord, rows.Comma, rows.Comment = true, l.comma, csvComment
	if _, err := rows.Read(); err != nil {
		return err
	}
	t := tally{}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if err := l.add(t, row, choices); err != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if !bytes.HasSuffix(d.text, []byte("\n")) {
		r.warn("no_last_newline")
	}
	again := func(c *cells) bool { return slices.Max(c.experts) > 1 }
	if choices && r.Window && len(t) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(t)), again) {
		return errors.New("each expert comes once in each layer: want a row for each choice, or a column of counts")
	}
	r.hold(t)
	return nil
}

// add adds one row.
func (l *layout) add(t tally, row []string, choice bool) error {
	key, err := l.key(row)
	if err != nil {
		return err
	}
	into := t.at(key)
	set := func(level string, number int, slots int64) error {
		cell := into.part(level, number)
		if *cell >= 0 {
			return fmt.Errorf("%v, %s %d is recorded twice", key, level, number)
		}
		*cell = slots
		return nil
	}
	switch {
	case l.parts != nil:
		for _, p := range l.parts {
			slots, err := number(row[p.column], l.names[p.column], maxCount)
			if err == nil {
				err = set(p.level, p.number, slots)
			}
			if err != nil {
				return err
			}
		}
		return nil
	case l.lists != nil:
		list := strings.TrimSpace(row[l.lists[0].column])
		if !strings.HasPrefix(list, "[") || !strings.HasSuffix(list, "]") {
			return fmt.Errorf("want a list of counts as %s, have %.40q", l.names[l.lists[0].column], list)
		}
		a, err := numbers([]byte(list))
		if err == nil && (len(a.Shape) != 1 || len(a.Values) > maxExperts) {
			err = fmt.Errorf("want a list of counts, have %v", a.Shape)
		}
		for i := 0; err == nil && i < len(a.Values); i++ {
			err = set(l.lists[0].level, i, a.Values[i])
		}
		return err
	}
	expert, err := number(row[l.columns["expert"][0]], "expert", maxExperts-1)
	if err != nil {
		return err
	}
	if choice {
		into.add(router.LevelExpert, int(expert), 1)
		return nil
	}
	slots, err := number(row[l.columns["count"][0]], "count", maxCount)
	if err != nil {
		return err
	}
	return set(router.LevelExpert, int(expert), slots)
}

// key is the step of a row: what the file labels apart is judged apart.
func (l *layout) key(row []string) (key stepKey, err error) {
	if at := l.columns["layer"]; at != nil {
		layer, err := number(row[at[0]], "layer", maxLayers-1)
		if err != nil {
			return key, err
		}
		key.layer = int(layer)
	}
	if at := l.columns["step"]; at != nil {
		if key.iteration, err = number(row[at[0]], "step", 1<<62); err != nil {
			return key, err
		}
	}
	if at := l.columns["phase"]; at != nil {
		if key.phase, err = phaseOf(row[at[0]]); err != nil {
			return key, err
		}
	}
	for _, name := range [...]string{"model", "dataset"} {
		if at := l.columns[name]; at != nil && row[at[0]] != "" {
			key.phase = key.phase.and(row[at[0]])
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
