package plan

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// ledger keeps account of what is asked of a levelled plan. All of it is asked of
// parts of the plan, each of which should have so many slots:
//
//	ranks    an even share, up to their floor
//	rows     of a sender at a rank: up to the floor of the sender
//	steps    of senders in lockstep at a rank: one
//	classes  an even share of what their ranks have, up to the floor of copies
//	active   experts with a slot: as many as can have one
//
// A part is off by the slots that it has too many or too few, and the plan by all
// of these together. The certificate calls a plan optimal of which nothing is off.
//
// The slots of a class with several copies land on them in turn. If one leaves,
// all that follow land elsewhere.
type ledger struct {
	*dealer
	parts   []part // ranks, classes, active, one for what is not asked, rows, steps
	active  int
	rows    int // where the rows begin, sender after sender
	steps   int // where the steps begin, rank after rank
	off     int
	wrong   []int32 // the parts that are off
	senders []int32 // by slot: its sender
	lands   []int32 // by slot: its rank
	turns   [][]int // by class with several copies: its slots in order
	looks   int     // at slots and parts, so far
}

// part is a number of slots and what it should be.
type part struct {
	has, least, most int32
	place            int32 // among those that are off, counted from 1; 0 if it is not
}

func newLedger(d *dealer) *ledger {
	l := &ledger{
		dealer: d, turns: make([][]int, len(d.classes)),
		senders: make([]int32, len(d.deal)), lands: make([]int32, len(d.deal)),
	}
	l.ask()
	for s := range l.first {
		for i, c := range l.slots(s) {
			slot := l.first[s] + i
			l.senders[slot], l.lands[slot] = int32(s), l.next(c)
			if len(l.classes[c].ranks) > 1 {
				l.turns[c] = append(l.turns[c], slot)
			}
			if l.idle(c) {
				l.parts[l.active].has++
			}
			l.parts[l.class(c)].has++
			for _, part := range l.at(slot) {
				l.parts[part].has++
			}
		}
	}
	l.noteFrom(0)
	return l
}

// ask lays out all parts but steps, with what they should have.
func (l *ledger) ask() {
	p, f := l.problem, boundsOf(l.problem)
	slots, ranks := len(l.deal), len(l.onRank)
	low, high := int32(slots/ranks), int32(f.rank)
	if (slots+ranks-1)/ranks < int(f.rank) { // they cannot be level
		low = 0
	}
	for rank := range ranks {
		held := len(p.Layout.Held(rank))
		l.parts = append(l.parts, part{least: min(low, int32(p.total()*held)), most: high})
	}
	for _, c := range l.classes {
		least, most := high, int32(0)
		for _, rank := range c.ranks {
			held := int32(len(p.Layout.Held(int(rank))))
			least, most = min(least, l.parts[rank].least/held), max(most, (high+held-1)/held)
		}
		copies := int32(len(c.ranks) * len(c.experts))
		l.parts = append(l.parts, part{least: least * copies, most: min(most, int32(f.copy)) * copies})
	}
	l.active = len(l.parts)
	l.parts = append(l.parts, part{least: int32(f.active), most: math.MaxInt32}, part{most: math.MaxInt32})
	l.rows = len(l.parts)
	if p.Mode == router.DEP {
		for _, tokens := range p.Tokens {
			l.parts = append(l.parts, slices.Repeat([]part{{most: int32(f.pair(tokens))}}, ranks)...)
		}
	}
	l.steps = len(l.parts)
}

// askSteps adds the steps of senders in lockstep.
func (l *ledger) askSteps() {
	if !l.problem.lockstep() {
		return
	}
	l.parts = append(l.parts, slices.Repeat([]part{{most: 1}}, len(l.deal))...)
	for slot := range l.deal {
		l.parts[l.at(slot)[2]].has++
	}
	l.noteFrom(l.steps)
}

// noteFrom notes the parts from the i-th on that are off.
func (l *ledger) noteFrom(i int) {
	for ; i < len(l.parts); i++ {
		if off := l.far(i); off > 0 {
			l.note(i, 0, off)
		}
	}
}

