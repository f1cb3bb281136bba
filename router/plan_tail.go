package router

// tail is the end of a grouped diagonal plan whose visits cannot be spread
// evenly over the places: with three tokens of top-8, each on 4 of 8 groups,
// half of the groups would get two slots more than the others. The last few
// tokens then take their slots from a list that runs through the places one
// after the other, each as often as an even spread allows:
//
//	places 0 0 0 1 1 1 2 2 | 2 3 3 3 4 4 4 5 | 5 5 6 6 6 7 7 7
//
// The zero tail has no tokens.
type tail struct {
	tokens int
	topK   int
	from   int   // the place the list begins at
	each   int   // entries of every place …
	more   int   // … and of the first `more` places one more
	places int   // on the list
	mine   []int // by sender: how many of its last tokens are on the list
}

// of is the number of tail tokens of a sender.
func (t *tail) of(sender int) int {
	if t.tokens == 0 {
		return 0
	}
	return t.mine[sender]
}

// tailOf finds the shortest tail that leaves the other tokens an even spread
// and keeps its own within the groups a token may use. There is none where the
// spread is even already, or when no tail does that.
func (c circles) tailOf(p Problem) tail {
	total := p.total()
	if c.visits || c.outer == 1 || c.inner%c.laps == 0 || c.window*total%c.outer == 0 {
		return tail{}
	}
	for n := 1; n <= min(total, 4*c.outer); n++ {
		slots := n * p.Shape.TopK
		t := tail{
			tokens: n, topK: p.Shape.TopK, places: c.outer,
			from: p.Layer * total * p.Shape.TopK % c.outer,
			each: slots / c.outer, more: slots % c.outer,
		}
		if c.window*(total-n)%c.outer == 0 && t.fits(p.Shape) {
			t.assign(p.senders())
			return t
		}
	}
	return tail{}
}

// fits reports whether every token of the list stays within its groups and
// needs no more experts of one than there are.
func (t *tail) fits(s Shape) bool {
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

// assign gives each token of the list to the sender with the most tokens left,
// the lowest on a tie.
func (t *tail) assign(senders []int) {
	t.mine = make([]int, len(senders))
	for range t.tokens {
		most := 0
		for s, n := range senders {
			if n-t.mine[s] > senders[most]-t.mine[most] {
				most = s
			}
		}
		t.mine[most]++
	}
}

// fillTail deals out the tail tokens of one sender, walking the whole list so
// that all senders agree on it; only the sender's own part is written.
func (w *walk) fillTail(dst []int32, t *tail, sender int) {
	skip := 0
	for _, n := range t.mine[:sender] {
		skip += n * t.topK
	}
	for slot := range skip + len(dst) {
		e := w.take(w.step(t.place(slot)))
		if slot >= skip {
			dst[slot-skip] = e
		}
	}
}
