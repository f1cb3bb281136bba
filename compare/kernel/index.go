package kernel

import (
	"hash/maphash"
	"slices"
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

// Number is that of a value.
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
