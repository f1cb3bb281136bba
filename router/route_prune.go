package router

import (
	"math"
	"slices"
)

// pruner finds the few experts that can be among the best without computing the
// score of all: one table look-up per logit gives a key that is within margin of
// the score, and only what the margin leaves open is scored exactly. Its choice
// is bit for bit that of the exact way.
type pruner struct {
	table  *[1 << 16]int64
	margin int32         // |key − score| is at most this
	exact  *sigmoidTable // nil if the scores are no sigmoids
	bias   []float32     // by expert, zeros without a bias
	fours  []four        // all experts
	chunks []chunk       // the same
	open   []int32       // the chunks experts may be chosen from

	tops      []int64              // by open chunk the first and second key; by group the key of the sum
	short     [mostFours]int64     // the tops of fours that hold candidates
	candidate [4 * mostFours]int64 // keys of the experts that can be among the best; then their exact scores as ordered
	plain     []float32            // by expert, of the candidates: the exact score without the bias
	best      []int64              // the best groups, then the best experts; see largest
}

const mostFours = 64 // with as many the exact way is as fast

// newPruner returns nil where there is nothing to win: a softmax, which needs
// every logit, small gates, groups that are no multiples of four, and biases too
// large for a key.
func newPruner(g Gate) *pruner {
	s := g.Shape
	if s.TopK > mostFours/2 || s.Experts < 4*s.TopK || s.Experts%4 != 0 || s.GroupSize()%4 != 0 {
		return nil
	}
	p := &pruner{
		bias:  make([]float32, s.Experts),
		fours: make([]four, s.Experts/4),
		plain: make([]float32, s.Experts),
		best:  make([]int64, max(s.TopK, s.TopKGroups)+2),
	}
	var t *scoreTable
	switch g.Method.scoring() {
	case byLogit:
		t = logitKeys()
	case bySigmoid:
		t, p.exact = sigmoidKeys(), sigmoids()
	case bySqrtSoftplus:
		t = sqrtSoftplusKeys()
	default:
		return nil
	}
	copy(p.bias, g.Bias)
	most := 0.0
	for e, b := range p.bias {
		most = max(most, math.Abs(float64(b)))
		if most > mostBias {
			return nil
		}
		p.fours[e/4].bias[e%4] = pack(int32(math.Round(float64(b)*keyUnit)), int32(e))
	}
	p.table = &t.key
	// Two for the roundings of table and bias to units; four times the last
	// place of a float32 sum for the roundings of the exact score and of a group's.
	p.margin = int32(math.Ceil((t.error+(2+most)*0x1p-22)*keyUnit)) + 2
	size := s.GroupSize() / 4
	if !s.Grouped() {
		size = (len(p.fours) + s.TopK - 1) / s.TopK
	}
	for fours := range slices.Chunk(p.fours, size) {
		p.open = append(p.open, int32(len(p.chunks)))
		p.chunks = append(p.chunks, chunk{fours: fours})
	}
	p.tops = make([]int64, 0, 2*len(p.chunks))
	return p
}

// choose leaves the best experts and their exact plain scores in r. ok is false if
// the exact way has to decide.
func (p *pruner) choose(r *Router, logits []float32) (tie, ok bool) {
	if !p.scan(logits) || r.shape.Grouped() && !p.openGroups(r, logits) {
		return false, false
	}
	candidates := p.collect(r.shape.TopK)
	if candidates == nil {
		return false, false
	}
	return p.finish(r, logits, candidates), true
}

// openGroups opens the best groups. ok is false when groups tie.
func (p *pruner) openGroups(r *Router, logits []float32) (ok bool) {
	sums := p.tops[:len(p.chunks)]
	for g := range p.chunks {
		sums[g] = pack(p.chunks[g].sum(), int32(g))
	}
	k := r.shape.TopKGroups
	best := p.best[:k+2]
	largest(best, sums)
	p.open = p.open[:0]
	edge, band := best[k-1]>>32, 4*int64(p.margin) // twice the error of a sum of two keys
	if k < len(sums) && edge-best[k]>>32 <= band {
		return p.decideGroups(r, logits, edge, band)
	}
	for _, v := range best[:k] {
		p.open = append(p.open, index(v))
	}
	return true
}

