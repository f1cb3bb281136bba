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
	held                       []int64 // copies by rank
	reach                      int
	rank, copy, expert, active int64
}

// boundsOf are the bounds on assignments whose busiest rank has at most so many
// slots; at least the floor of ranks.
func boundsOf(p Problem, busiest int64) bounds {
	f, k := bounds{reach: reach(p)}, p.Shape.TopK
	for r := range p.Layout.Ranks() {
		f.held = append(f.held, int64(len(p.Layout.Held(r))))
	}
	slots := int64(p.total() * k)
	least := func(enough func(x int64) bool) int64 {
		return int64(sort.Search(int(slots), func(x int) bool { return enough(int64(x)) }))
	}
	f.rank = least(func(x int64) bool { return f.room(x, int64(p.total())) >= slots })
	f.rank = max(f.rank, min(slots, ceil(int64(k), f.reach)))
	busiest = max(busiest, f.rank)
	f.copy = least(func(x int64) bool { return f.room(busiest, x) >= slots })
	if f.expert = f.copy; p.Layout.Replicated() {
		f.expert = ceil(slots, p.Shape.Experts)
	}
	// The first slot of an expert lands on its first copy.
	first := make([]int64, len(f.held))
	for e := range p.Shape.Experts {
		first[p.Layout.Places(e)[0]]++
	}
	f.active = min(bounds{held: first}.room(busiest, 1), slots)
	return f
}

// ceil is ⌈n/parts⌉.
func ceil(n int64, parts int) int64 { return (n + int64(parts) - 1) / int64(parts) }

// room is how many slots ranks can take, at most so many each and per copy.
func (b bounds) room(perRank, perCopy int64) (sum int64) {
	for _, held := range b.held {
		sum += min(perRank, perCopy*held)
	}
	return sum
}

// reach is the most ranks one token can meet: at most k, and with groups at most
// as many as the TopKGroups groups with copies on the most ranks have in all.
func reach(p Problem) int {
	s, most := p.Shape, min(p.Layout.Ranks(), p.Shape.TopK)
	if !s.Grouped() {
		return most
	}
	var met []int // by group: ranks with copies
	for g := range s.Groups {
		ranks := map[int]bool{}
		for e := range s.GroupSize() {
			for _, rank := range p.Layout.Places(g*s.GroupSize() + e) {
				ranks[rank] = true
			}
		}
		met = append(met, len(ranks))
	}
	slices.Sort(met)
	sum := 0
	for _, n := range met[s.Groups-s.TopKGroups:] {
		sum += n
	}
	return min(most, sum)
}
