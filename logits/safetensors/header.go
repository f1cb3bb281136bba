package safetensors

import (
	"bytes"
	"cmp"
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

// header is the parsed JSON of a file.
type header struct {
	tensors  []Tensor // in file order
	byName   map[string]int
	metadata map[string]string
}

// description is the JSON of one tensor. Keys that the format does not define are passed
// over, as the reference reader does.
type description struct {
	DType   DType    `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// noNull refuses null, which would stand for an empty value.
var noNull = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, into any) error {
	if d.PeekKind() == 'n' {
		return &json.SemanticError{JSONKind: 'n', GoType: reflect.TypeOf(into).Elem()}
	}
	return errors.ErrUnsupported
}))

// object is the JSON of a header, its tensors in a list: a map of many takes twice the time.
type object struct {
	metadata map[string]string
	tensors  []namedDescription
}

type namedDescription struct {
	name string
	description
}

func (o *object) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if kind := d.PeekKind(); kind != '{' {
		return &json.SemanticError{JSONKind: kind, GoType: reflect.TypeFor[object]()}
	}
	for {
		token, err := d.ReadToken()
		name, kind := token.String(), token.Kind()
		switch {
		case err != nil || kind == '}':
			return err
		case kind == '{': // its begin
		case name == metadataKey:
			err = json.UnmarshalDecode(d, &o.metadata)
		default:
			o.tensors = append(o.tensors, namedDescription{name: name})
			err = json.UnmarshalDecode(d, &o.tensors[len(o.tensors)-1].description)
		}
		if err != nil {
			return err
		}
	}
}

// parseHeader reads the JSON of a header and returns its tensors in the order of
// their bytes, and where the last one ends. Every byte in between belongs to
// exactly one tensor.
//
// The decoder refuses names that come twice, text that is not UTF-8 and nesting deeper than
// 10,000; no string is longer than the header, whose length is bounded.
func parseHeader(file string, text []byte) (h header, end int64, err error) {
	object, options := object{metadata: map[string]string{}}, json.JoinOptions()
	if bytes.Contains(text, []byte("null")) { // looking at each value takes time
		options = noNull
	}
	if err := json.Unmarshal(text, &object, options); err != nil {
		return h, 0, jsonFault(file, err)
	}
	h.metadata, h.byName = object.metadata, make(map[string]int, len(object.tensors))
	for _, d := range object.tensors {
		t, err := d.place(d.name)
		if err != nil {
			err.File = file
			return h, 0, err
		}
		h.tensors = append(h.tensors, t)
	}
	slices.SortFunc(h.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), strings.Compare(a.Name, b.Name))
	})
	for i, t := range h.tensors {
		h.byName[t.Name] = i
	}
	end, err = h.layOut(file)
	return h, end, err
}

// place gives a tensor its bytes, which its shape must need exactly.
func (d description) place(name string) (Tensor, *input.Error) {
	t := Tensor{Name: name, DType: d.DType, Shape: signed(d.Shape)}
	offsets, size, ok := signed(d.Offsets), int64(0), false
	if t.Shape != nil {
		size, ok = byteSize(t.DType, t.Shape)
	}
	wrong := func(want, have string, args ...any) (Tensor, *input.Error) {
		return t, &input.Error{Position: fmt.Sprintf("tensor %.80q", name), Expected: want,
			Found: fmt.Sprintf(have, args...)}
	}
	switch {
	case t.DType.Size() == 0:
		return wrong("a supported dtype", "%.40q", t.DType)
	case d.Shape == nil:
		return wrong("a shape", "none")
	case len(offsets) != 2 || offsets[0] > offsets[1]:
		return wrong("data_offsets [begin, end] with begin ≤ end", "%v", d.Offsets)
	case !ok:
		return wrong("a shape of less than 2^63 bytes", "%v of %s", d.Shape, t.DType)
	case size != offsets[1]-offsets[0]:
		return wrong(fmt.Sprintf("data_offsets of the %d bytes of shape %v of %s", size, t.Shape, t.DType),
			"%v, which hold %d", offsets, offsets[1]-offsets[0])
	}
	t.Begin, t.End = offsets[0], offsets[1]
	return t, nil
}

// signed are the numbers, nil where one does not fit 63 bits.
func signed(list []uint64) []int64 {
	numbers := make([]int64, len(list))
	for i, n := range list {
		if n > math.MaxInt64 {
			return nil
		}
		numbers[i] = int64(n)
	}
	return numbers
}

// layOut checks that the tensors, sorted by offset, follow each other without
// overlap or hole, and returns where the last one ends.
func (h header) layOut(file string) (end int64, err error) {
	for i, t := range h.tensors {
		switch {
		case t.Begin < end:
			return 0, &input.Error{File: file, Expected: "tensors that do not overlap", Found: fmt.Sprintf(
				"%.80q at %d and %.80q, which ends at %d", t.Name, t.Begin, h.tensors[i-1].Name, end)}
		case t.Begin > end:
			return 0, &input.Error{File: file, Expected: "tensors without bytes between them", Found: fmt.Sprintf(
				"bytes %d to %d before tensor %.80q, which belong to none", end, t.Begin, t.Name)}
		}
		end = t.End
	}
	return end, nil
}

// jsonFault says where the text of a header is not what it should be.
func jsonFault(file string, err error) error {
	wrong := &input.Error{File: file, Expected: "a header of valid JSON", Found: err.Error()}
	if semantic := new(json.SemanticError); errors.As(err, &semantic) {
		wrong.Position = fmt.Sprintf("byte %d, %.80q", lengthBytes+semantic.ByteOffset, semantic.JSONPointer)
		wrong.Found = cmp.Or(string(semantic.JSONValue), semantic.JSONKind.String())
		switch semantic.GoType.Kind() {
		case reflect.Struct, reflect.Map:
			wrong.Expected = "an object"
		case reflect.String:
			wrong.Expected = "a string"
		default:
			wrong.Expected = "whole numbers from 0 to 2^63-1"
		}
	} else if syntactic := new(jsontext.SyntacticError); errors.As(err, &syntactic) {
		wrong.Position = fmt.Sprintf("byte %d", lengthBytes+syntactic.ByteOffset)
		wrong.Found = strings.TrimPrefix(err.Error(), "jsontext: ")
		if errors.Is(err, jsontext.ErrDuplicateName) {
			wrong.Expected, wrong.Found = "every name once", fmt.Sprintf("%.80q twice", syntactic.JSONPointer.LastToken())
		}
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
