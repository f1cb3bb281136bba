package router

import "sort"

// skew is a plan that gives every expert a chosen number of slots, exactly, with
// k distinct experts in every token. It deals like McNaughton's wrap-around
// rule: write down each expert as often as it has slots, one expert after the
// other, and cut the list into k rows of N tokens. No expert has more than N
// slots, so it never stands in one column twice, and column n is token n.
//
//	loads 3 3 1 1, N = 4, k = 2    0 0 0 1
//	                               1 1 2 3    tokens {0,1} {0,1} {0,2} {1,3}
//
// With groups the rule is used twice: on groups, `window` distinct ones per
// token, and then among the visits of each group, `laps` distinct experts per
// visit. Tokens are numbered across the senders (first tokens of all, second
// tokens of all, …), so that each sender meets the same skew.
//
// Source: R. McNaughton, Scheduling with deadlines and loss functions,
// Management Science 6(1), 1959.
type skew struct {
	problem      Problem
	name         string
	window, laps int
	visits       []int64 // running sums of visits by group
	slots        []int64 // running sums of slots by expert
}

func (s *skew) Name() string { return s.name }

func (s *skew) Fill(dst []int32, rank int) {
	checkFill(s.problem, dst, rank)
	total, sender := int64(s.problem.total()), s.problem.sender(rank)
	size := s.problem.Shape.GroupSize()
	for t := 0; len(dst) > 0; t++ {
		n := s.number(t, sender)
		for i := range s.window {
			group := holder(s.visits, n+total*int64(i))
			visit := n + total*int64(i) - s.visits[group]
			visits := s.visits[group+1] - s.visits[group]
			slots := s.slots[group*size : (group+1)*size+1]
			for lap := range s.laps {
				e := holder(slots, slots[0]+visit+visits*int64(lap))
				dst[i*s.laps+lap] = int32(group*size + e)
			}
		}
		dst = dst[s.problem.Shape.TopK:]
	}
}

// number is the place of a token among those of all senders.
func (s *skew) number(token, sender int) int64 {
	n := 0
	for other, tokens := range s.problem.senders() {
		n += min(tokens, token)
		if other < sender && tokens > token {
			n++
		}
	}
	return int64(n)
}

// holder is the part whose stretch of the running sums holds x.
func holder(sums []int64, x int64) int {
	return sort.Search(len(sums)-1, func(i int) bool { return sums[i+1] > x })
}

// newSkew rounds weights per expert to whole slots: first over the groups, then
// over the ranks that hold a group's experts, then over the experts.
func newSkew(p Problem, name string, weights []float64) *skew {
	s := &skew{problem: p, name: name}
	s.window, s.laps = evenWindow(p.Shape)
	size := p.Shape.GroupSize()
	groups := p.Shape.Experts / size
	total := int64(p.total())

	byGroup, most := make([]float64, groups), make([]int64, groups)
	for e, w := range weights {
		byGroup[e/size] += w
	}
	for g := range most {
		most[g] = total
	}
	visits := apportion(total*int64(s.window), byGroup, most)
	s.visits = sums(visits)
	slots := make([]int64, p.Shape.Experts)
	for g, n := range visits {
		s.dealGroup(slots, weights, g, n)
	}
	s.slots = sums(slots)
	return s
}

// dealGroup rounds the slots of one group's visits over its experts, rank by
// rank so that ranks are off by no more than one slot. An expert with several
// copies counts for the rank of its first.
func (s *skew) dealGroup(slots []int64, weights []float64, group int, visits int64) {
	size, layout := s.problem.Shape.GroupSize(), s.problem.Layout
	byRank, most := make([]float64, layout.Ranks()), make([]int64, layout.Ranks())
	members := make([][]int, layout.Ranks())
	for e := group * size; e < (group+1)*size; e++ {
		r := layout.Places(e)[0].Rank
		byRank[r] += weights[e]
		most[r] += visits
		members[r] = append(members[r], e)
	}
	for r, n := range apportion(visits*int64(s.laps), byRank, most) {
		own, room := make([]float64, len(members[r])), make([]int64, len(members[r]))
		for i, e := range members[r] {
			own[i], room[i] = weights[e], visits
		}
		for i, share := range apportion(n, own, room) {
			slots[members[r][i]] = share
		}
	}
}

func sums(parts []int64) []int64 {
	out := make([]int64, len(parts)+1)
	for i, n := range parts {
		out[i+1] = out[i] + n
	}
	return out
}
