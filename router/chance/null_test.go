package chance

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// bruteForce lets every token choose, one by one: random groups by a partial
// shuffle, then random experts of those groups likewise.
func bruteForce(rng *rand.Rand, s router.Shape, tokens int, load []int64) {
	groups, allowed := s.Experts/s.GroupSize(), s.GroupLimit()
	order := rng.Perm
	for range tokens {
		var pool []int
		for _, g := range order(groups)[:allowed] {
			for i := range s.GroupSize() {
				pool = append(pool, g*s.GroupSize()+i)
			}
		}
		for _, i := range order(len(pool))[:s.TopK] {
			load[pool[i]]++
		}
	}
}

func mustLayout(experts, ranks int) router.Layout {
	return require.Value(router.Contiguous(experts, ranks))
}

func unevenness(parts []int64) float64 { return float64(router.BalanceOf(parts).MaxOverMean) }

// The sampler and a simulation token by token must agree in distribution: the
// mean and the spread of the largest expert, of the largest rank, of one fixed
// expert, and the covariance of two experts of one group.
func TestSubsetSamplerAgainstBruteForce(t *testing.T) {
	const draws = 6000
	for _, c := range []struct {
		shape  router.Shape
		ranks  int
		tokens int
	}{
		{router.Shape{Experts: 8, TopK: 2}, 4, 3},
		{router.Shape{Experts: 8, TopK: 8}, 4, 5},
		{router.Shape{Experts: 7, TopK: 3}, 3, 40},
		{router.Shape{Experts: 32, TopK: 4}, 8, 64},
		{router.Shape{Experts: 16, TopK: 3, Groups: 4, TopKGroups: 2}, 4, 9},
		{router.Shape{Experts: 24, TopK: 4, Groups: 3, TopKGroups: 1}, 3, 50},
		{router.Shape{Experts: 16, TopK: 4, Groups: 8, TopKGroups: 2}, 4, 21}, // every chosen group is used up
		{router.Shape{Experts: 16, TopK: 2, Groups: 8, TopKGroups: 4}, 4, 21}, // and may not be used
	} {
		layout := mustLayout(c.shape.Experts, c.ranks)
		sampler := &subsetSampler{shape: c.shape, splits: map[[2]int][][]float64{}}
		measure := func(seed uint64, draw func(*rand.Rand, []int64)) [4][]float64 {
			rng := rand.New(rand.NewPCG(seed, 7))
			var out [4][]float64
			load := make([]int64, c.shape.Experts)
			for range draws {
				clear(load)
				draw(rng, load)
				var total int64
				for e, n := range load {
					total += n
					if n < 0 || n > int64(c.tokens) {
						t.Fatalf("%v: expert %d got %d of %d tokens", c.shape, e, n, c.tokens)
					}
				}
				if total != int64(c.tokens*c.shape.TopK) {
					t.Fatalf("%v: %d slots, want %d", c.shape, total, c.tokens*c.shape.TopK)
				}
				out[0] = append(out[0], unevenness(load))
				out[1] = append(out[1], unevenness(layout.RankLoad(load)))
				out[2] = append(out[2], float64(load[len(load)-1]))
				out[3] = append(out[3], float64(load[0]*load[1]))
			}
			return out
		}
		got := measure(1, func(rng *rand.Rand, load []int64) { sampler.draw(rng, int64(c.tokens), load) })
		want := measure(2, func(rng *rand.Rand, load []int64) { bruteForce(rng, c.shape, c.tokens, load) })
		for i, name := range []string{"largest expert", "largest rank", "last expert", "product of two experts"} {
			checkSame(t, c.shape.String()+": "+name, got[i], want[i])
		}
	}
}

// checkSame fails when two samples' means differ by more than 4.5 standard
// errors or their deviations by more than 12 %.
func checkSame(t *testing.T, what string, a, b []float64) {
	t.Helper()
	meanA, sdA := stat.PopMeanStdDev(a, nil)
	meanB, sdB := stat.PopMeanStdDev(b, nil)
	if limit := 4.5*math.Hypot(sdA, sdB)/math.Sqrt(float64(len(a))) + 1e-9; math.Abs(meanA-meanB) > limit {
		t.Errorf("%s: mean %.5f against %.5f, more than %.5f apart", what, meanA, meanB, limit)
	}
	if math.Abs(sdA-sdB) > 0.12*sdB+1e-9 {
		t.Errorf("%s: deviation %.5f against %.5f", what, sdA, sdB)
	}
}

