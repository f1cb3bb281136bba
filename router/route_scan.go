package router

// scanner makes a key for every expert of a row and finds those with large ones.
// Experts side by side form chunks: the groups, if there are groups.
type scanner interface {
	// scan makes the keys and sets tops to the two largest of every chunk.
	scan(logits []float32, tops []top)
	// above writes the experts of some chunks whose keys are above a limit, in
	// rising order in each chunk, and says how many there are. dst has scanRoom
	// places more than experts; what is behind the last is of no use.
	above(dst, chunks []int32, limit int32) int
}

const scanRoom = 8

// top is the two largest keys of a chunk.
type top struct{ first, second int32 }

// sum is the key of the sum of the two scores.
func (t top) sum() int32 { return t.first + t.second }

// makeScanner makes a scanner for chunks of a size, the last of which may be smaller,
// or nil if there is none. bias has the key of every expert's bias.
type makeScanner func(table *[1 << 16]int64, bias []int32, chunk int) scanner

// newScanner makes the fastest that this processor can.
func newScanner(table *[1 << 16]int64, bias []int32, chunk int) scanner {
	if s := newEights(table, bias, chunk); s != nil {
		return s
	}
	return newFours(table, bias, chunk)
}
