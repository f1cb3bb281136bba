package nsys

// index numbers values by first sight.
type index[T comparable] struct {
	of     map[T]int32
	values []T
}

func newIndex[T comparable](room int) *index[T] {
	return &index[T]{of: make(map[T]int32, room), values: make([]T, 0, room)}
}

func (x *index[T]) number(v T) int32 {
	if n := len(x.values); n > 0 && x.values[n-1] == v {
		return int32(n - 1)
	}
	i, ok := x.of[v]
	if !ok {
		i = int32(len(x.values))
		x.of[v] = i
		x.values = append(x.values, v)
	}
	return i
}
