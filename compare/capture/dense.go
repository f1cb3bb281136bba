package capture

import "math"

// interner numbers strings by first sight. It finds a known one without allocating.
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

// denseIDs gives the values of a column small numbers by first sight. The
// column repeats a few values in any order, so that a look into recent finds
// most of them without the map.
type denseIDs[T comparable] struct {
	index  map[T]int32
	values []T
	bits   func(T) uint64 // tells recent values apart
	recent [1 << recentBits]struct {
		value T
		next  int32 // the value's number plus 1, 0 for none
	}
}

const recentBits = 6

func newDenseIDs[T comparable](bits func(T) uint64) *denseIDs[T] {
	return &denseIDs[T]{index: map[T]int32{}, bits: bits}
}

// newIDs numbers the ids of one kind.
func newIDs() *denseIDs[int64] { return newDenseIDs(func(id int64) uint64 { return uint64(id) }) }

func (n *denseIDs[T]) of(v T) int32 {
	const spread = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
	r := &n.recent[n.bits(v)*spread>>(64-recentBits)]
	if r.next > 0 && r.value == v {
		return r.next - 1
	}
	i, ok := n.index[v]
	if !ok {
		i = int32(len(n.values))
		n.index[v] = i
		n.values = append(n.values, v)
	}
	r.value, r.next = v, i+1
	return i
}

// shortIDs holds correlation ids in 32 bits, in which they mostly fit: CUPTI counts
// them in 32. The others are numbered downwards from −2; −1 is noCorrelation.
type shortIDs struct{ others *denseIDs[int64] }

func (s shortIDs) short(id int64) int32 {
	switch {
	case id == noCorrelation:
		return -1
	case 0 <= id && id <= math.MaxInt32:
		return int32(id)
	}
	return -2 - s.others.of(id)
}

func (s shortIDs) id(short int32) int64 {
	switch {
	case short == -1:
		return noCorrelation
	case short >= 0:
		return int64(short)
	}
	return s.others.values[-2-short]
}
