package logits

import (
	"encoding/binary"
	"math"

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

// rowEncoder encodes rows of logits. Its buffer is filled with the low logit when it
// grows. encode then writes the chosen positions alone and restores those of the
// rows before, so that a row costs 2·k stores however many experts there are.
type rowEncoder struct {
	experts, topK int
	size          int // bytes per element
	high, low     uint32
	buf           []byte
	encoded       []int32 // the ids whose positions hold high now
}

func newRowEncoder(s router.Shape, d DType, v logitPair) *rowEncoder {
	return &rowEncoder{experts: s.Experts, topK: s.TopK, size: int(d.stored().Size()), high: d.encode(v.high),
		low: d.encode(v.low)}
}

func (r *rowEncoder) rowBytes() int { return r.experts * r.size }

// rows is how many rows encode takes at a time.
func (r *rowEncoder) rows() int { return max(1, chunkBytes/r.rowBytes()) }

// encode returns the rows in which the given experts are chosen, k per
// row, at most rows of them. The bytes are valid until the next call.
func (r *rowEncoder) encode(ids []int32) []byte {
	r.put(r.encoded, r.low)
	bytes := len(ids) / r.topK * r.rowBytes()
	if bytes > len(r.buf) {
		r.grow(bytes)
	}
	r.encoded = append(r.encoded[:0], ids...)
	r.put(ids, r.high)
	return r.buf[:bytes]
}

// grow makes the buffer that long, the low logit all over.
func (r *rowEncoder) grow(bytes int) {
	r.buf = make([]byte, bytes)
	r.set(r.buf, r.low)
	for done := r.size; done < bytes; done *= 2 {
		copy(r.buf[done:], r.buf[:done])
	}
}

func (r *rowEncoder) put(ids []int32, value uint32) {
	row := r.buf
	for len(ids) > 0 {
		for _, e := range ids[:r.topK] {
			r.set(row[int(e)*r.size:], value)
		}
		ids, row = ids[r.topK:], row[r.rowBytes():]
	}
}

func (r *rowEncoder) set(at []byte, value uint32) {
	if r.size == 2 {
		binary.LittleEndian.PutUint16(at, uint16(value))
		return
	}
	binary.LittleEndian.PutUint32(at, value)
}
