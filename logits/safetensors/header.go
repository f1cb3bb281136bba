package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// metadataKey is the one reserved name of a header: a map from string to string.
const metadataKey = "__metadata__"

// header is the parsed JSON of a file.
type header struct {
	tensors  []Tensor // in file order
	metadata map[string]string
}

// parser walks the header's JSON token by token, because the decoder into maps
// silently lets the last of two equal keys win.
type parser struct {
	name string
	dec  *json.Decoder
}

// parseHeader reads the JSON of a header and returns its tensors in the order of
// their bytes, and where the last one ends. Every byte in between belongs to
// exactly one tensor.
func parseHeader(name string, text []byte) (h header, end int64, err error) {
	p := parser{name: name, dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	if !utf8.Valid(text) {
		return h, 0, p.errorf("the header is not UTF-8")
	}
	h.metadata = map[string]string{}
	err = p.object("header", func(key string) error {
		if key == metadataKey {
			return p.object(metadataKey, func(key string) (err error) {
				h.metadata[key], err = p.text(metadataKey + " value")
				return err
			})
		}
		t, err := p.tensor(key)
		h.tensors = append(h.tensors, t)
		return err
	})
	if err != nil {
		return h, 0, err
	}
	if rest := text[p.dec.InputOffset():]; len(bytes.TrimRight(rest, " \t\r\n")) > 0 {
		return h, 0, p.errorf("want only spaces after the header's JSON")
	}
	slices.SortFunc(h.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Name, b.Name))
	})
	end, err = h.layOut(p)
	return h, end, err
}

func (p parser) errorf(format string, args ...any) error {
	return &FormatError{Name: p.name, Offset: lengthBytes + p.dec.InputOffset(), Msg: fmt.Sprintf(format, args...)}
}

// token reads the next token; a syntax error becomes a FormatError.
func (p parser) token() (json.Token, error) {
	t, err := p.dec.Token()
	if err == io.EOF {
		return nil, p.errorf("the header's JSON ends too early")
	}
	if err != nil {
		return nil, p.errorf("the header is not JSON: %v", err)
	}
	return t, nil
}

// object reads an object, calling value for each key, and refuses a second key
// of the same name.
func (p parser) object(what string, value func(key string) error) error {
	if err := p.open(what, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		key, err := p.text(what + " key")
		if err != nil {
			return err
		}
		if seen[key] {
			return p.errorf("%s: key %q appears twice", what, key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	_, err := p.token()
	return err
}

func (p parser) open(what string, delim json.Delim) error {
	t, err := p.token()
	if err == nil && t != delim {
		err = p.errorf("%s: want %v, have %v", what, delim, t)
	}
	return err
}

func (p parser) text(what string) (string, error) {
	t, err := p.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", p.errorf("%s: want a string, have %v", what, t)
	}
	return s, nil
}

// integers reads an array of whole numbers from 0 to 2⁶³ − 1.
func (p parser) integers(what string) ([]int64, error) {
	if err := p.open(what, '['); err != nil {
		return nil, err
	}
	list := []int64{}
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return nil, err
		}
		digits, _ := t.(json.Number)
		n, err := strconv.ParseUint(string(digits), 10, 63)
		if err != nil {
			return nil, p.errorf("%s: want whole numbers from 0 to 2^63-1, have %v", what, t)
		}
		list = append(list, int64(n))
	}
	_, err := p.token()
	return list, err
}

// tensor reads the description of one tensor. Keys that the format does not
// define are passed over, as the reference reader does.
func (p parser) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []int64
	what := fmt.Sprintf("tensor %q", name)
	err := p.object(what, func(key string) (err error) {
		switch key {
		case "dtype":
			var s string
			s, err = p.text(what + " dtype")
			t.DType = DType(s)
		case "shape":
			t.Shape, err = p.integers(what + " shape")
		case "data_offsets":
			offsets, err = p.integers(what + " data_offsets")
		default:
			var ignored json.RawMessage
			if p.dec.Decode(&ignored) != nil {
				err = p.errorf("%s: the value of %q is not JSON", what, key)
			}
		}
		return err
	})
	if err != nil {
		return t, err
	}
	switch {
	case t.DType.Size() == 0:
		return t, p.errorf("%s: unsupported dtype %q", what, t.DType)
	case t.Shape == nil:
		return t, p.errorf("%s: has no shape", what)
	case len(offsets) != 2 || offsets[0] > offsets[1]:
		return t, p.errorf("%s: want data_offsets [begin, end] with begin ≤ end, have %v", what, offsets)
	}
	t.Begin, t.End = offsets[0], offsets[1]
	size, ok := byteSize(t.DType, t.Shape)
	if !ok {
		return t, p.errorf("%s: shape %v of %s overflows", what, t.Shape, t.DType)
	}
	if size != t.Bytes() {
		return t, p.errorf("%s: shape %v of %s needs %d bytes, data_offsets %v hold %d", what, t.Shape, t.DType, size, offsets, t.Bytes())
	}
	return t, nil
}

// layOut checks that the tensors, sorted by offset, follow each other without
// overlap or hole, and returns where the last one ends.
func (h header) layOut(p parser) (end int64, err error) {
	for i, t := range h.tensors {
		switch {
		case t.Begin < end:
			return 0, p.errorf("tensor %q at %d overlaps tensor %q, which ends at %d", t.Name, t.Begin, h.tensors[i-1].Name, end)
		case t.Begin > end:
			return 0, p.errorf("bytes %d to %d before tensor %q belong to no tensor", end, t.Begin, t.Name)
		}
		end = t.End
	}
	return end, nil
}
