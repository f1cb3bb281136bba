package router

import (
	"math"
	"slices"
	"sync"
)

// pruner finds the few experts that can be among the best without computing the
// score of all: one table look-up per logit gives a key that is within margin of
// the score, and only what the margin leaves open is scored exactly. Its choice
// is bit for bit that of the exact way.
//
// Keys are in units of 2⁻²⁰. The table is indexed by the upper 16 bits of a
// logit, which name an interval of logits; scores rise with logits, so half the
// rise over the interval bounds the error.
type pruner struct {
	table  *[1 << 16]int32
	bias   []int32 // by expert, in key units
	margin int32   // |key − score| is at most this

	chunk  int     // experts per chunk: those of a group, if there are groups
	key    []int32 // by expert
	first  []int32 // by chunk: its largest key …
	second []int32 // … and the next one
	open   []int32 // the chunks experts may be chosen from
	tops   []int32 // first and second keys of the open chunks
	sorted []int64 // room for kth

	candidate [mostCandidates]int64 // key and index, larger is better
	ranked    [mostCandidates]int64
	score     [mostCandidates]float32 // exact, of the best candidates …
	plain     [mostCandidates]float32 // … and without the bias
	expert    [mostCandidates]int32
}

const (
	keyUnit        = 1 << 20
	mostBias       = 256     // larger biases leave no room in a key
	special        = 1 << 30 // the key of logits the table says nothing about
	mostCandidates = 64      // with more the exact way is as fast
)

// scoreTable is the table of one scoring and how far it is off at most.
type scoreTable struct {
	key   [1 << 16]int32
	error float64
}

// tabulate covers the logits up to the limit in size; beyond, and for
// infinities and NaN, the entry is special.
func tabulate(score func(float32) float32, limit float32) *scoreTable {
	t := new(scoreTable)
	for i := range t.key {
		from := math.Float32frombits(uint32(i) << 16)
		to := math.Float32frombits(uint32(i)<<16 | 0xffff)
		if !(from >= -limit && from <= limit && to >= -limit && to <= limit) {
			t.key[i] = special
			continue
		}
		a, b := float64(score(from)), float64(score(to))
		t.key[i] = int32(math.Round((a + b) / 2 * keyUnit))
		t.error = max(t.error, math.Abs(b-a)/2)
	}
	return t
}

// The tables are made once, by the first router that needs them.
var (
	sigmoidTable      = sync.OnceValue(func() *scoreTable { return tabulate(sigmoid, math.MaxFloat32) })
	logitTable        = sync.OnceValue(func() *scoreTable { return tabulate(func(x float32) float32 { return x }, 64) })
	sqrtSoftplusTable = sync.OnceValue(func() *scoreTable { return tabulate(sqrtSoftplus, 16) })
)

// newPruner returns nil where there is nothing to win: a softmax, which needs
// every logit, small gates, and biases too large for a key.
func newPruner(g Gate) *pruner {
	var t *scoreTable
	switch g.Method.scoring() {
	case byLogit:
		t = logitTable()
	case bySigmoid:
		t = sigmoidTable()
	case bySqrtSoftplus:
		t = sqrtSoftplusTable()
	default:
		return nil
	}
	if g.Shape.TopK > mostCandidates/2 || g.Shape.Experts < 4*g.Shape.TopK {
		return nil
	}
	p := &pruner{table: &t.key, bias: make([]int32, g.Shape.Experts), key: make([]int32, g.Shape.Experts)}
	most := 0.0
	for e, b := range g.Bias {
		most = max(most, math.Abs(float64(b)))
		if most > mostBias {
			return nil
		}
		p.bias[e] = int32(math.Round(float64(b) * keyUnit))
	}
	// Two for the roundings of table and bias to units; four times the last
	// place of a float32 sum for the roundings of the exact score and of a group's.
	p.margin = int32(math.Ceil((t.error+(2+most)*0x1p-22)*keyUnit)) + 2
	p.chunk = g.Shape.GroupSize()
	if !g.Shape.Grouped() {
		p.chunk = (g.Shape.Experts + g.Shape.TopK - 1) / g.Shape.TopK
	}
	chunks := (g.Shape.Experts + p.chunk - 1) / p.chunk
	p.first, p.second = make([]int32, chunks), make([]int32, chunks)
	p.open = make([]int32, 0, chunks)
	p.tops = make([]int32, 0, 2*chunks)
	p.sorted = make([]int64, 2*chunks)
	return p
}

