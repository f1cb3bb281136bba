package counts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// value is a part of a document: valid JSON text, an item of a pickle or an array, or the text of a cell.
type value struct {
	json json.RawMessage
	item any    // tensor.Dict, *[]any, tensor.Array, tensor.Stored, int64, row, …
	cell string // of a table or a line
}

// row is an object that a table or a line makes: its names and their values.
type row []field

type field struct {
	name string
	value
}

// celled is what stands in a cell or a group: a list or object as JSON, else text.
func celled(text string) value {
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		if v := []byte(text); json.Valid(v) {
			return value{json: v}
		}
	}
	return value{cell: text}
}

// none reports no value, or null.
func (v value) none() bool {
	return v.item == nil && v.cell == "" && (len(v.json) == 0 || v.json[0] == 'n')
}

// holds reports JSON that begins with one of the bytes.
func (v value) holds(first string) bool {
	return len(v.json) > 0 && strings.IndexByte(first, v.json[0]) >= 0
}

// holdsParts reports a list whose first item begins with one of the bytes.
func (v value) holdsParts(first string) bool {
	return len(v.json) > 0 && value{json: bytes.TrimLeft(v.json[1:], " \t\r\n")}.holds(first)
}

func (v value) isObject() bool {
	_, object := v.item.(tensor.Dict)
	return object || v.holds("{")
}

// isList reports a list of JSON, a tensor or an array.
func (v value) isList() bool { return v.item != nil && !v.isObject() || v.holds("[") }

// isNumbers reports an array, or a list of numbers or of such lists, rather than of objects.
func (v value) isNumbers() bool {
	switch v.item.(type) {
	case tensor.Array, tensor.Stored:
		return true
	}
	return v.holds("[") && !value{json: bytes.TrimLeft(v.json, "[ \t\r\n")}.holds(`{"`)
}

// maxParts bounds what of a list or object is kept, a field of which takes ten times its text.
const maxParts = 1 << 22

// parts are the fields of an object, or the items of a list without names, but for lists of numbers.
func (v value) parts() (parts row, err error) {
	switch item := v.item.(type) {
	case row:
		return item, nil
	case tensor.Dict:
		for _, name := range slices.Sorted(maps.Keys(item)) {
			parts = append(parts, field{name, value{item: item[name]}})
		}
	case *[]any:
		for _, part := range *item {
			parts = append(parts, field{"", value{item: part}})
		}
	}
	object := v.holds("{")
	if !object && !(v.holds("[") && v.holdsParts("[{")) {
		return parts, nil
	}
	for rest := next(v.json[1:]); rest[0] != '}' && rest[0] != ']'; rest = next(rest) {
		name, end := "", 0
		if object {
			end = past(rest)
			name, rest = value{json: rest[:end]}.word(), next(rest[end:])
		}
		end = past(rest)
		if parts = append(parts, field{name, value{json: rest[:end:end]}}); len(parts) > maxParts {
			return nil, fmt.Errorf("want at most %d items in one list or object", maxParts)
		}
		rest = rest[end:]
	}
	return parts, nil
}

// part is the field of a name, nothing where there is none.
func (v value) part(name string) (found value) {
	parts, _ := v.parts() // of too many none is looked for
	for _, p := range parts {
		if p.name == name {
			found = p.value
		}
	}
	return found
}

// next is a text from its next value on, or from the end of the list or object that it is in.
func next(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n,:") }

// past is where the first value of valid JSON ends: `{"a": 1}, 2` → 8.
func past(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth <= 0 {
				return i + 1 + depth
			}
		case depth == 0 && (b == ',' || b == ':' || b <= ' '):
			return i
		}
	}
	return len(text)
}

// word is a text, empty for anything else.
func (v value) word() (text string) {
	if n := len(v.json); v.holds(`"`) && bytes.IndexByte(v.json, '\\') < 0 {
		return string(v.json[1 : n-1])
	}
	if v.cell != "" || json.Unmarshal(v.json, &text) != nil {
		return v.cell
	}
	return text
}

