package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// beamWidth is how many partial tokens the reference's search keeps.
const beamWidth = 32

// beam is the second generation's planner for DeepSeekV3, slot for slot. Slot s
// of token t on rank r wants rank (t·k + s + r) mod R. A beam search over the
// groups of the slots prefers, in this order: few slots away from the wanted
// rank, a small largest number of slots in one group, early places in the
// rotated list of the wanted rank's groups, many groups. The expert is then the
// first unused one of the group on the wanted rank, that list rotated by t+r+s.
//
// The groups of a token depend on t and r only through (t·k + r) mod R and
// (t + r) mod (the least common multiple of the numbers of groups per rank), so
// each such pair is searched once.
//
// Source: the DeepSeekV3 planner of tensorrt_llm/_torch/moe/fused_moe/routing.py.
type beam struct {
	problem Problem
	size    int       // experts per group
	on      [][]int32 // by rank: the groups it holds experts of, ascending
	cycle   int       // least common multiple of their numbers
	held    [][]span  // by group and rank: the experts of the group there
	groups  map[[2]int][]int32
}

// span is a range of experts; it may be empty.
type span struct{ from, to int32 }

func newBeam(p Problem, perRank int) (Plan, error) {
	b := &beam{problem: p, size: p.Shape.GroupSize(), cycle: 1, groups: map[[2]int][]int32{}}
	ranks, groups := p.Layout.Ranks(), p.Shape.Experts/b.size
	b.on = make([][]int32, ranks)
	b.held = make([][]span, groups)
	for g := range groups {
		b.held[g] = make([]span, ranks)
		for r := range ranks {
			s := span{int32(max(g*b.size, r*perRank)), int32(min((g+1)*b.size, (r+1)*perRank))}
			if s.from < s.to {
				b.held[g][r] = s
				b.on[r] = append(b.on[r], int32(g))
			}
		}
	}
	for _, on := range b.on {
		b.cycle = lcm(b.cycle, len(on))
	}
	return b, b.searchAll()
}

// searchAll finds the groups of every kind of token the problem has.
func (b *beam) searchAll() error {
	ranks := b.problem.Layout.Ranks()
	period := lcm(ranks, b.cycle)
	for rank, tokens := range b.problem.Tokens {
		for t := range min(tokens, period) {
			key := b.key(t, rank)
			if b.groups[key] != nil {
				continue
			}
			found := b.search(key[0], key[1])
			for g := range b.held {
				n := 0
				for _, h := range found {
					if int(h) == g {
						n++
					}
				}
				if n > b.size {
					return fmt.Errorf("%w: the reference puts %d slots of a token in one group of %d experts", router.ErrShape, n, b.size)
				}
			}
			b.groups[key] = found
		}
	}
	return nil
}

func (b *beam) key(token, rank int) [2]int {
	return [2]int{(token*b.problem.Shape.TopK + rank) % b.problem.Layout.Ranks(), (token + rank) % b.cycle}
}

// Name is "trtllm-gen2-grouped/1".
func (b *beam) Name() string { return "trtllm-gen2-grouped/1" }

func (b *beam) Fill(dst []int32, rank int) {
	checkFill(b.problem, dst, rank)
	topK, ranks := b.problem.Shape.TopK, b.problem.Layout.Ranks()
	for t := 0; len(dst) > 0; t++ {
		for s, g := range b.groups[b.key(t, rank)] {
			turn := t + rank + s
			e, ok := unused(b.held[g][(t*topK+s+rank)%ranks], turn, dst[:s])
			if !ok {
				e, _ = unused(span{g * int32(b.size), (g + 1) * int32(b.size)}, turn, dst[:s])
			}
			dst[s] = e
		}
		dst = dst[topK:]
	}
}

// unused is the first expert of the rotated span that is not taken.
func unused(s span, turn int, taken []int32) (e int32, ok bool) {
	n := int(s.to - s.from)
	for i := range n {
		e := s.from + int32((turn+i)%n)
		if !slices.Contains(taken, e) {
			return e, true
		}
	}
	return 0, false
}

// partial is a token whose first slots have their groups.
type partial struct {
	groups     []int32 // by slot
	active     []int32 // distinct groups in order of their first slot
	counts     []int32 // by group
	mismatch   int
	preference int
}

// option is a partial token and the group of its next slot, with the key of
// what that would make: smaller is better.
type option struct {
	from                       int
	group                      int32
	mismatch, most, preference int
	active                     int
}

// search is the beam search for a token whose slot s wants rank (first+s) mod R,
// the groups of that rank rotated by turn+s.
func (b *beam) search(first, turn int) []int32 {
	shape, ranks := b.problem.Shape, b.problem.Layout.Ranks()
	limit := visitsPerToken(shape)
	kept := []partial{{counts: make([]int32, len(b.held))}}
	var options []option
	var rotated []int32
	for s := range shape.TopK {
		want := (first + s) % ranks
		on := b.on[want]
		rotated = rotated[:0]
		for i := range on {
			rotated = append(rotated, on[(turn+s+i)%len(on)])
		}
		options = options[:0]
		for i, p := range kept {
			for _, g := range p.candidates(rotated, limit) {
				options = append(options, p.extend(i, g, rotated, b.held[g][want]))
			}
		}
		slices.SortStableFunc(options, func(x, y option) int {
			return cmp.Or(x.mismatch-y.mismatch, x.most-y.most, x.preference-y.preference, y.active-x.active)
		})
		options = options[:min(len(options), beamWidth)]
		next := make([]partial, len(options))
		for i, o := range options {
			next[i] = kept[o.from].with(o)
		}
		kept = next
	}
	return kept[0].groups
}

// candidates are the groups the next slot may take, in the order they are tried.
func (p partial) candidates(preferred []int32, limit int) []int32 {
	var list []int32
	if len(p.active) < limit {
		list = append(list, preferred...)
		for _, g := range p.active {
			if !slices.Contains(preferred, g) {
				list = append(list, g)
			}
		}
		return list
	}
	for _, g := range preferred {
		if p.counts[g] > 0 {
			list = append(list, g)
		}
	}
	if list == nil {
		return p.active
	}
	return list
}

func (p partial) extend(from int, g int32, preferred []int32, there span) option {
	o := option{from: from, group: g, mismatch: p.mismatch, preference: p.preference, active: len(p.active)}
	if there.from == there.to {
		o.mismatch++
	}
	if at := slices.Index(preferred, g); at >= 0 {
		o.preference += at
	} else {
		o.preference += len(preferred)
	}
	o.most = max(int(slices.Max(p.counts)), int(p.counts[g])+1)
	if p.counts[g] == 0 {
		o.active++
	}
	return o
}

func (p partial) with(o option) partial {
	next := partial{
		groups: append(slices.Clone(p.groups), o.group), active: slices.Clone(p.active),
		counts: slices.Clone(p.counts), mismatch: o.mismatch, preference: o.preference,
	}
	if next.counts[o.group] == 0 {
		next.active = append(next.active, o.group)
	}
	next.counts[o.group]++
	return next
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int) int { return a / gcd(a, b) * b }
