package router

import (
	"slices"
	"unsafe"
)

// fours is the finder in plain Go. It takes four experts at a time, which compete
// for their chunk as one.
type fours struct {
	table  *[1 << 16]int64
	all    []four
	chunks [][]four // the same
	short  []int64  // the tops of fours with a key above the limit
}

// four are four experts side by side. Keys and biases are packed with the expert.
type four struct {
	bias [4]int64
	key  [4]int64
	top  int64 // the largest key
}

// newFours returns nil if chunks do not consist of fours.
func newFours(table *[1 << 16]int64, bias []int32, chunk int) finder {
	if chunk%4 != 0 || len(bias)%4 != 0 {
		return nil
	}
	s := &fours{table: table, all: make([]four, len(bias)/4)}
	s.short = make([]int64, len(s.all)+1)
	for e, b := range bias {
		s.all[e/4].bias[e%4] = pack(b, int32(e))
	}
	s.chunks = slices.Collect(slices.Chunk(s.all, chunk/4))
	return s
}

func (s *fours) scan(logits []float32, tops []top) {
	row := bitsInFours(logits)
	for c, fours := range s.chunks {
		n := len(fours)
		first, second := scanFours(s.table, row[:n], fours)
		row = row[n:]
		// Those that lost to the first among four have a second chance.
		e := uint32(index(first))
		k := &s.all[e/4].key
		second = max(second, k[(e^1)%4], k[(e^2)%4], k[(e^3)%4])
		tops[c] = top{int32(first >> 32), int32(second >> 32)}
	}
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

func (s *fours) above(dst, chunks []int32, limit int32) int {
	least := pack(limit, 0) // the largest that is not above
	return s.gather(dst, s.shortlist(chunks, least), least)
}

// shortlist finds the tops above a limit, again without a branch that depends on
// them: it writes every one, and moves on past those it keeps.
//
//go:noinline
func (s *fours) shortlist(chunks []int32, limit int64) []int64 {
	n := uint(0)
	for _, c := range chunks {
		fours := s.chunks[c]
		for i := range fours {
			top := fours[i].top
			s.short[n] = top
			n += smaller(limit, top)
		}
	}
	return s.short[:n]
}

// gather writes the experts with keys above a limit that stand with one of the tops.
//
//go:noinline
func (s *fours) gather(dst []int32, tops []int64, limit int64) int {
	n := uint(0)
	for _, top := range tops {
		k := &s.all[uint32(index(top))/4].key
		n = note(dst, n, k[0], limit)
		n = note(dst, n, k[1], limit)
		n = note(dst, n, k[2], limit)
		n = note(dst, n, k[3], limit)
	}
	return int(n)
}

// note writes the expert of a key behind the first n and counts it if the key is
// above a limit.
func note(dst []int32, n uint, key, limit int64) uint {
	dst[n] = index(key)
	return n + smaller(limit, key)
}

func (s *fours) rate(t *sigmoidTable, logits, bias, plain []float32, experts []int32, scores []int64) (ok bool) {
	ok = t.rate(plain, logits, experts)
	if ok {
		packScores(scores, plain, bias, experts)
	}
	return ok
}

// largest has every number walk past all that are kept, which takes no branch that
// depends on them.
//
//go:noinline
func (s *fours) largest(best, numbers []int64) {
	for n, v := range numbers {
		n = min(n, len(best)-1)
		for i, b := range best[:n] {
			best[i] = max(b, v)
			v = min(b, v)
		}
		best[n] = v
	}
}
