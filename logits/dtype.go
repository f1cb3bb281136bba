package logits

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// DType is the element type of an entry's logits, by the name PyTorch uses.
type DType string

// The element types routers are given in practice.
const (
	Float32  DType = "float32"
	BFloat16 DType = "bfloat16"
	Float16  DType = "float16"
)

// DTypes lists them in the order help shows them.
var DTypes = []string{string(Float32), string(BFloat16), string(Float16)}

// ParseDType reads an element type's name.
func ParseDType(s string) (DType, error) {
	if slices.Contains(DTypes, s) {
		return DType(s), nil
	}
	return "", fmt.Errorf("unknown element type %q: want %s", s, strings.Join(DTypes, ", "))
}

// stored is the element type's name inside the file.
func (d DType) stored() safetensors.DType {
	switch d {
	case BFloat16:
		return safetensors.BF16
	case Float16:
		return safetensors.F16
	}
	return safetensors.F32
}

// encode is a logit in the element type, little-endian: a power of two from 2⁻¹⁴ to 2¹⁵ or its
// negative, whose fraction bits are all zero.
func (d DType) encode(x float32) []byte {
	b := math.Float32bits(x)
	switch d {
	case BFloat16:
		b >>= 16
	case Float16: // another bias of the exponent
		b = b>>16&0x8000 | (b&0x7fffffff-(127-15)<<23)>>13
	}
	return binary.LittleEndian.AppendUint32(nil, b)[:d.stored().Size()]
}
