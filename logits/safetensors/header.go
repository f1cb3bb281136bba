package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/moebalance/moebalance/router/input"
)

// metadataKey is the one reserved name of a header: a map from string to string.
const metadataKey = "__metadata__"

// description is the JSON of one tensor. Keys that the format does not define are passed
// over, as the reference reader does.
type description struct {
	DType   DType    `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// Header encodes the start of a file: length, JSON, and spaces up to a multiple
// of 8 bytes. The tensors' bytes follow it in the order given; their Begin and
// End are ignored and assigned. Each tensor must begin at a multiple of its
// element size, which wide types first always gives: readers that map a file
// into memory need it.
func Header(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	type field struct {
		name  string
		value any
	}
	var fields []field
	if len(metadata) > 0 {
		fields = append(fields, field{metadataKey, metadata})
	}
	end := uint64(0)
	for _, t := range tensors {
		size, ok := byteSize(t.DType, t.Shape)
		if begin := end; !ok || begin%uint64(t.DType.Size()) != 0 || begin+uint64(size) > math.MaxInt64 {
			return nil, fmt.Errorf("writing tensor %v at byte %d: want a possible shape, and wider types first", t, begin)
		}
		d := description{DType: t.DType, Shape: []uint64{}, Offsets: []uint64{end, end + uint64(size)}}
		for _, n := range t.Shape {
			d.Shape = append(d.Shape, uint64(n))
		}
		fields, end = append(fields, field{t.Name, d}), d.Offsets[1]
	}
	text := []byte("{")
	for i, f := range fields {
		object, err := json.Marshal(map[string]any{f.name: f.value}, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, object[1:len(object)-1]...)
	}
	text = append(text, '}')
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}

// header is what the JSON of a file says: its tensors in file order, and its metadata.
type header struct {
	tensors  []Tensor
	metadata map[string]string
}

// UnmarshalJSONFrom reads tensors into a list: a map of many takes twice the time.
func (h *header) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if kind := d.PeekKind(); kind != '{' {
		return &json.SemanticError{JSONKind: kind, GoType: reflect.TypeFor[header]()}
	}
	for {
		token, err := d.ReadToken()
		name, kind := token.String(), token.Kind()
		switch {
		case err != nil || kind == '}':
			return err
		case kind == '{': // its begin
		case name == metadataKey:
			err = json.UnmarshalDecode(d, &h.metadata)
		default:
			var t description
			if err = json.UnmarshalDecode(d, &t); err == nil {
				var tensor Tensor
				tensor, err = t.place(name)
				h.tensors = append(h.tensors, tensor)
			}
		}
		if err != nil {
			return err
		}
	}
}

// parseHeader reads the JSON of a header, its tensors in the order of their bytes, and where
// the last one ends. Every byte in between belongs to exactly one tensor.
//
// The decoder refuses names that come twice, text that is not UTF-8 and nesting deeper than
// 10,000; no string is longer than the header, whose length is bounded.
func parseHeader(file string, text []byte) (h header, end int64, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return h, 0, jsonFault(file, err)
	}
	slices.SortFunc(h.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), strings.Compare(a.Name, b.Name))
	})
	for _, t := range h.tensors {
		if t.Begin != end {
			return h, 0, &input.Error{File: file, Position: fmt.Sprintf("tensor %.80q", t.Name),
				Expected: fmt.Sprintf("tensors without overlap and without bytes between them, the next from byte %d on", end),
				Found:    fmt.Sprintf("%d to %d", t.Begin, t.End)}
		}
		end = t.End
	}
	return h, end, nil
}

// place gives a tensor its bytes, which its shape must need exactly.
func (d description) place(name string) (Tensor, error) {
	t := Tensor{Name: name, DType: d.DType, Shape: make([]int64, len(d.Shape))}
	fits := func(n uint64) bool { return n <= math.MaxInt64 }
	for i, n := range d.Shape {
		t.Shape[i] = int64(n) // of one that does not fit, byteSize makes no size
	}
	size, ok := byteSize(t.DType, t.Shape)
	wrong := input.Error{Position: fmt.Sprintf("tensor %.80q", name), Found: fmt.Sprintf("%v", d.Offsets)}
	switch {
	case t.DType.Size() == 0:
		wrong.Expected, wrong.Found = "a supported dtype", fmt.Sprintf("%.40q", t.DType)
	case d.Shape == nil:
		wrong.Expected, wrong.Found = "a shape", "none"
	case len(d.Offsets) != 2 || d.Offsets[0] > d.Offsets[1] || !fits(d.Offsets[1]):
		wrong.Expected = "data_offsets [begin, end] with begin ≤ end"
	case !ok:
		wrong.Expected, wrong.Found = "a shape of less than 2^63 bytes", fmt.Sprintf("%v of %s", d.Shape, t.DType)
	case uint64(size) != d.Offsets[1]-d.Offsets[0]:
		wrong.Expected = fmt.Sprintf("data_offsets of the %d bytes of shape %v of %s", size, t.Shape, t.DType)
	default:
		t.Begin, t.End = int64(d.Offsets[0]), int64(d.Offsets[1])
		return t, nil
	}
	return t, &wrong
}

// jsonFault says where the text of a header is not what it should be.
func jsonFault(file string, err error) error {
	wrong := &input.Error{File: file, Expected: "a header of valid JSON",
		Found: strings.TrimPrefix(err.Error(), "jsontext: ")}
	if placed := new(input.Error); errors.As(err, &placed) {
		*wrong = *placed
		wrong.File = file
	} else if semantic := new(json.SemanticError); errors.As(err, &semantic) {
		wrong.Position = fmt.Sprintf("%.80q", semantic.JSONPointer)
		wrong.Expected = "tensors with dtype, shape and data_offsets, and metadata of texts"
		wrong.Found = cmp.Or(string(semantic.JSONValue), semantic.JSONKind.String())
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		wrong.Found = "its end"
	}
	return wrong
}

// fault is an error about a byte of a file.
func fault(file string, offset int64, want, have string) error {
	return &input.Error{File: file, Position: fmt.Sprintf("byte %d", offset), Expected: want, Found: have}
}
