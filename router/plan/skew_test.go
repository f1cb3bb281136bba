package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// loads are the slots per expert of a plan.
func loads(t testing.TB, name string, p Problem, o Options) router.Load {
	t.Helper()
	load := router.NewLoad(p.Shape.Experts)
	for s := range p.sources() {
		load.Add(fill(t, name, p, o, s))
	}
	return load
}

// The example of the type's own comment: loads 3 3 1 1 from weights alike.
func TestSkewByHand(t *testing.T) {
	p := problem(t, 4, 2, 0, 0, 1, router.DEP, 4)
	got := fill(t, "replay", p, Options{Counts: []int64{3, 3, 1, 1}}, 0)
	if want := []int32{0, 1, 0, 1, 0, 2, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
}

// 64 slots on 4 ranks with hotness 0.75: 0.0625 of 64 is 4 for each, and 48 more
// for the hot one: 52 4 4 4, as bench_moe gives. 8192 slots: 6656 512 512 512.
func TestRankHotspot(t *testing.T) {
	for _, c := range []struct {
		tokens int
		want   []int64
	}{{8, []int64{52, 4, 4, 4}}, {1024, []int64{6656, 512, 512, 512}}} {
		p := problem(t, 64, 2, 0, 0, 4, router.DEP, c.tokens)
		o := Options{Hotness: 0.75}
		if got := p.Layout.RankLoad(loads(t, "rank-hotspot", p, o).PerExpert); !slices.Equal(got, c.want) {
			t.Errorf("%d tokens: ranks %v, want %v", c.tokens, got, c.want)
		}
	}
}

// An expert gets its weight's share of the slots unless that is more than one
// slot per token.
func TestExpertHotspot(t *testing.T) {
	p := problem(t, 8, 2, 0, 0, 2, router.DEP, 40)
	// 160 slots, 80 tokens. 0.3 + 0.7/8 = 0.3875 of 160 is 62 for expert 5; the
	// others get 98/7 = 14.
	got := loads(t, "expert-hotspot", p, Options{Hotness: 0.3, Hot: 5}).PerExpert
	if want := []int64{14, 14, 14, 14, 14, 62, 14, 14}; !slices.Equal(got, want) {
		t.Errorf("loads %v, want %v", got, want)
	}
	// An expert can stand in every token, which is 80 slots of 160: a hotness of
	// (1/2 − 1/8)/(1 − 1/8) = 3/7 = 0.4286 gives it that, and nothing more.
	if got := loads(t, "expert-hotspot", p, Options{Hotness: 3. / 7, Hot: 5}).PerExpert; got[5] != 80 {
		t.Errorf("loads %v: want 80 for expert 5", got)
	}
	_, err := New("expert-hotspot", p, Options{Hotness: 0.5, Hot: 5})
	if err == nil || !strings.Contains(err.Error(), "at most 42.9 %") || !strings.Contains(err.Error(), "80 of 160") {
		t.Errorf("error %v, want one about 42.9 %% and 80 of 160 slots", err)
	}
	// A rank that holds one of 8 groups gets at most 2 of a token's 8 slots, a
	// quarter: (1/4 − 1/8)/(1 − 1/8) = 1/7.
	_, err = New("rank-hotspot", problem(t, 256, 8, 8, 4, 8, router.DEP, 64), Options{Hotness: 0.3, Hot: 2})
	if err == nil || !strings.Contains(err.Error(), "at most 14.3 %") {
		t.Errorf("error %v, want one about 14.3 %%", err)
	}
}

// The busiest rank is where it was asked to be, to within one slot.
func TestTarget(t *testing.T) {
	for _, p := range []Problem{
		problem(t, 256, 8, 0, 0, 8, router.DEP, 64),
		problem(t, 256, 8, 8, 4, 32, router.DEP, 64),
		problem(t, 128, 4, 0, 0, 4, router.TEP, 100),
		problem(t, 60, 4, 0, 0, 7, router.DEP, 5, 9, 0, 12, 3, 3, 1),
	} {
		for _, want := range []float64{0, 0.05, 0.1, 0.5, 1, 2.5} {
			if want > mostImbalance(p) {
				continue
			}
			c := certify(t, "target", p, Options{Imbalance: want})
			mean := float64(c.Slots) / float64(c.Ranks)
			if got := float64(c.Rank.Max) - (1+want)*mean; !c.Valid || math.Abs(got) > 2 {
				t.Errorf("%v on %d ranks, imbalance %v: the busiest rank has %d slots, want %.1f", p.Shape, c.Ranks, want, c.Rank.Max, (1+want)*mean)
			}
		}
	}
}

func TestZipf(t *testing.T) {
	p := problem(t, 16, 2, 0, 0, 4, router.DEP, 1000)
	got := loads(t, "zipf", p, Options{Exponent: 1}).PerExpert
	// H₁₆ = 3.380728993: expert i gets 8000/(i·H₁₆) of 8000 slots.
	for i, n := range got {
		if want := 8000 / (float64(i+1) * 3.380728993); math.Abs(float64(n)-want) > 2 {
			t.Errorf("expert %d has %d slots, want %.1f", i, n, want)
		}
	}
	other := loads(t, "zipf", p, Options{Exponent: 1, Seed: 3}).PerExpert
	if slices.Equal(got, other) {
		t.Error("a seed permutes the experts")
	}
	slices.Sort(other)
	slices.Reverse(other)
	for i := range got {
		if math.Abs(float64(got[i]-other[i])) > 2 {
			t.Errorf("permuted loads %v are not those of %v", other, got)
			break
		}
	}
}

// Recorded counts that fit are given back exactly, whatever the tokens per rank.
func TestReplayIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	for range 300 {
		p := problem(t, 24, 3, 0, 0, 6, router.DEP, make([]int, 6)...)
		for r := range p.Tokens {
			p.Tokens[r] = random.IntN(30)
		}
		counts := make([]int64, 24)
		for range p.total() { // each token three experts, unevenly
			perm := random.Perm(24)
			slices.SortStableFunc(perm, func(a, b int) int { return random.IntN(3) * (a - b) })
			for _, e := range perm[:3] {
				counts[e]++
			}
		}
		if p.total() == 0 {
			continue
		}
		if got := loads(t, "replay", p, Options{Counts: counts}).PerExpert; !slices.Equal(got, counts) {
			t.Fatalf("replayed %v, want %v", got, counts)
		}
	}
}

