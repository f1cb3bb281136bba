package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func problem(t testing.TB, experts, k, groups, tg, ranks int, mode router.Mode, tokens ...int) Problem {
	t.Helper()
	l, err := router.Contiguous(experts, ranks)
	if err != nil {
		t.Fatal(err)
	}
	if len(tokens) == 1 {
		tokens = slices.Repeat(tokens, ranks)
	}
	return Problem{Shape: router.Shape{Experts: experts, TopK: k, Groups: groups, TopKGroups: tg}, Layout: l, Mode: mode, Tokens: tokens}
}

func certify(t testing.TB, name string, p Problem, o Options) Certificate {
	t.Helper()
	plan, err := New(name, p, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Certify(p, plan)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mustBe holds a diagonal plan against everything that can be asked of it.
func mustBe(t *testing.T, p Problem, c Certificate) {
	t.Helper()
	what := fmt.Sprintf("%v on %d ranks, %s, layer %d, tokens %v", p.Shape, p.Layout.Ranks(), p.Mode, p.Layer, p.Tokens)
	if !c.Optimal {
		t.Fatalf("%s: not optimal: %+v", what, c)
	}
	if c.Expert.Spread() > 1 && c.Rank.Spread() <= 1 && p.Layout.Experts()%p.Layout.Ranks() == 0 {
		t.Fatalf("%s: expert spread %d: %+v", what, c.Expert.Spread(), c)
	}
	divides := c.Slots%int64(c.Ranks) == 0
	forced := c.Rank.Floor > (c.Slots+int64(c.Ranks)-1)/int64(c.Ranks) // one token meets too few ranks
	if !forced && (c.Rank.Spread() > 1 || divides && c.Rank.Spread() != 0) && p.Layout.Experts()%p.Layout.Ranks() == 0 {
		t.Fatalf("%s: rank spread %d: %+v", what, c.Rank.Spread(), c)
	}
	circles, closed := circlesOf(p)
	equal := closed && len(circles.fixed) == 0 && len(slices.Compact(slices.Clone(p.Tokens))) == 1
	if equal && p.Mode == router.DEP && c.Slots > 0 && c.ReceiverConflict != 1 {
		t.Fatalf("%s: %d senders meet at one rank: %+v", what, c.ReceiverConflict, c)
	}
}

// DeepSeek-V3 at every EP size that divides it, from one token on.
func TestDiagonalDeepSeekV3(t *testing.T) {
	sizes := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128}
	for ranks := 1; ranks <= 256; ranks *= 2 {
		for i, tokens := range sizes {
			for _, mode := range []router.Mode{router.DEP, router.TEP} {
				p := problem(t, 256, 8, 8, 4, ranks, mode, tokens)
				p.Layer = i % 3
				mustBe(t, p, certify(t, "diagonal", p, Options{}))
			}
		}
	}
}

// Every flat shape is optimal, whatever the layout and the tokens: ranks may hold
// unequally many experts, and some ranks may have no tokens.
func TestDiagonalFlatProperty(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 4000 {
		experts := 1 + random.IntN(70)
		ranks := 1 + random.IntN(experts)
		p := problem(t, experts, 1+random.IntN(experts), 0, 0, ranks, router.DEP, make([]int, ranks)...)
		p.Layer = random.IntN(4)
		switch random.IntN(3) {
		case 0:
			p.Tokens = slices.Repeat([]int{random.IntN(20)}, ranks)
		case 1:
			p.Mode = router.TEP
			p.Tokens = slices.Repeat([]int{random.IntN(20)}, ranks)
		case 2:
			for r := range p.Tokens {
				p.Tokens[r] = max(0, random.IntN(20)-5)
			}
		}
		c := certify(t, "diagonal", p, Options{})
		mustBe(t, p, c)
	}
}

// The grouped shapes the circles fit, with equal tokens: optimal but for single
// rows, which the certificate tells.
func TestDiagonalGroupedProperty(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	tried := 0
	for tried < 1500 {
		groups := 1 << (1 + random.IntN(3))
		size := 1 + random.IntN(24)
		tg := 1 + random.IntN(groups)
		ranks := 1 << random.IntN(6)
		if groups*size%ranks != 0 {
			continue
		}
		s := router.Shape{Experts: groups * size, TopK: min(1+random.IntN(12), tg*size), Groups: groups, TopKGroups: tg}
		p := problem(t, s.Experts, s.TopK, groups, tg, ranks, router.DEP, 1+random.IntN(30))
		p.Layer = random.IntN(3)
		circles, ok := circlesOf(p)
		if !ok {
			continue
		}
		tried++
		c := certify(t, "diagonal", p, Options{})
		aligned := circles.outer*circles.inner == ranks || size%circles.laps == 0
		if !c.Valid || c.Rank.Spread() != 0 || c.ReceiverConflict != 1 || aligned && (c.Expert.Spread() > 1 || c.ActiveExperts != c.ActiveExpertsIdeal) {
			t.Fatalf("%v on %d ranks, tokens %v: %+v", s, ranks, p.Tokens, c)
		}
	}
}

// Unequal tokens of DeepSeek-V3's shape, zeros among them.
func TestDiagonalRaggedDeepSeekV3(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 600 {
		ranks := 1 << (i % 7)
		p := problem(t, 256, 8, 8, 4, ranks, router.DEP, make([]int, ranks)...)
		for r := range p.Tokens {
			p.Tokens[r] = max(0, random.IntN(24)-4)
		}
		c := certify(t, "diagonal", p, Options{})
		forced := c.Tokens < 3 // two tokens cannot be spread over eight groups
		if !c.Valid || !forced && (!c.Optimal || c.Rank.Spread() > 1 || c.Expert.Spread() > 1) {
			t.Fatalf("%d ranks, tokens %v: %+v", ranks, p.Tokens, c)
		}
	}
}

// A few tokens by hand: 8 experts, top-2, 4 ranks of 2 experts, one token each.
// Senders 0 and 1 take two ranks each, 0 1 and 2 3, which closes a round; senders
// 2 and 3 take a round turned by one, 1 2 and 3 0, so that all four start apart.
// The second visit of a rank takes its second expert.
func TestDiagonalByHand(t *testing.T) {
	p := problem(t, 8, 2, 0, 0, 4, router.DEP, 1)
	for rank, want := range [][]int32{{0, 2}, {4, 6}, {3, 5}, {7, 1}} {
		if got := fill(t, "diagonal", p, Options{}, rank); !slices.Equal(got, want) {
			t.Errorf("rank %d: %v, want %v", rank, got, want)
		}
	}
	// In tep mode there is one sender; three tokens of top-2 go once round the
	// ranks and on: 0 1 2 3 0 1, second visits taking the second expert.
	p = problem(t, 8, 2, 0, 0, 4, router.TEP, 3)
	for rank := range 4 {
		if got := fill(t, "diagonal", p, Options{}, rank); !slices.Equal(got, []int32{0, 2, 4, 6, 1, 3}) {
			t.Errorf("tep rank %d: %v", rank, got)
		}
	}
	// Layer 1 goes on where layer 0 stopped: at rank 2, whose next expert is 5.
	p.Layer = 1
	if got := fill(t, "diagonal", p, Options{}, 0); !slices.Equal(got, []int32{5, 7, 0, 2, 4, 6}) {
		t.Errorf("layer 1: %v", got)
	}
	// Three ranks of 3, 1 and 1 experts, top-4: an even share is 4/3, so the two
	// small ranks give all they have to every token, and the large one goes round.
	l, err := router.Placed(5, [][]int32{{0, 1, 2}, {3}, {4}})
	if err != nil {
		t.Fatal(err)
	}
	p = Problem{Shape: router.Shape{Experts: 5, TopK: 4, Groups: 0, TopKGroups: 0}, Layout: l, Mode: router.TEP, Tokens: []int{3, 3, 3}}
	if got := fill(t, "diagonal", p, Options{}, 0); !slices.Equal(got, []int32{4, 3, 0, 1, 4, 3, 2, 0, 4, 3, 1, 2}) {
		t.Errorf("unequal ranks: %v", got)
	}
}

// Remainders do not pile up: over any run of layers ranks and experts stay
// within one slot of each other.
func TestDiagonalLayers(t *testing.T) {
	for _, p := range []Problem{
		problem(t, 256, 8, 0, 0, 8, router.DEP, 5),
		problem(t, 256, 8, 8, 4, 32, router.DEP, 3),
		problem(t, 256, 8, 8, 4, 4, router.DEP, 7),
		problem(t, 60, 4, 0, 0, 4, router.TEP, 7),
		problem(t, 128, 4, 0, 0, 8, router.DEP, 3, 1, 4, 1, 5, 9, 2, 6),
	} {
		load := router.NewLoad(p.Shape.Experts)
		for layer := range 40 {
			p.Layer = layer
			for rank := range p.senders() {
				load.Add(fill(t, "diagonal", p, Options{}, rank))
			}
			ranks := p.Layout.RankLoad(load.PerExpert)
			if d := slices.Max(load.PerExpert) - slices.Min(load.PerExpert); d > 1 {
				t.Fatalf("%v on %d ranks: after layer %d experts differ by %d", p.Shape, len(ranks), layer, d)
			}
			if d := slices.Max(ranks) - slices.Min(ranks); d > 1 {
				t.Fatalf("%v on %d ranks: after layer %d ranks differ by %d", p.Shape, len(ranks), layer, d)
			}
		}
	}
}

// A walk is filled once round and then copied: that must be the walk itself.
func TestDiagonalPeriod(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	repeated := 0
	for range 400 {
		p := anyProblem(t, random)
		c, ok := circlesOf(p)
		if !ok || c.laps == 0 {
			continue
		}
		p.Tokens = slices.Repeat([]int{200}, len(p.Tokens))
		d := c.plan(p)
		rank := random.IntN(len(p.Tokens))
		copied, walked := make([]int32, 200*p.Shape.TopK), make([]int32, 200*p.Shape.TopK)
		d.Fill(copied, rank)
		if d.period < len(copied) {
			repeated++
		}
		d.period = len(walked)
		d.Fill(walked, rank)
		if !slices.Equal(copied, walked) {
			t.Fatalf("%v on %d ranks: copying after %d slots is not walking on", p.Shape, len(p.Tokens), c.periodOf(p.Shape.TopK))
		}
	}
	if repeated < 100 {
		t.Errorf("only %d of the walks repeated themselves", repeated)
	}
}

// Filling is independent of order, repeatable, and allocates nothing.
func TestDiagonalFill(t *testing.T) {
	for _, p := range []Problem{
		problem(t, 256, 8, 8, 4, 8, router.DEP, 33),
		problem(t, 256, 8, 0, 0, 32, router.DEP, 33),
	} {
		plan, err := New("diagonal", p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]int32, 33*8)
		plan.Fill(ids, 5)
		again := make([]int32, 33*8)
		if got := testing.AllocsPerRun(20, func() { plan.Fill(again, 5) }); got != 0 {
			t.Errorf("%v: %v allocations per Fill", p.Shape, got)
		}
		plan.Fill(again, 2)
		plan.Fill(again, 5)
		if !slices.Equal(ids, again) {
			t.Errorf("%v: filling again gives other ids", p.Shape)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, name := range []string{"diagonal", "trtllm-gen1", "trtllm-gen2", "uniform", "zipf"} {
		for _, groups := range []int{0, 8} {
			b.Run(fmt.Sprintf("%s/%d groups", name, groups), func(b *testing.B) {
				p := problem(b, 256, 8, groups, 4, 8, router.DEP, 8192)
				plan, err := New(name, p, Options{Exponent: 1})
				if err != nil {
					b.Fatal(err)
				}
				ids := make([]int32, 8192*8)
				b.SetBytes(int64(4 * len(ids)))
				b.ReportAllocs()
				for b.Loop() {
					plan.Fill(ids, 3)
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(len(ids)), "ns/slot")
			})
		}
	}
}

func BenchmarkNewPlan(b *testing.B) {
	for _, name := range []string{"diagonal", "trtllm-gen2"} {
		for _, ranks := range []int{8, 128} {
			b.Run(fmt.Sprintf("%s/%d ranks", name, ranks), func(b *testing.B) {
				p := problem(b, 256, 8, 8, 4, ranks, router.DEP, 8192)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := New(name, p, Options{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
