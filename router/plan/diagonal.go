package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// diagonal is our own plan. It deals slots to blocks, and inside a block takes
// the experts in turn. A block is what one rank holds of one group: the whole
// rank when there are no groups, the rank when groups span several ranks, the
// group when a rank holds several.
//
// Blocks are arranged as `outer` places of `inner` blocks each:
//
//	no groups       one place, its blocks are the ranks (so too where any
//	                TopK ranks in a row hold no more groups than a token may use)
//	R = G·inner     places are groups, blocks the ranks of a group
//	G = R·inner     places are ranks, blocks the groups of a rank
//
// A token visits `window` places one after the other and takes `laps` slots at
// each, and the next token goes on where it stopped. At each place the slots of
// one sender go round its blocks (its visits do, when blocks are groups: one
// visit must stay in one group), and at each block they go round its experts.
// All three circles go on from sender to sender (see tile), and from layer to
// layer (see remainderAt). It follows, with N tokens of all ranks together:
//
//   - a token's places are distinct or go on to further blocks, so it uses at
//     most `window` ≤ TopKGroups groups and no expert twice;
//   - blocks of a place differ by at most one slot (visit), so ranks do, and
//     equally loaded ranks have experts that differ by at most one;
//   - active experts are min(E, N·k);
//   - senders with equally many tokens start at different ranks and move in
//     lockstep, so no rank receives from two of them in one step;
//   - the row of one sender is as flat as its walk: within one slot without groups.
//
// One thing does not follow: where blocks are groups and `laps` does not divide
// the experts of a group, groups one visit apart can lie on both sides of a full
// round, and their experts then differ by two.
//
// Problems this does not fit are left to levelled.
type diagonal struct {
	problem Problem
	circles
	tails   []tail
	endings []ending // by sender
	start   []int    // by sender: its first place
	period  int      // slots after which a walk repeats itself
	// By row, one for each sender and then one for each tail:
	enter [][]int32 // the first block of each place
	first [][]int32 // the first expert of each block, an index into cells
}

// circles is the shape of a diagonal plan.
type circles struct {
	outer, inner int
	window, laps int
	visits       bool    // blocks go on per visit, not per slot
	ring         bool    // a circle of ranks in spite of groups
	fixed        []int32 // experts that every token takes: those of ranks too small for an even share
	cells        []int32 // the experts of all blocks in order
	edge         []int32 // block b owns cells[edge[b]:edge[b+1]]
}

func newDiagonal(p Problem, _ Options) (Plan, error) {
	if c, ok := circlesOf(p); ok {
		return c.plan(p), nil
	}
	return newLevelled(p), nil
}

// Name is "diagonal/1", or "diagonal-ring/1" for a circle of ranks in spite of groups.
func (d *diagonal) Name() string {
	if d.ring {
		return "diagonal-ring/1"
	}
	return "diagonal/1"
}

// circlesOf fits the circles to a problem; ok is false where they do not fit:
// replicas, and groups that neither the circles of groups nor that of ranks
// keep to.
func circlesOf(p Problem) (c circles, ok bool) {
	if p.Layout.Replicated() {
		return c, false
	}
	if !p.Shape.Grouped() {
		return flatCircles(p), true
	}
	if c, ok = groupCircles(p); ok {
		if tails, _ := c.tailsOf(p); len(tails) == 0 {
			return c, true
		}
	}
	if ring, fits := ringOf(p); fits { // rows are level without tails there
		return ring, true
	}
	return c, ok
}

// ringOf is the circle of ranks for a shape with groups; ok is false where some
// TopK ranks in a row hold more groups than a token may use.
func ringOf(p Problem) (c circles, ok bool) {
	c = flatCircles(p)
	c.ring = true
	size := p.Shape.GroupSize()
	met := make([]int, p.Shape.Groups) // by group: blocks in the present row
	groups := 0
	meet := func(experts []int32, by int) {
		for _, e := range experts {
			if g := int(e) / size; by > 0 && met[g] == 0 {
				groups++
			}
			met[int(e)/size] += by
			if met[int(e)/size] == 0 {
				groups--
			}
		}
	}
	block := func(b int) []int32 {
		b %= c.inner
		return c.cells[c.edge[b]:c.edge[b+1]]
	}
	meet(c.fixed, 1)
	row := min(c.laps, c.inner)
	for b := range row {
		meet(block(b), 1)
	}
	for b := range c.inner {
		if groups > p.Shape.TopKGroups {
			return c, false
		}
		meet(block(b), -1)
		meet(block(b+row), 1)
	}
	return c, groups <= p.Shape.TopKGroups
}

