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
	finder
	margin int32         // |key − score| is at most this
	exact  *sigmoidTable // nil if the scores are no sigmoids
	bias   []float32     // by expert, zeros without a bias
	tops   []top         // by chunk
	open   []int32       // the chunks experts may be chosen from

	numbers   []int64   // the sums of all groups, then the tops of the open ones, then the exact scores of candidates
	candidate []int32   // the experts that can be among the best
	plain     []float32 // by expert, of the candidates: the exact score without the bias
	best      []int64   // the best groups, then the best experts, and a place of no use
}

const mostCandidates = 128 // with as many the exact way is as fast

// newPruner returns nil where there is nothing to win: a softmax, which needs
// every logit, small gates, groups that no finder takes, and biases too large for
// a key.
func newPruner(g Gate, newFinder makeFinder) *pruner {
	s := g.Shape
	t := g.Method.scoring().keys()
	if t == nil || s.TopK > mostCandidates/4 || s.Experts < 4*s.TopK {
		return nil
	}
	p := &pruner{
		bias:      make([]float32, s.Experts),
		candidate: make([]int32, s.Experts+findRoom),
		plain:     make([]float32, s.Experts),
		best:      make([]int64, max(s.TopK, s.TopKGroups)+2),
	}
	copy(p.bias, g.Bias)
	keys, most := biasKeys(p.bias)
	if most > mostBias {
		return nil
	}
	size := s.GroupSize()
	if !s.Grouped() { // at most as many chunks as experts are chosen
		size = (s.Experts + 8*s.TopK - 1) / (8 * s.TopK) * 8
	}
	if p.finder = newFinder(&t.key, keys, size); p.finder == nil {
		return nil
	}
	if g.Method.scoring() == bySigmoid {
		p.exact = sigmoids()
	}
	// Two for the roundings of table and bias to units; four times the last
	// place of a float32 sum for the roundings of the exact score and of a group's.
	p.margin = int32(math.Ceil((t.error+(2+most)*0x1p-22)*keyUnit)) + 2
	for from := 0; from < s.Experts; from += size {
		p.open = append(p.open, int32(len(p.open)))
	}
	p.tops = make([]top, len(p.open))
	p.numbers = make([]int64, max(mostCandidates, 2*len(p.tops))+findRoom)
	return p
}

// biasKeys are the keys of biases. most is the largest in size.
func biasKeys(bias []float32) (keys []int32, most float64) {
	keys = make([]int32, len(bias))
	for e, b := range bias {
		most = max(most, math.Abs(float64(b)))
		keys[e] = int32(math.Round(float64(b) * keyUnit))
	}
	return keys, most
}

// choose leaves the best experts and their exact plain scores in r. ok is false if
// the exact way has to decide.
func (p *pruner) choose(r *Router, logits []float32) (tie, ok bool) {
	p.scan(logits, p.tops)
	for _, t := range p.tops {
		if t.first >= special/2 {
			return false, false
		}
	}
	if r.shape.Grouped() && !p.openGroups(r, logits) {
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
	sums := p.numbers[:len(p.tops)]
	for g, t := range p.tops {
		sums[g] = pack(t.sum(), int32(g))
	}
	k := r.shape.TopKGroups
	best := p.best[:k+2]
	p.largest(best, sums)
	edge, band := best[k-1]>>32, 4*int64(p.margin) // twice the error of a sum of two keys
	if k < len(sums) && edge-best[k]>>32 <= band {
		return p.decideGroups(r, logits, edge, band)
	}
	p.open = p.open[:k]
	for i, v := range best[:k] {
		p.open[i] = index(v)
	}
	return true
}

// decideGroups scores exactly the groups within a band about the edge, and opens
// the best of them after those above.
func (p *pruner) decideGroups(r *Router, logits []float32, edge, band int64) (ok bool) {
	r.groups.reset()
	p.open = p.open[:0]
	for g, t := range p.tops {
		off := int64(t.sum()) - edge
		if off < -band {
			continue
		}
		score := float32(math.Inf(1))
		if off <= band {
			score = p.exactGroup(r, logits, int32(g))
		}
		r.groups.offer(int32(g), score)
	}
	p.open = append(p.open, r.groups.index...)
	return !r.groups.tied
}

// exactGroup is the exact score of a group.
func (p *pruner) exactGroup(r *Router, logits []float32, group int32) float32 {
	first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
	n := p.above(p.candidate, append(p.open, group), p.limit(p.tops[group].second)) // no group is open yet
	for _, e := range p.candidate[:n] {
		if s := r.exact(logits, int(e)); s > first {
			first, second = s, first
		} else if s > second {
			second = s
		}
	}
	return first + second
}

// limit is what the key of an expert is above if its score can be as good as one
// with the given key.
func (p *pruner) limit(key int32) int32 { return key - 2*p.margin - 1 }

// collect gathers the experts of the open chunks that can be among the k best: nil
// if they are too many, or too few to tell.
func (p *pruner) collect(k int) []int32 {
	tops := p.numbers[:2*len(p.open)]
	for i, c := range p.open {
		t := p.tops[c]
		tops[2*i], tops[2*i+1] = pack(t.first, 2*c), pack(t.second, 2*c+1)
	}
	if len(tops) < k {
		return nil
	}
	n := p.above(p.candidate, p.open, p.limit(int32(p.kth(tops, k)>>32)))
	if n > mostCandidates {
		return nil
	}
	return p.candidate[:n]
}

// kth is the k-th largest of some numbers.
func (p *pruner) kth(numbers []int64, k int) int64 {
	if k == len(numbers) {
		return slices.Min(numbers)
	}
	p.largest(p.best[:k+1], numbers)
	return p.best[k-1]
}

// finish scores the candidates and leaves the k best of them in r. It leaves out the
// values of r.best, which none of the methods here weighs by.
func (p *pruner) finish(r *Router, logits []float32, candidates []int32) (tie bool) {
	scores := p.numbers[:len(candidates)]
	if p.exact == nil || !p.rate(p.exact, logits, p.bias, p.plain, candidates, scores) {
		for _, e := range candidates {
			p.plain[e] = r.plainScore(logits[e])
		}
		packScores(scores, p.plain, p.bias, candidates)
	}
	k := r.shape.TopK
	best := p.best[:k+2]
	p.largest(best, scores)
	for i, v := range best[:k] {
		e := index(v)
		r.best.index[i], r.plain[i] = e, p.plain[e]
	}
	return len(candidates) > k && best[k]>>32 == best[k-1]>>32
}
