package plan

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// listed is a plan written out, to hold the certificate against.
func listed(ranks ...[]int32) Plan {
	return Plan{Name: "listed/1", Fill: func(dst []int32, rank int) { copy(dst, ranks[rank]) }}
}

// Two ranks, four experts, top-2, and every number counted by hand.
func TestCertificateByHand(t *testing.T) {
	p := problem(4, 2, 0, 0, 2, router.DEP, 2, 1)
	// Rank 0 owns experts 0 1, rank 1 owns 2 3.
	c := Certify(p, listed([]int32{0, 1, 0, 2}, []int32{0, 1}))
	want := Certificate{
		// Ranks get 5 and 1 of 6 slots; 3 each is possible.
		Rank: Level{Max: 5, Floor: 3, Excess: 2, MaxOverMean: 5. / 3, FloorOverMean: 1},
		// Experts 3 2 1 0; ⌈6/4⌉ = 2.
		Expert:        Level{Max: 3, Floor: 2, Excess: 1, MaxOverMean: 2, FloorOverMean: 4. / 3},
		Copy:          Level{Max: 3, Floor: 2, Excess: 1, MaxOverMean: 2, FloorOverMean: 4. / 3},
		ActiveExperts: 3, ActiveExpertsIdeal: 4, Groups: 1,
		Valid: true,
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("certificate\n%+v, want\n%+v", c, want)
	}

	c = Certify(p, listed([]int32{0, 2, 1, 1}, []int32{3, 2}))
	if c.Duplicates != 1 || c.Valid || c.Optimal {
		t.Errorf("expert 1 twice in a token: %+v", c)
	}
	for what, k := range map[string]struct {
		p       Problem
		plan    Plan
		optimal bool
	}{
		"3 slots per rank, 1 or 2 per expert": {p, listed([]int32{0, 2, 1, 3}, []int32{2, 0}), true},
		"4 and 2 slots per rank":              {p, listed([]int32{0, 1, 0, 1}, []int32{2, 3}), false},
		"4 slots per rank, 3 of one expert": {problem(4, 2, 0, 0, 2, router.DEP, 2, 2),
			listed([]int32{0, 2, 0, 3}, []int32{0, 2, 1, 3}), false},
		"4 slots per rank, none of one expert": {problem(6, 2, 0, 0, 2, router.DEP, 2, 2),
			listed([]int32{0, 3, 0, 3}, []int32{1, 4, 1, 4}), false},
	} {
		if c := Certify(k.p, k.plan); c.Optimal != k.optimal {
			t.Errorf("%s: %+v", what, c)
		}
	}
	p.Layout = require.Value(router.Placed(4, [][]int32{{0, 1, 2}, {3}}))
	if c = Certify(p, listed([]int32{0, 1, 0, 2}, []int32{0, 1})); c.Copy.Floor != 2 {
		t.Errorf("a rank that takes all 6 slots has 2 for each of its 3 experts at best: %+v", c)
	}
	c = Certify(problem(4, 2, 2, 1, 2, router.DEP, 1), listed([]int32{0, 1}, []int32{0, 3}))
	if c.Groups != 2 || c.Valid {
		t.Errorf("experts of two groups where one is allowed: %+v", c)
	}
}

func TestCertificateTEP(t *testing.T) {
	p := problem(4, 2, 0, 0, 2, router.TEP, 2)
	if c := Certify(p, listed([]int32{0, 2, 1, 3}, []int32{0, 2, 3, 1})); c.Disagreements != 2 || c.Valid {
		t.Errorf("two slots differ between the ranks, and the four slots are counted once: %+v", c)
	}
}