// decideGroups scores exactly the groups within a band about the edge, and opens
// the best of them after those above.
func (p *pruner) decideGroups(r *Router, logits []float32, edge, band int64) (ok bool) {
	r.groups.reset()
	for g := range p.chunks {
		c := &p.chunks[g]
		off := int64(c.sum()) - edge
		if off < -band {
			continue
		}
		score := float32(math.Inf(1))
		if off <= band {
			score = p.exactGroup(r, logits, c)
		}
		r.groups.offer(int32(g), score)
	}
	p.open = append(p.open, r.groups.index...)
	return !r.groups.tied
}

// exactGroup is the exact score of a group.
func (p *pruner) exactGroup(r *Router, logits []float32, c *chunk) float32 {
	first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
	limit := c.second - int64(2*p.margin+1)<<32
	for i := range c.fours {
		for _, k := range c.fours[i].key {
			if k < limit {
				continue
			}
			if s := r.exact(logits, int(index(k))); s > first {
				first, second = s, first
			} else if s > second {
				second = s
			}
		}
	}
	return first + second
}

// collect gathers the keys of the experts of the open chunks that can be among the
// k best: nil if they are too many, or too few to tell.
func (p *pruner) collect(k int) []int64 {
	tops := p.tops[:0]
	for _, c := range p.open {
		tops = append(tops, p.chunks[c].first, p.chunks[c].second)
	}
	if len(tops) < k {
		return nil
	}
	limit := p.kth(tops, k) - int64(2*p.margin+1)<<32
	fours := p.gatherFours(limit)
	if fours >= mostFours {
		return nil
	}
	return p.gather(p.short[:fours], limit)
}

// kth is the k-th largest of some numbers.
func (p *pruner) kth(numbers []int64, k int) int64 {
	if k == len(numbers) {
		return slices.Min(numbers)
	}
	largest(p.best[:k+1], numbers)
	return p.best[k-1]
}

// gatherFours notes the tops of the open chunks that are above a limit and says how
// many there are, again without a branch that depends on them: it writes every one,
// and moves on past those it keeps. With mostFours or more what it wrote is of no
// use.
//
//go:noinline
func (p *pruner) gatherFours(limit int64) (n uint) {
	for _, c := range p.open {
		fours := p.chunks[c].fours
		for i := range fours {
			top := fours[i].top
			p.short[n%mostFours] = top
			n += smaller(limit, top)
		}
	}
	return n
}

// gather notes the keys above a limit of those that stand with one of the tops.
//
//go:noinline
func (p *pruner) gather(tops []int64, limit int64) []int64 {
	n := uint8(0)
	for _, top := range tops {
		k := &p.fours[uint32(index(top))/4].key
		n = p.note(n, k[0], limit)
		n = p.note(n, k[1], limit)
		n = p.note(n, k[2], limit)
		n = p.note(n, k[3], limit)
	}
	return p.candidate[:n]
}

// note writes a key as candidate n, which needs no check of its eight bits, and
// counts it if it is above a limit.
func (p *pruner) note(n uint8, key, limit int64) uint8 {
	p.candidate[n] = key
	return n + uint8(smaller(limit, key))
}

// finish scores the candidates and leaves the k best of them in r. It leaves out the
// values of r.best, which none of the methods here weighs by.
func (p *pruner) finish(r *Router, logits []float32, candidates []int64) (tie bool) {
	if p.exact == nil || !p.exact.rate(p.plain, logits, candidates) {
		for _, v := range candidates {
			e := index(v)
			p.plain[e] = r.plainScore(logits[e])
		}
	}
	for i, v := range candidates {
		e := index(v)
		candidates[i] = pack(ordered(p.plain[e]+p.bias[e]), e) // two zeros add up to -0 only if both are
	}
	k := r.shape.TopK
	best := p.best[:k+2]
	largest(best, candidates)
	for i, v := range best[:k] {
		e := index(v)
		r.best.index[i], r.plain[i] = e, p.plain[e]
	}
	return len(candidates) > k && best[k]>>32 == best[k-1]>>32
}
