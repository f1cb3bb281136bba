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

// ErrTruncated is wrapped by the errors about files that end too early.
var ErrTruncated = errors.New("the end of the file")

// ErrNoTensor is wrapped by the errors about names that a file does not hold.
var ErrNoTensor = errors.New("no such tensor")

// DType is the element type of a tensor, spelled as in the file.
type DType string

// The element types whose values are decoded.
const (
	Bool DType = "BOOL"
	U8   DType = "U8"
	I8   DType = "I8"
	I16  DType = "I16"
	U16  DType = "U16"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I32  DType = "I32"
	U32  DType = "U32"
	F32  DType = "F32"
	F64  DType = "F64"
	I64  DType = "I64"
	U64  DType = "U64"
)

// sizes are the bytes of one element. The F8 types are raw bytes; types narrower
// than a byte are refused by name.
var sizes = map[DType]int64{
	Bool: 1, U8: 1, I8: 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F8_E5M2FNUZ": 1, "F8_E4M3FNUZ": 1,
	I16: 2, U16: 2, F16: 2, BF16: 2,
	I32: 4, U32: 4, F32: 4,
	F64: 8, I64: 8, U64: 8,
}

// Size is the bytes of one element, 0 for an unknown type.
func (d DType) Size() int64 { return sizes[d] }

// Tensor describes one tensor of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64 // outermost dimension first; empty for a scalar
	Begin int64   // first byte, counted from the end of the header
	End   int64   // one past the last byte
}

// Bytes is End − Begin.
func (t Tensor) Bytes() int64 { return t.End - t.Begin }

// Elements is the product of the dimensions, 1 for a scalar.
func (t Tensor) Elements() int64 { return t.Bytes() / t.DType.Size() }

// String names the tensor the way errors do: `"logits" F32 [8 256]`.
func (t Tensor) String() string {
	return fmt.Sprintf("%q %s %s", t.Name, t.DType, strings.ReplaceAll(fmt.Sprint(t.Shape), " ", "×"))
}

// byteSize is the product of the dimensions times the element size, 0 when any
// dimension is 0; false when a dimension is negative, the product does not fit,
// or the type is unknown.
func byteSize(d DType, shape []int64) (int64, bool) {
	size := d.Size()
	if size == 0 || slices.ContainsFunc(shape, func(n int64) bool { return n < 0 }) {
		return 0, false
	}
	if slices.Contains(shape, 0) {
		return 0, true
	}
	for _, n := range shape {
		if size > math.MaxInt64/n {
			return 0, false
		}
		size *= n
	}
	return size, true
}

// Float32s reads a tensor of type F32, F16, BF16 or F64 in row-major order; F64
// is rounded to the nearest float32, ties to even.
func (f *File) Float32s(name string) ([]float32, error) {
	b, t, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	out := make([]float32, t.Elements())
	if err := Decode(out, b, t.DType); err != nil {
		return nil, fmt.Errorf("%q: tensor %q: %w", f.name, name, err)
	}
	return out, nil
}

// DecodeIntegers turns the little-endian bytes of an integer type, or of BOOL,
// into int64. len(src) must be len(dst) elements. A U64 above 2⁶³ − 1 is an error.
func DecodeIntegers(dst []int64, src []byte, d DType) error {
	le := binary.LittleEndian
	if err := checkLength(len(dst), src, d); err != nil {
		return err
	}
	switch d {
	case Bool, U8:
		decode(dst, src, 1, func(b []byte) int64 { return int64(b[0]) })
	case I8:
		decode(dst, src, 1, func(b []byte) int64 { return int64(int8(b[0])) })
	case U16:
		decode(dst, src, 2, func(b []byte) int64 { return int64(le.Uint16(b)) })
	case I16:
		decode(dst, src, 2, func(b []byte) int64 { return int64(int16(le.Uint16(b))) })
	case U32:
		decode(dst, src, 4, func(b []byte) int64 { return int64(le.Uint32(b)) })
	case I32:
		decode(dst, src, 4, func(b []byte) int64 { return int64(int32(le.Uint32(b))) })
	case I64, U64:
		decode(dst, src, 8, func(b []byte) int64 { return int64(le.Uint64(b)) })
		if i := slices.IndexFunc(dst, func(n int64) bool { return n < 0 }); d == U64 && i >= 0 {
			return fmt.Errorf("element %d: %d does not fit 63 bits", i, uint64(dst[i]))
		}
	default:
		return fmt.Errorf("want integers, have %s", d)
	}
	return nil
}

// decode is short enough to be inlined together with value.
func decode[T int64 | float32](dst []T, src []byte, size int, value func([]byte) T) {
	for i := range dst {
		dst[i] = value(src[i*size:])
	}
}

// checkLength is about the bytes of so many elements.
func checkLength(elements int, src []byte, d DType) error {
	if want := int64(elements) * d.Size(); int64(len(src)) != want {
		return fmt.Errorf("decoding %s: want %d bytes for %d elements, have %d", d, want, elements, len(src))
	}
	return nil
}

// Decode turns little-endian F32, F16 or BF16 bytes into float32, exactly, and F64
// to the nearest, ties to even. len(src) must be len(dst) elements.
func Decode(dst []float32, src []byte, d DType) error {
	le := binary.LittleEndian
	if err := checkLength(len(dst), src, d); err != nil {
		return err
	}
	switch d {
	case F32:
		decode(dst, src, 4, func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) })
	case BF16:
		decode(dst, src, 2, func(b []byte) float32 { return math.Float32frombits(uint32(le.Uint16(b)) << 16) })
	case F16:
		decode(dst, src, 2, func(b []byte) float32 { return half(le.Uint16(b)) })
	case F64:
		decode(dst, src, 8, func(b []byte) float32 { return float32(math.Float64frombits(le.Uint64(b))) })
	default:
		return fmt.Errorf("want F32, BF16, F16 or F64, have %s", d)
	}
	return nil
}

// half is exact: the bits of an IEEE 754 binary16 (5 exponent and 10
// fraction bits), moved to their places in a float32, are the value times 2⁻¹¹²,
// subnormals included.
func half(h uint16) float32 {
	b := math.Float32bits(math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112)
	if h&0x7c00 == 0x7c00 { // infinities and NaN
		b |= 0x7f800000
	}
	return math.Float32frombits(b | uint32(h&0x8000)<<16)
}
