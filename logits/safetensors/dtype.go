package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// DType is the element type of a tensor, spelled as in the file.
type DType string

// The element types that are read or written here.
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
	I64  DType = "I64"
	U64  DType = "U64"
)

// sizes are the bytes of one element. Types narrower than a byte are refused by name.
var sizes = map[DType]int64{
	Bool: 1, U8: 1, I8: 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F8_E5M2FNUZ": 1, "F8_E4M3FNUZ": 1,
	I16: 2, U16: 2, F16: 2, BF16: 2,
	I32: 4, U32: 4, F32: 4,
	"F64": 8, I64: 8, U64: 8,
}

// Size is the bytes of one element, 0 for an unknown type.
func (d DType) Size() int64 { return sizes[d] }

// Shape is the dimensions of a tensor, the outermost first.
type Shape []int64

// String writes [2, 3].
func (s Shape) String() string { return strings.ReplaceAll(fmt.Sprint([]int64(s)), " ", ", ") }

// Tensor describes one tensor of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape Shape  // empty for a scalar
	Data  []byte // of a file that was read: its elements, little-endian

	begin, end uint64 // of Data, counted from the end of the header
}

// byteSize is the product of the dimensions times the element size, 0 when any
// dimension is 0; false when a dimension is negative, the product does not fit,
// or the type is unknown.
func byteSize(d DType, shape []int64) (uint64, bool) {
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
	return uint64(size), true
}

// DecodeIntegers turns the little-endian bytes of an integer type, or of BOOL,
// into int64. len(src) must be len(dst) elements. A U64 above 2⁶³ − 1 is an error.
func DecodeIntegers(dst []int64, src []byte, d DType) error {
	size, signed := int(d.Size()), strings.HasPrefix(string(d), "I")
	if !signed && !strings.HasPrefix(string(d), "U") && d != Bool {
		return fmt.Errorf("want integers, have %s", d)
	}
	if len(src) != len(dst)*size {
		return fmt.Errorf("decoding %s: want %d bytes for %d elements, have %d", d, len(dst)*size, len(dst), len(src))
	}
	for i := range dst {
		var word [8]byte
		copy(word[:], src[i*size:(i+1)*size])
		n := int64(binary.LittleEndian.Uint64(word[:]))
		switch unused := 64 - 8*size; {
		case signed:
			n = n << unused >> unused
		case n < 0:
			return fmt.Errorf("element %d: %d does not fit 63 bits", i, uint64(n))
		}
		dst[i] = n
	}
	return nil
}