// scan fills the keys and the two largest of each chunk. ok is false if a logit
// was special.
func (p *pruner) scan(logits []float32) (ok bool) {
	alarm := int32(math.MinInt32)
	for c := range p.first {
		from := c * p.chunk
		to := min(from+p.chunk, len(logits))
		first, second := scanChunk(p.table, logits[from:to], p.bias[from:to], p.key[from:to])
		p.first[c], p.second[c] = first, second
		alarm = max(alarm, first)
	}
	return alarm < special/2
}

// scanChunk fills the keys of a chunk and finds the two largest, without a
// branch that depends on them. Inlined it would not fit the registers, and a
// spilled maximum costs more than all the rest.
//
//go:noinline
func scanChunk(table *[1 << 16]int32, logits []float32, bias, key []int32) (first, second int32) {
	first, second = math.MinInt32, math.MinInt32
	_ = *table
	bias, key = bias[:len(logits)], key[:len(logits)]
	i := 0
	for ; i < len(logits)-1; i += 2 {
		a := table[math.Float32bits(logits[i])>>16] + bias[i]
		b := table[math.Float32bits(logits[i+1])>>16] + bias[i+1]
		key[i], key[i+1] = a, b
		high, low := max(a, b), min(a, b)
		low = max(low, min(first, high))
		first = max(first, high)
		second = max(second, low)
	}
	if i < len(logits) {
		k := table[math.Float32bits(logits[i])>>16] + bias[i]
		key[i] = k
		second = max(second, min(first, k))
		first = max(first, k)
	}
	return first, second
}

// choose leaves the best experts and their exact scores in r.best. ok is false
// if the exact way has to decide.
func (p *pruner) choose(r *Router, logits []float32) (tie, ok bool) {
	if !p.scan(logits) {
		return false, false
	}
	p.open = p.open[:0]
	if !r.shape.Grouped() {
		for c := range p.first {
			p.open = append(p.open, int32(c))
		}
	} else if !p.openGroups(r, logits) {
		return false, false
	}
	n := p.collect(r.shape.TopK)
	if n > mostCandidates {
		return false, false
	}
	return p.finish(r, logits, n), true
}

// collect gathers the experts of the open chunks that can be among the k best
// and says how many there are; more than there is room for if need be.
func (p *pruner) collect(topK int) int {
	p.tops = p.tops[:0]
	for _, c := range p.open {
		p.tops = append(p.tops, p.first[c], p.second[c])
	}
	if len(p.tops) < topK {
		return mostCandidates + 1
	}
	least := p.kth(p.tops, topK) - 2*p.margin
	n := 0
	for _, c := range p.open {
		from := int(c) * p.chunk
		keys := p.key[from:min(from+p.chunk, len(p.key))]
		if n+len(keys) <= mostCandidates {
			n = gather(&p.expert, n, keys, from, least)
			continue
		}
		for i, k := range keys {
			if k >= least {
				if n == mostCandidates {
					return n + 1
				}
				p.expert[n] = int32(from + i)
				n++
			}
		}
	}
	for i, e := range p.expert[:n] {
		p.candidate[i] = pack(p.key[e], e)
	}
	return n
}

// gather notes the experts of a chunk whose keys are large enough, again without
// a branch that depends on them: it writes every expert, and moves on past those
// it keeps.
//
//go:noinline
func gather(experts *[mostCandidates]int32, n int, keys []int32, from int, least int32) int {
	_ = *experts
	for i, k := range keys {
		experts[n&(mostCandidates-1)] = int32(from + i)
		if k >= least {
			n++
		}
	}
	return n
}

// pack orders by key, and equal keys by the lower index.
func pack(key, index int32) int64 { return int64(key)<<32 | int64(^uint32(index)) }

func unpack(v int64) (key, index int32) { return int32(v >> 32), int32(^uint32(v)) }

