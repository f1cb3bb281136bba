package plan

import "github.com/moebalance/moebalance/router"

// tail is the end of a grouped diagonal plan whose visits do not spread evenly
// over the places: after three tokens of top-8, each with two slots in each of 4
// of 8 groups, half of the groups have had two slots more than the others. The
// last few tokens then take their slots from a list that runs through the places
// one after the other, each as often as an even spread allows:
//
//	places 0 0 0 1 1 1 2 2 | 2 3 3 3 4 4 4 5 | 5 5 6 6 6 7 7 7
//
// Every sender that can has a tail of its own, which makes its row even. The
// others share one.
type tail struct {
	tokens int
	topK   int
	from   int // the place the list begins at
	each   int // entries of every place …
	more   int // … and of the first `more` places one more
	places int // of the circle
}

// ending is a sender's part of a tail: the last tokens of the sender are tokens
// skip, skip+1, … of the tail.
type ending struct {
	tail   int // index, −1 without
	skip   int
	tokens int
}

// tailsOf gives every sender its ending. There are no tails where spreads are
// even already; some senders have none if no tail does better for them.
func (c circles) tailsOf(p Problem) (tails []tail, endings []ending) {
	senders := p.senders()
	endings = make([]ending, len(senders))
	for s := range endings {
		endings[s].tail = -1
	}
	if c.visits || c.outer == 1 || c.inner%c.laps == 0 {
		return nil, endings
	}
	shared := make([]int, len(senders)) // tokens of senders without a tail of their own
	total := 0
	for s, tokens := range senders {
		if t, ok := c.shortestTail(p.Shape, tokens); ok {
			endings[s] = ending{tail: len(tails), tokens: t.tokens}
			tails = append(tails, t)
		} else {
			shared[s] = tokens
			total += tokens
		}
	}
	if t, ok := c.shortestTail(p.Shape, total); ok {
		shareTail(endings, shared, len(tails), t.tokens)
		tails = append(tails, t)
	}
	c.layTails(p, tails)
	return tails, endings
}

// shortestTail is the shortest tail that leaves the other tokens an even spread
// and keeps its own within the groups a token may use. ok is false if the spread
// is even without one, and if no tail does that.
func (c circles) shortestTail(s router.Shape, tokens int) (t tail, ok bool) {
	if c.window*tokens%c.outer == 0 {
		return tail{}, false
	}
	for n := 1; n <= min(tokens, 4*c.outer); n++ {
		slots := n * s.TopK
		t := tail{tokens: n, topK: s.TopK, places: c.outer, each: slots / c.outer, more: slots % c.outer}
		if c.window*(tokens-n)%c.outer == 0 && t.fits(s) {
			return t, true
		}
	}
	return tail{}, false
}

// fits reports whether every token of the list stays within its groups and
// needs no more experts of one than there are.
func (t *tail) fits(s router.Shape) bool {
	slot := 0
	for range t.tokens {
		used, at, run := 0, -1, 0
		for range t.topK {
			if place := t.place(slot); place != at {
				used, at, run = used+1, place, 0
			}
			if run++; run > s.GroupSize() {
				return false
			}
			slot++
		}
		if used > s.TopKGroups {
			return false
		}
	}
	return true
}

// place is where the list is after a number of slots.
func (t *tail) place(slot int) int {
	long := t.more * (t.each + 1)
	if slot < long {
		return (t.from + slot/(t.each+1)) % t.places
	}
	return (t.from + t.more + (slot-long)/t.each) % t.places
}

// entries is how often a place is on the list.
func (t *tail) entries(place int) int {
	return t.each + coverFrom(t.from, t.more, t.places, place)
}

// shareTail gives each token of a shared tail to the sender with the most tokens
// left, the lowest on a tie; a sender's tokens follow each other.
func shareTail(endings []ending, left []int, index, tokens int) {
	for range tokens {
		most := 0
		for s, n := range left {
			if n > left[most] {
				most = s
			}
		}
		left[most]--
		endings[most].tail = index
		endings[most].tokens++
	}
	skip := 0
	for s := range endings {
		if endings[s].tail == index {
			endings[s].skip = skip
			skip += endings[s].tokens
		}
	}
}

// layTails turns the lists so that their longer places lie end to end; lists of
// senders in lockstep begin at different places.
func (c circles) layTails(p Problem, tails []tail) {
	if len(tails) == 0 {
		return
	}
	more, class := make([]int, len(tails)), make([]int, len(tails))
	for i, t := range tails {
		more[i] = t.more
	}
	from := p.Layer * p.total() * p.Shape.TopK % c.outer
	for i, at := range tile(more, class, c.outer, from) {
		tails[i].from = at
	}
}

// fillTail writes one sender's tokens of a tail. It walks the list from its
// beginning, so that all senders of a shared one agree on it.
func (w *walk) fillTail(dst []int32, t *tail, skip int) {
	skip *= t.topK
	for slot := range skip + len(dst) {
		e := w.take(w.step(t.place(slot)))
		if slot >= skip {
			dst[slot-skip] = e
		}
	}
}