// groupCircles are the circles for a shape with groups that each lie on whole
// ranks, or ranks that hold whole groups. They do not fit unequal tokens, a top-k
// that does not divide over the groups, or remainders that would fall on one rank
// in lumps.
func groupCircles(p Problem) (c circles, ok bool) {
	per, divides := p.Layout.PerRank()
	ranks, groups, size := p.Layout.Ranks(), p.Shape.Groups, p.Shape.GroupSize()
	if !divides || (ranks%groups != 0 && groups%ranks != 0) || !p.even() {
		return c, false
	}
	most := visitsPerToken(p.Shape)
	c.window, c.laps = evenWindow(p.Shape)
	if c.laps > (p.Shape.TopK+most-1)/most {
		return c, false
	}
	c.visits = ranks < groups
	c.outer, c.inner = min(ranks, groups), max(ranks, groups)/min(ranks, groups)
	block := min(per, size)
	for e := range p.Shape.Experts {
		c.cells = append(c.cells, int32(e))
	}
	for b := 0; b <= c.outer*c.inner; b++ {
		c.edge = append(c.edge, int32(b*block))
	}
	return c, !c.visits || c.laps == 1 || !c.lumps(p)
}

// lumps reports whether whole visits leave ranks or rows less level than slots could.
func (c circles) lumps(p Problem) bool {
	if c.window*p.total()%c.outer != 0 {
		return true
	}
	visits := c.window * p.Tokens[0]
	slots := visits * c.laps
	return (visits+c.outer-1)/c.outer*c.laps > (slots+c.outer-1)/c.outer
}

// evenWindow divides the slots of a token evenly over as many groups as it can:
// `laps` slots in each of `window` groups. Without groups the window is 1.
func evenWindow(s router.Shape) (window, laps int) {
	window = visitsPerToken(s)
	for s.TopK%window != 0 {
		window--
	}
	return window, s.TopK / window
}

// flatCircles is one place whose blocks are the ranks, the largest first, less
// the ranks that hold fewer experts than an even share of a token: every token
// takes all of theirs.
func flatCircles(p Problem) circles {
	order := make([]int, p.Layout.Ranks())
	for r := range order {
		order[r] = r
	}
	held := func(r int) []int32 { return p.Layout.Held(r) }
	slices.SortStableFunc(order, func(a, b int) int { return len(held(b)) - len(held(a)) })
	c := circles{outer: 1, window: 1, laps: p.Shape.TopK}
	for len(order) > 0 {
		smallest := held(order[len(order)-1])
		if len(smallest)*len(order) >= c.laps {
			break
		}
		c.fixed = append(c.fixed, smallest...)
		c.laps -= len(smallest)
		order = order[:len(order)-1]
	}
	c.inner = len(order)
	c.edge = append(c.edge, 0)
	for _, r := range order {
		c.cells = append(c.cells, held(r)...)
		c.edge = append(c.edge, int32(len(c.cells)))
	}
	return c
}

// plan lays the walks of all senders end to end on every circle.
func (c circles) plan(p Problem) *diagonal {
	d := &diagonal{problem: p, circles: c, start: make([]int, len(p.senders()))}
	if c.laps == 0 {
		return d
	}
	d.period = c.periodOf(p.Shape.TopK)
	d.tails, d.endings = c.tailsOf(p)
	own := make([]int, len(p.senders())) // places each sender visits
	class := make([]int, len(own))
	for s, tokens := range p.senders() {
		own[s] = c.window * (tokens - d.endings[s].tokens)
		if own[s] == 0 {
			class[s] = -1
		}
	}
	before := p.Layer * c.window * p.total() // visits of the layers before
	d.start = tile(own, class, c.outer, before%c.outer)

	rows := len(own) + len(d.tails)
	d.enter, d.first = matrix(rows, c.outer), matrix(rows, len(c.edge)-1)
	for place := range c.outer {
		d.layPlace(place, own)
	}
	return d
}

