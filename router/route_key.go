package router

import (
	"math"
	"sync"
)

// A key is a score as an integer that is quick to make and to compare: an int32 in
// units of 2⁻²⁰. Packed, it stands in the upper half of an int64, and the lower half
// holds the complement of an index. No two are equal then, larger is better, and of
// equal scores the lower index is larger.
const (
	keyUnit  = 1 << 20
	mostBias = 256               // larger biases leave no room in a key
	special  = 1 << 30           // the key of logits the table says nothing about
	none     = math.MinInt64 / 2 // below all packed keys, and not too far below to subtract
)

func pack(key, index int32) int64 { return int64(key)<<32 | int64(^uint32(index)) }

func index(v int64) int32 { return int32(^uint32(v)) }

// smaller is 1 if v is smaller than w, else 0, for values half an int64 apart at most.
func smaller(v, w int64) int { return int(uint64(v-w) >> 63) }

// ordered numbers float32 values in their order, all but NaN and -0.
func ordered(v float32) int32 {
	bits := int32(math.Float32bits(v))
	return bits ^ int32(uint32(bits>>31)>>1)
}

// scoreTable is the table of one scoring and how far it is off at most. It is
// indexed by the upper 16 bits of a logit, which name an interval of logits;
// scores rise with logits, so half the rise over the interval bounds the error.
type scoreTable struct {
	key   [1 << 16]int64 // in the upper halves, the lower ones are 0
	error float64
}

// tabulate covers the logits up to the limit in size; beyond, and for
// infinities and NaN, the entry is special.
func tabulate(score func(float32) float64, limit float32) *scoreTable {
	t := new(scoreTable)
	for i := range t.key {
		from := math.Float32frombits(uint32(i) << 16)
		to := math.Float32frombits(uint32(i)<<16 | 0xffff)
		if !(from >= -limit && from <= limit && to >= -limit && to <= limit) {
			t.key[i] = special << 32
			continue
		}
		a, b := score(from), score(to)
		t.key[i] = int64(math.Round((a+b)/2*keyUnit)) << 32
		t.error = max(t.error, math.Abs(b-a)/2)
	}
	return t
}

// The tables are made once, by the first router that needs them.
var (
	sigmoidKeys      = sync.OnceValue(func() *scoreTable { return tabulate(sigmoid, math.MaxFloat32) })
	logitKeys        = sync.OnceValue(func() *scoreTable { return tabulate(func(x float32) float64 { return float64(x) }, 64) })
	sqrtSoftplusKeys = sync.OnceValue(func() *scoreTable { return tabulate(sqrtSoftplus, 16) })
)

// keys is the table of a scoring, nil for a softmax, where a score depends on all
// logits.
func (s scoring) keys() *scoreTable {
	switch s {
	case byLogit:
		return logitKeys()
	case bySigmoid:
		return sigmoidKeys()
	case bySqrtSoftplus:
		return sqrtSoftplusKeys()
	}
	return nil
}
