package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Int64s reads a tensor of any integer type, or BOOL, in row-major order. A U64
// above 2⁶³ − 1 is an error.
func (f *File) Int64s(name string) ([]int64, error) {
	b, t, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	out := make([]int64, t.Elements())
	if err := DecodeIntegers(out, b, t.DType); err != nil {
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
		for i := range dst {
			dst[i] = int64(src[i])
		}
	case I8:
		for i := range dst {
			dst[i] = int64(int8(src[i]))
		}
	case U16:
		for i := range dst {
			dst[i] = int64(le.Uint16(src[2*i:]))
		}
	case I16:
		for i := range dst {
			dst[i] = int64(int16(le.Uint16(src[2*i:])))
		}
	case U32:
		for i := range dst {
			dst[i] = int64(le.Uint32(src[4*i:]))
		}
	case I32:
		for i := range dst {
			dst[i] = int64(int32(le.Uint32(src[4*i:])))
		}
	case I64:
		for i := range dst {
			dst[i] = int64(le.Uint64(src[8*i:]))
		}
	case U64:
		for i := range dst {
			n := le.Uint64(src[8*i:])
			if n > math.MaxInt64 {
				return fmt.Errorf("element %d: %d does not fit 63 bits", i, n)
			}
			dst[i] = int64(n)
		}
	default:
		return fmt.Errorf("want integers, have %s", d)
	}
	return nil
}

// checkLength is about the bytes of so many elements.
func checkLength(elements int, src []byte, d DType) error {
	if want := int64(elements) * d.Size(); int64(len(src)) != want {
		return fmt.Errorf("decoding %s: want %d bytes for %d elements, have %d", d, want, elements, len(src))
	}
	return nil
}

// Float32s reads a tensor of type F32, F16, BF16 or F64 in row-major order; F64
// is rounded to the nearest float32, ties to even.
func (f *File) Float32s(name string) ([]float32, error) {
	b, t, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	out := make([]float32, t.Elements())
	if t.DType == F64 {
		for i := range out {
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
		return out, nil
	}
	if err := Decode(out, b, t.DType); err != nil {
		return nil, fmt.Errorf("%q: tensor %q: %w", f.name, name, err)
	}
	return out, nil
}

// Decode turns little-endian F32, F16 or BF16 bytes into float32, exactly.
// len(src) must be len(dst) elements.
func Decode(dst []float32, src []byte, d DType) error {
	le := binary.LittleEndian
	if err := checkLength(len(dst), src, d); err != nil {
		return err
	}
	switch d {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(le.Uint32(src[4*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = BFloat16ToFloat32(le.Uint16(src[2*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = Float16ToFloat32(le.Uint16(src[2*i:]))
		}
	default:
		return fmt.Errorf("want F32, BF16 or F16, have %s", d)
	}
	return nil
}
