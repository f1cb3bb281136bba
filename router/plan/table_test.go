package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// realShapes are those of models that are served, each on all powers of two up to 128
// ranks that divide its experts.
func realShapes(t testing.TB, mode router.Mode) (list []Problem) {
	for _, s := range []router.Shape{
		{Experts: 32, TopK: 4},                            // GPT-OSS 20B
		{Experts: 128, TopK: 4},                           // GPT-OSS 120B
		{Experts: 256, TopK: 8, Groups: 8, TopKGroups: 4}, // DeepSeek-V3
		{Experts: 160, TopK: 6, Groups: 8, TopKGroups: 3}, // DeepSeek-V2
		{Experts: 384, TopK: 8},                           // Kimi-K2
		{Experts: 128, TopK: 8},                           // Qwen3-30B
		{Experts: 512, TopK: 10},                          // Qwen3-Next
		{Experts: 160, TopK: 8},                           // GLM-4.5
		{Experts: 8, TopK: 2},                             // Mixtral
		{Experts: 256, TopK: 8},                           // MiniMax-M2
		{Experts: 128, TopK: 1},                           // Llama-4 Maverick
	} {
		for ranks := 1; ranks <= 128; ranks *= 2 {
			if s.Experts%ranks == 0 {
				list = append(list, problem(t, s.Experts, s.TopK, s.Groups, s.TopKGroups, ranks, mode, 1))
			}
		}
	}
	return list
}

// Every real shape but one is at the floors for every number of tokens.
func TestEveryNumberOfTokens(t *testing.T) {
	list := realShapes(t, router.DEP)
	if len(list) != 78 {
		t.Fatalf("%d shapes, want 78", len(list))
	}
	for _, p := range list {
		proof := Prove(p)
		want := Proof{Rows: proof.Rows, Period: proof.Period, Level: true, Valid: true}
		if p.Shape.TopK == 6 && p.Layout.Ranks() == 4 { // DeepSeek-V2: 6 slots in 3 groups
			want.Copy, want.Active = Misses{Tokens: 14, Worst: 1}, Misses{Tokens: 1, Worst: 8}
		}
		if proof != want || proof.Period == 0 || proof.Rows%proof.Period != 0 {
			t.Errorf("%v on %d ranks: %+v, want %+v", p.Shape, p.Layout.Ranks(), proof, want)
		}
	}
}

// With one source ranks are one slot above the floor where tokens send two slots to
// each of few groups, and there alone.
func TestEveryNumberOfTokensTEP(t *testing.T) {
	missed := map[string]int{}
	for _, p := range realShapes(t, router.TEP) {
		proof := Prove(p)
		if proof.Optimal() {
			continue
		}
		missed[fmt.Sprintf("%d experts, %d ranks", p.Shape.Experts, p.Layout.Ranks())]++
		if !proof.Valid || !proof.Level || proof.Rank.Worst != 1 || proof.Copy.Tokens+proof.Active.Tokens > 0 {
			t.Errorf("%v on %d ranks: %+v", p.Shape, p.Layout.Ranks(), proof)
		}
	}
	want := map[string]int{"256 experts, 8 ranks": 1, "160 experts, 2 ranks": 1, "160 experts, 4 ranks": 1,
		"160 experts, 8 ranks": 1}
	if fmt.Sprint(missed) != fmt.Sprint(want) {
		t.Errorf("missed %v, want %v", missed, want)
	}
}

// What Prove says of all numbers of tokens is what certificates say of some, those
// beyond the table among them; no two sources send to one rank in the same step, and
// no pair is more than a slot above its floor.
func TestCertificatesAgreeWithTheProof(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	for i, p := range realShapes(t, router.DEP) {
		rows := NewTable(p).Rows()
		for _, tokens := range []int{1 + i, rows, rows + 1 + i, 3*rows + 7} {
			p.Tokens = slices.Repeat([]int{tokens}, p.Layout.Ranks())
			p.Layer = i % 3
			c := certify(t, "diagonal", p, Options{})
			atFloors := c.Rank.Excess == 0 && c.Copy.Excess == 0 && c.ActiveExperts == c.ActiveExpertsIdeal
			v2 := p.Shape.TopK == 6 && p.Layout.Ranks() == 4
			if !c.Valid || !atFloors && !v2 || c.ReceiverConflict != 1 || c.Pair.Excess > 1 {
				t.Errorf("%v on %d ranks, layer %d, %d tokens: %+v", p.Shape, p.Layout.Ranks(), p.Layer, tokens, c)
			}
		}
	}
}

