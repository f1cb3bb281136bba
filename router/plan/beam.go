package plan

import "slices"

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
// (t + r) mod (a common multiple of the numbers of groups per rank), so
// each such pair is searched once.
//
// Source: the DeepSeekV3 planner of tensorrt_llm/_torch/moe/fused_moe/routing.py.
type beam struct {
	problem Problem
	perRank int       // experts per rank
	on      [][]int32 // by rank: the groups it holds experts of, ascending
	cycle   int       // a common multiple of their numbers
	groups  map[[2]int][]int32
}

// newBeam searches the groups of every kind of token the problem has.
func newBeam(p Problem) Plan {
	perRank, _ := p.Layout.PerRank()
	b := &beam{problem: p, perRank: perRank, cycle: 1, groups: map[[2]int][]int32{}}
	ranks, size := p.Layout.Ranks(), p.Shape.GroupSize()
	b.on = make([][]int32, ranks)
	for r := range ranks {
		for g := r * perRank / size; g*size < (r+1)*perRank; g++ {
			b.on[r] = append(b.on[r], int32(g))
		}
		if b.cycle%len(b.on[r]) != 0 {
			b.cycle *= len(b.on[r])
		}
	}
	for rank, tokens := range p.Tokens {
		for t := range min(tokens, ranks*b.cycle) {
			if key := b.key(t, rank); b.groups[key] == nil {
				b.groups[key] = b.search(key[0], key[1])
			}
		}
	}
	return p.byToken("trtllm-gen2-grouped/1", func(rank int) func([]int32, int) {
		return func(token []int32, t int) { b.fill(token, rank, t) }
	})
}

func (b *beam) key(token, rank int) [2]int {
	return [2]int{(token*b.problem.Shape.TopK + rank) % b.problem.Layout.Ranks(), (token + rank) % b.cycle}
}

func (b *beam) fill(token []int32, rank, t int) {
	ranks, size := b.problem.Layout.Ranks(), b.problem.Shape.GroupSize()
	for s, group := range b.groups[b.key(t, rank)] {
		from, want := int(group)*size, (t*len(token)+s+rank)%ranks*b.perRank
		e, ok := unused(max(from, want), min(from+size, want+b.perRank), t+rank+s, token[:s])
		if token[s] = e; !ok { // 0 where the group has no other: an expert twice, which a certificate calls invalid
			token[s], _ = unused(from, from+size, t+rank+s, token[:s])
		}
	}
}

// unused is the first of the experts from, from+1, … before to, that list rotated,
// which is not taken.
func unused(from, to, turn int, taken []int32) (e int32, ok bool) {
	for i := range to - from {
		if e := int32(from + (turn+i)%(to-from)); !slices.Contains(taken, e) {
			return e, true
		}
	}
	return 0, false
}

// partial is a token whose first slots have their groups.
type partial struct {
	groups []int32 // by slot
	// cost has, in the order of their weight: slots away from the wanted rank, the most slots
	// in one group, the sum of places in the rotated lists, and distinct groups, negative.
	cost [4]int
}

// search is the beam search for a token whose slot s wants rank (first+s) mod R,
// the groups of that rank rotated by turn+s.
func (b *beam) search(first, turn int) []int32 {
	limit, kept := visitsPerToken(b.problem.Shape), []partial{{}}
	for s := range b.problem.Shape.TopK {
		on := b.on[(first+s)%len(b.on)]
		at := (turn + s) % len(on)
		preferred := slices.Concat(on[at:], on[:at])
		var next []partial
		for _, p := range kept {
			for _, g := range p.candidates(preferred, limit) {
				next = append(next, p.with(g, preferred))
			}
		}
		slices.SortStableFunc(next, func(x, y partial) int { return slices.Compare(x.cost[:], y.cost[:]) })
		kept = next[:min(len(next), beamWidth)]
	}
	return kept[0].groups
}

// candidates are the groups the next slot may take, in the order they are tried: the
// preferred ones, then those in use in the order of their first slot. A token in as
// many groups as it may use takes the preferred ones among them, or any if there are none.
func (p partial) candidates(preferred []int32, limit int) (all []int32) {
	full, ahead := -p.cost[3] == limit, 0
	for i, g := range slices.Concat(preferred, p.groups) {
		if slices.Contains(all, g) || full && !slices.Contains(p.groups, g) {
			continue
		}
		if all = append(all, g); i < len(preferred) {
			ahead++
		}
	}
	if full && ahead > 0 {
		return all[:ahead]
	}
	return all
}

// with is the token with a group for its next slot.
func (p partial) with(group int32, preferred []int32) partial {
	at := slices.Index(preferred, group)
	if at < 0 {
		p.cost[0]++
		at = len(preferred)
	}
	if p.cost[2] += at; !slices.Contains(p.groups, group) {
		p.cost[3]--
	}
	p.groups = append(slices.Clone(p.groups), group)
	slots := len(slices.DeleteFunc(slices.Clone(p.groups), func(g int32) bool { return g != group }))
	p.cost[1] = max(p.cost[1], slots)
	return p
}
