package nsys

import (
	"hash/maphash"
	"slices"
)

// index numbers values by first sight; neighbours are often alike. It holds each value
// once: a map of them would take three times as much, and a capture with ranges for
// every expert has a location for every ten kernels.
type index[T comparable] struct {
	seed   maphash.Seed
	table  []int32 // numbers plus 1 by hash, 0 where free; at least half are
	values []T
	last   int32
}

func newIndex[T comparable](room int) *index[T] {
	x := &index[T]{seed: maphash.MakeSeed()}
	x.grow(room)
	return x
}

func (x *index[T]) number(v T) int32 {
	if len(x.values) > 0 && x.values[x.last] == v {
		return x.last
	}
	at := x.find(v)
	if x.table[at] == 0 {
		x.values = append(x.values, v)
		x.table[at] = int32(len(x.values))
		if 2*len(x.values) > len(x.table) {
			x.grow(len(x.values))
			at = x.find(v)
		}
	}
	x.last = x.table[at] - 1
	return x.last
}

// find is where in the table a value is, or belongs.
func (x *index[T]) find(v T) uint64 {
	mask := uint64(len(x.table) - 1)
	at := maphash.Comparable(x.seed, v) & mask
	for x.table[at] > 0 && x.values[x.table[at]-1] != v {
		at = (at + 1) & mask
	}
	return at
}

// grow makes a table for a number of values.
func (x *index[T]) grow(room int) {
	size := 16
	for size < 2*room {
		size *= 2
	}
	x.table = make([]int32, size)
	x.values = slices.Grow(x.values, size/2-len(x.values))
	for i, v := range x.values {
		x.table[x.find(v)] = int32(i + 1)
	}
}
