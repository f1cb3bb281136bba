package counts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/compare/counts/tensor"
)

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

// values are the values of JSON one after another, of a list of objects its items, as the lines of JSONL are:
// [{…}, {…}] → two values.
func (d *decoder) values(yield func(any) bool) {
	for more := true; more; {
		for d.left = maxParts; d.PeekKind() == ']' || d.StackDepth() == 0 && d.ofObjects(); {
			d.token()
		}
		if d.PeekKind() == 0 {
			if _, err := d.ReadToken(); err == io.EOF {
				return
			}
		}
		more = yield(d.value())
	}
}

// ofObjects reports that a list of objects comes next, or of lists of them.
func (d *decoder) ofObjects() bool {
	at := int(d.InputOffset())
	text := bytes.TrimLeft(d.text[at:min(at+4096, len(d.text))], "[,: \t\r\n")
	return d.PeekKind() == '[' && bytes.HasPrefix(text, []byte("{"))
}

func (d *decoder) token() jsontext.Token {
	token, err := d.ReadToken()
	return must(token, d.notJSON(err))
}

// value reads the next value.
func (d *decoder) value() any {
	if d.left--; d.left < 0 {
		fail("want at most %d values in one record", maxParts)
	}
	object := d.PeekKind() == '{'
	if !object && !d.ofObjects() {
		text, err := d.ReadValue()
		text, end := must(text, d.notJSON(err)), int(d.InputOffset())
		return leaf(d.text[end-len(text) : end : end])
	}
	parts := &tensor.Parts{}
	for d.token(); d.PeekKind() != '}' && d.PeekKind() != ']'; {
		var part tensor.Part
		if object {
			part.Name = d.token().String()
		}
		part.Value = d.value()
		*parts = append(*parts, part)
	}
	d.token()
	return parts
}

// notJSON says where the text is no JSON, and by what: `[[NaN,1]]` → line 1 is no JSON: it goes wrong at "NaN,1]]".
func (d *decoder) notJSON(err error) error {
	bad := (*jsontext.SyntacticError)(nil)
	switch {
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
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") ||
		attempt(func() { v = newDecoder([]byte(text)).value() }) != nil {
		return text
	}
	return v
}

// leaf is a value of JSON that holds no object. A number that is not whole says nothing, like true and null.
func leaf(text []byte) any {
	switch text[0] {
	case '[':
		return tensor.Stored(func() tensor.Array { return numbers(text) })
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

// word is a text, empty for anything else.
func word(v any) string {
	text, _ := v.(string)
	return text
}

// number is a whole number, which may stand in quotes.
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
func arrayOf(v any) tensor.Array {
	stored, ok := v.(tensor.Stored)
	if !ok {
		fail("want lists of counts or a tensor")
	}
	return stored()
}

// maxDimensions is more than any axes have.
const maxDimensions = 4

// numbers reads the numbers of a list in JSON, or of lists of one depth and length: [[1, 2], [3, 4]] → shape 2 × 2.
func numbers(text []byte) (a tensor.Array) {
	a.Values = make([]int64, 0, 1+bytes.Count(text, []byte(",")))
	list(&a, text, make([]int, 0, maxDimensions))
	return a
}

// list reads the list at the head of a text, and returns what follows. within are the items that it stands in.
func list(a *tensor.Array, text []byte, within []int) []byte {
	depth := len(within)
	if depth == maxDimensions {
		fail("want at most %d dimensions", maxDimensions)
	}
	if depth == len(a.Shape) {
		a.Shape = append(a.Shape, -1)
	}
	text = text[1:]
	for n := 0; ; n++ {
		for text[0] <= ' ' || text[0] == ',' {
			text = text[1:]
		}
		switch inner := depth+1 < len(a.Shape); {
		case text[0] == ']' && (a.Shape[depth] < 0 || a.Shape[depth] == int64(n)):
			a.Shape[depth] = int64(n)
			return text[1:]
		case text[0] == ']':
			fail("want lists of one length, have %d and %d numbers or lists in two of them", a.Shape[depth], n)
		case text[0] == '[' && (inner || len(a.Values) == 0):
			text = list(a, text, append(within, n))
		case text[0] == '[' || inner:
			fail("want lists of counts, layers × experts, of one depth, have %.60s", text)
		default:
			end := 0
			for text[end] > ' ' && text[end] != ',' && text[end] != ']' {
				end++
			}
			v, err := whole(text[:end])
			if err != nil {
				fail("item %d: %w", append(within, n), err)
			}
			a.Values, text = append(a.Values, v), text[end:]
		}
	}
}
