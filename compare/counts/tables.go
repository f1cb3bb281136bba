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

// meanings are what people and engines call what counts are labeled by, in the heads of columns and the keys of objects,
// as plain has them: "Layer Idx" and layer_idx → layer.
var meanings = map[string]string{
	"layer": "layer", "layerid": "layer", "layeridx": "layer", "layerindex": "layer", "moelayer": "layer",
	"expert": "expert", "expertid": "expert", "expertidx": "expert", "expertindex": "expert", "logicalexpertid": "expert",
	"count": "count", "counts": "count", "tokens": "count", "numtokens": "count", "tokencount": "count", "slots": "count",
	"numslots": "count", "load": "count", "selectioncount": "count", "activationcount": "count",
	"step": "step", "iteration": "step", "iter": "step", "forwardpassid": "step", "eplbstep": "step",
	"phase": "phase", "model": "model", "modelname": "model", "dataset": "dataset",
}

var (
	csvPart = regexp.MustCompile(`^(|e|expert|rank|eprank|gpu)(\d{1,5})$`) // a column of one expert or rank
	csvList = regexp.MustCompile(`^(?:expert|rank)(?:s|distribution|counts?|loads?|tokens)$`)
)

// column is what a column of a table holds: a meaning, csvParts for the slots of one expert or rank, csvLists
// for lists of them, or "" for anything else.
type column struct {
	spelling, is, level string
	part                int
}

const csvParts, csvLists = "part", "list"

// columnOf reads the head of a column: "Expert Idx" → expert, "rank3" → slots of rank 3.
func columnOf(spelling string) column {
	spelling = strings.Trim(spelling, "\" \t\r")
	name, c := plain(spelling), column{spelling: spelling, level: router.LevelExpert}
	if strings.Contains(name, "rank") || strings.HasPrefix(name, "gpu") {
		c.level = router.LevelRank
	}
	c.is = meanings[name]
	if m := csvPart.FindStringSubmatch(name); m != nil {
		c.is = csvParts
		c.part, _ = strconv.Atoi(m[2]) // five digits at most
	} else if c.is == "" && csvList.MatchString(name) {
		c.is = csvLists
	}
	return c
}

// layout is the columns of a table.
type layout []column

// all are the columns of a kind.
func (l layout) all(is string) (list []column) {
	for _, c := range l {
		if c.is == is {
			list = append(list, c)
		}
	}
	return list
}

func (l layout) has(is string) bool { return len(l.all(is)) > 0 }

// counting is the kind of column that holds the counts: a count of a layer and expert, a column an expert or rank beside
// a layer or a name, or a column whose cells are lists; "" for no table of counts.
func (l layout) counting(rest []byte) string {
	parts := l.all(csvParts)
	named := l.has("layer")
	for i, c := range parts { // which count from 0
		if c.part != i || c.level != parts[0].level {
			parts = nil
			break
		}
		named = named || strings.Trim(c.spelling, "0123456789") != ""
	}
	switch {
	case l.has("layer") && l.has("expert") && l.has("count"):
		return "count"
	case len(parts) > 1 && named:
		return csvParts
	case len(l.all(csvLists)) == 1 && bytes.Contains(rest, []byte(`"[`)):
		return csvLists
	}
	return ""
}

// openTable opens a text as a table: its columns, those alone that are of use, and the rows below the header, which
// is the first line that does not begin with #; nil for a text that is no table of counts.
func openTable(d *document) (l layout, rows *csv.Reader) {
	text := bytes.TrimPrefix(d.text, []byte("\ufeff")) // which spreadsheets write
	header := text
	for bytes.HasPrefix(header, []byte("#")) {
		_, header, _ = bytes.Cut(header, []byte("\n"))
	}
	header, rest, _ := bytes.Cut(header, []byte("\n"))
	rows = csv.NewReader(bytes.NewReader(text))
	rows.ReuseRecord, rows.Comment = true, '#'
	for _, other := range ";\t" { // as spreadsheets write where the comma is a decimal point
		if bytes.ContainsRune(header, other) && !bytes.ContainsRune(header, ',') {
			rows.Comma = other
		}
	}
	if !d.isText() || len(header) > 1<<16 {
		return nil, nil
	}
	spellings, _ := rows.Read() // none where that is no CSV
	for _, spelling := range spellings {
		l = append(l, columnOf(spelling))
	}
	counting := l.counting(rest)
	for i, c := range l {
		if slices.Contains([]string{"count", csvParts, csvLists}, c.is) && c.is != counting ||
			c.is == "expert" && counting != "count" {
			l[i].is = ""
		}
	}
	if counting == "" {
		return nil, nil
	}
	return l, rows
}

// readCSV reads one count per layer and expert, or a row of them; per step, phase, model and dataset where it has such
// columns. Without steps, the counts are sums over the recording, without a layer they are of one.
func readCSV(d *document, c *collector) error {
	l, rows := openTable(d)
	for _, c := range l {
		at := l.all(c.is)
		if name := c.is; len(at) > 1 && name != "" && name != csvParts {
			return fmt.Errorf("header: want one column of the %s, have %q and %q; remove one", name, at[0].spelling,
				at[1].spelling)
		}
	}
	c.stepped, c.atLeast = l.has("step"), l.has("expert")
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.add(c, row); err != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// add adds one row, which holds a count of one expert or of all parts.
func (l layout) add(c *collector, row []string) (err error) {
	var key stepKey
	var layer, first, count int64
	var slots []int64
	level := router.LevelExpert
	for i, of := range l {
		switch field := row[i]; of.is {
		case "layer":
			layer, err = number(field, of.is, maxLayers-1)
			key.layer = int(layer)
		case "step":
			key.iteration, err = number(field, of.is, 1<<62)
		case "phase":
			key.phase, err = phaseOf(field)
		case "model", "dataset":
			key.model = Phase(strings.Trim(string(key.model)+", "+field, ", "))
		case "expert":
			first, err = number(field, of.is, maxExperts-1)
		case "count", csvParts:
			count, err = number(field, of.spelling, maxCount)
			slots, level = append(slots, count), of.level
		case csvLists:
			a, failed := numbers([]byte(field))
			if err = failed; err == nil && (len(a.Shape) != 1 || len(a.Values) > maxExperts) {
				err = errors.New("it is none")
			}
			if err != nil {
				err = fmt.Errorf("want a list of counts as %s: %w", of.spelling, err)
			}
			slots, level = a.Values, of.level
		}
		if err != nil {
			return err
		}
	}
	return c.add(c.at(key), level, int(first), slots, true)
}
