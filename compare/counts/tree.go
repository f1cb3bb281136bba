package counts

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

// cell is the text of a table's cell or a line's group. Where a number belongs it must be one.
type cell string

// celled is what stands in a cell or a group: a list or an object as JSON is, else text.
func celled(text string) any {
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		if v, err := newDecoder([]byte(text)).decode(); err == nil {
			return v
		}
	}
	return cell(text)
}

// maxParts bounds the values of a record of JSON, each of which takes ten times its text.
const maxParts = 1 << 22

// decoder reads JSON as a tree, as package tensor has it. A list of numbers is read when it is asked for.
type decoder struct {
	*jsontext.Decoder
	text []byte
	left int // values that may come before the record is too large
}

func newDecoder(text []byte) *decoder {
	return &decoder{jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true)), text, maxParts}
}

// ofObjects reports that a list of objects comes next, or of lists of them.
func (d *decoder) ofObjects() bool {
	at := int(d.InputOffset())
	text := bytes.TrimLeft(d.text[at:min(at+4096, len(d.text))], "[,: \t\r\n")
	return d.PeekKind() == '[' && bytes.HasPrefix(text, []byte("{"))
}

// decode reads the next value.
func (d *decoder) decode() (any, error) {
	if d.left--; d.left < 0 {
		return nil, fmt.Errorf("want at most %d values in one record", maxParts)
	}
	object := d.PeekKind() == '{'
	if !object && !d.ofObjects() {
		text, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(d.InputOffset())
		return leaf(d.text[end-len(text) : end : end]), nil
	}
	_, err := d.ReadToken()
	parts := &tensor.Parts{}
	for err == nil && d.PeekKind() != '}' && d.PeekKind() != ']' {
		var part tensor.Part
		if object {
			var name jsontext.Token
			if name, err = d.ReadToken(); err != nil {
				break
			}
			part.Name = name.String()
		}
		part.Value, err = d.decode()
		*parts = append(*parts, part)
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return parts, err
}

// leaf is a value of JSON that holds no object. A number that is not whole says nothing, like true and null.
func leaf(text []byte) any {
	switch text[0] {
	case '[':
		return tensor.Stored(func() (tensor.Array, error) { return numbers(text) })
	case '"':
		unquoted, _ := jsontext.AppendUnquote(nil, text) // valid, as it was read
		return string(unquoted)
	}
	if n, err := whole(text); err == nil {
		return n
	}
	return nil
}

// items are the parts of an object or a list, none of anything else.
func items(v any) tensor.Parts {
	if parts, ok := v.(*tensor.Parts); ok {
		return *parts
	}
	return nil
}

// part is the value of a name, nil where there is none.
func part(v any, name string) (found any) {
	for _, p := range items(v) {
		if p.Name == name {
			found = p.Value
		}
	}
	return found
}

// keysOf are the names of an object's fields.
func keysOf(v any) (keys []string) {
	for _, p := range items(v) {
		keys = append(keys, p.Name)
	}
	return keys
}

// word is a text, empty for anything else.
func word(v any) string {
	if text, ok := v.(cell); ok {
		return string(text)
	}
	text, _ := v.(string)
	return text
}

// number is a whole number, which may stand in quotes or in a cell.
func number(v any) (int64, bool) {
	if n, ok := v.(int64); ok {
		return n, true
	}
	n, err := whole(word(v))
	return n, err == nil
}

// maxNumber bounds the numbers that are read; the collector, which knows the place of a count, refuses smaller ones.
const maxNumber = 1 << 62

// whole reads one number, which tools also write as 12.0.
func whole[T string | []byte](text T) (n int64, err error) {
	at := 0
	for ; at < min(len(text), 18) && '0' <= text[at] && text[at] <= '9'; at++ {
		n = 10*n + int64(text[at]-'0')
	}
	if at == len(text) && at > 0 {
		return n, nil
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > maxNumber {
		return 0, fmt.Errorf("want whole counts below %d, have %.60s", int64(maxCount), text)
	}
	return int64(v), nil
}

// arrayOf is an array or a list of numbers.
func arrayOf(v any) (tensor.Array, error) {
	if stored, ok := v.(tensor.Stored); ok {
		return stored()
	}
	return tensor.Array{}, errors.New("want lists of counts or a tensor")
}

// maxDimensions is more than any axes have.
const maxDimensions = 4

// numbers reads the numbers of a list in JSON, or of lists of one depth and length: [[1, 2], [3, 4]] → shape 2 × 2.
func numbers(text []byte) (a tensor.Array, err error) {
	a.Values = make([]int64, 0, 1+bytes.Count(text, []byte(",")))
	var items [maxDimensions + 1]int64 // so far, of each list that is open
	for at, depth := 0, 0; at < len(text); at++ {
		switch b := text[at]; {
		case b == ',' || b <= ' ':
		case b == ']':
			if depth--; a.Shape[depth] < 0 {
				a.Shape[depth] = items[depth+1]
			}
			if have := items[depth+1]; a.Shape[depth] != have {
				return a, fmt.Errorf("want lists of one length, have %d and %d numbers or lists in two of them", a.Shape[depth],
					have)
			}
		case b == '[' && depth == maxDimensions:
			return a, fmt.Errorf("want at most %d dimensions", maxDimensions)
		case b == '[' && (depth < len(a.Shape) || len(a.Values) == 0):
			if depth == len(a.Shape) {
				a.Shape = append(a.Shape, -1)
			}
			items[depth]++
			depth++
			items[depth] = 0
		case depth != len(a.Shape) || b == '[':
			return a, fmt.Errorf("want lists of counts, layers × experts, of one depth, have %.60s", text)
		default:
			end := at
			for text[end] > ' ' && text[end] != ',' && text[end] != ']' {
				end++
			}
			n, err := whole(text[at:end])
			if err != nil {
				for open := range depth { // lists before this one are counted already
					items[open]--
				}
				return a, fmt.Errorf("item %d: %w", items[1:depth+1], err)
			}
			a.Values, at = append(a.Values, n), end-1
			items[depth]++
		}
	}
	return a, nil
}