// whole is an integer, which may stand in quotes; not ok for anything else.
func (v value) whole() (n int64, ok bool) {
	if n, ok = v.item.(int64); ok || v.holds("[{") {
		return n, ok
	}
	text := v.cell
	if text == "" {
		text = strings.Trim(string(v.json), `"`)
	}
	n, err := whole(text)
	return n, err == nil
}

// whole reads one number, which tools also write as 12.0.
func whole(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	digits, zeros, _ := strings.Cut(strings.TrimSpace(text), ".")
	if len(digits) < 20 && strings.Trim(zeros, "0") == "" { // an error for each 12.0 would take more than the numbers
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return n, nil
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > maxCount {
		return 0, fmt.Errorf("want whole counts below %d, have %.60s", int64(maxCount), text)
	}
	return int64(v), nil
}

// maxDimensions is more than any axes have.
const maxDimensions = 4

// array reads numbers in lists of one shape, or a tensor of integers: [[1, 2], [3, 4]] → shape 2 × 2.
func (v value) array() (a tensor.Array, err error) {
	switch item := v.item.(type) {
	case tensor.Array:
		return item, nil
	case tensor.Stored:
		return item()
	}
	unlike := fmt.Errorf("want lists of counts, layers × experts, of one depth, have %.60s", v.json)
	if !v.holds("[") {
		return a, errors.New("want lists of counts or a tensor")
	}
	a.Values = make([]int64, 0, 1+bytes.Count(v.json, []byte(",")))
	var items [maxDimensions]int64 // of each list that is open, so far
	for at, depth := 0, 0; at < len(v.json); at++ {
		switch b := v.json[at]; {
		case b == '[':
			if depth == len(a.Shape) && len(a.Values) == 0 && depth < maxDimensions {
				a.Shape = append(a.Shape, -1)
			}
			if depth == maxDimensions {
				return a, fmt.Errorf("want at most %d dimensions", maxDimensions)
			} else if depth == len(a.Shape) {
				return a, unlike
			}
			items[depth] = 0
			depth++
		case b == ']':
			depth--
			if before := &a.Shape[depth]; *before < 0 {
				*before = items[depth]
			} else if *before != items[depth] {
				return a, fmt.Errorf("want lists of one length, have %d and %d numbers or lists in two of them", *before,
					items[depth])
			}
			if depth > 0 {
				items[depth-1]++
			}
		case b == ',' || b <= ' ':
		case depth != len(a.Shape):
			return a, unlike
		default:
			end := at + past(v.json[at:])
			n, err := wholeOf(v.json[at:end])
			if err != nil {
				return a, err
			}
			a.Values, at = append(a.Values, n), end-1
			items[depth-1]++
		}
	}
	return a, nil
}

// wholeOf is whole without a copy of the digits.
func wholeOf(text []byte) (n int64, err error) {
	if len(text) > 15 {
		return whole(string(text))
	}
	for _, b := range text {
		if b < '0' || b > '9' {
			return whole(string(text))
		}
		n = 10*n + int64(b-'0')
	}
	return n, nil
}

// matrix reads numbers of [layers, copies].
func (v value) matrix() ([][]int64, error) {
	a, err := v.array()
	if err == nil && (len(a.Shape) != 2 || a.Shape[1] < 1 || a.Shape[0] > maxLayers || a.Shape[1] > maxExperts) {
		err = fmt.Errorf("want [layers, copies], have %v", a.Shape)
	}
	if err != nil {
		return nil, err
	}
	return slices.Collect(a.Rows()), nil
}

// expertsOf are numbers as expert ids; an id that no model has is an error.
func expertsOf(ids []int64) ([]int32, error) {
	out := make([]int32, len(ids))
	for i, e := range ids {
		if e < 0 || e >= maxExperts {
			return nil, fmt.Errorf("the map names expert %d", e)
		}
		out[i] = int32(e)
	}
	return out, nil
}
