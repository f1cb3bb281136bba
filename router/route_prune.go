package router

import (
	"math"
	"slices"
	"unsafe"
)

// pruner finds the few experts that can be among the best without computing the
// score of all: one table look-up per logit gives a key that is within margin of
// the score, and only what the margin leaves open is scored exactly. Its choice
// is bit for bit that of the exact way.
//
// Experts side by side form chunks: the groups, if there are groups.
type pruner struct {
	table  *[1 << 16]int64
	margin int32   // |key − score| is at most this
	bias   []int64 // by expert: the key of its bias, packed with the expert
	key    []int64 // by expert: the key of its score, packed with the expert
	size   int     // experts per chunk; the last may have fewer
	tops   []top   // by chunk
	open   []int32 // the chunks experts may be chosen from

	numbers   []int64   // the sums of all groups, then the tops of the open ones, then the exact scores of candidates
	candidate []int32   // the experts that can be among the best
	plain     []float32 // by expert, of the candidates: the exact score without the bias
	last      float32   // a logit and its score: balanced rows have few, worth remembering
	score     float32
	best      []int64 // the best groups, then the best experts, and a place of no use
}

// top is the two largest packed keys of a chunk.
type top struct{ first, second int64 }

// sum is the key of the sum of the two scores.
func (t top) sum() int32 { return int32(t.first>>32) + int32(t.second>>32) }

const mostCandidates = 128 // with as many the exact way is as fast

// newPruner returns nil where there is nothing to win: a softmax, which needs
// every logit, small gates, and biases too large for a key.
func newPruner(g Gate) *pruner {
	s := g.Shape
	t := g.Method.scoring().keys()
	if t == nil || s.TopK > mostCandidates/4 || s.Experts < 4*s.TopK || s.Grouped() && s.GroupSize() < 2 {
		return nil
	}
	p := &pruner{
		table: &t.key, size: s.GroupSize(), bias: make([]int64, s.Experts), key: make([]int64, s.Experts),
		candidate: make([]int32, s.Experts+1), plain: make([]float32, s.Experts),
		best: make([]int64, max(s.TopK, s.TopKGroups)+2), last: float32(math.NaN()),
	}
	if !s.Grouped() { // at most as many chunks as experts are chosen
		p.size = (s.Experts + s.TopK - 1) / s.TopK
	}
	most := 0.0
	for e := range p.bias {
		b := 0.0
		if g.Bias != nil {
			b = float64(g.Bias[e])
		}
		most = max(most, math.Abs(b))
		p.bias[e] = pack(int32(math.Round(b*keyUnit)), int32(e))
	}
	if most > mostBias {
		return nil
	}
	// Two for the roundings of table and bias to units; four times the last
	// place of a float32 sum for the roundings of the exact score and of a group's.
	p.margin = int32(math.Ceil((t.error+(2+most)*0x1p-22)*keyUnit)) + 2
	for from := 0; from < s.Experts; from += p.size {
		p.open = append(p.open, int32(len(p.open)))
	}
	p.tops = make([]top, len(p.open))
	p.numbers = make([]int64, max(mostCandidates, 2*len(p.tops)))
	return p
}

// scan makes the keys and the tops of all chunks.
func (p *pruner) scan(logits []float32) {
	row := bitsOf(logits)
	for c := range p.tops {
		from, to := p.chunk(int32(c))
		keys := p.key[from:to]
		t := scanChunk(p.table, row[from:to], p.bias[from:to], keys)
		// Those that lost to the first among four have a second chance.
		if i := int(index(t.first)) - from; i < len(keys)&^3 {
			four := keys[i&^3:][:4]
			t.second = max(t.second, four[(i^1)%4], four[(i^2)%4], four[(i^3)%4])
		}
		p.tops[c] = t
	}
}

