package plan

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// repairer mends what dealing token by token leaves uneven. It picks a part that is
// off, at random, and gives one of its slots to another class or lets it change
// places with another slot. It takes that back if the plan is further off then. What
// leaves it as far off stays, so that a surplus wanders from part to part until it
// meets a lack. This ends when nothing is off, or after enough looks in vain. Every
// token keeps to its groups and to different experts.
//
// Note: attempts that make the plan worse for the moment were tried, and find less.
type repairer struct {
	*ledger
	tried  []deed // what the present attempt has done
	random rand.PCG
}

// deed is that a slot was taken from a class.
type deed struct {
	slot int
	from int32
}

// repair moves slots until nothing is off, or in vain. Senders in lockstep that
// keep to their courses do not meet.
func (d *dealer) repair() {
	if len(d.deal) == 0 {
		return
	}
	r := repairer{ledger: newLedger(d)}
	if r.off == 0 && d.strays == 0 {
		return
	}
	r.askSteps()
	for most := repairLooks + repairLooksPerSlot*len(r.deal); r.off > 0 && r.looks < most; {
		r.attempt()
	}
}

// A repair gives up after so many looks: a few milliseconds where there are few
// slots, and not much more time than dealing takes where there are many.
const (
	repairLooks        = 200_000
	repairLooksPerSlot = 50
)

// attempt tries something, and takes it back if it is not allowed or makes it worse.
func (r *repairer) attempt() {
	before := r.off
	r.tried = r.tried[:0]
	if !r.try() || r.off > before {
		for _, was := range slices.Backward(r.tried) {
			r.leave(was.slot)
			r.join(was.slot, was.from)
		}
	}
}

// try moves a slot or two, or what a token has in a group, and reports whether the
// tokens may have that.
func (r *repairer) try() bool {
	slot, to := r.pick()
	topK := r.problem.Shape.TopK
	switch r.below(5) {
	case 0: // with another slot of the token
		return r.swap(slot, slot-slot%topK+r.below(topK))
	case 1:
		return r.swap(slot, r.below(len(r.deal)))
	case 2: // with one of the same step
		if !r.problem.lockstep() {
			return false
		}
		return r.swap(slot, r.first[r.below(len(r.first))]+slot-r.first[r.senders[slot]])
	default:
		return r.give(slot, to)
	}
}

// pick chooses a part that is off, a slot and a class such that the part gets the
// slot if it has too few, and loses it if it has too many; every other time one
// that lands on the same rank.
func (r *repairer) pick() (slot int, to int32) {
	i, stay := int(r.wrong[r.below(len(r.wrong))]), r.below(2) == 0
	if p := &r.parts[i]; p.has < p.least {
		r.draw(func() bool {
			to = int32(r.below(len(r.classes)))
			return int(r.next(to)) == i || r.class(to) == i || i == r.active && r.idle(to)
		})
		rank := r.next(to)
		r.draw(func() bool {
			slot = r.below(len(r.deal))
			return !stay || r.lands[slot] == rank
		})
		return slot, to
	}
	r.draw(func() bool {
		slot = r.anyOf(i)
		return r.in(slot, i) || r.class(r.deal[slot]) == i
	})
	if on := r.onRank[r.lands[slot]]; stay {
		return slot, on[r.below(len(on))]
	}
	return slot, int32(r.below(len(r.classes)))
}

// anyOf is a slot that may be in a part, at random.
func (r *repairer) anyOf(part int) int {
	ranks := len(r.onRank)
	switch {
	case part >= r.steps:
		return r.first[r.below(ranks)] + (part-r.steps)%len(r.slots(0))
	case part >= r.rows:
		sender := (part - r.rows) / ranks
		return r.first[sender] + r.below(len(r.slots(sender)))
	default:
		return r.below(len(r.deal))
	}
}

// draw repeats a random choice until it is right, but not for ever.
func (r *repairer) draw(right func() bool) {
	for n := 0; n < 64 && !right(); n++ {
		r.looks++
	}
}

// below is a random number from 0 to n−1; the bias of n/2⁶⁴ does no harm.
func (r *repairer) below(n int) int {
	high, _ := bits.Mul64(r.random.Uint64(), uint64(n))
	return int(high)
}

// swap lets two slots change places.
func (r *repairer) swap(a, b int) bool {
	from, to, topK := r.deal[a], r.deal[b], r.problem.Shape.TopK
	if from == to || a/topK != b/topK && !(r.allows(a, to) && r.allows(b, from)) {
		return false
	}
	r.move(a, to)
	r.move(b, from)
	return true
}

// move gives a slot to a class for a try.
func (r *repairer) move(slot int, to int32) {
	r.tried = append(r.tried, deed{slot, r.deal[slot]})
	r.leave(slot)
	r.join(slot, to)
}

// give gives a slot to a class. If its token may not use a group more, all that it
// has in the group of the slot goes to that of the class, each slot to the class
// with the fewest per expert and copy.
func (r *repairer) give(slot int, to int32) bool {
	old, group := r.classes[r.deal[slot]].group, r.classes[to].group
	if r.deal[slot] != to && r.allows(slot, to) {
		r.move(slot, to)
		return true
	}
	if old == group {
		return false
	}
	topK := r.problem.Shape.TopK
	first := slot - slot%topK
	for slot := first; slot < first+topK; slot++ {
		if r.classes[r.deal[slot]].group != old {
			continue
		}
		if to = r.lowest(group, r.deal[first:first+topK]); to < 0 {
			return false
		}
		r.move(slot, to)
	}
	return true
}

// lowest is the class of a group with the fewest slots per expert and copy that
// has an expert left for a token, one at random among equals; −1 if there is none.
func (r *repairer) lowest(group int, token []int32) int32 {
	r.looks += len(r.classes)
	best, least := int32(-1), 0.0
	from := r.below(len(r.classes))
	for i := range r.classes {
		c := int32((from + i) % len(r.classes))
		class := &r.classes[c]
		if class.group != group || r.left(c, token) == 0 {
			continue
		}
		if level := float64(r.parts[r.class(c)].has) / float64(len(class.experts)*len(class.ranks)); best < 0 || level < least {
			best, least = c, level
		}
	}
	return best
}

// left is how many experts of a class a token leaves.
func (r *repairer) left(c int32, token []int32) int {
	left := len(r.classes[c].experts)
	for _, x := range token {
		if x == c {
			left--
		}
	}
	return left
}

// allows reports whether a slot of another class could be of a class: its token
// has an expert of that left, and may use the group.
func (r *repairer) allows(slot int, to int32) bool {
	topK := r.problem.Shape.TopK
	at := slot % topK
	token := r.deal[slot-at : slot-at+topK]
	if r.left(to, token) == 0 {
		return false
	}
	groups := 1
	for i, c := range token {
		if group := r.classes[c].group; i != at && group != r.classes[to].group && !r.uses(token[:i], group, at) {
			groups++
		}
	}
	return groups <= r.limit
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
