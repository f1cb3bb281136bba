package router

// levelled is the diagonal plan for layouts that its circles do not fit:
// replicas, groups that ranks cut across, a top-k that does not divide over the
// groups. It deals slot by slot, each to the rank with the fewest slots so far;
// among equals to the one this sender has sent the fewest; then the first from
// a place that moves on with every slot. On that rank it takes the expert with
// the fewest slots per copy that the token may still take. Nothing is proved
// about the outcome; the certificate measures it against the floors.
//
// The next slot of an expert with several copies lands on the next copy in
// turn, as Layout.RankLoad counts it.
//
// Senders are dealt one after the other. What they leave is kept, so that Fill
// repeats only one of them.
type levelled struct {
	problem Problem
	group   int // experts per group
	limit   int // groups a token may use
	before  []*ledger
}

// ledger is the load dealt out so far.
type ledger struct {
	expert []int32
	rank   []int32
}

func newLevelled(p Problem) *levelled {
	l := &levelled{problem: p, group: p.Shape.GroupSize(), limit: 1}
	if p.Shape.Grouped() {
		l.limit = p.Shape.TopKGroups
	}
	book := &ledger{make([]int32, p.Shape.Experts), make([]int32, p.Layout.Ranks())}
	dst := make([]int32, p.Shape.TopK)
	for s, tokens := range p.senders() {
		l.before = append(l.before, book.clone())
		d := l.deal(book, s)
		for range tokens {
			d.token(dst)
		}
	}
	return l
}

func (l *ledger) clone() *ledger {
	return &ledger{append([]int32(nil), l.expert...), append([]int32(nil), l.rank...)}
}

// Name is "diagonal-levelled/1".
func (l *levelled) Name() string { return "diagonal-levelled/1" }

func (l *levelled) Fill(dst []int32, rank int) {
	checkFill(l.problem, dst, rank)
	sender := l.problem.sender(rank)
	d := l.deal(l.before[sender].clone(), sender)
	for topK := l.problem.Shape.TopK; len(dst) > 0; dst = dst[topK:] {
		d.token(dst[:topK])
	}
}

// dealer deals the tokens of one sender.
type dealer struct {
	*levelled
	*ledger
	sent   []int32 // slots of this sender, by rank
	turn   int     // where the search among equals begins
	chosen []bool  // by expert: taken by this token
	open   []bool  // by group: used by this token
	opened int
}

func (l *levelled) deal(book *ledger, sender int) *dealer {
	return &dealer{
		levelled: l, ledger: book,
		sent:   make([]int32, l.problem.Layout.Ranks()),
		turn:   sender + l.problem.Layer*l.problem.total()*l.problem.Shape.TopK,
		chosen: make([]bool, l.problem.Shape.Experts),
		open:   make([]bool, l.problem.Shape.Experts/l.group),
	}
}

func (d *dealer) token(dst []int32) {
	d.opened = 0
	clear(d.open)
	for i := range dst {
		e, rank := d.best()
		d.expert[e]++
		d.rank[rank]++
		d.sent[rank]++
		d.chosen[e] = true
		if g := int(e) / d.group; !d.open[g] {
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

// best is the expert for the next slot and the rank that slot lands on.
func (d *dealer) best() (expert int32, rank int) {
	expert = -1
	ranks := len(d.rank)
	for i := range ranks {
		r := (d.turn + i) % ranks
		if expert >= 0 && (d.rank[r] > d.rank[rank] || (d.rank[r] == d.rank[rank] && d.sent[r] >= d.sent[rank])) {
			continue
		}
		if e := d.bestOn(r); e >= 0 {
			expert, rank = e, r
		}
	}
	return expert, rank
}

// bestOn is the expert with the fewest slots per copy among those whose next
// slot lands on the rank and that the token may take, −1 if there is none.
func (d *dealer) bestOn(rank int) int32 {
	best, fewest := int32(-1), 0.0
	held := d.problem.Layout.Held(rank)
	for i := range held {
		e := held[(d.turn+i)%len(held)]
		if d.chosen[e] || (d.opened == d.limit && !d.open[int(e)/d.group]) {
			continue
		}
		places := d.problem.Layout.Places(int(e))
		if places[int(d.expert[e])%len(places)].Rank != rank {
			continue
		}
		if load := float64(d.expert[e]) / float64(len(places)); best < 0 || load < fewest {
			best, fewest = e, load
		}
	}
	return best
}
