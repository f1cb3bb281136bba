package plan

import "slices"

// dealer gives the slots of a levelled plan to classes, one token after the
// other. It first opens groups until every rank that the token's course names has
// experts enough to offer; then each slot takes, of the classes open on its rank,
// the one with the fewest slots per expert and copy.
type dealer struct {
	*levelled
	hands  []hand    // by class
	onRank [][]int32 // by rank: the classes with a copy there
	owed   []int     // by rank: slots the courses named less those it got
	strays int       // slots that landed elsewhere

	// Of the present token:
	ranks  []int32 // the different ones it is to have, in order
	need   []int   // by rank: slots
	open   []bool  // by group
	opened int
	budget int // attempts left to open groups
}

// hand is how far a class is dealt.
type hand struct {
	group int32
	size  int32   // experts
	used  int32   // slots of this token
	count int32   // slots of all
	rank  int32   // where the next one lands
	ranks []int32 // of its copies
	level float64 // slots per expert and copy
	step  float64 // what one slot adds to that
}

func newDealer(l *levelled) *dealer {
	ranks, groups := l.problem.Layout.Ranks(), l.problem.Shape.Experts/l.problem.Shape.GroupSize()
	d := &dealer{
		levelled: l, hands: make([]hand, len(l.classes)), onRank: make([][]int32, ranks),
		owed: make([]int, ranks), need: make([]int, ranks), open: make([]bool, groups),
	}
	for c, class := range l.classes {
		d.hands[c] = hand{
			group: int32(class.group), rank: class.ranks[0], size: int32(len(class.experts)), ranks: class.ranks,
			step: 1 / float64(len(class.experts)*len(class.ranks)),
		}
		for i, r := range class.ranks {
			if !slices.Contains(class.ranks[:i], r) {
				d.onRank[r] = append(d.onRank[r], int32(c))
			}
		}
	}
	return d
}

// dealAll deals the slots of all senders, one sender after the other.
func (d *dealer) dealAll() {
	topK := d.problem.Shape.TopK
	want := make([]int32, topK)
	courses := coursesOf(d.problem, d.can)
	for s := range courses {
		for slots := d.slots(s); len(slots) > 0; slots = slots[topK:] {
			for i := range want {
				want[i] = courses[s].next()
			}
			d.token(slots[:topK], want)
		}
	}
}

// can reports whether one token may have slots on the given ranks.
func (d *dealer) can(ranks []int32) bool {
	d.begin(ranks)
	ok := d.cover(0)
	d.end()
	return ok
}

// token deals one token: slots on the wanted ranks, as far as it can.
func (d *dealer) token(slots, want []int32) {
	d.begin(want)
	d.cover(0)
	for i, rank := range want {
		d.owed[rank]++
		c := d.best(rank)
		if c < 0 {
			c = d.stray()
			d.strays++
		}
		slots[i] = c
		d.owed[d.hands[c].rank]--
		d.take(c)
	}
	for _, c := range slots {
		d.hands[c].used = 0
	}
	d.end()
}

func (d *dealer) begin(want []int32) {
	d.ranks, d.budget = d.ranks[:0], 1000
	for _, r := range want {
		if d.need[r]++; d.need[r] == 1 {
			d.ranks = append(d.ranks, r)
		}
	}
}

func (d *dealer) end() {
	for _, r := range d.ranks {
		d.need[r] = 0
	}
	clear(d.open)
	d.opened = 0
}

// take gives the next slot of a class away.
func (d *dealer) take(c int32) {
	h := &d.hands[c]
	h.used++
	h.count++
	h.level = float64(h.count) * h.step
	if copies := int32(len(h.ranks)); copies > 1 {
		h.rank = h.ranks[h.count%copies]
		if h.count < copies { // experts without a slot come first
			h.level = 1
		}
	}
}

// room is how many slots of this token a class can have yet.
func (d *dealer) room(c int32) int { return int(d.hands[c].size - d.hands[c].used) }

// cover opens groups for the ranks of the token from the i-th on, so that each
// has experts enough: for every rank that of its least loaded class, and more
// until there is room. It leaves them closed if there is no way.
func (d *dealer) cover(i int) bool {
	if i == len(d.ranks) {
		return true
	}
	rank := d.ranks[i]
	enough := d.offers(rank) >= d.need[rank]
	for c := d.after(rank, -1); c >= 0; c = d.after(rank, c) {
		group := d.hands[c].group
		switch {
		case d.open[group] && enough:
			return d.cover(i + 1)
		case d.open[group]:
			continue
		case d.opened == d.limit:
			return enough && d.cover(i+1)
		}
		if d.budget--; d.budget < 0 {
			return false
		}
		d.open[group] = true
		d.opened++
		if d.cover(i) {
			return true
		}
		d.open[group] = false
		d.opened--
	}
	return enough && d.cover(i+1)
}

// offers is how many slots of this token the open groups have room for on a rank.
func (d *dealer) offers(rank int32) (room int) {
	for _, c := range d.onRank[rank] {
		if d.hands[c].rank == rank && d.open[d.hands[c].group] {
			room += d.room(c)
		}
	}
	return room
}

// after is the class at a rank that follows another one by load, and by number
// among equals; the first without another one, −1 after the last.
func (d *dealer) after(rank, last int32) int32 {
	next := int32(-1)
	for _, c := range d.onRank[rank] {
		if d.hands[c].rank != rank || d.room(c) <= 0 {
			continue
		}
		if (last < 0 || d.less(last, c)) && (next < 0 || d.less(c, next)) {
			next = c
		}
	}
	return next
}

func (d *dealer) less(a, b int32) bool {
	x, y := d.hands[a].level, d.hands[b].level
	return x < y || x == y && a < b
}

// best is the least loaded class at a rank that is open and has room; −1 if
// there is none.
func (d *dealer) best(rank int32) int32 {
	best := int32(-1)
	for _, c := range d.onRank[rank] {
		h := &d.hands[c]
		if h.rank == rank && d.open[h.group] && d.room(c) > 0 && (best < 0 || h.level < d.hands[best].level) {
			best = c
		}
	}
	return best
}

// stray is the class for a slot that finds none on its rank: of those the token
// may have, one at the rank most slots are owed to, and there the least loaded.
func (d *dealer) stray() int32 {
	best := int32(-1)
	for i := range d.hands {
		c, h := int32(i), &d.hands[i]
		if d.room(c) <= 0 || !d.open[h.group] && d.opened == d.limit {
			continue
		}
		if best < 0 || d.owed[h.rank] > d.owed[d.hands[best].rank] ||
			d.owed[h.rank] == d.owed[d.hands[best].rank] && d.less(c, best) {
			best = c
		}
	}
	if group := d.hands[best].group; !d.open[group] {
		d.open[group] = true
		d.opened++
	}
	return best
}