// From any multiple of the period on, and up to any, all experts have equally many
// slots; shapes without a divisor in common have long periods.
func TestPeriod(t *testing.T) {
	for _, c := range []struct{ experts, topK, groups, tg, ranks, period, rows int }{
		{256, 8, 8, 4, 8, 4, 256},
		{384, 8, 0, 0, 8, 6, 258},
		{512, 10, 0, 0, 1, 256, 256},
		{60, 7, 0, 0, 5, 60, 300},
		{60, 4, 0, 0, 8, 14, 266}, // ranks of 8 and of 7 experts
	} {
		p := problem(t, c.experts, c.topK, c.groups, c.tg, c.ranks, router.DEP, 1)
		table := NewTable(p)
		if table.Period() != c.period || table.Rows() != c.rows {
			t.Errorf("%v on %d ranks: period %d of %d rows, want %d of %d", p.Shape, c.ranks, table.Period(),
				table.Rows(), c.period, c.rows)
		}
		for _, from := range []int{0, c.period, c.rows - c.period} {
			load := router.NewLoad(c.experts)
			for source := range c.ranks {
				ids := make([]int32, 3*c.period*c.topK)
				table.Fill(ids, source, from)
				load.Add(ids)
			}
			for r := range c.ranks {
				held := p.Layout.Held(r)
				of := load.PerExpert[held[0] : held[len(held)-1]+1]
				if slices.Min(of) != slices.Max(of) {
					t.Errorf("%v on %d ranks, from row %d: rank %d has %v", p.Shape, c.ranks, from, r, of)
				}
			}
		}
	}
}

// Eight experts, top-2, four ranks of two, by hand. Source s sends token t to ranks
// s + 2t and s + 2t + 1. In the first step rank 0 gets source 0 and, from its second
// slot, source 3; the first to choose takes the second expert, where the next lap
// begins. In the second step source 1 chooses first.
func TestTableByHand(t *testing.T) {
	table := NewTable(problem(t, 8, 2, 0, 0, 4, router.DEP, 1))
	for source, want := range [][]int32{{1, 3, 5, 7}, {2, 5, 6, 0}, {4, 7, 1, 2}, {6, 0, 3, 4}} {
		got := make([]int32, 4)
		if table.Fill(got, source, 0); !slices.Equal(got, want) {
			t.Errorf("source %d: %v, want %v", source, got, want)
		}
	}
}

// Where no diagonal fits the ranks, groups and replicas, the least loaded rank is
// taken. How far from the floors that ends is pinned for DeepSeek-V3 on every number
// of ranks, and for placements as balancers make them.
func TestOtherLayouts(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	var rank, copies, active, optimal int
	for ranks := 1; ranks <= 128; ranks++ {
		for i, tokens := range []int{1, 2, 3, 4, 5, 7, 9, 16} {
			p := problem(t, 256, 8, 8, 4, ranks, router.DEP, tokens)
			p.Layer = i % 3
			c := certify(t, "diagonal", p, Options{})
			if !c.Valid || c.Rank.Excess > 1 || c.Copy.Excess > 1 {
				t.Fatalf("%d ranks, %d tokens: %+v", ranks, tokens, c)
			}
			rank, copies = rank+int(c.Rank.Excess), copies+int(c.Copy.Excess)
			active += min(1, c.ActiveExpertsIdeal-c.ActiveExperts)
			if c.Optimal {
				optimal++
			}
		}
	}
	if rank > 25 || copies > 12 || active > 5 || optimal < 908 {
		t.Errorf("of 1024 tables ranks miss the floor in %d, experts in %d, active experts in %d, and %d are optimal with all pairs", rank, copies, active, optimal)
	}
	random := rand.New(rand.NewPCG(9, 9))
	for i := range 48 {
		ranks := []int{4, 6, 8, 16, 32, 36}[i%6]
		p := problem(t, 256, 8, 0, 0, ranks, router.DEP, []int{1, 2, 3, 5, 8, 16, 33}[random.IntN(7)])
		p.Layout = sparePlacement(t, 256, ranks, 256/ranks+1+random.IntN(4), random)
		c := certify(t, "diagonal", p, Options{})
		if !c.Valid || c.Rank.Excess > 0 || c.ActiveExperts < c.ActiveExpertsIdeal || c.Copy.Excess > 2 {
			t.Fatalf("%v on %d ranks, tokens %v: %+v", p.Shape, ranks, p.Tokens, c)
		}
	}
}

