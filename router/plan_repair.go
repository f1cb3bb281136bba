package router

import (
	"slices"
	"sort"
)

// repairer mends what dealing token by token leaves uneven. It gives single slots
// to other classes, in chains: a slot of a to b in one token, a slot of b to c in
// another, until a part with too many has passed one on to a part with too few.
// Every exchange keeps to the groups and the different experts of its token, and
// to what the row of its sender may have.
//
// The next slot of a class with copies on several ranks lands where its turn is,
// so that giving one away would shift all that follow. Of such classes only the
// last slot moves, and none comes before one.
type repairer struct {
	*levelled
	lands []int32 // by slot: its rank
	last  []int   // by class: its last slot, −1 without
	count []int   // by class: slots
	load  []int   // by rank: slots
	row   [][]int // by sender and rank: slots
	most  []int   // by sender: what its row may have at one rank
}

// exchange gives a slot to another class.
type exchange struct {
	slot  int
	class int32
}

// repair mends rows above their floors, then ranks that are not level, then the
// experts of each rank. Senders in lockstep keep their rows, in which no two of
// them meet.
func (l *levelled) repair() {
	if len(l.deal) == 0 {
		return
	}
	r := newRepairer(l)
	if !l.problem.lockstep() {
		r.levelRows()
	}
	if !r.levelRanks() { // ranks come before rows
		for s := range r.most {
			r.most[s]++
		}
		r.levelRanks()
	}
	for rank := range r.load {
		r.levelExperts(rank)
	}
}

func newRepairer(l *levelled) *repairer {
	p := l.problem
	r := &repairer{
		levelled: l, lands: make([]int32, len(l.deal)), last: make([]int, len(l.classes)),
		count: make([]int, len(l.classes)), load: make([]int, p.Layout.Ranks()),
	}
	for c := range r.last {
		r.last[c] = -1
	}
	floors := boundsOf(p)
	for s, tokens := range p.senders() {
		row := make([]int, len(r.load))
		for i, c := range l.slots(s) {
			slot, rank := l.first[s]+i, r.next(c)
			r.lands[slot], r.last[c] = rank, slot
			r.count[c]++
			r.load[rank]++
			row[rank]++
		}
		r.row = append(r.row, row)
		r.most = append(r.most, int(floors.pair(tokens)))
		if p.Mode == TEP { // nothing is sent
			r.most[s] = len(l.deal)
		}
	}
	return r
}

// next is the rank that the next slot of a class lands on.
func (r *repairer) next(c int32) int32 {
	ranks := r.classes[c].ranks
	return ranks[r.count[c]%len(ranks)]
}

// on is how many slots of a class land on a rank, and on how many copies.
func (r *repairer) on(c int32, rank int) (slots, copies int) {
	ranks := r.classes[c].ranks
	for i, at := range ranks {
		if int(at) != rank {
			continue
		}
		copies++
		slots += r.count[c] / len(ranks)
		if i < r.count[c]%len(ranks) {
			slots++
		}
	}
	return slots, copies
}

// sender is whose slot it is.
func (r *repairer) sender(slot int) int {
	return sort.SearchInts(r.first, slot+1) - 1
}

// levelRows takes slots from ranks that a sender sends too many to, each for the
// rank with the fewest slots of all that may have it.
func (r *repairer) levelRows() {
	for slot := range r.deal {
		s := r.sender(slot)
		if r.row[s][r.lands[slot]] <= r.most[s] {
			continue
		}
		best := int32(-1)
		for c := range r.classes {
			to := int32(c)
			if r.allows(slot, to) && (best < 0 || r.load[r.next(to)] < r.load[r.next(best)]) {
				best = to
			}
		}
		if best >= 0 {
			r.move([]exchange{{slot, best}})
		}
	}
}

// parts are what level evens out. A slot is of one, and may be of another as one
// of another class; −1 is none.
type parts struct {
	n      int // they are 0 … n−1
	of     func(slot int) int
	as     func(class int32) int
	should func(part int) (has, least, most int)
}

// levelRanks brings the ranks to within a slot of each other, and reports whether
// they are.
func (r *repairer) levelRanks() bool {
	low, high := len(r.deal)/len(r.load), (len(r.deal)+len(r.load)-1)/len(r.load)
	r.level(parts{
		n:      len(r.load),
		of:     func(slot int) int { return int(r.lands[slot]) },
		as:     func(class int32) int { return int(r.next(class)) },
		should: func(rank int) (has, least, most int) { return r.load[rank], low, high },
	})
	return slices.Min(r.load) >= low && slices.Max(r.load) <= high
}

