package counts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// maxValues bounds the values of a record of JSON, each of which takes ten times its text.
const maxValues = 1 << 24

var lenient = jsontext.AllowInvalidUTF8(true)

// decoder reads the records of JSON: its values, of a list of objects its items, as the lines of JSONL are.
type decoder struct {
	*jsontext.Decoder
	text []byte
	list []any // items that come next
}

func newDecoder(text []byte) *decoder {
	return &decoder{Decoder: jsontext.NewDecoder(bytes.NewBuffer(text), lenient), text: text}
}

// next reads the next record: [{…}, {…}] → two.
func (d *decoder) next() (v any, more bool) {
	if len(d.list) == 0 {
		raw, err := d.ReadValue()
		if err == io.EOF {
			return nil, false
		}
		if raw = must(raw, d.notJSON(err)); bytes.Count(raw, []byte(","))+bytes.Count(raw, []byte("[")) > maxValues {
			fail("want at most %d values in one record", maxValues)
		}
		v = must(v, json.Unmarshal(raw, &v, lenient))
		if d.list = listOf(v); isArray(v) || len(d.list) == 0 {
			d.list = nil
			return v, true
		}
	}
	v, d.list = d.list[0], d.list[1:]
	return v, true
}

// notJSON says where the text is no JSON, and by what: `[[NaN,1]]` → line 1 is no JSON: it goes wrong at "NaN,1]]".
func (d *decoder) notJSON(err error) error {
	bad := (*jsontext.SyntacticError)(nil)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &bad):
		return fmt.Errorf("a key comes twice: %s", bad.JSONPointer)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the JSON ends early, after %d bytes: write it again", len(d.text))
	case !errors.As(err, &bad):
		return err
	}
	at := min(int(bad.ByteOffset), len(d.text))
	return fmt.Errorf("line %d is no JSON: it goes wrong at %.20q", 1+bytes.Count(d.text[:at], []byte("\n")), d.text[at:])
}

// celled is what stands in a cell of a table or a group of a line: a list or an object as JSON is, else text.
func celled(text string) (v any) {
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &v, lenient) != nil {
		return text
	}
	return v
}

// listOf are the items of a list, nil for anything else.
func listOf(v any) (list []any) {
	if pickled, is := v.(*[]any); is {
		return *pickled
	}
	list, _ = v.([]any)
	return list
}

// items are the parts of an object, by name, or of a list, without names.
func items(v any) func(yield func(string, any) bool) {
	return func(yield func(string, any) bool) {
		object, _ := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !yield(name, object[name]) {
				return
			}
		}
		for _, item := range listOf(v) {
			if !yield("", item) {
				return
			}
		}
	}
}

// part is the value of a name, nil where there is none.
func part(v any, name string) any {
	object, _ := v.(map[string]any)
	return object[name]
}

// word is a text, empty for anything else.
func word(v any) string {
	text, _ := v.(string)
	return text
}

// maxNumber bounds the numbers that are read; the collector, which knows the place of a count, refuses smaller ones.
const maxNumber = 1 << 62

// number reads a whole number, which tools also write as 12.0 or in quotes.
func number(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= maxNumber {
			return int64(v), nil
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
		if real, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return number(real)
		}
	}
	text, _ := json.Marshal(v)
	return 0, fmt.Errorf("want whole counts below %d, have %.60s", int64(maxCount), text)
}

// isLeaf reports a value that holds no other.
func isLeaf(v any) bool {
	_, isObject := v.(map[string]any)
	return !isObject && listOf(v) == nil && !isArray(v)
}

// isArray reports an array, or a list that holds no object and no array.
func isArray(v any) bool {
	list, depth := listOf(v), 0
	for ; len(list) > 0 && depth <= maxDimensions; depth++ {
		v = list[0]
		list = listOf(v)
	}
	switch v.(type) {
	case tensor.Stored:
		return depth == 0
	case map[string]any:
		return false
	}
	return depth > 0 || list != nil
}

// arrayOf is an array, or the numbers of a list, or of lists of one depth and length: [[1, 2], [3, 4]] → shape 2 × 2.
func arrayOf(v any) (a tensor.Array) {
	if stored, is := v.(tensor.Stored); is {
		return stored()
	}
	if !isArray(v) {
		fail("want lists of counts or a tensor")
	}
	fill(&a, v, make([]int64, 0, maxDimensions))
	return a
}

// maxDimensions is more than any axes have.
const maxDimensions = 4

// fill adds the numbers of a list, which stands within others at these items.
func fill(a *tensor.Array, v any, within []int64) {
	list, depth := listOf(v), len(within)
	if list == nil && depth == len(a.Shape) {
		n, err := number(v)
		if err != nil {
			fail("item %d: %w", within, err)
		}
		a.Values = append(a.Values, n)
		return
	}
	if depth == len(a.Shape) && depth < maxDimensions && !holdsAny(within) { // the first list of its depth
		a.Shape = append(a.Shape, int64(len(list)))
	}
	if list == nil || depth == len(a.Shape) || a.Shape[depth] != int64(len(list)) {
		fail("want lists of counts, layers × experts, of one length and depth, at most %d, have others at item %d",
			maxDimensions, within)
	}
	for i, item := range list {
		fill(a, item, append(within, int64(i)))
	}
}
