//go:build !purego

package router

import "golang.org/x/sys/cpu"

// eights is the finder for processors with AVX2, in little more than half the time.
// It takes eight experts at a time, and the few that are left four at a time.
type eights struct {
	table *[1 << 16]int64
	bias  []int32
	key   []int32
	chunk int // experts per chunk; the last may have fewer
}

// newEights returns nil if chunks do not consist of eights or the processor cannot.
func newEights(table *[1 << 16]int64, bias []int32, chunk int) finder {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasPOPCNT || chunk%8 != 0 || len(bias)%8 != 0 {
		return nil
	}
	return &eights{table: table, bias: bias, key: make([]int32, len(bias)), chunk: chunk}
}

func (s *eights) scan(logits []float32, tops []top) {
	scanEights(s, &logits[:len(s.key)][0], &tops[0])
}

func (s *eights) above(dst, chunks []int32, limit int32) int {
	return aboveEights(s, &dst[:len(s.key)+findRoom][0], chunks, limit)
}

func (s *eights) rate(t *sigmoidTable, logits, bias, plain []float32, experts []int32, scores []int64) (ok bool) {
	return rateFours(t, &logits[0], &bias[0], &plain[0], experts, &scores[0])
}

func (s *eights) largest(best, numbers []int64) { largestFours(best, numbers) }

// places tells aboveEights for each set of bits of a byte where they are, in rising order.
var places = func() (t [256][8]uint8) {
	for set := range t {
		n := 0
		for bit := range 8 {
			if set>>bit&1 == 1 {
				t[set][n] = uint8(bit)
				n++
			}
		}
	}
	return t
}()

// scanEights does what scan says of as many logits as there are keys.
//
//go:noescape
func scanEights(s *eights, logits *float32, tops *top)

// aboveEights does what above says. It writes eight experts at a time, so up to eight
// more.
//
//go:noescape
func aboveEights(s *eights, dst *int32, chunks []int32, limit int32) int

// rateFours does what finder.rate says, four experts at a time.
//
//go:noescape
func rateFours(t *sigmoidTable, logits, bias, plain *float32, experts []int32, scores *int64) (ok bool)

// largestFours puts each number in the place that the count of larger ones gives it,
// or in the last of best, and sets up to four numbers behind them.
//
//go:noescape
func largestFours(best, numbers []int64)