// levelExperts brings the copies on a rank to within a slot of each other. Chains
// may lead over other ranks, which they leave as they were, but not where senders
// are in lockstep or copies hold slots fast.
func (r *repairer) levelExperts(rank int) {
	copies := len(r.problem.Layout.Held(rank))
	if copies == 0 {
		return
	}
	stay := r.problem.lockstep() || r.problem.Layout.Replicated()
	low, high := r.load[rank]/copies, (r.load[rank]+copies-1)/copies
	r.level(parts{
		n: len(r.classes),
		of: func(slot int) int {
			if stay && int(r.lands[slot]) != rank {
				return -1
			}
			return int(r.deal[slot])
		},
		as: func(class int32) int {
			if stay && int(r.next(class)) != rank {
				return -1
			}
			return int(class)
		},
		should: func(c int) (has, least, most int) {
			has, copies := r.on(int32(c), rank) // none of those that are only on the way
			copies *= len(r.classes[c].experts)
			return has, low * copies, high * copies
		},
	})
}

// level moves slots between parts until each has as many as it should, or no chain
// leads further.
func (r *repairer) level(p parts) {
	above := func(n int) bool { has, _, most := p.should(n); return has > most }
	below := func(n int) bool { has, least, _ := p.should(n); return has < least }
	gives := func(n int) bool { has, least, _ := p.should(n); return has > least }
	takes := func(n int) bool { has, _, most := p.should(n); return has < most }
	for r.move(r.chain(p, above, takes)) || r.move(r.chain(p, gives, below)) {
	}
}

// move carries a chain out, and reports whether there is one.
func (r *repairer) move(chain []exchange) bool {
	for _, x := range chain {
		from, to := r.deal[x.slot], r.next(x.class)
		row := r.row[r.sender(x.slot)]
		r.deal[x.slot] = x.class
		for r.last[from] == x.slot || r.last[from] >= 0 && r.deal[r.last[from]] != from {
			r.last[from]--
		}
		r.last[x.class] = max(r.last[x.class], x.slot)
		r.count[from]--
		r.count[x.class]++
		r.load[r.lands[x.slot]]--
		row[r.lands[x.slot]]--
		r.lands[x.slot] = to
		r.load[to]++
		row[to]++
	}
	return len(chain) > 0
}

// chain is a shortest chain of exchanges from a part that gives to one that
// takes, each exchange in another token; nil if there is none.
func (r *repairer) chain(p parts, gives, takes func(part int) bool) []exchange {
	type end struct {
		part  int
		chain []exchange
	}
	var ends []end // breadth first
	seen := map[int]bool{-1: true}
	taken := false
	for n := range p.n {
		taken = taken || takes(n)
		if gives(n) {
			seen[n] = true
			ends = append(ends, end{part: n})
		}
	}
	for i := 0; taken && i < len(ends); i++ {
		at := ends[i]
		for slot := range r.deal {
			if p.of(slot) != at.part {
				continue
			}
			for c := range r.classes {
				n := p.as(int32(c))
				if seen[n] || !r.allows(slot, int32(c)) || r.meets(at.chain, slot, int32(c)) {
					continue
				}
				chain := append(at.chain[:len(at.chain):len(at.chain)], exchange{slot, int32(c)})
				if takes(n) {
					return chain
				}
				seen[n] = true
				ends = append(ends, end{n, chain})
			}
		}
	}
	return nil
}

// meets reports whether a chain already changes the token of a slot, or moves a
// class with several copies that the slot leaves or joins.
func (r *repairer) meets(chain []exchange, slot int, to int32) bool {
	topK := r.problem.Shape.TopK
	from := r.deal[slot]
	for _, x := range chain {
		if x.slot/topK == slot/topK {
			return true
		}
		for _, c := range []int32{r.deal[x.slot], x.class} {
			if (c == from || c == to) && len(r.classes[c].ranks) > 1 {
				return true
			}
		}
	}
	return false
}

// allows reports whether a slot could be of a class: neither is held fast by
// copies, the row has room, and the token may use the group and has an expert of
// the class left.
func (r *repairer) allows(slot int, to int32) bool {
	from := r.deal[slot]
	if len(r.classes[from].ranks) > 1 && r.last[from] != slot || len(r.classes[to].ranks) > 1 && r.last[to] > slot {
		return false
	}
	if rank := r.next(to); rank != r.lands[slot] {
		if s := r.sender(slot); r.row[s][rank] >= r.most[s] {
			return false
		}
	}
	topK := r.problem.Shape.TopK
	first := slot - slot%topK
	token := r.deal[first : first+topK]
	left, groups := len(r.classes[to].experts), 1
	for i, c := range token {
		if first+i == slot {
			continue
		}
		if c == to {
			left--
		}
		if group := r.classes[c].group; group != r.classes[to].group && !r.uses(token[:i], group, slot-first) {
			groups++
		}
	}
	return left > 0 && groups <= r.limit
}

// uses reports whether slots of a token, but for one, are of a group.
func (r *repairer) uses(token []int32, group, but int) bool {
	for i, c := range token {
		if i != but && r.classes[c].group == group {
			return true
		}
	}
	return false
}
