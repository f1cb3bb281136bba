package plan

import "cmp"

// leastLoaded chooses the cells of a step, first slots of all sources first, where
// no diagonal fits. Of the cells that a token may still use it takes the one whose
// rank has the fewest slots so far; of equal ones, one with an expert that has none,
// then one whose copies have the fewest, then that whose rank has the fewest from this
// source, then the one with the fewest slots per copy, then the first from a place
// that moves with source, token and slot.
func (a *assigner) leastLoaded(t int) {
	k, n, groups := a.shape.TopK, len(a.cells), make([]int, a.sources)
	for j := range k {
		for i := range a.sources {
			s := (i + t) % a.sources
			token, best, opens := a.chosen[s*k:s*k+j], -1, 0
			for at := range n {
				at = (at + s*n/a.sources + t*k + j) % n
				slots, opened := a.holds(token, at)
				if slots < len(a.cells[at].experts) && groups[s]+opened <= a.shape.GroupLimit() &&
					(best < 0 || a.better(s, at, best)) {
					best, opens = at, opened
				}
			}
			groups[s] += opens
			a.take(s, j, best)
		}
	}
}

// holds is how many slots of a token are in a cell, and how many groups, 0 or 1, one more would open.
func (a *assigner) holds(token []int32, cell int) (slots, opens int) {
	opens = 1
	for _, other := range token {
		if int(other) == cell {
			slots++
		}
		if a.cells[other].group == a.cells[cell].group {
			opens = 0
		}
	}
	return slots, opens
}

// better reports whether a source rather sends to one cell than to another.
func (a *assigner) better(s, cell, other int) bool {
	c, d := &a.cells[cell], &a.cells[other]
	p, q := c.rank(), d.rank()
	return cmp.Or(
		cmp.Compare(a.load[p], a.load[q]),
		cmp.Compare(c.idle(), d.idle()),
		cmp.Compare(c.slots/c.copies(), d.slots/d.copies()),
		cmp.Compare(a.sent[s][p], a.sent[s][q]),
		cmp.Compare(c.slots*d.copies(), d.slots*c.copies()),
	) < 0
}