// far is by how much a part is off. A slot too many or too few at a rank, in a row
// or in a step is as far as three among the experts.
func (l *ledger) far(i int) int {
	p := &l.parts[i]
	off := int(max(0, p.least-p.has, p.has-p.most))
	if i < len(l.onRank) || i >= l.rows {
		off *= 3
	}
	return off
}

// class is the part of a class.
func (l *ledger) class(c int32) int { return len(l.onRank) + int(c) }

// at are the other parts of a slot: its rank, and its row and step if these are asked.
func (l *ledger) at(slot int) (parts [3]int) {
	rank, sender, ranks := int(l.lands[slot]), int(l.senders[slot]), len(l.onRank)
	parts = [3]int{rank, l.active + 1, l.active + 1}
	if l.rows < l.steps {
		parts[1] = l.rows + sender*ranks + rank
	}
	if l.steps < len(l.parts) {
		parts[2] = l.steps + rank*len(l.slots(0)) + slot - l.first[sender]
	}
	return parts
}

// in reports whether a slot is in one of its other parts.
func (l *ledger) in(slot, part int) bool {
	at := l.at(slot)
	return slices.Contains(at[:], part)
}

// next is the rank that the next slot of a class lands on.
func (l *ledger) next(c int32) int32 {
	ranks := l.classes[c].ranks
	if len(ranks) == 1 {
		return ranks[0]
	}
	return ranks[int(l.parts[l.class(c)].has)%len(ranks)]
}

// idle reports whether an expert of a class has no slot.
func (l *ledger) idle(c int32) bool {
	return int(l.parts[l.class(c)].has) < len(l.classes[c].experts)
}

// add counts more slots in a part.
func (l *ledger) add(i int, by int32) {
	l.looks++
	before := l.far(i)
	l.parts[i].has += by
	l.note(i, before, l.far(i))
}

// note keeps account of how far off a part is.
func (l *ledger) note(i, before, after int) {
	l.off += after - before
	p := &l.parts[i]
	switch {
	case before == 0 && after > 0:
		l.wrong = append(l.wrong, int32(i))
		p.place = int32(len(l.wrong))
	case before > 0 && after == 0:
		last := l.wrong[len(l.wrong)-1]
		l.wrong[p.place-1], l.parts[last].place = last, p.place
		l.wrong = l.wrong[:len(l.wrong)-1]
		p.place = 0
	}
}

// leave takes a slot from its class.
func (l *ledger) leave(slot int) {
	c := l.deal[slot]
	l.count(slot, -1)
	if l.add(l.class(c), -1); l.idle(c) {
		l.add(l.active, -1)
	}
	if len(l.classes[c].ranks) > 1 {
		i, _ := slices.BinarySearch(l.turns[c], slot)
		l.turns[c] = slices.Delete(l.turns[c], i, i+1)
		l.turn(c, i)
	}
}

// join gives a slot to a class.
func (l *ledger) join(slot int, c int32) {
	l.deal[slot], l.lands[slot] = c, l.classes[c].ranks[0]
	if l.idle(c) {
		l.add(l.active, 1)
	}
	l.add(l.class(c), 1)
	l.count(slot, 1)
	if len(l.classes[c].ranks) > 1 {
		i, _ := slices.BinarySearch(l.turns[c], slot)
		l.turns[c] = slices.Insert(l.turns[c], i, slot)
		l.turn(c, i)
	}
}

// turn lets the slots of a class from the i-th on land where it is their turn.
func (l *ledger) turn(c int32, i int) {
	ranks := l.classes[c].ranks
	for ; i < len(l.turns[c]); i++ {
		if slot, rank := l.turns[c][i], ranks[i%len(ranks)]; rank != l.lands[slot] {
			l.count(slot, -1)
			l.lands[slot] = rank
			l.count(slot, 1)
		}
	}
}

// count counts a slot where it lands, or no longer.
func (l *ledger) count(slot int, by int32) {
	for _, part := range l.at(slot) {
		l.add(part, by)
	}
}
