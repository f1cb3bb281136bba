package logits

import (
	"encoding/binary"
	"math"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// blockBytes is about how many bytes of an entry are made, written, read or compared
// at a time: few enough to stay in a processor's nearest caches all the while.
const blockBytes = 1 << 17

// levels are the two values that an entry's logits take: high for the experts
// of the plan, low for all others. Both are exact in every element type.
type levels struct{ high, low float32 }

// encode is the value's bit pattern in the element type, rounded to nearest.
func (d DType) encode(x float32) uint32 {
	switch d {
	case BFloat16:
		return uint32(safetensors.Float32ToBFloat16(x))
	case Float16:
		return uint32(safetensors.Float32ToFloat16(x))
	}
	return math.Float32bits(x)
}

// block is a run of encoded rows. It is filled with the background when it grows;
// show then writes only the chosen positions and restores those of the rows before,
// so that a row costs k stores however many experts there are.
type block struct {
	experts, topK int
	size          int // bytes per element
	high, low     uint32
	buf           []byte
	shown         []int32 // the ids whose positions hold high now
}

func newBlock(experts, topK int, d DType, v levels) *block {
	return &block{experts: experts, topK: topK, size: int(d.stored().Size()), high: d.encode(v.high), low: d.encode(v.low)}
}

func (b *block) rowBytes() int { return b.experts * b.size }

// rows is how many rows show takes at a time.
func (b *block) rows() int { return max(1, blockBytes/b.rowBytes()) }

// show returns the encoded rows in which the given experts are chosen, k per
// row, at most rows of them. The bytes are valid until the next call.
func (b *block) show(ids []int32) []byte {
	b.put(b.shown, b.low)
	bytes := len(ids) / b.topK * b.rowBytes()
	if bytes > len(b.buf) {
		b.grow(bytes)
	}
	b.shown = append(b.shown[:0], ids...)
	b.put(ids, b.high)
	return b.buf[:bytes]
}

// grow makes the buffer that long, background all over.
func (b *block) grow(bytes int) {
	b.buf = make([]byte, bytes)
	b.set(b.buf, b.low)
	for done := b.size; done < bytes; done *= 2 {
		copy(b.buf[done:], b.buf[:done])
	}
}

func (b *block) put(ids []int32, value uint32) {
	row := b.buf
	for len(ids) > 0 {
		for _, e := range ids[:b.topK] {
			b.set(row[int(e)*b.size:], value)
		}
		ids, row = ids[b.topK:], row[b.rowBytes():]
	}
}

func (b *block) set(at []byte, value uint32) {
	if b.size == 2 {
		binary.LittleEndian.PutUint16(at, uint16(value))
		return
	}
	binary.LittleEndian.PutUint32(at, value)
}
