package router

import (
	"math"
	"slices"
	"sync"
	"unsafe"
)

// pruner finds the few experts that can be among the best without computing the
// score of all: one table look-up per logit gives a key that is within margin of
// the score, and only what the margin leaves open is scored exactly. Its choice
// is bit for bit that of the exact way.
//
// The table is indexed by the upper 16 bits of a logit, which name an interval
// of logits; scores rise with logits, so half the rise over the interval bounds
// the error.
//
// A key is in units of 2⁻²⁰ and stands in the upper half of an int64; the lower
// half holds the complement of an index. No two are equal then, larger is
// better, and of equal keys the lower index is larger.
type pruner struct {
	table  *[1 << 16]int64
	bias   []int64 // by expert, with its index
	margin int32   // |key − score| is at most this

	chunk  int     // experts per chunk: those of a group, if there are groups
	key    []int64 // by expert
	first  []int64 // by chunk: its largest key …
	second []int64 // … and the next one
	open   []int32 // the chunks experts may be chosen from
	tops   []int64 // first and second keys of the open chunks

	candidate [mostCandidates]int64
	ranked    [mostCandidates]int64
	score     [mostCandidates]float32 // exact, of the best candidates …
	plain     [mostCandidates]float32 // … and without the bias
	expert    [mostCandidates]int32
}

const (
	keyUnit        = 1 << 20
	mostBias       = 256               // larger biases leave no room in a key
	special        = 1 << 30           // the key of logits the table says nothing about
	none           = math.MinInt64 / 2 // below all keys, and not too far below to subtract
	mostCandidates = 64                // with as many the exact way is as fast
)

// scoreTable is the table of one scoring and how far it is off at most.
type scoreTable struct {
	key   [1 << 16]int64
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
			t.key[i] = special << 32
			continue
		}
		a, b := float64(score(from)), float64(score(to))
		t.key[i] = int64(math.Round((a+b)/2*keyUnit)) << 32
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
	p := &pruner{table: &t.key, bias: make([]int64, g.Shape.Experts), key: make([]int64, g.Shape.Experts)}
	most := 0.0
	for e := range p.bias {
		b := 0.0
		if g.Bias != nil {
			b = float64(g.Bias[e])
		}
		most = max(most, math.Abs(b))
		if most > mostBias {
			return nil
		}
		p.bias[e] = pack(int32(math.Round(b*keyUnit)), int32(e))
	}
	// Two for the roundings of table and bias to units; four times the last
	// place of a float32 sum for the roundings of the exact score and of a group's.
	p.margin = int32(math.Ceil((t.error+(2+most)*0x1p-22)*keyUnit)) + 2
	p.chunk = g.Shape.GroupSize()
	if !g.Shape.Grouped() {
		p.chunk = (g.Shape.Experts + g.Shape.TopK - 1) / g.Shape.TopK
	}
	chunks := (g.Shape.Experts + p.chunk - 1) / p.chunk
	p.first, p.second = make([]int64, chunks), make([]int64, chunks)
	p.open = make([]int32, 0, chunks)
	p.tops = make([]int64, 0, 2*chunks)
	return p
}

// scan fills the keys and the two largest of each chunk. ok is false if a logit
// was special.
func (p *pruner) scan(logits []float32) (ok bool) {
	alarm := int64(none)
	for c := range p.first {
		from := c * p.chunk
		to := min(from+p.chunk, len(logits))
		first, second := p.scanChunk(logits, from, to)
		// Those that lost to the first among four have a second chance.
		keys := p.key[from:to]
		if i := int(index(first)) - from; i|3 < len(keys) {
			second = max(second, keys[i^1], keys[i^2], keys[i^3])
		}
		p.first[c], p.second[c] = first, second
		alarm = max(alarm, first)
	}
	return alarm < special<<32/2
}

// scanChunk fills the keys of a chunk and finds the two largest of those that
// compete, without a branch that depends on them: the largest of every four, and
// any that are left over. Inlined it would not fit the registers, and a spilled
// maximum costs more than all the rest.
//
//go:noinline
func (p *pruner) scanChunk(logits []float32, from, to int) (first, second int64) {
	first, second = none, none
	table, row := p.table, bitsOf(logits[from:to])
	_ = *table
	bias, key := p.bias[from:to][:len(row)], p.key[from:to][:len(row)]
	i := 0
	for ; i < len(row)-3; i += 4 {
		a := table[row[i]>>16] + bias[i]
		b := table[row[i+1]>>16] + bias[i+1]
		c := table[row[i+2]>>16] + bias[i+2]
		d := table[row[i+3]>>16] + bias[i+3]
		key[i], key[i+1], key[i+2], key[i+3] = a, b, c, d
		a = max(a, b, c, d)
		second = max(second, min(first, a))
		first = max(first, a)
	}
	for ; i < len(row); i++ {
		k := table[row[i]>>16] + bias[i]
		key[i] = k
		second = max(second, min(first, k))
		first = max(first, k)
	}
	return first, second
}

