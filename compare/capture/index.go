package capture

import (
	"hash/maphash"
	"slices"
	"strings"
)

// Index numbers values by first sight; neighbors are often alike. It holds each value
// once: a map of them would take three times as much, and a capture with ranges for
// every expert has a location for every ten kernels.
type Index[T comparable] struct {
	seed   maphash.Seed
	table  []int32 // numbers plus 1 by hash, 0 where free; at least half are
	Values []T
	last   int32
}

// NewIndex has room for a number of values.
func NewIndex[T comparable](room int) *Index[T] {
	x := &Index[T]{seed: maphash.MakeSeed()}
	x.grow(room)
	return x
}

// Number gives a value its number: values 7, 9, 7 get 0, 1, 0.
func (x *Index[T]) Number(v T) int32 {
	if len(x.Values) > 0 && x.Values[x.last] == v {
		return x.last
	}
	at := x.find(v)
	if x.table[at] == 0 {
		x.Values = append(x.Values, v)
		x.table[at] = int32(len(x.Values))
		if 2*len(x.Values) > len(x.table) {
			x.grow(len(x.Values))
			at = x.find(v)
		}
	}
	x.last = x.table[at] - 1
	return x.last
}

// find is where in the table a value is, or belongs.
func (x *Index[T]) find(v T) uint64 {
	mask := uint64(len(x.table) - 1)
	at := maphash.Comparable(x.seed, v) & mask
	for x.table[at] > 0 && x.Values[x.table[at]-1] != v {
		at = (at + 1) & mask
	}
	return at
}

// grow makes a table for a number of values.
func (x *Index[T]) grow(room int) {
	size := 16
	for size < 2*room {
		size *= 2
	}
	x.table = make([]int32, size)
	x.Values = slices.Grow(x.Values, size/2-len(x.Values))
	for i, v := range x.Values {
		x.table[x.find(v)] = int32(i + 1)
	}
}

// textIDs numbers the ids of texts as Index does. They are small, so that a look into a table
// mostly finds them.
type textIDs struct {
	all   *Index[int64]
	small [1 << 13]int32 // numbers plus 1, 0 for none
}

func newTextIDs() *textIDs { return &textIDs{all: NewIndex[int64](0)} }

func (x *textIDs) number(id int64) int32 {
	if id < 0 || id >= int64(len(x.small)) {
		return x.all.Number(id)
	}
	if x.small[id] == 0 {
		x.small[id] = x.all.Number(id) + 1
	}
	return x.small[id] - 1
}

// interner numbers texts by first sight. It finds a known one without allocating.
type interner struct {
	index map[string]int32
	names []string
}

func newInterner() *interner { return &interner{index: map[string]int32{}} }

func (n *interner) of(b []byte) int32 {
	i, ok := n.index[string(b)]
	if !ok {
		i = int32(len(n.names))
		n.names = append(n.names, string(b))
		n.index[n.names[i]] = i
	}
	return i
}

// valid gives the texts with what is not UTF-8 replaced.
func (n *interner) valid() []string {
	for i, name := range n.names {
		n.names[i] = valid(name)
	}
	return n.names
}

// valid gives a text with what is not UTF-8 replaced.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
