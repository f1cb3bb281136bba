package logits

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// MaxTokens is the most tokens of one rank and, in a batch whose ranks differ, of
// all ranks together: a small file of an idle rank may claim any number for the
// others, and planning can take time for each.
const MaxTokens = 1 << 24

// Batch is a batch size: how many tokens each rank holds in one step. Make one
// with Equal or Unequal; the zero value is no tokens anywhere.
type Batch struct {
	tokens int   // of every rank, where each is nil
	each   []int // by rank
}

// Equal is a batch with as many tokens on every rank, whatever their number.
func Equal(tokens int) Batch { return Batch{tokens: tokens} }

// Unequal is a batch with a number of tokens for each rank: as many numbers as
// there are ranks, zeros included. Where they turn out to be all the same it is
// the batch that Equal makes. The numbers are copied.
func Unequal(tokens ...int) Batch { return Batch{each: append([]int{}, tokens...)} }

// On is the number of tokens that a rank holds.
func (b Batch) On(rank int) int {
	if b.each == nil {
		return b.tokens
	}
	return b.each[rank]
}

// most is the number of tokens of the rank with the most.
func (b Batch) most() int {
	if b.each == nil {
		return b.tokens
	}
	return slices.Max(b.each)
}

// PerRank is the number of tokens of every rank, undefined where ranks differ.
func (b Batch) PerRank() router.Number {
	switch {
	case b.each == nil:
		return router.Number(b.tokens)
	case b.differs():
		return router.Undefined()
	}
	return router.Number(b.each[0])
}

// OfRanks are the tokens of each rank where ranks differ, and nil where they do
// not: a batch has either this or PerRank. The slice belongs to the batch.
func (b Batch) OfRanks() []int {
	if b.differs() {
		return b.each
	}
	return nil
}

// differs reports whether some rank has not as many tokens as another. No
// numbers at all count as such: they are nobody's.
func (b Batch) differs() bool {
	return b.each != nil && (len(b.each) == 0 || slices.Min(b.each) != slices.Max(b.each))
}

// String is "8" for 8 tokens on every rank, and "9,2,0" where ranks differ.
func (b Batch) String() string {
	if !b.differs() {
		return strconv.Itoa(b.On(0))
	}
	return joined(b.each)
}

// joined writes whole numbers with commas between them.
func joined[T ~int | ~int32](list []T) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(int(n))
	}
	return strings.Join(texts, ",")
}

// compare orders batches: equal ones first, by their tokens, then the others by
// those of the first rank that tells them apart.
func (b Batch) compare(other Batch) int {
	return cmp.Or(slices.Compare(b.OfRanks(), other.OfRanks()), cmp.Compare(b.On(0), other.On(0)))
}

// fits is an error unless the batch says for so many ranks what each may hold.
func (b Batch) fits(ranks int) error {
	if b.each != nil && len(b.each) != ranks {
		return fmt.Errorf("%w: want a number of tokens for each of %d ranks, have %d: %v", ErrSpec, ranks, len(b.each), b.each)
	}
	sum := 0
	for r := range ranks {
		t := b.On(r)
		if t < 0 || t > MaxTokens {
			return fmt.Errorf("%w: want 0 to %d tokens per rank, have %d on rank %d", ErrSpec, MaxTokens, t, r)
		}
		sum += t
	}
	if b.differs() && sum > MaxTokens {
		return fmt.Errorf("%w: want at most %d tokens on ranks that hold unequally many, have %d together", ErrSpec, MaxTokens, sum)
	}
	return nil
}
