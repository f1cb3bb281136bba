package counts

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// maxValues bounds the lists, objects and texts in a record of JSON, each of which takes ten times its text. Numbers
// in lists take less.
const maxValues = 1 << 24

var lenient = jsontext.AllowInvalidUTF8(true)

// decoder reads the records of JSON: its values, of a list of objects its items, as the lines of JSONL are.
type decoder struct {
	*jsontext.Decoder
	text    []byte
	list    []any // items that come next
	values  int   // of the record
	depth   int   // of the list that is read
	options json.Options
}

func newDecoder(text []byte) *decoder {
	d := &decoder{Decoder: jsontext.NewDecoder(bytes.NewBuffer(text), lenient), text: text}
	d.options = json.WithUnmarshalers(json.UnmarshalFromFunc(d.value))
	return d
}

// next reads the next record: [{…}, {…}] → two.
func (d *decoder) next() (v any, more bool) {
	if len(d.list) == 0 {
		d.values = 0
		err := json.UnmarshalDecode(d.Decoder, &v, d.options)
		if err == io.EOF {
			return nil, false
		}
		v = must(v, d.notJSON(err))
		if d.list = listOf(v); isArray(v) || len(d.list) == 0 {
			d.list = nil
			return v, true
		}
	}
	v, d.list = d.list[0], d.list[1:]
	return v, true
}

// value reads lists, of whole numbers as []int64, which takes a third of the memory and time of []any.
func (d *decoder) value(from *jsontext.Decoder, v *any) error {
	if d.values++; d.values > maxValues {
		fail("want at most %d lists, objects and texts in one record", maxValues)
	}
	if from.PeekKind() != '[' || d.depth > maxDimensions { // each list within lists is scanned again
		return errors.ErrUnsupported
	}
	d.depth++
	defer func() { d.depth-- }()
	raw, err := from.ReadValue()
	if err != nil {
		return err
	}
	var numbers []int64
	for item := range bytes.SplitSeq(raw[1:len(raw)-1], []byte(",")) {
		n, other := strconv.ParseInt(string(bytes.TrimSpace(item)), 10, 64)
		if other != nil {
			list := []any{}
			err = json.Unmarshal(raw, &list, lenient, d.options)
			*v = list
			return err
		}
		numbers = append(numbers, n)
	}
	*v = numbers
	return nil
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

// number reads a whole number, which tools also write as 12.0 or in quotes.
func number(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<62 { // the collector refuses lesser ones
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
	switch v.(type) {
	case map[string]any, []any, *[]any, []int64, tensor.Stored:
		return false
	}
	return true
}

// shapeOf is the shape of lists by the first item of each, and the first of all: [[1, 2], [3]] → 2 × 2 and 1.
func shapeOf(v any) (shape []int64, first any) {
	for list := listOf(v); list != nil; list = listOf(v) {
		if shape = append(shape, int64(len(list))); len(list) == 0 {
			return shape, nil
		}
		v = list[0]
	}
	if numbers, is := v.([]int64); is {
		return append(shape, int64(len(numbers))), nil
	}
	return shape, v
}

// isArray reports an array, or lists of values that are neither objects nor arrays.
func isArray(v any) bool {
	_, stored := v.(tensor.Stored)
	shape, first := shapeOf(v)
	return stored || len(shape) > 0 && isLeaf(first)
}

// arrayOf is an array, or the numbers of a list, or of lists of one depth and length: [[1, 2], [3, 4]] → shape 2 × 2.
func arrayOf(v any) tensor.Array {
	if stored, is := v.(tensor.Stored); is {
		return stored()
	}
	if !isArray(v) {
		fail("want lists of counts or a tensor")
	}
	shape, _ := shapeOf(v)
	return tensor.Array{Shape: shape, Values: slices.Concat(rows(nil, v, shape, make([]int64, 0, maxDimensions))...)}
}

// maxDimensions is more than any axes have.
const maxDimensions = 4

// rows adds the numbers of a list, which stands within others at these items.
func rows(all [][]int64, v any, shape, within tensor.Shape) [][]int64 {
	list, depth := listOf(v), len(within)
	numbers, _ := v.([]int64)
	if depth == maxDimensions || isLeaf(v) || shape[depth] != int64(len(list)+len(numbers)) ||
		numbers != nil && depth+1 < len(shape) {
		fail("want lists of counts, layers × experts, of one length and depth, at most %d, have others at item %v",
			maxDimensions, within)
	}
	for i, item := range list {
		at := append(within, int64(i))
		if depth+1 < len(shape) {
			all = rows(all, item, shape, at)
			continue
		}
		n, err := number(item)
		if err != nil {
			fail("item %v: %w", at, err)
		}
		numbers = append(numbers, n)
	}
	return append(all, numbers)
}

// routes is what routed_experts holds: nested lists, base64 of a .npy (vLLM), or of int32 whose shape
// stands beside it (SGLang).
func routes(v, object any) tensor.Array {
	if word(v) == "" {
		return arrayOf(v)
	}
	raw := must(base64.StdEncoding.DecodeString(word(v)))
	if bytes.HasPrefix(raw, []byte(tensor.NumPyMagic)) {
		return tensor.ParseNumPy(raw)
	}
	shape := part(object, "shape")
	if !isArray(shape) {
		fail(`base64 of numbers without their shape; add "shape": [tokens, layers, top-k] beside it`)
	}
	return tensor.Dense(raw, "I32", arrayOf(shape).Values)
}

// calibrated reads calibration_data.json: the slots that a rank's tokens chose, layer after layer, as base64 of
// compressed int32, with layer_idx, num_slots and token_selected_slots_shape (tokens and top-k) of each in the metadata
// beside it. Slots are experts where none is redundant, and are taken as such.
func (c *collector) calibrated(v, object any, of context) {
	layers, raw := part(object, "metadata"), []byte(nil)
	err := attempt(func() { // of one iteration, bounded as it is compressed
		zipped := must(base64.StdEncoding.DecodeString(word(v)))
		raw = must(io.ReadAll(io.LimitReader(must(zlib.NewReader(bytes.NewReader(zipped))), 1<<28)))
	})
	if err != nil || layers == nil {
		fail("want base64 of what zlib compressed, whole, beside the metadata of its layers")
	}
	each(layers, func(_ string, layer any) {
		each(layer, of.describe)
		shape, n := arrayOf(part(layer, "token_selected_slots_shape")).Values, int64(len(raw))/4
		if len(shape) == 2 && shape[0] >= 0 && shape[1] > 0 && shape[0] <= n/shape[1] {
			n = shape[0] * shape[1]
		}
		c.known = max(c.known, of.numbers[isCount]) // slots
		c.array(tensor.Dense(raw[:4*n], "I32", shape), Axes{"tokens", "topk"}, of)
		raw = raw[4*n:]
	})
	c.onRanks(of.numbers[isRanks])
}
