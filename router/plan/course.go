package plan

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// course is one sender's way round the ranks in a levelled plan. It takes some
// slots at one rank, goes on to the next, and so round and round; the more it
// takes at a stop, the fewer ranks, and so groups, a token needs:
//
//	laps 1 … n−1   `stop` slots at every rank
//	lap n          `low` slots at the first ranks, low+1 at the last `wide`
//
// With h = ⌊T·k/R⌋ and n = max(1, ⌊h/stop⌋) that gives every rank h slots or h+1,
// and stop ≤ low < 2·stop once h ≥ stop. Shorter rows make tokens of many ranks,
// which the groups may not allow; such a course is heaped instead: `stop` slots
// at every rank until there are no more.
type course struct {
	circle    []int32 // the ranks in the order of the way
	at        int     // place on the circle
	left      int     // slots left to take there
	stops     int     // made in this lap
	lap, laps int
	stop      int
	low, wide int
	heaped    bool
}

// newCourse is the course of so many slots whose arc begins at a place of the
// circle: the ranks with a slot more than others; a heaped course begins there.
func newCourse(circle []int32, slots, stop, arc int, heaped bool) course {
	ranks := len(circle)
	h, wide := slots/ranks, slots%ranks
	c := course{circle: circle, stop: stop, wide: wide, heaped: heaped, laps: max(1, h/stop)}
	c.low = h - (c.laps-1)*stop
	if c.at = arc; !heaped {
		c.at = (arc + wide) % ranks
	}
	c.left = c.take()
	return c
}

// take is how many slots to take at this stop.
func (c *course) take() int {
	switch {
	case c.heaped || c.lap < c.laps-1:
		return c.stop
	case c.stops < len(c.circle)-c.wide:
		return c.low
	default:
		return c.low + 1
	}
}

// next is the rank of the next slot.
func (c *course) next() int32 {
	for c.left == 0 {
		if c.at++; c.at == len(c.circle) {
			c.at = 0
		}
		if c.stops++; c.stops == len(c.circle) {
			c.stops = 0
			c.lap++
		}
		c.left = c.take()
	}
	c.left--
	return c.circle[c.at]
}

// coursesOf are the courses of all senders. Their arcs of ranks with a slot more
// lie end to end (see tile), so that ranks are level too; senders with equally
// many tokens start at different ranks and move in lockstep, so that no rank
// receives from two of them in one step. `can` tells whether one token may have
// slots on the given ranks.
func coursesOf(p Problem, can func(ranks []int32) bool) []course {
	s := surveyor{
		problem: p, can: can, stop: stopOf(p.Shape), circle: make([]int32, p.Layout.Ranks()), passed: map[[2]int]bool{},
	}
	for r := range s.circle {
		s.circle[r] = int32(r)
	}
	held := func(r int32) int { return len(p.Layout.Held(int(r))) }
	slices.SortStableFunc(s.circle, func(a, b int32) int { return held(b) - held(a) })
	sizes := make([]int, len(s.circle))
	for i, r := range s.circle {
		sizes[i] = max(1, held(r)) // a rank may hold nothing
	}
	turns := bestRemainders(sizes, p.total()*p.Shape.TopK, 1)
	if p.lockstep() && s.heapsFree() {
		courses, _ := s.survey(turns[0], true)
		return courses
	}
	var best []course
	fewest := -1
	past := p.Layer * p.total() * p.Shape.TopK
	for i := range turns {
		courses, heaped := s.survey(turns[(past+i)%len(turns)], false)
		if fewest < 0 || heaped < fewest {
			best, fewest = courses, heaped
		}
		if fewest == 0 || p.lockstep() { // turned senders in lockstep are the same senders
			break
		}
	}
	return best
}

// surveyor looks for courses that the groups allow.
type surveyor struct {
	problem Problem
	can     func(ranks []int32) bool
	stop    int
	circle  []int32
	passed  map[[2]int]bool // by tokens and arc
}

