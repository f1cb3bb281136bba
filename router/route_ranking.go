package router

// ranking keeps the n best of the values offered to it, the largest first.
// Values must be offered in rising order of their index: a later equal value
// then never displaces an earlier one, which is the rule that ties go to the
// lower index.
type ranking struct {
	index []int32
	value []float32
	room  int // places still free
}

func newRanking(n int) ranking {
	return ranking{index: make([]int32, n), value: make([]float32, n), room: n}
}

func (r *ranking) reset() { r.room = len(r.index) }

// offerAll offers the values of indices from, from+1, ….
func (r *ranking) offerAll(from int32, values []float32) {
	n := len(r.value)
	for i, v := range values {
		if r.room > 0 {
			r.insert(n-r.room, from+int32(i), v)
			r.room--
		} else if v > r.value[n-1] { // most values are not
			r.insert(n-1, from+int32(i), v)
		}
	}
}

// insert puts the value at its place among the first i, which it may extend by one.
func (r *ranking) insert(i int, index int32, value float32) {
	for ; i > 0 && value > r.value[i-1]; i-- {
		r.index[i], r.value[i] = r.index[i-1], r.value[i-1]
	}
	r.index[i], r.value[i] = index, value
}
