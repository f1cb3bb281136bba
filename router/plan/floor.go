package plan

import (
	"slices"
	"sort"
)

// bounds are loads that no assignment of a problem can stay below. Each is a
// bound by counting, not by search: an assignment that reaches it is optimal,
// one that does not may still be.
//
// rank: N·k slots over R ranks, of which rank p can take at most N times the
// experts it holds. With h(x) = Σₚ min(x, N·Lₚ), the floor is the least x with
// h(x) ≥ N·k; for equal ranks that is ⌈N·k/R⌉. Groups add that one token meets
// at most `reach` ranks (see reach), so some rank gets at least ⌈k/reach⌉.
//
// copy: with Lₚ the copies that rank p holds, and no rank above F slots, the floor is
// the least x with Σₚ min(F, x·Lₚ) ≥ N·k. That is ⌈N·k/copies⌉, or more where ranks
// hold unequally many.
//
// expert: the same as copy without replicas, ⌈N·k/E⌉ with them.
type bounds struct {
	topK   int
	held   []int64 // copies by rank
	copies int     // their sum
	reach  int
	rank   int64
	copy   int64
	expert int64
	active int64
}

// boundsOf are the bounds on assignments whose busiest rank has at most so many
// slots; at least the floor of ranks.
func boundsOf(p Problem, busiest int64) bounds {
	f := bounds{topK: p.Shape.TopK, reach: reach(p)}
	for r := range p.Layout.Ranks() {
		f.held = append(f.held, int64(len(p.Layout.Held(r))))
		f.copies += len(p.Layout.Held(r))
	}
	experts, slots := int64(p.Shape.Experts), int64(p.total()*p.Shape.TopK)
	even := max((slots+int64(len(f.held))-1)/int64(len(f.held)), int64((f.topK+f.reach-1)/f.reach))
	f.rank = least(min(slots, even), func(x int64) bool { return f.room(x, int64(p.total())) >= slots })
	busiest = max(busiest, f.rank)
	f.copy = least((slots+int64(f.copies)-1)/int64(f.copies), func(x int64) bool { return f.room(busiest, x) >= slots })
	f.expert = f.copy
	if p.Layout.Replicated() {
		f.expert = (slots + experts - 1) / experts
	}
	// The first slot of an expert lands on its first copy.
	first := make([]int64, len(f.held))
	for e := range p.Shape.Experts {
		first[p.Layout.Places(e)[0]]++
	}
	for _, experts := range first {
		f.active += min(experts, busiest)
	}
	f.active = min(f.active, slots)
	return f
}

// room is how many slots ranks can take, at most so many each and per copy.
func (f bounds) room(perRank, perCopy int64) (sum int64) {
	for _, held := range f.held {
		sum += min(perRank, perCopy*held)
	}
	return sum
}

// least is the smallest x ≥ from that is enough; enough must be true of some x and
// of all above.
func least(from int64, enough func(int64) bool) int64 {
	step := int64(1)
	for !enough(from + step) {
		step *= 2
	}
	return from + int64(sort.Search(int(step), func(i int) bool { return enough(from + int64(i)) }))
}

// reach is the most ranks one token can meet: at most k, and with groups at most
// as many as the TopKGroups groups with copies on the most ranks have in all.
func reach(p Problem) int {
	s, most := p.Shape, min(p.Layout.Ranks(), p.Shape.TopK)
	if !s.Grouped() {
		return most
	}
	known, ranks := map[[2]int]bool{}, make([]int, s.Groups) // by group: ranks with copies
	for e := range s.Experts {
		for _, rank := range p.Layout.Places(e) {
			if at := [2]int{e / s.GroupSize(), rank}; !known[at] {
				known[at] = true
				ranks[at[0]]++
			}
		}
	}
	slices.Sort(ranks)
	sum := 0
	for _, n := range ranks[s.Groups-s.TopKGroups:] {
		sum += n
	}
	return min(most, sum)
}
