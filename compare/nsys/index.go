package nsys

// index numbers values by first sight; neighbours are often alike.
type index[T comparable] struct {
	of     map[T]int32
	values []T
	last   int32
}

func newIndex[T comparable](room int) *index[T] {
	return &index[T]{of: make(map[T]int32, room), values: make([]T, 0, room)}
}

func (x *index[T]) number(v T) int32 {
	if len(x.values) > 0 && x.values[x.last] == v {
		return x.last
	}
	i, ok := x.of[v]
	if !ok {
		i = int32(len(x.values))
		x.of[v] = i
		x.values = append(x.values, v)
	}
	x.last = i
	return i
}
