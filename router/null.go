package router

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// NullOptions says how finely chance is simulated. The zero value means
// NullDraws draws from seed 0.
type NullOptions struct {
	Draws int    // simulated steps; 0 means NullDraws
	Seed  uint64 // same seed, same numbers
}

// NullDraws is the default number of simulated steps: enough that, from seed to
// seed, the 95th percentile of an imbalance (max/mean − 1) has a standard
// deviation of about a twentieth of itself.
const NullDraws = 200

// Null is what chance gives: the balance of a step in which every token chooses
// its experts uniformly at random, distinct ones, within uniformly random
// groups where the shape is grouped. A flag that asks less of real routing than
// of dice would be raised at every small batch.
//
// Quantiles are over the draws, by nearest rank: the least value that at least
// that share of the draws does not exceed. All are undefined without tokens.
type Null struct {
	Tokens       int64  `json:"tokens"` // of all ranks together, in one step of one layer
	Draws        int    `json:"draws"`
	RankMedian   Number `json:"rank_max_over_mean_median"`
	RankP95      Number `json:"rank_max_over_mean_p95"`
	ExpertMedian Number `json:"expert_max_over_mean_median"`
	ExpertP95    Number `json:"expert_max_over_mean_p95"`
	// ActiveMean is E·(1 − (1 − k/E)^T), the expected number of experts with any
	// load: exact, since every token holds a given expert with probability k/E.
	ActiveMean Number `json:"active_experts_mean"`
}

// The largest shape that NullOf simulates and a config may ask for; the tables of
// the sampler grow with k². Real models stay below 1024 experts and top-32.
const (
	maxModelExperts = 1 << 16
	nullMaxTopK     = 512
)

// NullOf simulates steps of the given number of tokens, those of all ranks
// together. The simulation draws from the exact distribution (no normal or
// multinomial approximation) in time that does not grow with the tokens.
// Errors wrap ErrShape.
func NullOf(s Shape, l Layout, tokens int64, o NullOptions) (Null, error) {
	if o.Draws == 0 {
		o.Draws = NullDraws
	}
	n := Null{
		Tokens: tokens, Draws: o.Draws,
		RankMedian: Undefined(), RankP95: Undefined(),
		ExpertMedian: Undefined(), ExpertP95: Undefined(), ActiveMean: Undefined(),
	}
	if err := s.Validate(); err != nil {
		return n, err
	}
	switch {
	case l.Experts() != s.Experts:
		return n, fmt.Errorf("%w: a layout of %d experts for a shape of %d", ErrShape, l.Experts(), s.Experts)
	case s.Experts > maxModelExperts || s.TopK > nullMaxTopK:
		return n, fmt.Errorf("%w: chance is simulated for at most %d experts and top-%d, have %d and %d", ErrShape, maxModelExperts, nullMaxTopK, s.Experts, s.TopK)
	case tokens < 0 || tokens > math.MaxInt64/int64(s.TopK):
		return n, fmt.Errorf("%w: want between 0 and %d tokens, have %d", ErrShape, math.MaxInt64/int64(s.TopK), tokens)
	case o.Draws < 1:
		return n, fmt.Errorf("%w: want at least 1 draw, have %d", ErrShape, o.Draws)
	case tokens == 0:
		return n, nil
	}
	experts, ranks := make([]float64, o.Draws), make([]float64, o.Draws)
	sampler, load := newSubsetSampler(s), NewLoad(s.Experts)
	rng := rand.New(rand.NewPCG(o.Seed, uint64(tokens)))
	for i := range experts {
		clear(load.PerExpert)
		sampler.draw(rng, tokens, load.PerExpert)
		experts[i] = maxOverMean(load.PerExpert)
		ranks[i] = maxOverMean(l.RankLoad(load.PerExpert))
	}
	n.ExpertMedian, n.ExpertP95 = quantile(experts, 0.5), quantile(experts, 0.95)
	n.RankMedian, n.RankP95 = quantile(ranks, 0.5), quantile(ranks, 0.95)
	k, e := float64(s.TopK), float64(s.Experts)
	n.ActiveMean = Number(-e * math.Expm1(float64(tokens)*math.Log1p(-k/e)))
	return n, nil
}

func maxOverMean(parts []int64) float64 {
	var total, most int64
	for _, n := range parts {
		total += n
		most = max(most, n)
	}
	return float64(most) * float64(len(parts)) / float64(total)
}

// quantile is the nearest-rank quantile of values, which it sorts.
func quantile(values []float64, q float64) Number {
	slices.Sort(values)
	return Number(values[max(0, int(math.Ceil(q*float64(len(values))))-1)])
}
