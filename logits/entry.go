package logits

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/moebalance/moebalance/logits/safetensors"
)

// Entry is the logits of one rank for one batch size, in memory.
type Entry struct {
	Record
	// IDs are the experts of each token, row-major [Tokens, TopK], in the order
	// of the plan's slots.
	IDs []int32
	// Logits are the little-endian values, row-major [Tokens, Experts], in the
	// spec's element type.
	Logits []byte
}

// Row decodes the logits of one token into dst, which is grown as needed, and
// returns it. It panics for a token out of range.
func (e *Entry) Row(dst []float32, token int) []float32 {
	n := e.Spec.Gate.Shape.Experts
	dst = slices.Grow(dst[:0], n)[:n]
	stored := e.Spec.DType.stored()
	bytes := n * int(stored.Size())
	if err := safetensors.Decode(dst, e.Logits[token*bytes:(token+1)*bytes], stored); err != nil {
		panic(err) // lengths and type are of our own making
	}
	return dst
}

// ReadEntry reads an entry into memory and checks its record against its name, and
// its bytes against their checksum. The error wraps ErrDamaged where they differ.
func ReadEntry(path string) (*Entry, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, damage(path, err)
	}
	e, err := readEntry(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, damage(path, err)
	}
	return e, nil
}

func readEntry(f *safetensors.File) (*Entry, error) {
	r, err := readRecord(f)
	if err != nil {
		return nil, err
	}
	e := &Entry{Record: r}
	crc := uint32(0)
	for _, t := range f.Tensors() {
		b, _, err := f.Bytes(t.Name)
		if err != nil {
			return nil, err
		}
		crc = crc32.Update(crc, castagnoli, b)
		switch t.Name {
		case tensorIDs:
			e.IDs = decodeIDs(make([]int32, 0, len(b)/4), b)
		case tensorLogits:
			e.Logits = b
		}
	}
	return e, r.checkCRC(crc)
}

// checkCRC compares the checksum of the tensors' bytes with the record's.
func (r Record) checkCRC(crc uint32) error {
	if have := checksumText(crc); have != r.checksum {
		return r.wrong("", "content of checksum "+r.checksum, have)
	}
	return nil
}

// decodeIDs appends little-endian int32 values.
func decodeIDs(dst []int32, b []byte) []int32 {
	for ; len(b) >= 4; b = b[4:] {
		dst = append(dst, int32(binary.LittleEndian.Uint32(b)))
	}
	return dst
}
