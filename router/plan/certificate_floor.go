package plan

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Floors are the least max/mean that any assignment of a problem can reach, by
// the bounds that its certificates state. Without slots they are undefined.
type Floors struct {
	Rank   router.Number // over ranks
	Copy   router.Number // over copies of experts, with no rank above its own bound
	Expert router.Number // over logical experts; that of copies without replicas
}

// Floors are those of a problem that Validate accepts.
func (p Problem) Floors() Floors {
	b := boundsOf(p)
	slots := int64(p.total() * p.Shape.TopK)
	return Floors{
		Rank:   router.OverMean(b.rank, slots, len(b.held)),
		Copy:   router.OverMean(b.copy, slots, b.copies),
		Expert: router.OverMean(b.expert, slots, p.Shape.Experts),
	}
}

// bounds are loads that no assignment of a problem can stay below. Each is a
// bound by counting, not by search: an assignment that reaches it is optimal,
// one that does not may still be.
//
// rank: N·k slots over R ranks, of which rank p can take at most N times the
// experts it holds. With h(x) = Σₚ min(x, N·Lₚ), the floor is the least x with
// h(x) ≥ N·k; for equal ranks that is ⌈N·k/R⌉. Groups add that one token meets
// at most `reach` ranks (see reach), so some rank gets at least ⌈k/reach⌉, and that
// tokens of a single group are not cut (see whole).
//
// copy: ranks come first because the step waits for the slowest one, so they are
// level here: none is above its floor F, and none below F−1 that could have as
// much. With Lₚ the copies that rank p holds, the floor is the least x for which
// every rank has room for that, x·Lₚ ≥ min(F−1, N·Lₚ), and Σₚ min(F, x·Lₚ) ≥ N·k.
// That is ⌈N·k/copies⌉, or more where ranks hold unequally many. Where one token
// meets so few ranks that they cannot be level, only the sum counts.
//
// expert: that of copies without replicas, ⌈N·k/E⌉ with them.
//
// pair: the same as rank for the tokens of one source, and x more (see beyondOf)
// where few tokens of each source cannot reach ranks that share no group.
type bounds struct {
	shape  router.Shape
	held   []int64 // copies by rank
	copies int     // their sum
	reach  int
	lone   [][]int64 // by rank and group: copies, where a token uses a single group
	rank   int64
	copy   int64
	expert int64
	beyond int64
	active int64
}

func boundsOf(p Problem) bounds {
	f := bounds{shape: p.Shape, reach: reach(p)}
	for r := range p.Layout.Ranks() {
		f.held = append(f.held, int64(len(p.Layout.Held(r))))
		f.copies += len(p.Layout.Held(r))
		if p.Shape.Grouped() && p.Shape.TopKGroups == 1 {
			f.lone = append(f.lone, make([]int64, p.Shape.Groups))
			for _, e := range p.Layout.Held(r) {
				f.lone[r][int(e)/p.Shape.GroupSize()]++
			}
		}
	}
	experts, slots := int64(p.Shape.Experts), int64(p.total()*p.Shape.TopK)
	f.rank = f.row(p.total())
	f.copy = f.copyFloor(slots, int64(p.total()))
	f.expert = f.copy
	if p.Layout.Replicated() {
		f.expert = (slots + experts - 1) / experts
	}
	f.active = f.activeMost(p)
	if p.remote() {
		f.beyond = f.beyondOf(p)
	}
	return f
}

// activeMost is the most experts that can have a slot while no rank is above its
// floor: the first slot of an expert lands on its first copy.
func (f bounds) activeMost(p Problem) (most int64) {
	first := make([]int64, len(f.held))
	for e := range p.Shape.Experts {
		first[p.Layout.Places(e)[0].Rank]++
	}
	for _, experts := range first {
		most += min(experts, f.rank)
	}
	return min(most, int64(p.total()*p.Shape.TopK))
}

// copyFloor is the floor of copies for so many slots of so many tokens.
func (f bounds) copyFloor(slots, tokens int64) int64 {
	even := (slots + int64(f.copies) - 1) / int64(f.copies)
	full := slots // those of ranks at the floor if all others are one below
	for _, held := range f.held {
		full -= min(f.rank-1, tokens*held)
	}
	return least(even, func(x int64) bool {
		sum := int64(0)
		for _, held := range f.held {
			sum += min(f.rank, x*held)
			if full > 0 && x*held < min(f.rank-1, tokens*held) {
				return false
			}
		}
		return sum >= slots
	})
}

// pair is the floor of one source with so many tokens over its targets, as far
// as no rank and no copy is above its own.
func (f bounds) pair(tokens int) int64 {
	if tokens == 0 {
		return 0
	}
	return f.row(tokens) + f.beyond
}

// row is the least that one source with so many tokens, seen alone, sends to the
// rank it sends most.
func (f bounds) row(tokens int) int64 {
	if tokens == 0 {
		return 0
	}
	n, ranks := int64(tokens), int64(len(f.held))
	slots := n * int64(f.shape.TopK)
	even := max((slots+ranks-1)/ranks, int64((f.shape.TopK+f.reach-1)/f.reach))
	return least(even, func(x int64) bool {
		sum := int64(0)
		for _, held := range f.held {
			sum += min(x, n*held)
		}
		return sum >= slots && f.whole(n, x)
	})
}

// whole reports whether so many tokens have room where no rank gets more than x
// slots. If a token uses a single group, then several groups in a row, of which
// rank p holds Gₚ copies, have ⌊Σₚ min(x, n·Gₚ)/k⌋ tokens at most, and all such
// stretches together must have n. Example: two ranks of a group each share nine
// tokens of top-2. Nine slots on each are room for four tokens on each.
func (f bounds) whole(n, x int64) bool {
	if f.lone == nil {
		return true
	}
	most := make([]int64, f.shape.Groups+1) // tokens of the first groups
	for end := range f.shape.Groups {
		held := make([]int64, len(f.lone))
		most[end+1] = n
		for first := end; first >= 0; first-- {
			slots := int64(0)
			for r, of := range f.lone {
				held[r] += of[first]
				slots += min(x, n*held[r])
			}
			most[end+1] = min(most[end+1], most[first]+slots/int64(f.shape.TopK))
		}
	}
	return most[f.shape.Groups] >= n
}

// least is the smallest x ≥ from that is enough; enough must stay true once it is.
func least(from int64, enough func(int64) bool) int64 {
	low, high := from, from
	for step := int64(1); !enough(high); step *= 2 {
		low, high = high+1, high+step
	}
	for low < high {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high
}

// reach is the most ranks one token can meet: at most k, and with groups at most
// as many as the TopKGroups groups with copies on the most ranks touch in all.
func reach(p Problem) int {
	ranks := p.Layout.Ranks()
	if !p.Shape.Grouped() {
		return min(ranks, p.Shape.TopK)
	}
	size := p.Shape.GroupSize()
	touched := make([]map[int]bool, p.Shape.Groups)
	for e := range p.Shape.Experts {
		if e%size == 0 {
			touched[e/size] = map[int]bool{}
		}
		for _, place := range p.Layout.Places(e) {
			touched[e/size][place.Rank] = true
		}
	}
	var counts []int
	for _, t := range touched {
		counts = append(counts, len(t))
	}
	slices.Sort(counts)
	sum := 0
	for _, n := range counts[len(counts)-p.Shape.TopKGroups:] {
		sum += n
	}
	return min(ranks, p.Shape.TopK, sum)
}
