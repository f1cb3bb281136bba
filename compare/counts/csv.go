package counts

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// csvNames are the names of columns that people use, without case, spaces and
// underscores.
var csvNames = map[string][]string{
	"layer":  {"layer", "layerid", "layeridx", "layerindex", "moelayer"},
	"expert": {"expert", "expertid", "expertidx", "expertindex", "logicalexpertid"},
	"count": {"count", "counts", "tokens", "numtokens", "tokencount", "slots", "numslots", "load", "selectioncount",
		"activationcount"},
	"step":  {"step", "iteration", "iter", "forwardpassid"},
	"phase": {"phase"},
}

// csvColumns are the places and spellings in a header of each of csvNames, and of others under "".
type csvColumns map[string][]csvColumn

type csvColumn struct {
	at       int
	spelling string
}

// csvComma is what separates the fields of a first line: a comma, or what spreadsheets
// write where the comma is a decimal point.
func csvComma(line []byte) rune {
	for _, other := range ";\t" {
		if bytes.ContainsRune(line, other) && !bytes.ContainsRune(line, ',') {
			return other
		}
	}
	return ','
}

// csvComment begins the lines in which a file says where it comes from.
const csvComment = '#'

// csvFirst is the first line that is no comment.
func csvFirst(content []byte) []byte {
	line, rest, more := bytes.Cut(bytes.TrimPrefix(content, []byte("\ufeff")), []byte("\n"))
	for more && bytes.HasPrefix(line, []byte{csvComment}) {
		line, rest, more = bytes.Cut(rest, []byte("\n"))
	}
	return line
}

// csvHeader reads the first line of a text; nil where it does not name a layer
// and an expert.
func csvHeader(content []byte) csvColumns {
	line := csvFirst(content)
	if len(line) > 1<<12 {
		return nil
	}
	columns := csvColumns{}
	for i, field := range strings.Split(string(line), string(csvComma(line))) {
		spelling := strings.Trim(field, "\" \t\r")
		field = strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(spelling))
		known := ""
		for name, spellings := range csvNames {
			if slices.Contains(spellings, field) {
				known = name
			}
		}
		columns[known] = append(columns[known], csvColumn{i, spelling})
	}
	if columns["layer"] == nil || columns["expert"] == nil {
		return nil
	}
	return columns
}

// number reads one field of a row.
func (c csvColumns) number(row []string, name string, limit int64) (int64, error) {
	if c[name] == nil {
		return 0, nil
	}
	field := strings.TrimSpace(row[c[name][0].at])
	n, err := whole([]byte(field))
	if err != nil {
		return 0, fmt.Errorf("want a whole number as %s, have %q", name, field)
	}
	if n < 0 || n > limit {
		return 0, fmt.Errorf("want the %s from 0 to %d, have %d", name, limit, n)
	}
	return n, nil
}

// readCSV reads one count per layer and expert, and per step and phase where it
// has such columns; without a column of counts and any other, a row is one choice.
// Without steps, the counts are sums over the recording.
func readCSV(s *source, r *Record) error {
	columns := csvHeader(s.content)
	for _, name := range slices.Sorted(maps.Keys(csvNames)) {
		if len(columns[name]) > 1 {
			return fmt.Errorf("header: want one column of the %s, have %q and %q; remove one", name,
				columns[name][0].spelling, columns[name][1].spelling)
		}
	}
	choices := columns["count"] == nil
	if other := columns[""]; choices && other != nil {
		return fmt.Errorf("header: want a column of counts (%s), or a row for each choice and no column %q",
			strings.Join(csvNames["count"], ", "), other[0].spelling)
	}
	r.Window, r.atLeast = columns["step"] == nil, true
	parts := map[stepKey]map[int]int64{}
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(s.content, []byte("\ufeff"))))
	rows.ReuseRecord = true
	rows.Comma, rows.Comment = csvComma(csvFirst(s.content)), csvComment
	for first := true; ; first = false {
		row, err := rows.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if first {
			continue
		}
		if err := r.addRow(parts, columns, row); err != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if !bytes.HasSuffix(s.content, []byte("\n")) {
		r.warn("no_last_newline")
	}
	if choices && r.Window && len(parts) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(parts)), repeated) {
		return errors.New("each expert comes once in each layer: want a row for each choice, or a column of counts")
	}
	for key, counts := range parts {
		step := key.step()
		step.Load.PerExpert = dense(counts, r.Experts)
		r.held = append(r.held, step)
	}
	return nil
}

// repeated reports whether an expert was chosen twice.
func repeated(counts map[int]int64) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(counts)), func(n int64) bool { return n > 1 })
}

func (r *Record) addRow(parts map[stepKey]map[int]int64, columns csvColumns, row []string) error {
	layer, err1 := columns.number(row, "layer", maxLayers-1)
	expert, err2 := columns.number(row, "expert", maxExperts-1)
	count, err3 := columns.number(row, "count", maxCount)
	step, err4 := columns.number(row, "step", 1<<62)
	key := stepKey{iteration: step, layer: int(layer)}
	var err5 error
	if c := columns["phase"]; c != nil {
		key.phase, err5 = phaseOf(row[c[0].at])
	}
	if err := cmp.Or(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	if parts[key] == nil {
		parts[key] = map[int]int64{}
	}
	if columns["count"] == nil {
		count = parts[key][int(expert)] + 1
	} else if _, twice := parts[key][int(expert)]; twice {
		return fmt.Errorf("%v, expert %d is recorded twice", key, expert)
	}
	parts[key][int(expert)] = count
	r.Experts = max(r.Experts, int(expert)+1)
	return nil
}

// phases by the names that engines and people give them; verifying drafts is decoding.
var phases = map[string]Phase{"": "", "prefill": Prefill, "prompt": Prefill, "context": Prefill, "extend": Prefill,
	"split_prefill": Prefill, "decode": Decode, "generation": Decode, "gen": Decode, "target_verify": Decode,
	"mixed": Mixed}

// phaseOf reads a name of a phase.
func phaseOf(text string) (Phase, error) {
	if phase, ok := phases[strings.ToLower(strings.TrimSpace(text))]; ok {
		return phase, nil
	}
	return "", fmt.Errorf(`want a phase of "prefill", "decode" or "mixed", have %q`, text)
}
