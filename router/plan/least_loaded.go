package plan

import (
	"cmp"

	"github.com/moebalance/moebalance/router"
)

// leastLoaded chooses the cells of a step, first slots of all sources first, where
// no diagonal fits. Of the cells that a token may still use it takes the one whose
// rank has the fewest slots so far; of equal ones, one with an expert that has none,
// then one whose copies have the fewest, then that whose rank has the fewest from this
// source, then the one with the fewest slots per copy, then the first from a place
// that moves with source, token and slot.
func (a *assigner) leastLoaded(t int) {
	k, n := a.shape.TopK, len(a.cells)
	tokens := newTokens(a.sources, n, a.shape)
	for j := range k {
		for i := range a.sources {
			s := (i + t) % a.sources
			best := -1
			at := (s*n/a.sources + t*k + j) % n
			for range n {
				if tokens[s].allows(at, &a.cells[at]) && (best < 0 || a.better(s, at, best)) {
					best = at
				}
				if at++; at == n {
					at = 0
				}
			}
			a.take(s, j, best)
			tokens[s].add(best, &a.cells[best])
		}
	}
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

// token is what a token has taken so far.
type token struct {
	slots  []int  // by cell
	open   []bool // by group: whether it has experts there
	groups int    // open ones
	limit  int    // of them
}

func newTokens(n, cells int, s router.Shape) []token {
	tokens := make([]token, n)
	for i := range tokens {
		tokens[i] = token{slots: make([]int, cells), open: make([]bool, s.Experts/s.GroupSize()), limit: s.GroupLimit()}
	}
	return tokens
}

// allows reports whether the token may take a slot of a cell: it has an expert that
// the token has not, and its group is open or one more may be.
func (t *token) allows(i int, c *cell) bool {
	return t.slots[i] < len(c.experts) && (t.open[c.group] || t.groups < t.limit)
}

func (t *token) add(i int, c *cell) {
	t.slots[i]++
	if !t.open[c.group] {
		t.open[c.group] = true
		t.groups++
	}
}