// kth is the k-th largest of some numbers.
func (p *pruner) kth(numbers []int32, k int) int32 {
	if k == len(numbers) {
		return slices.Min(numbers)
	}
	p.sorted = p.sorted[:len(numbers)]
	for i, x := range numbers {
		p.sorted[i] = pack(x, int32(i))
	}
	for _, v := range p.sorted { // so few that calling countAbove would cost more than it does
		above := 0
		for _, w := range p.sorted {
			if w > v {
				above++
			}
		}
		if above == k-1 {
			key, _ := unpack(v)
			return key
		}
	}
	panic("unreachable: one of distinct numbers is the k-th")
}

// finish scores the candidates that can be among the k best and keeps the k best
// of them.
func (p *pruner) finish(r *Router, logits []float32, n int) (tie bool) {
	candidates := p.candidate[:n]
	for _, v := range candidates {
		p.ranked[countAbove(candidates, v)&(mostCandidates-1)] = v
	}
	topK := r.shape.TopK
	edge, _ := unpack(p.ranked[topK-1])
	kept := 0
	last, plain := float32(math.NaN()), float32(0) // balanced logits repeat one value
	for _, v := range p.ranked[:n] {
		key, e := unpack(v)
		if key < edge-2*p.margin {
			break
		}
		if x := logits[e]; x != last {
			last, plain = x, r.plainScore(x)
		}
		s := plain
		if r.bias != nil {
			s += r.bias[e]
		}
		i := kept
		for ; i > 0 && (s > p.score[i-1] || (s == p.score[i-1] && e < p.expert[i-1])); i-- {
			p.score[i], p.plain[i], p.expert[i] = p.score[i-1], p.plain[i-1], p.expert[i-1]
		}
		p.score[i], p.plain[i], p.expert[i] = s, plain, e
		kept++
	}
	copy(r.plain, p.plain[:topK])
	copy(r.best.value, p.score[:topK])
	copy(r.best.index, p.expert[:topK])
	return kept > topK && p.score[topK] == p.score[topK-1]
}

// countAbove is how many values are larger.
//
//go:noinline
func countAbove(values []int64, v int64) (above int) {
	for _, w := range values {
		if w > v {
			above++
		}
	}
	return above
}

// openGroups opens the best groups. ok is false when groups tie.
func (p *pruner) openGroups(r *Router, logits []float32) (ok bool) {
	sums := p.tops[:0]
	for g, k := range p.first {
		if p.chunk > 1 {
			k += p.second[g]
		}
		sums = append(sums, k)
	}
	edge := p.kth(sums, r.shape.TopKGroups)
	band := 4 * p.margin // twice the error of a sum of two keys
	sure, unsure := 0, 0
	for _, k := range sums {
		if k > edge+band {
			sure++
		} else if k >= edge-band {
			unsure++
		}
	}
	if sure+unsure == r.shape.TopKGroups {
		for g, k := range sums {
			if k >= edge-band {
				p.open = append(p.open, int32(g))
			}
		}
		return true
	}
	return p.decideGroups(r, logits, sums, edge, band)
}

// decideGroups scores exactly the groups that keys cannot decide about.
func (p *pruner) decideGroups(r *Router, logits []float32, sums []int32, edge, band int32) (ok bool) {
	r.groups.reset()
	for g, k := range sums {
		switch {
		case k > edge+band:
			r.groups.offer(int32(g), float32(math.Inf(1)))
		case k >= edge-band:
			r.groups.offer(int32(g), p.exactGroup(r, logits, g))
		}
	}
	for _, g := range r.groups.index {
		p.open = append(p.open, g)
	}
	return !r.groups.tied
}

// exactGroup is the exact score of a group.
func (p *pruner) exactGroup(r *Router, logits []float32, g int) float32 {
	from := g * p.chunk
	if p.chunk == 1 {
		return r.exact(logits, from)
	}
	first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
	for i, k := range p.key[from : from+p.chunk] {
		if k < p.second[g]-2*p.margin {
			continue
		}
		if s := r.exact(logits, from+i); s > first {
			first, second = s, first
		} else if s > second {
			second = s
		}
	}
	return first + second
}
