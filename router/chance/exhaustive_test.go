//go:build exhaustive

package chance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Means of a simulation token by token that was made independently: 40
// repetitions up to 1,024 tokens, then 8 and 3, printed with two decimals. They
// must lie within 4 standard errors. (The expert column of 256/8 does not
// depend on the ranks; at 256 tokens the three rows say 2.20, 2.09 and 2.09.)
func TestNullKnownTable(t *testing.T) {
	repetitions := map[int64]float64{64: 40, 256: 40, 1024: 40, 4096: 8, 16384: 3}
	for _, c := range []struct {
		experts, topK, ranks int
		tokens               int64
		rank, expert         float64
	}{
		{8, 2, 8, 64, 1.33, 1.33}, {8, 2, 8, 256, 1.17, 0}, {8, 2, 8, 1024, 1.08, 0}, {8, 2, 8, 4096, 1.04, 0},
		{8, 2, 8, 16384, 1.02, 0},
		{128, 4, 8, 64, 1.27, 3.24}, {128, 4, 8, 256, 1.12, 2.02}, {128, 4, 8, 1024, 1.07, 1.48},
		{128, 4, 8, 4096, 1.03, 1.23}, {128, 4, 8, 16384, 1.02, 1.11},
		{256, 8, 8, 64, 1.16, 3.34}, {256, 8, 8, 256, 1.10, 2.20}, {256, 8, 8, 1024, 1.05, 1.51},
		{256, 8, 8, 4096, 1.02, 1.25}, {256, 8, 8, 16384, 1.01, 1.13},
		{256, 8, 32, 64, 1.52, 3.46}, {256, 8, 32, 256, 1.25, 2.09}, {256, 8, 32, 1024, 1.12, 1.55},
		{256, 8, 32, 4096, 1.06, 1.27}, {256, 8, 32, 16384, 1.03, 1.13},
		{256, 8, 64, 64, 1.90, 3.48}, {256, 8, 64, 256, 1.44, 2.09}, {256, 8, 64, 1024, 1.20, 1.52},
		{256, 8, 64, 4096, 1.11, 1.26}, {256, 8, 64, 16384, 1.06, 1.14},
	} {
		s, l := router.Shape{Experts: c.experts, TopK: c.topK}, mustLayout(t, c.experts, c.ranks)
		const draws = 500
		n, err := NullOf(s, l, c.tokens, Options{Draws: draws, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		ranks, experts := make([]float64, draws), make([]float64, draws)
		sampler, rng, load := newSubsetSampler(s), rand.New(rand.NewPCG(1, 2)), make([]int64, c.experts)
		for i := range draws {
			clear(load)
			sampler.draw(rng, c.tokens, load)
			experts[i], ranks[i] = unevenness(load), unevenness(l.RankLoad(load))
		}
		check := func(level string, values []float64, chance *Distribution, want float64) {
			t.Helper()
			name := fmt.Sprintf("%d/%d over %d ranks, %d tokens, %s", c.experts, c.topK, c.ranks, c.tokens, level)
			var m moments
			for _, x := range values {
				m.add(x)
			}
			if limit := 4*m.deviation()/math.Sqrt(repetitions[c.tokens]) + 0.006; want > 0 &&
				math.Abs(m.mean()-want) > limit {
				t.Errorf("%s: mean %.3f, want %.2f within %.3f", name, m.mean(), want, limit)
			}
			checkQuantile(t, name, values, chance.Median(), 0.5, 0.11)
			checkQuantile(t, name, values, chance.P95(), 0.95, 0.05)
		}
		check("rank", ranks, n.Rank, c.rank)
		check("expert", experts, n.Expert, c.expert)
	}
}

// checkQuantile fails unless about a share q of fresh values lies at or below
// the quantile, and no more than about q strictly below: both, as the values
// are discrete.
func checkQuantile(t *testing.T, name string, values []float64, quantile router.Number, q, tolerance float64) {
	t.Helper()
	var below, upTo float64
	for _, x := range values {
		if x < float64(quantile) {
			below++
		}
		if x <= float64(quantile) {
			upTo++
		}
	}
	below, upTo = below/float64(len(values)), upTo/float64(len(values))
	if upTo < q-tolerance || below > q+tolerance {
		t.Errorf("%s: %.3f of the values below the %v quantile %.4f, %.3f up to it", name, below, q, quantile, upTo)
	}
}
