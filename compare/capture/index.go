package capture

import "strings"

// Index numbers values by first sight; neighbors are often alike. Of the values alone, as a file holds them, it finds
// their numbers again.
type Index[T comparable] struct {
	Values []T
	number map[T]int32
	last   int32
}

// Number gives a value its number: values 7, 9, 7 get 0, 1, 0.
func (x *Index[T]) Number(v T) int32 {
	if len(x.Values) > 0 && x.Values[x.last] == v {
		return x.last
	}
	if x.number == nil {
		x.number = make(map[T]int32, len(x.Values))
		for n, v := range x.Values {
			x.number[v] = int32(n)
		}
	}
	n, ok := x.number[v]
	if !ok {
		n = int32(len(x.Values))
		x.number[v] = n
		x.Values = append(x.Values, v)
	}
	x.last = n
	return n
}

// interner is an Index of texts. It finds a known one without allocating.
type interner struct{ Index[string] }

func (n *interner) of(b []byte) int32 {
	if i, ok := n.number[string(b)]; ok {
		return i
	}
	return n.Number(string(b))
}

// valid gives the texts with what is not UTF-8 replaced.
func (n *interner) valid() []string {
	for i, name := range n.Values {
		n.Values[i] = valid(name)
	}
	return n.Values
}

// valid gives a text with what is not UTF-8 replaced.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