// Flat shapes of every kind are at the floors with equally many tokens: ranks may hold
// unequally many experts, as long as each holds a token's share.
func TestFlatProperty(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		experts := 1 + random.IntN(70)
		ranks := 1 + random.IntN(experts)
		share := experts / ranks
		p := problem(t, experts, 1+random.IntN(share*ranks), 0, 0, ranks, router.DEP, random.IntN(20))
		p.Layer = random.IntN(4)
		if c := certify(t, "diagonal", p, Options{}); !c.Optimal || c.Slots > 0 && c.ReceiverConflict != 1 {
			t.Fatalf("%v on %d ranks, tokens %d: %+v", p.Shape, ranks, p.Tokens[0], c)
		}
	}
}

// The tokens of one rank do not depend on those of others, or on how many there are:
// more tokens begin with the same ones.
func TestAnyTokens(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		p := anyProblem(t, random)
		rank := random.IntN(p.Layout.Ranks())
		few := fill(t, "diagonal", p, Options{}, rank)
		more := slices.Clone(p.Tokens)
		for r := range more {
			more[r] = p.Tokens[0] + 5
		}
		q := p
		q.Tokens = more
		if many := fill(t, "diagonal", q, Options{}, rank); p.Tokens[rank] <= more[rank] &&
			!slices.Equal(many[:len(few)], few) {
			t.Fatalf("%v: %v begins otherwise than %v", p.Shape, many, few)
		}
	}
}

// Unequal tokens, which no rank knows of the others: from some 32 tokens on ranks are
// within a few percent.
func TestUnequalTokens(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for _, p := range realShapes(t, router.DEP) {
		if p.Shape.TopK == 1 || p.Layout.Ranks() < 4 || p.Layout.Ranks() > 32 {
			continue
		}
		for r := range p.Tokens {
			p.Tokens[r] = random.IntN(257)
		}
		if c := certify(t, "diagonal", p, Options{}); !c.Valid || c.Rank.MaxOverMean > 1.1 ||
			c.Expert.MaxOverMean > 1.35 {
			t.Errorf("%v on %d ranks, tokens %v: ranks %v, experts %v", p.Shape, p.Layout.Ranks(), p.Tokens,
				c.Rank.MaxOverMean, c.Expert.MaxOverMean)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	p := problem(b, 256, 8, 8, 4, 8, router.DEP, 8192)
	plan, err := New("diagonal", p, Options{})
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]int32, 8192*8)
	b.SetBytes(int64(4 * len(ids)))
	for b.Loop() {
		plan.Fill(ids, 3)
	}
}

func BenchmarkTable(b *testing.B) {
	for _, ranks := range []int{1, 8, 12, 64} {
		b.Run(fmt.Sprintf("%d ranks", ranks), func(b *testing.B) {
			p := problem(b, 256, 8, 8, 4, ranks, router.DEP, 1)
			ids := make([]int32, 256*8)
			for b.Loop() {
				NewTable(p).Fill(ids, 0, 0)
			}
		})
	}
}
