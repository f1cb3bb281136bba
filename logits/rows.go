package logits

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/logits/safetensors"
	"github.com/moebalance/moebalance/router"
)

// chunkBytes is about how many bytes of an entry are made, written, read or compared
// at a time: few enough to stay in a processor's nearest caches all the while.
const chunkBytes = 1 << 17

// encode is the bit pattern of a logit in the element type: a power of two from 2⁻¹⁴
// to 2¹⁵ or its negative, whose fraction bits are all zero.
func (d DType) encode(x float32) uint32 {
	b := math.Float32bits(x)
	switch d {
	case BFloat16:
		return b >> 16
	case Float16: // another bias of the exponent
		return b>>16&0x8000 | (b&0x7fffffff-(127-15)<<23)>>13
	}
	return b
}

// rowEncoder encodes rows of logits: the low one all over, then the chosen positions.
type rowEncoder struct {
	topK, size int    // bytes per element
	high, low  []byte // an element; a row
	buf        []byte
}

func newRowEncoder(s router.Shape, d DType, v logitPair) *rowEncoder {
	element := func(x float32) []byte { return binary.LittleEndian.AppendUint32(nil, d.encode(x))[:d.stored().Size()] }
	return &rowEncoder{topK: s.TopK, size: len(element(0)), high: element(v.high),
		low: bytes.Repeat(element(v.low), s.Experts)}
}

// rows is how many rows encode takes at a time.
func (r *rowEncoder) rows() int { return max(1, chunkBytes/len(r.low)) }

// encode returns the rows in which the given experts are chosen, k per
// row, at most rows of them. The bytes are valid until the next call.
func (r *rowEncoder) encode(ids []int32) []byte {
	r.buf = r.buf[:0]
	for row := range slices.Chunk(ids, r.topK) {
		at := len(r.buf)
		r.buf = append(r.buf, r.low...)
		for _, e := range row {
			copy(r.buf[at+int(e)*r.size:], r.high)
		}
	}
	return r.buf
}

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
