package plan

import "slices"

// levelled is the diagonal plan for problems that no circles fit: replicas,
// groups that ranks cut across, unequal tokens in groups. It puts the ranks
// first and the experts second:
//
//   - a course (see course) gives the rank of every slot, so that rows, ranks
//     and steps are level whatever the experts;
//   - the dealer picks, slot by slot, from what that rank holds in the groups
//     the token may use;
//   - what is still off is repaired by moving single slots (see repairer).
//
// Experts of one group that only one rank holds are alike. Such a class is dealt
// in turn; an expert with several copies is a class of its own, whose slots go to
// its copies in turn. The plan keeps a class for every slot, four bytes for each
// slot of all senders, and Fill only turns classes into experts.
type levelled struct {
	problem Problem
	classes []class
	limit   int       // groups a token may use
	deal    []int32   // by slot, sender after sender: its class
	first   []int     // by sender: its first slot
	next    [][]int32 // by sender and class: where the turn of its experts begins
}

// class is a set of experts that may stand in for each other.
type class struct {
	group   int
	experts []int32
	ranks   []int32 // where the copies are, in rank order; several only of one expert
}

// classesOf sorts the experts into classes, by the lowest expert of each.
func classesOf(p Problem) (classes []class) {
	of := map[[2]int]int{} // by group and rank
	for e := range p.Shape.Experts {
		group, places := e/p.Shape.GroupSize(), p.Layout.Places(e)
		key := [2]int{group, places[0].Rank}
		if c, known := of[key]; known && len(places) == 1 {
			classes[c].experts = append(classes[c].experts, int32(e))
			continue
		}
		if len(places) == 1 {
			of[key] = len(classes)
		}
		ranks := make([]int32, len(places))
		for i, place := range places {
			ranks[i] = int32(place.Rank)
		}
		classes = append(classes, class{group: group, experts: []int32{int32(e)}, ranks: ranks})
	}
	return classes
}

func newLevelled(p Problem) *levelled {
	l := &levelled{problem: p, classes: classesOf(p), limit: p.Shape.GroupLimit()}
	slots := 0
	for _, tokens := range p.senders() {
		l.first = append(l.first, slots)
		slots += tokens * p.Shape.TopK
	}
	l.deal = make([]int32, slots)
	d := newDealer(l)
	d.dealAll()
	d.repair()
	l.turn()
	return l
}

// turn lays the turns of all senders end to end in every class. A layer goes on
// where the one before stopped, as if that had dealt as much to each class.
func (l *levelled) turn() {
	dealt := make([]int, len(l.classes))
	for _, c := range l.deal {
		dealt[c]++
	}
	at := make([]int32, len(l.classes))
	for c, n := range dealt {
		size := len(l.classes[c].experts)
		at[c] = int32(l.problem.Layer % size * (n % size) % size)
	}
	for s := range l.first {
		l.next = append(l.next, slices.Clone(at))
		for _, c := range l.slots(s) {
			l.classes[c].step(&at[c])
		}
	}
}

// step moves a turn on to the next expert.
func (c *class) step(at *int32) {
	if *at++; int(*at) == len(c.experts) {
		*at = 0
	}
}

// slots are the classes of a sender's slots.
func (l *levelled) slots(sender int) []int32 {
	return l.deal[l.first[sender]:][:l.problem.senders()[sender]*l.problem.Shape.TopK]
}

// Name is "diagonal-levelled/3".
func (l *levelled) Name() string { return "diagonal-levelled/3" }

// Fill allocates a number for each class.
func (l *levelled) Fill(dst []int32, rank int) {
	checkFill(l.problem, dst, rank)
	sender := l.problem.sender(rank)
	at := slices.Clone(l.next[sender])
	for i, c := range l.slots(sender) {
		dst[i] = l.classes[c].experts[at[c]]
		l.classes[c].step(&at[c])
	}
}