// stopOf is how many slots to take at a stop so that no token meets more ranks
// than it may use groups: with u slots, tokens begin at multiples of gcd(k, u)
// inside a stop, and the worst meets ⌈(u − gcd(k, u) + k)/u⌉ ranks. It is 1
// without groups; where a group has fewer experts, an even share of the token.
func stopOf(s router.Shape) int {
	if !s.Grouped() {
		return 1
	}
	visits := visitsPerToken(s)
	share := (s.TopK + visits - 1) / visits
	for u := share; u <= s.GroupSize(); u++ {
		if (u-gcd(s.TopK, u)+s.TopK+u-1)/u <= visits {
			return u
		}
	}
	return share
}

// heapsFree reports whether heaped courses have rows as good as any where all
// senders have equally many tokens. Ranks are level then whatever the courses.
func (s *surveyor) heapsFree() bool {
	tokens, ranks := s.problem.Tokens[0], len(s.circle)
	round := s.stop * ranks
	most := (tokens*s.problem.Shape.TopK + round - 1) / round * s.stop
	return int64(most) <= boundsOf(s.problem).pair(tokens)
}

// survey lays the courses out from a turn of the circle and counts the heaped
// ones: all, or those that cannot be level. When all senders have equally many
// tokens one heaped course makes all of them so: they move in lockstep.
func (s *surveyor) survey(turn int, all bool) (courses []course, heaped int) {
	p := s.problem
	heaps := make([]bool, len(p.senders()))
	for i := range heaps {
		heaps[i] = all
	}
	for again := true; again; {
		again = false
		arcs := s.lay(turn, heaps)
		courses, heaped = courses[:0], 0
		for i, tokens := range p.senders() {
			if !heaps[i] && !s.passes(tokens, arcs[i]) {
				again, heaps[i] = true, true
			}
			if heaps[i] {
				heaped++
			}
			courses = append(courses, newCourse(s.circle, tokens*p.Shape.TopK, s.stop, arcs[i], heaps[i]))
		}
		if again && p.lockstep() {
			return s.survey(turn, true)
		}
	}
	return courses, heaped
}

// lay gives every course the place where its last slots begin: those that are
// one more on some ranks, or all after whole rounds of a heaped one. Heaped and
// level courses are laid end to end apart from each other.
func (s *surveyor) lay(turn int, heaps []bool) []int {
	p, ranks := s.problem, len(s.circle)
	arcs := make([]int, len(heaps))
	for _, heaped := range []bool{false, true} {
		steps, class := make([]int, len(heaps)), make([]int, len(heaps))
		for i, tokens := range p.senders() {
			class[i] = -1
			if heaps[i] != heaped || tokens == 0 {
				continue
			}
			if steps[i] = tokens * p.Shape.TopK; heaped {
				steps[i] = (steps[i] + s.stop - 1) / s.stop
			}
			// Short ones stay where the circle begins, which is good for all or none
			// of those that go whole rounds, unless they are in lockstep.
			if p.lockstep() || heaped || !s.short(tokens) {
				class[i] = 0
			}
		}
		for i, at := range tile(steps, class, ranks, turn) {
			if heaps[i] == heaped {
				arcs[i] = at
			}
		}
	}
	return arcs
}

// short reports whether a level course of so many tokens has stops of fewer slots
// than a token can count on.
func (s *surveyor) short(tokens int) bool {
	return tokens*s.problem.Shape.TopK < s.stop*len(s.circle)
}

// passes reports whether every token of a level course is allowed.
func (s *surveyor) passes(tokens, arc int) bool {
	if !s.short(tokens) {
		return true
	}
	topK := s.problem.Shape.TopK
	key := [2]int{tokens, arc}
	passed, known := s.passed[key]
	if !known {
		c := newCourse(s.circle, tokens*topK, s.stop, arc, false)
		passed = true
		ranks := make([]int32, topK)
		for t := 0; t < tokens && passed; t++ {
			for i := range ranks {
				ranks[i] = c.next()
			}
			passed = s.can(ranks)
		}
		s.passed[key] = passed
	}
	return passed
}