// The floors against trying every assignment there is. No assignment may be better
// than a floor; without groups or replicas some must be as good. The floors of copies
// and experts, and the most active experts, are held against the assignments whose
// busiest rank has as few slots as possible, which may be more than the floor of ranks
// says.
func TestFloorsAgainstBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 10))
	for range 100 {
		s := router.Shape{Experts: 2 + random.IntN(5)}
		if s.Experts%2 == 0 && s.Experts > 2 && random.IntN(3) > 0 {
			s.Groups, s.TopKGroups = s.Experts/2, 1
		}
		s.TopK = 1 + random.IntN(min(3, s.Reachable()))
		ranks := 1 + random.IntN(s.Experts)
		layout, err := router.Contiguous(s.Experts, ranks)
		if random.IntN(2) == 0 {
			layout, err = router.Placed(s.Experts, randomPlacement(s.Experts, ranks, random))
		}
		require.NoError(t, err)
		tokens := 1 + random.IntN(3)
		p := Problem{Shape: s, Layout: layout, Mode: router.TEP, Tokens: slices.Repeat([]int{tokens}, ranks)}
		best := bruteForce(p)
		f := boundsOf(p, best.rank)
		if f.rank > best.rank || f.copy > best.copy || f.expert > best.expert || f.active < best.active {
			t.Fatalf("%v, %d tokens, layout %v: bounds %+v, the best of all assignments has %+v", s, tokens, layout, f,
				best)
		}
		if !s.Grouped() && !layout.Replicated() && (f.rank != best.rank || f.expert != best.expert ||
			f.active != best.active) {
			t.Fatalf("%v, %d tokens, layout %v: bounds %+v are not reached by %+v", s, tokens, layout, f, best)
		}
	}
}

// bruteForce is the least maxima of all assignments, ranks first, and the most active
// experts of those whose busiest rank has as few slots as possible.
func bruteForce(p Problem) (best bounds) {
	all := choices(p.Shape)
	tokens := make([][]int32, p.total())
	best = bounds{rank: math.MaxInt64}
	var try func(i int)
	try = func(i int) {
		if i < len(tokens) {
			for _, token := range all {
				tokens[i] = token
				try(i + 1)
			}
			return
		}
		of := router.NewLoad(p.Shape.Experts)
		for _, token := range tokens {
			of.Add(token)
		}
		load := of.PerExpert
		rank := slices.Max(p.Layout.RankLoad(load))
		if rank > best.rank {
			return
		}
		if rank < best.rank {
			best = bounds{rank: rank, copy: math.MaxInt64, expert: math.MaxInt64}
		}
		best.copy = min(best.copy, slices.Max(p.Layout.CopyLoad(load)))
		best.expert = min(best.expert, slices.Max(load))
		best.active = max(best.active, int64(router.BalanceOf(load).Active))
	}
	try(0)
	return best
}

// choices are all sets of experts that one token may have.
func choices(s router.Shape) (all [][]int32) {
	for _, experts := range combin.Combinations(s.Experts, s.TopK) {
		var set []int32
		groups := map[int]bool{}
		for _, e := range experts {
			set, groups[e/s.GroupSize()] = append(set, int32(e)), true
		}
		if !s.Grouped() || len(groups) <= s.TopKGroups {
			all = append(all, set)
		}
	}
	return all
}

// Floors round up. One token of top-3 in one group of 4 experts, whose experts lie on 2 of 4 ranks,
// sends 2 slots to one of them, though 3 slots on 4 ranks are one each. With a second copy of expert 0,
// 5 slots on 4 experts need an expert with 2, as 4 do not.
func TestFloorsRoundUp(t *testing.T) {
	p := problem(8, 3, 2, 1, 4, router.TEP, 1)
	if f := boundsOf(p, 0); f.reach != 2 || f.rank != 2 {
		t.Errorf("%+v, want a reach of 2 ranks, one of which has 2 slots", f)
	}
	l := require.Value(router.Placed(4, [][]int32{{0, 1, 2}, {3, 0}}))
	for tokens, want := range map[int]int64{4: 1, 5: 2} {
		f := boundsOf(Problem{Shape: router.Shape{Experts: 4, TopK: 1}, Layout: l, Mode: router.TEP,
			Tokens: []int{tokens, tokens}}, 0)
		if f.expert != want {
			t.Errorf("%d tokens: an expert floor of %d, want %d", tokens, f.expert, want)
		}
	}
}
