package router

// finder does the arithmetic of pruning, which processors do in different ways: it
// makes a key for every expert of a row, finds those with large ones, and rates and
// sorts them. Experts side by side form chunks: the groups, if there are groups.
type finder interface {
	// scan makes the keys and sets tops to the two largest of every chunk.
	scan(logits []float32, tops []top)
	// above writes the experts of some chunks whose keys are above a limit, in
	// rising order in each chunk, and says how many there are.
	above(dst, chunks []int32, limit int32) int
	// rate sets plain to the sigmoids of the logits of some experts, and scores to
	// what packScores makes of them. ok is false if the table does not know one of
	// them, and then neither is of any use.
	rate(t *sigmoidTable, logits, bias, plain []float32, experts []int32, scores []int64) (ok bool)
	// largest sorts the largest of some numbers into best, the largest first, but
	// for the last place of best, which is of no use. No two numbers are equal.
	largest(best, numbers []int64)
}

// findRoom is how many places there must be behind experts, scores and numbers, for
// finders that take several at once. Behind experts are numbers of experts, too.
const findRoom = 8

// top is the two largest keys of a chunk.
type top struct{ first, second int32 }

// sum is the key of the sum of the two scores.
func (t top) sum() int32 { return t.first + t.second }

// makeFinder makes a finder for chunks of a size, the last of which may be smaller,
// or nil if there is none. bias has the key of every expert's bias.
type makeFinder func(table *[1 << 16]int64, bias []int32, chunk int) finder

// newFinder makes the fastest that this processor can.
func newFinder(table *[1 << 16]int64, bias []int32, chunk int) finder {
	if s := newEights(table, bias, chunk); s != nil {
		return s
	}
	return newFours(table, bias, chunk)
}
