package plan

import (
	"math/bits"

	"github.com/moebalance/moebalance/router"
)

// remote reports whether some source has so few tokens that it cannot use every
// group.
func (p Problem) remote() bool {
	if !p.Shape.Grouped() || p.Mode != router.DEP {
		return false
	}
	for _, tokens := range p.Tokens {
		if tokens > 0 && tokens*p.Shape.TopKGroups < p.Shape.Groups {
			return true
		}
	}
	return false
}

// beyondOf is how far above the row it could have alone some source must be:
// the least x that this count leaves possible. Take any `a` ranks, and leave out
// copies until no two of these ranks hold one group. Then
//
//   - a token meets at most TopKGroups of them, so a source of T tokens at most
//     min(a, T·TopKGroups), with at most row(T) + x slots each;
//   - what is left out takes at most `copy` slots per copy;
//   - the a ranks together must get all slots but (R−a)·rank.
//
// One token of DeepSeek-V3 per rank is an example. It meets eight different
// ranks only through four groups that lie on two each. Of 9 ranks the first,
// third, … ninth share no group: nine tokens send these five at most 9·4 slots if
// no two slots of a token meet, but they need 5·8.
func (f bounds) beyondOf(p Problem) int64 {
	ranks, slots := int64(len(f.held)), int64(p.total()*p.Shape.TopK)
	left := strangers(p)
	return least(0, func(x int64) bool {
		if f.crowded(p, x) || x == 0 && f.lumpy(p) {
			return false
		}
		for a, copies := range left {
			if copies < 0 {
				continue
			}
			most := int64(copies) * f.copy
			for _, tokens := range p.Tokens {
				most += (f.row(tokens) + x) * int64(min(a, tokens*p.Shape.TopKGroups))
			}
			if most < slots-(ranks-int64(a))*f.rank {
				return false
			}
		}
		return true
	})
}

// crowded reports whether some rank gets too much when no row is more than x
// above the least it can be alone. A source sends row(T) slots to some rank. That
// one gets from every other source what it cannot send elsewhere, T·k less R−1
// times what its row may have. Example: one rank has one token and the others
// have three, on 8 ranks of one group each. The single token reaches four ranks
// with two slots each, but level rows of 24 slots leave room for one.
func (f bounds) crowded(p Problem, x int64) bool {
	others := int64(len(f.held)) - 1
	must := func(tokens int) int64 {
		return max(0, int64(tokens*p.Shape.TopK)-others*(f.row(tokens)+x))
	}
	sum := int64(0)
	for _, tokens := range p.Tokens {
		sum += must(tokens)
	}
	for _, tokens := range p.Tokens {
		if sum-must(tokens)+f.row(tokens) > f.rank {
			return true
		}
	}
	return false
}

// lumpy reports whether ranks cannot be level with every row at the least it can
// be alone, because slots come in lumps then. A source of T tokens with no slot to
// spare, T·k = m·row(T) where it meets m = min(R, T·reach) ranks, has row(T) slots
// at each of these and none elsewhere. If all sources are of that kind, and all
// ranks must get N·k/R, then what the sources that meet every rank leave of that is
// a sum of lumps of the others. Example: three of eight ranks have a single token,
// which gives two slots to each of four ranks; all other rows are level, and three
// slots of each rank are left for lumps of two.
func (f bounds) lumpy(p Problem) bool {
	ranks, slots := len(f.held), p.total()*p.Shape.TopK
	if int(f.rank)*ranks != slots {
		return false
	}
	left, lump := int(f.rank), 0
	for _, tokens := range p.Tokens {
		met, row := min(ranks, tokens*f.reach), int(f.row(tokens))
		switch {
		case met*row != tokens*p.Shape.TopK:
			return false
		case met == ranks:
			left -= row
		default:
			lump = gcd(lump, row)
		}
	}
	return lump > 0 && left%lump != 0
}

// strangers gives, for every number a of ranks, the fewest copies to leave out
// until some a ranks hold no group in common; −1 where that cannot be. It tries
// every set of groups a rank may keep, and gives up on more than 12 groups: no
// answer makes no bound.
func strangers(p Problem) []int {
	groups := p.Shape.Groups
	if groups > 12 {
		return nil
	}
	// By set of groups kept so far, and ranks that keep some: copies left out.
	fewest := make([][]int, 1<<groups)
	for kept := range fewest {
		fewest[kept] = make([]int, bits.OnesCount(uint(kept))+1)
		for a := range fewest[kept] {
			fewest[kept][a] = -1
		}
	}
	fewest[0][0] = 0
	held := make([]int, groups)
	for r := range p.Layout.Ranks() {
		clear(held)
		all, copies := 0, len(p.Layout.Held(r))
		for _, e := range p.Layout.Held(r) {
			g := int(e) / p.Shape.GroupSize()
			held[g]++
			all |= 1 << g
		}
		for kept := len(fewest) - 1; kept >= 0; kept-- { // downwards: each rank once
			free := all &^ kept
			for keep := free; keep > 0; keep = (keep - 1) & free {
				left := copies
				for set := uint(keep); set > 0; set &= set - 1 {
					left -= held[bits.TrailingZeros(set)]
				}
				to := fewest[kept|keep]
				for a, n := range fewest[kept] {
					if n >= 0 && (to[a+1] < 0 || n+left < to[a+1]) {
						to[a+1] = n + left
					}
				}
			}
		}
	}
	best := make([]int, groups+1)
	for a := range best {
		best[a] = -1
		for _, of := range fewest {
			if a < len(of) && of[a] >= 0 && (best[a] < 0 || of[a] < best[a]) {
				best[a] = of[a]
			}
		}
	}
	return best
}