// scanChunk fills the keys of a chunk and finds the two largest, of which four side by
// side compete as one. It has no branch that depends on them.
//
//go:noinline
func scanChunk(table *[1 << 16]int64, row []uint32, bias, keys []int64) top {
	first, second := int64(none), int64(none)
	for len(row) >= 4 && len(bias) >= 4 && len(keys) >= 4 {
		a, b := table[row[0]>>16]+bias[0], table[row[1]>>16]+bias[1]
		c, d := table[row[2]>>16]+bias[2], table[row[3]>>16]+bias[3]
		keys[0], keys[1], keys[2], keys[3] = a, b, c, d
		most := max(a, b, c, d)
		second = max(second, min(first, most))
		first = max(first, most)
		row, bias, keys = row[4:], bias[4:], keys[4:]
	}
	for i, bits := range row {
		k := table[bits>>16] + bias[i]
		keys[i] = k
		second = max(second, min(first, k))
		first = max(first, k)
	}
	return top{first, second}
}

// bitsOf is what math.Float32bits makes of each value. That function goes through a
// floating-point register, which costs a sixth of a scan.
func bitsOf(values []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
}

// chunk is the range of its experts.
func (p *pruner) chunk(c int32) (from, to int) {
	from = int(c) * p.size
	return from, min(from+p.size, len(p.key))
}

// above writes to candidate the experts of some chunks whose keys are above a limit,
// in rising order in each chunk, and says how many there are.
func (p *pruner) above(chunks []int32, limit int32) (n int) {
	least := pack(limit, 0) // the largest that is not above
	for _, c := range chunks {
		if p.tops[c].first <= least {
			continue
		}
		if p.tops[c].second <= least {
			p.candidate[n] = index(p.tops[c].first)
			n++
			continue
		}
		from, to := p.chunk(c)
		for _, k := range p.key[from:to] { // without a branch that depends on the keys
			p.candidate[n] = index(k)
			n += smaller(least, k)
		}
	}
	return n
}

// choose leaves the best experts and their exact plain scores in r. ok is false if
// the exact way has to decide.
func (p *pruner) choose(r *Router, logits []float32) (tie, ok bool) {
	p.scan(logits)
	for _, t := range p.tops {
		if t.first>>32 >= special/2 {
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
	largest(best, sums)
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
	n := p.above([]int32{group}, p.limit(int32(p.tops[group].second>>32)))
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
		tops[2*i], tops[2*i+1] = t.first, t.second
	}
	if len(tops) < k {
		return nil
	}
	n := p.above(p.open, p.limit(int32(p.kth(tops, k)>>32)))
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
	largest(p.best[:k+1], numbers)
	return p.best[k-1]
}

// finish scores the candidates and leaves the k best of them in r. It leaves out the
// values of r.best, which none of the methods here weighs by.
func (p *pruner) finish(r *Router, logits []float32, candidates []int32) (tie bool) {
	scores := p.numbers[:len(candidates)]
	for i, e := range candidates {
		x := logits[e]
		if x != p.last {
			p.last, p.score = x, r.plainScore(x)
		}
		p.plain[e] = p.score
		if r.bias != nil {
			x = p.score + r.bias[e]
		} else {
			x = p.score
		}
		if x == 0 {
			x = 0 // and not -0
		}
		scores[i] = pack(ordered(x), e)
	}
	k := r.shape.TopK
	best := p.best[:k+2]
	largest(best, scores)
	for i, v := range best[:k] {
		e := index(v)
		r.best.index[i], r.plain[i] = e, p.plain[e]
	}
	return len(candidates) > k && best[k]>>32 == best[k-1]>>32
}

// largest sorts the largest of some numbers into best, the largest first, but for the
// last place of best, which is of no use. No two numbers are equal. Every number walks
// past all that are kept, which takes no branch that depends on them.
//
//go:noinline
func largest(best, numbers []int64) {
	for n, v := range numbers {
		n = min(n, len(best)-1)
		for i, b := range best[:n] {
			best[i] = max(b, v)
			v = min(b, v)
		}
		best[n] = v
	}
}
