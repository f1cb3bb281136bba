package router

import "slices"

// levelled is the diagonal plan for layouts that its circles do not fit:
// replicas, groups that ranks cut across, a top-k that does not divide over the
// groups. It deals slot by slot. Of the experts the token may still take, each
// rank offers the one with the fewest slots per copy, and the slot goes to the
// lowest
//
//	slots of the rank + (slots of the expert per copy)·(experts of the rank) / 16
//
// among equals to the rank this sender has sent the fewest; then the first from
// a place that moves on with every slot. The second term keeps a rank that the
// token's groups force upon it from always giving the same experts; it is light
// enough to leave the ranks first.
//
// Nothing is proved about the outcome; the certificate measures it against the
// floors. Over the shapes of the tests ranks stay within three slots of their
// floor and experts within one, however many tokens there are.
//
// The next slot of an expert with several copies lands on the next copy in
// turn, as Layout.RankLoad counts it. Senders are dealt one after the other.
// What they leave is kept, so that Fill repeats only one of them; a slot costs
// time of the order of the experts.
type levelled struct {
	problem Problem
	size    int      // experts per group
	limit   int      // groups a token may use
	before  []ledger // by sender: what was dealt before it
}

// ledger is the load dealt out so far.
type ledger struct {
	expert, rank []int32
}

func newLevelled(p Problem) *levelled {
	l := &levelled{problem: p, size: p.Shape.GroupSize(), limit: p.Shape.GroupLimit()}
	book := ledger{make([]int32, p.Shape.Experts), make([]int32, p.Layout.Ranks())}
	dst := make([]int32, p.Shape.TopK)
	for s, tokens := range p.senders() {
		l.before = append(l.before, book.clone())
		d := l.dealer(book, s)
		for range tokens {
			d.token(dst)
		}
	}
	return l
}

func (l ledger) clone() ledger {
	return ledger{slices.Clone(l.expert), slices.Clone(l.rank)}
}

// Name is "diagonal-levelled/1".
func (l *levelled) Name() string { return "diagonal-levelled/1" }

// Fill allocates a ledger.
func (l *levelled) Fill(dst []int32, rank int) {
	checkFill(l.problem, dst, rank)
	sender := l.problem.sender(rank)
	d := l.dealer(l.before[sender].clone(), sender)
	for topK := l.problem.Shape.TopK; len(dst) > 0; dst = dst[topK:] {
		d.token(dst[:topK])
	}
}

// dealer deals the tokens of one sender.
type dealer struct {
	*levelled
	ledger
	lands  []int32   // by expert: the rank its next slot lands on
	load   []float64 // by expert: slots per copy
	weight []float64 // by rank: what a slot per copy weighs beside a slot of the rank
	low    []float64 // by rank: no expert it holds has fewer slots per copy
	sent   []int32   // slots of this sender, by rank
	turn   int       // where the search among equals begins
	chosen []bool    // by expert: taken by this token
	open   []bool    // by group: used by this token
	opened int
}

// rankFirst is how much more a slot of the rank weighs than the expert's.
const rankFirst = 16

func (l *levelled) dealer(book ledger, sender int) *dealer {
	p := l.problem
	d := &dealer{
		levelled: l, ledger: book,
		lands:  make([]int32, p.Shape.Experts),
		load:   make([]float64, p.Shape.Experts),
		weight: make([]float64, p.Layout.Ranks()),
		low:    make([]float64, p.Layout.Ranks()),
		sent:   make([]int32, p.Layout.Ranks()),
		turn:   sender + p.Layer*p.total()*p.Shape.TopK,
		chosen: make([]bool, p.Shape.Experts),
		open:   make([]bool, p.Shape.Experts/l.size),
	}
	for e := range d.load {
		d.note(int32(e))
	}
	for r := range d.weight {
		d.weight[r] = float64(len(p.Layout.Held(r))) / rankFirst
	}
	return d
}

// note keeps what follows from an expert's slots.
func (d *dealer) note(e int32) {
	places := d.problem.Layout.Places(int(e))
	d.lands[e] = int32(places[int(d.expert[e])%len(places)].Rank)
	d.load[e] = float64(d.expert[e]) / float64(len(places))
}

func (d *dealer) token(dst []int32) {
	d.opened = 0
	clear(d.open)
	for i := range dst {
		e, rank := d.best()
		d.expert[e]++
		d.rank[rank]++
		d.sent[rank]++
		d.note(e)
		d.chosen[e] = true
		if g := int(e) / d.size; !d.open[g] {
			d.open[g] = true
			d.opened++
		}
		dst[i] = e
		d.turn++
	}
	for _, e := range dst {
		d.chosen[e] = false
	}
}

// best is the expert for the next slot and the rank that slot lands on. Ranks
// whose cheapest expert could not win are passed over.
func (d *dealer) best() (expert int32, rank int) {
	expert = -1
	ranks := len(d.rank)
	least := 0.0
	r := d.turn % ranks
	for range ranks {
		bound := float64(d.rank[r]) + d.low[r]*d.weight[r]
		if expert < 0 || bound < least || (bound == least && d.sent[r] < d.sent[rank]) {
			if e := d.bestOn(r); e >= 0 {
				cost := float64(d.rank[r]) + d.load[e]*d.weight[r]
				if expert < 0 || cost < least || (cost == least && d.sent[r] < d.sent[rank]) {
					expert, rank, least = e, r, cost
				}
			}
		}
		if r++; r == ranks {
			r = 0
		}
	}
	return expert, rank
}

// bestOn is the expert with the fewest slots per copy among those whose next
// slot lands on the rank and that the token may take, −1 if there is none.
func (d *dealer) bestOn(rank int) (best int32) {
	best = -1
	full := d.opened == d.limit
	held := d.problem.Layout.Held(rank)
	if len(held) == 0 {
		return best
	}
	low := d.load[held[0]]
	i := d.turn % len(held)
	for range held {
		e := held[i]
		if i++; i == len(held) {
			i = 0
		}
		load := d.load[e]
		low = min(low, load)
		if d.chosen[e] || int(d.lands[e]) != rank || (best >= 0 && load >= d.load[best]) || (full && !d.open[int(e)/d.size]) {
			continue
		}
		best = e
	}
	d.low[rank] = low
	return best
}
