package plan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// All plans obey what Plan promises, over shapes of every kind.
func TestPlansKeepTheirPromises(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 150 {
		p := anyProblem(t, random)
		o := Options{Seed: random.Uint64()}
		for _, name := range Names() {
			plan, err := New(name, p, o)
			if strings.HasPrefix(name, "trtllm") && err != nil {
				continue // it refuses layouts, and tokens it cannot place
			}
			if err != nil {
				t.Fatalf("%s for %v: %v", name, p.Shape, err)
			}
			c := Certify(p, plan)
			reference := strings.HasPrefix(name, "trtllm") // breaks groups (first) and tep (second)
			if c.Duplicates != 0 || !c.Valid && !reference {
				t.Fatalf("%s for %v on %d ranks, %s, tokens %v: %+v", name, p.Shape, p.Layout.Ranks(), p.Mode, p.Tokens,
					c)
			}
			again, _ := New(name, p, o)
			if again.Name != plan.Name {
				t.Fatalf("%q and %q are the same plan", again.Name, plan.Name)
			}
			rank := random.IntN(len(p.Tokens))
			a, b := make([]int32, p.Tokens[rank]*p.Shape.TopK), make([]int32, p.Tokens[rank]*p.Shape.TopK)
			plan.Fill(a, rank)
			again.Fill(b, rank)
			if !slices.Equal(a, b) {
				t.Fatalf("%s differs from itself", plan.Name)
			}
		}
	}
}

// anyProblem is a problem with any shape, layout, mode and tokens.
func anyProblem(t testing.TB, random *rand.Rand) Problem {
	s := router.Shape{Experts: 1 + random.IntN(60)}
	if random.IntN(2) == 0 {
		s.Groups = 2 + random.IntN(5)
		s.Experts = s.Groups * (1 + random.IntN(10))
		s.TopKGroups = 1 + random.IntN(s.Groups)
	}
	s.TopK = 1 + random.IntN(min(s.Reachable(), 12))
	p := Problem{Shape: s, Mode: router.DEP}
	ranks := 1 + random.IntN(s.Experts)
	var err error
	if random.IntN(3) == 0 {
		p.Layout, err = router.Placed(s.Experts, randomPlacement(s.Experts, ranks, random))
	} else {
		p.Layout, err = router.Contiguous(s.Experts, ranks)
	}
	require.NoError(t, err)
	p.Tokens = slices.Repeat([]int{random.IntN(12)}, ranks)
	switch random.IntN(3) {
	case 0:
		p.Mode = router.TEP
	case 1:
		for r := range p.Tokens {
			p.Tokens[r] = random.IntN(12)
		}
	}
	return p
}

// randomPlacement deals experts out in random order, some of them twice.
func randomPlacement(experts, ranks int, random *rand.Rand) [][]int32 {
	held := make([][]int32, ranks)
	for i, e := range random.Perm(experts) {
		held[i%ranks] = append(held[i%ranks], int32(e))
	}
	for range random.IntN(experts) { // more copies, some on a rank that has one
		r := random.IntN(ranks)
		held[r] = append(held[r], int32(random.IntN(experts)))
	}
	return held
}

// No diagonal fits where an expert has copies, as many cells as ranks or not, or a rank
// holds nothing: three tokens of each of two ranks fill the copies evenly.
func TestWhereNoDiagonalFits(t *testing.T) {
	for _, c := range []struct {
		held         [][]int32
		copies, rank int64
	}{
		{[][]int32{{0, 1}, {0}}, 2, 4},
		{[][]int32{{1}, {1, 0}}, 2, 4},
		{[][]int32{{0, 1}, {}}, 3, 6},
	} {
		l := require.Value(router.Placed(2, c.held))
		have := certify("diagonal", Problem{Shape: router.Shape{Experts: 2, TopK: 1}, Layout: l, Mode: router.DEP,
			Tokens: []int{3, 3}}, Options{})
		if !have.Valid || int64(have.Copy.Max) != c.copies || int64(have.Rank.Max) != c.rank {
			t.Errorf("%v: copies up to %v and ranks up to %v, want %d and %d", c.held, have.Copy.Max, have.Rank.Max,
				c.copies, c.rank)
		}
	}
}