// layPlace lays the walks round the blocks of one place and the experts of
// those blocks: first of all senders, then of all tails.
func (d *diagonal) layPlace(place int, own []int) {
	perVisit, perStep := d.laps, 1 // steps round the blocks per visit, slots per step
	if d.visits {
		perVisit, perStep = 1, d.laps
	}
	steps, class := make([]int, len(d.enter)), make([]int, len(d.enter))
	for s, n := range own {
		steps[s] = perVisit * coverFrom(d.start[s], n, d.outer, place)
		class[s] = d.start[s]
		if n == 0 || d.visits {
			class[s] = -1
		}
	}
	for i := range d.tails {
		steps[len(own)+i] = d.tails[i].entries(place)
		class[len(own)+i] = d.outer + d.tails[i].from
	}
	before := d.before(place, perVisit)
	enter := tile(steps, class, d.inner, d.remainderAt(place, steps, perStep, before))
	for row, y := range enter {
		d.enter[row][place] = int32(y)
	}
	for y := range d.inner {
		b := place*d.inner + y
		size := int(d.edge[b+1] - d.edge[b])
		slots := perStep * cover(before, d.inner, y)
		for row := range d.first {
			d.first[row][b] = d.edge[b] + int32(slots%size)
			slots += perStep * coverFrom(enter[row], steps[row], d.inner, y)
		}
	}
}

// remainderAt is the block of a place at which the remainder of all steps begins.
// Blocks of one size make it no matter, and it goes on from layer to layer; it
// moves among the best ones where sizes differ.
func (d *diagonal) remainderAt(place int, steps []int, perStep, before int) int {
	edge := d.edge[place*d.inner : (place+1)*d.inner+1]
	sizes := make([]int, d.inner)
	for y := range sizes {
		sizes[y] = int(edge[y+1] - edge[y])
	}
	if sizes[0] == sizes[d.inner-1] { // the largest is first
		return before % d.inner
	}
	total := 0
	for _, n := range steps {
		total += n
	}
	best := bestRemainders(sizes, total, perStep)
	return best[before%len(best)]
}

// bestRemainders are the places at which the remainder of all steps round a
// circle of blocks may begin so that the experts of no block need more slots than
// they must and, of those places, the fewest experts go without.
func bestRemainders(sizes []int, steps, perStep int) (best []int) {
	least, fewest := 0, 0
	for from := range sizes {
		most, idle := 0, 0
		for y, size := range sizes {
			slots := perStep * coverFrom(from, steps, len(sizes), y)
			most = max(most, (slots+size-1)/size)
			idle += max(0, size-slots)
		}
		if better := cmp.Or(cmp.Compare(most, least), cmp.Compare(idle, fewest)); best == nil || better < 0 {
			best, least, fewest = []int{from}, most, idle
		} else if better == 0 {
			best = append(best, from)
		}
	}
	return best
}

// periodOf is the number of slots after which every circle is back where it was:
// whole tokens until the places are, whole rounds of those until the blocks are,
// and whole rounds of those until the experts of every block are.
func (c circles) periodOf(topK int) int {
	shared := gcd(c.window, c.outer)
	tokens, visits := c.outer/shared, c.window/shared // visits of each place
	steps, perStep := visits*c.laps, 1
	if c.visits {
		steps, perStep = visits, c.laps
	}
	shared = gcd(steps, c.inner)
	tokens *= c.inner / shared
	slots := steps / shared * perStep // of each block
	rounds := 1
	for b := range len(c.edge) - 1 {
		size := int(c.edge[b+1] - c.edge[b])
		rounds = lcm(rounds, size/gcd(slots, size))
		if tokens*rounds > 1<<30 {
			break // longer than any batch
		}
	}
	return tokens * rounds * topK
}

// before is how many steps the layers before this one have made round the blocks
// of a place. With tails a layer is no whole number of visits, but its slots are
// even over the places.
func (d *diagonal) before(place, perVisit int) int {
	past := d.problem.Layer * d.problem.total()
	if len(d.tails) > 0 {
		return cover(past*d.problem.Shape.TopK, d.outer, place)
	}
	return perVisit * cover(past*d.window, d.outer, place)
}

func matrix(rows, cols int) [][]int32 {
	all := make([]int32, rows*cols)
	m := make([][]int32, rows)
	for i := range m {
		m[i] = all[i*cols : (i+1)*cols]
	}
	return m
}

// Fill writes the slots of a token place by place, lap after lap.
func (d *diagonal) Fill(dst []int32, rank int) {
	checkFill(d.problem, dst, rank)
	if d.laps > 0 {
		d.fillWalk(dst, d.problem.sender(rank))
		return
	}
	for len(dst) > 0 { // every token takes all experts there are
		dst = dst[copy(dst, d.fixed):]
	}
}

// checkFill panics when a caller hands Fill the wrong room or rank.
func checkFill(p Problem, dst []int32, rank int) {
	if want := p.Tokens[rank] * p.Shape.TopK; len(dst) != want {
		panic(fmt.Sprintf("router: filling the plan of rank %d: want room for %d ids, have %d", rank, want, len(dst)))
	}
}
