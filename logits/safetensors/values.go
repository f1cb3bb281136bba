package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

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
