package plan

import (
	"slices"
	"sort"

	"github.com/moebalance/moebalance/router"
)

// skew is a plan that gives every expert a chosen number of slots, exactly, with
// k distinct experts in every token. It assigns like McNaughton's wrap-around
// rule: write down each expert as often as it has slots, one expert after the
// other, and cut the list into k rows of N tokens. No expert has more than N
// slots, so it never stands in one column twice, and column n is token n.
//
//	loads 3 3 1 1, N = 4, k = 2    0 0 0 1
//	                               1 1 2 3    tokens {0,1} {0,1} {0,2} {1,3}
//
// With groups the rule is used twice: on groups, as many different ones per token
// as it may use, and then among the visits of each group. Where top-k does not
// divide over the groups of a token some of its visits take one expert more; they
// are numbered first in their group, so that the last row is the shorter one.
//
// Tokens are numbered across the senders (first tokens of all, second tokens of
// all, …), so that each sender meets the same skew.
//
// Source: R. McNaughton, Scheduling with deadlines and loss functions,
// Management Science 6(1), 1959.
type skew struct {
	problem  Problem
	name     string
	window   int     // groups a token visits
	perVisit int     // experts each visit takes at least …
	long     int     // … and this many visits of a token one more
	visits   []int64 // running sums of visits by group
	slots    []int64 // running sums of slots by expert
}

func (s *skew) Name() string { return s.name }

func (s *skew) Fill(dst []int32, rank int) {
	checkFill(s.problem, dst, rank)
	total, sender := int64(s.problem.total()), s.problem.source(rank)
	size := s.problem.Shape.GroupSize()
	for t := 0; len(dst) > 0; t++ {
		n := s.number(t, sender)
		for i := range s.window {
			entry := n + total*int64(i)
			group := holder(s.visits, entry)
			visit, long := s.visit(group, entry)
			taken := s.perVisit
			if long {
				taken++
			}
			width := s.visits[group+1] - s.visits[group]
			slots := s.slots[group*size : (group+1)*size+1]
			for i := range taken {
				e := holder(slots, slots[0]+visit+width*int64(i))
				dst[i] = int32(group*size + e)
			}
			dst = dst[taken:]
		}
	}
}

// visit numbers an entry of the list of visits within its group, long ones first.
func (s *skew) visit(group int, entry int64) (number int64, long bool) {
	from, to := s.visits[group], s.visits[group+1]
	if s.long == 0 {
		return entry - from, false
	}
	longs := s.longs(entry) - s.longs(from)
	if s.longs(entry+1)-s.longs(entry) == 1 {
		return longs, true
	}
	return s.longs(to) - s.longs(from) + (entry - from - longs), false
}

// longs is how many of the first m visits on the list are long. Visit i of token
// n stands at N·i + n and is long if (i+n) mod window < long, so that long ones
// are spread over all groups.
func (s *skew) longs(m int64) int64 {
	if s.long == 0 {
		return 0
	}
	total, window := int64(s.problem.total()), int64(s.window)
	upTo := func(n int64) int64 { return n/window*int64(s.long) + min(n%window, int64(s.long)) }
	sum, row := int64(0), int64(0)
	for ; m > total; row, m = row+1, m-total {
		sum += upTo(row+total) - upTo(row)
	}
	return sum + upTo(row+m) - upTo(row)
}

// number is the place of a token among those of all senders.
func (s *skew) number(token, sender int) int64 {
	n := 0
	for other, tokens := range s.problem.sources() {
		n += min(tokens, token)
		if other < sender && tokens > token {
			n++
		}
	}
	return int64(n)
}

// holder is the part whose stretch of the running sums holds x.
func holder(sums []int64, x int64) int {
	return sort.Search(len(sums)-2, func(i int) bool { return sums[i+1] > x })
}

// newSkew rounds weights per expert to whole slots: first over the groups, then
// over the ranks that hold a group's experts, then over the experts.
func newSkew(p Problem, name string, weights []float64) *skew {
	s := &skew{problem: p, name: name, window: visitsPerToken(p.Shape)}
	s.perVisit, s.long = p.Shape.TopK/s.window, p.Shape.TopK%s.window
	size := p.Shape.GroupSize()
	groups := p.Shape.Experts / size
	total := int64(p.total())

	byGroup := make([]float64, groups)
	for e, w := range weights {
		byGroup[e/size] += w
	}
	s.visits = sums(apportion(total*int64(s.window), byGroup, slices.Repeat([]int64{total}, groups)))
	slots := make([]int64, p.Shape.Experts)
	for g := range groups {
		s.assignGroup(slots, weights, g)
	}
	s.slots = sums(slots)
	return s
}

// assignGroup rounds the slots of one group's visits over its experts, rank by
// rank so that ranks are off by no more than one slot. An expert with several
// copies counts for the rank of its first.
func (s *skew) assignGroup(slots []int64, weights []float64, group int) {
	from, to := s.visits[group], s.visits[group+1]
	visits := to - from
	size, layout := s.problem.Shape.GroupSize(), s.problem.Layout
	byRank, most := make([]float64, layout.Ranks()), make([]int64, layout.Ranks())
	members := make([][]int, layout.Ranks())
	for e := group * size; e < (group+1)*size; e++ {
		r := layout.Places(e)[0].Rank
		byRank[r] += weights[e]
		most[r] += visits
		members[r] = append(members[r], e)
	}
	for r, n := range apportion(visits*int64(s.perVisit)+s.longs(to)-s.longs(from), byRank, most) {
		own := make([]float64, len(members[r]))
		for i, e := range members[r] {
			own[i] = weights[e]
		}
		for i, share := range apportion(n, own, slices.Repeat([]int64{visits}, len(own))) {
			slots[members[r][i]] = share
		}
	}
}

// perExpert is the slots of each expert.
func (s *skew) perExpert() []int64 {
	out := make([]int64, s.problem.Shape.Experts)
	for e := range out {
		out[e] = s.slots[e+1] - s.slots[e]
	}
	return out
}

func sums(parts []int64) []int64 {
	out := make([]int64, len(parts)+1)
	for i, n := range parts {
		out[i+1] = out[i] + n
	}
	return out
}

// visitsPerToken is how many different groups a token can use: all it may that it
// has slots for.
func visitsPerToken(s router.Shape) int { return min(s.GroupLimit(), s.TopK) }
