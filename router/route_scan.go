package router

import "unsafe"

// four are four experts side by side. They compete for their chunk as one.
type four struct {
	bias [4]int64 // keys of the biases
	key  [4]int64
	top  int64 // the largest key
}

// chunk are experts side by side: those of a group, if there are groups.
type chunk struct {
	fours         []four
	first, second int64 // the two largest keys
}

// sum is the key of the sum of the two largest scores.
func (c *chunk) sum() int32 { return int32(c.first>>32 + c.second>>32) }

// scan fills the keys of all experts and the largest of each four and chunk. ok is
// false if a logit was special.
func (p *pruner) scan(logits []float32) (ok bool) {
	row := bitsInFours(logits)
	alarm := int64(none)
	for i := range p.chunks {
		c := &p.chunks[i]
		n := len(c.fours)
		first, second := scanFours(p.table, row[:n], c.fours)
		row = row[n:]
		// Those that lost to the first among four have a second chance.
		e := uint32(index(first))
		k := &p.fours[e/4].key
		c.first, c.second = first, max(second, k[(e^1)%4], k[(e^2)%4], k[(e^3)%4])
		alarm = max(alarm, first)
	}
	return alarm < special<<32/2
}

// scanFours fills the keys and tops of some fours and finds the two largest tops,
// without a branch that depends on them.
//
// The compiler chooses between two values without a branch only in functions that
// take no address from the outcome, as scan does from first; and inlined it would
// not fit the registers. Either costs more than all the rest.
//
//go:noinline
func scanFours(table *[1 << 16]int64, row [][4]uint32, fours []four) (first, second int64) {
	first, second = none, none
	_ = *table
	for i := range min(len(row), len(fours)) {
		r, f := &row[i], &fours[i]
		a := table[r[0]>>16] + f.bias[0]
		b := table[r[1]>>16] + f.bias[1]
		c := table[r[2]>>16] + f.bias[2]
		d := table[r[3]>>16] + f.bias[3]
		f.key = [4]int64{a, b, c, d}
		f.top = max(a, b, c, d)
		second = max(second, min(first, f.top))
		first = max(first, f.top)
	}
	return first, second
}

// bitsInFours is what math.Float32bits makes of each value, four by four. That
// function takes the way through a floating-point register, which costs a sixth
// of a scan's time.
func bitsInFours(values []float32) [][4]uint32 {
	return unsafe.Slice((*[4]uint32)(unsafe.Pointer(unsafe.SliceData(values))), len(values)/4)
}