func TestApportion(t *testing.T) {
	check := func(total int64, weights []float64, caps, want []int64) {
		t.Helper()
		if got := apportion(total, weights, caps); !slices.Equal(got, want) {
			t.Errorf("%d by %v up to %v: %v, want %v", total, weights, caps, got, want)
		}
	}
	many := []int64{99, 99, 99}
	check(10, []float64{1, 1, 1}, many, []int64{4, 3, 3})               // ties to the lower index
	check(10, []float64{0.5, 0.3, 0.2}, many, []int64{5, 3, 2})         // exact
	check(10, []float64{6, 3, 1}, []int64{2, 99, 99}, []int64{2, 6, 2}) // 8 left by 3:1
	check(10, []float64{1, 0, 0}, []int64{4, 99, 99}, []int64{4, 3, 3}) // no weight left: evenly
	check(9, []float64{9, 9, 1}, []int64{3, 3, 99}, []int64{3, 3, 3})   // two caps at once
	check(0, []float64{0, 0, 0}, many, []int64{0, 0, 0})
	random := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		n := 1 + random.IntN(9)
		weights, caps, room := make([]float64, n), make([]int64, n), int64(0)
		for i := range weights {
			weights[i], caps[i] = math.Floor(random.Float64()*4)*random.Float64(), int64(random.IntN(20))
			room += caps[i]
		}
		total := random.Int64N(room + 1)
		sum := int64(0)
		for i, x := range apportion(total, weights, caps) {
			if sum += x; x < 0 || x > caps[i] {
				t.Fatalf("%d by %v up to %v: part %d is %d", total, weights, caps, i, x)
			}
		}
		if sum != total {
			t.Fatalf("%d by %v up to %v: the parts sum to %d", total, weights, caps, sum)
		}
	}
}