// bitsOf is what math.Float32bits makes of each value. That function takes the
// way through a floating-point register, which costs a sixth of a scan's time.
func bitsOf(values []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
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
	if n >= mostCandidates {
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
		return mostCandidates
	}
	least := (kth(p.tops, topK)>>32 - 2*int64(p.margin)) << 32
	n := uint(0)
	for _, c := range p.open {
		from := int(c) * p.chunk
		n = gather(&p.candidate, n, p.key[from:min(from+p.chunk, len(p.key))], least)
	}
	return int(n)
}

// gather notes the keys of a chunk that are large enough, again without a branch
// that depends on them: it writes every key, and moves on past those it keeps.
// With mostCandidates or more what it wrote is of no use.
//
//go:noinline
func gather(candidates *[mostCandidates]int64, n uint, keys []int64, least int64) uint {
	_ = *candidates
	i := 0
	for ; i < len(keys)-3; i += 4 {
		a, b, c, d := keys[i], keys[i+1], keys[i+2], keys[i+3]
		candidates[n%mostCandidates] = a
		n += smaller(least-1, a)
		candidates[n%mostCandidates] = b
		n += smaller(least-1, b)
		candidates[n%mostCandidates] = c
		n += smaller(least-1, c)
		candidates[n%mostCandidates] = d
		n += smaller(least-1, d)
	}
	for ; i < len(keys); i++ {
		candidates[n%mostCandidates] = keys[i]
		n += smaller(least-1, keys[i])
	}
	return n
}

// smaller is 1 if v is smaller than w, else 0, for values half an int64 apart at most.
func smaller(v, w int64) uint { return uint(uint64(v-w) >> 63) }

func pack(key, index int32) int64 { return int64(key)<<32 | int64(^uint32(index)) }

func index(v int64) int32 { return int32(^uint32(v)) }

// kth is the k-th largest of some distinct numbers.
func kth(numbers []int64, k int) (v int64) {
	if k == len(numbers) {
		return slices.Min(numbers)
	}
	for _, v = range numbers {
		if countAbove(numbers, v) == k-1 {
			break
		}
	}
	return v
}

// finish scores the candidates that can be among the k best and keeps the k best
// of them.
func (p *pruner) finish(r *Router, logits []float32, n int) (tie bool) {
	for i := n; i%4 != 0; i++ {
		p.candidate[i] = none // countAbove is fastest in fours
	}
	fours := p.candidate[:(n+3)/4*4]
	for _, v := range p.candidate[:n] {
		p.ranked[countAbove(fours, v)%mostCandidates] = v
	}
	topK := r.shape.TopK
	least := (p.ranked[topK-1]>>32 - 2*int64(p.margin)) << 32
	kept := 0
	last, plain := float32(math.NaN()), float32(0) // balanced logits repeat one value
	for _, v := range p.ranked[:n] {
		if v < least {
			break
		}
		e := index(v)
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
func countAbove(values []int64, v int64) int {
	above := uint(0)
	i := 0
	for ; i < len(values)-3; i += 4 {
		above += smaller(v, values[i])
		above += smaller(v, values[i+1])
		above += smaller(v, values[i+2])
		above += smaller(v, values[i+3])
	}
	for ; i < len(values); i++ {
		above += smaller(v, values[i])
	}
	return int(above)
}

// openGroups opens the best groups. ok is false when groups tie.
func (p *pruner) openGroups(r *Router, logits []float32) (ok bool) {
	sums := p.tops[:0]
	for g, v := range p.first {
		k := v >> 32
		if p.chunk > 1 {
			k += p.second[g] >> 32
		}
		sums = append(sums, pack(int32(k), int32(g)))
	}
	edge := kth(sums, r.shape.TopKGroups) >> 32
	band := 4 * int64(p.margin) // twice the error of a sum of two keys
	open := p.open[:len(sums)]
	n := 0
	for g, v := range sums {
		open[n] = int32(g)
		if v >= (edge-band)<<32 {
			n++
		}
	}
	p.open = open[:n]
	return n == r.shape.TopKGroups || p.decideGroups(r, logits, sums, edge+band)
}

// decideGroups scores exactly the open groups that are not surely among the
// best, those whose sums are not above a limit, and opens the best alone.
func (p *pruner) decideGroups(r *Router, logits []float32, sums []int64, limit int64) (ok bool) {
	r.groups.reset()
	for _, g := range p.open {
		score := float32(math.Inf(1))
		if sums[g]>>32 <= limit {
			score = p.exactGroup(r, logits, int(g))
		}
		r.groups.offer(g, score)
	}
	p.open = append(p.open[:0], r.groups.index...)
	return !r.groups.tied
}

// exactGroup is the exact score of a group.
func (p *pruner) exactGroup(r *Router, logits []float32, g int) float32 {
	from := g * p.chunk
	if p.chunk == 1 {
		return r.exact(logits, from)
	}
	first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
	least := (p.second[g]>>32 - 2*int64(p.margin)) << 32
	for i, k := range p.key[from : from+p.chunk] {
		if k < least {
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