// Binomials have their mean and deviation, drawn exactly and as normal numbers.
func TestBinomialMoments(t *testing.T) {
	for _, n := range []float64{1e4, 1e6} {
		rng, drawn, deviation := rand.New(rand.NewPCG(5, 6)), make([]float64, 20_000), math.Sqrt(n*0.3*0.7)
		for i := range drawn {
			drawn[i] = float64(binomial(rng, int64(n), 0.3))
		}
		mean, sd := stat.PopMeanStdDev(drawn, nil)
		if math.Abs(mean-0.3*n) > deviation/30 || math.Abs(sd/deviation-1) > 0.025 {
			t.Errorf("of %v trials: %v ± %v, want %v ± %v", n, mean, sd, 0.3*n, deviation)
		}
	}
}

func TestNullEdges(t *testing.T) {
	one, l := router.Shape{Experts: 4, TopK: 4}, mustLayout(4, 2)
	n, err := NullOf(one, l, 10, 0)
	if err != nil || n.Rank.P95() != 1 || n.Expert.P95() != 1 ||
		len(n.Rank.draws) != simulations {
		t.Errorf("all experts chosen by all tokens: %+v, %v", n, err)
	}
	n, err = NullOf(one, l, 0, 0)
	if err != nil || n.Rank.P95().Defined() || n.Expert.Median().Defined() {
		t.Errorf("no tokens: %+v, %v", n, err)
	}
	if n, err = NullOf(router.Shape{Experts: 8, TopK: 2}, mustLayout(8, 2), 1<<60, 0); err != nil ||
		!(n.Expert.P95() < 1.001) {
		t.Errorf("more tokens than floats count: %v, %v", n.Expert.P95(), err)
	}
	if n, err = NullOf(router.Shape{Experts: 8, TopK: 2}, mustLayout(8, 2), 1, 0); err != nil || n.Expert.P95() != 4 {
		t.Errorf("one token: %v, %v", n.Expert.P95(), err)
	}
	a, _ := NullOf(router.Shape{Experts: 32, TopK: 4}, mustLayout(32, 4), 100, 9)
	b, _ := NullOf(router.Shape{Experts: 32, TopK: 4}, mustLayout(32, 4), 100, 9)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the same seed gave %+v and %+v", a, b)
	}
	for shape, experts := range map[router.Shape]int{one: 8, {Experts: router.MaxExperts + 1, TopK: 2}: router.MaxExperts + 1,
		{Experts: 1024, TopK: maxTopK + 1}: 1024} { // a layout of others, and shapes beyond the tables
		if _, err := NullOf(shape, mustLayout(experts, 1), 1, 0); err == nil {
			t.Errorf("%v on %d experts: no error", shape, experts)
		}
	}
}

// Steps share a null where their tokens agree in seven bits; without a top-k or a layout there is none.
func TestNullsOfSteps(t *testing.T) {
	s, l := router.Shape{Experts: 8, TopK: 2}, mustLayout(8, 2)
	nulls := NullsOf(s)
	for tokens, rounded := range map[int64]int64{127: 127, 129: 130, 255: 256, 261: 260, 262: 264, 1 << 20: 1 << 20} {
		want := require.Value(NullOf(s, l, rounded, 0))
		if have, err := nulls.Of(l, 0, 2*tokens); err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%d tokens: have %v, want the null of %d: %v", tokens, have.Rank.P95(), rounded, err)
		}
	}
	for _, none := range []Null{require.Value(NullsOf(router.Shape{Experts: 8}).Of(l, 0, 100)),
		require.Value(nulls.Of(router.Layout{}, 1, 100))} {
		if none.Rank != nil || none.Expert != nil {
			t.Errorf("have %+v, want none", none)
		}
	}
}
