package chance

import (
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/moebalance/moebalance/router"
)

// simulations is how many steps are simulated: enough that, from seed to
// seed, the 95th percentile of an imbalance (max/mean − 1) has a standard
// deviation of about a twentieth of itself.
const simulations = 200

// Null is what chance gives: the balance of a step in which every token chooses
// its experts uniformly at random, distinct ones, within uniformly random
// groups where the shape is grouped. A flag that asks less of real routing than
// of dice would be raised at every small batch.
type Null struct {
	Rank, Expert *Distribution // of max/mean over ranks and over experts; nil without tokens
}

// Nulls are what chance gives steps of one shape.
type Nulls struct {
	shape router.Shape
	known map[[2]int64]Null // by layout and tokens
}

// NullsOf simulates what it is asked for.
func NullsOf(s router.Shape) Nulls { return Nulls{s, map[[2]int64]Null{}} }

// Of is the null of a step with so many slots, by the number of its layout; undefined where top-k or the layout is not
// known. Token counts above 128 are rounded to 7 significant bits, so that a long record does
// not need a simulation per step: at most 0.8 % of the tokens and 0.4 % of the
// imbalance that chance gives, a seventh of what 200 draws leave uncertain.
func (n Nulls) Of(l router.Layout, number int, slots int64) (null Null, err error) {
	if n.shape.TopK == 0 || l.Experts() == 0 {
		return null, nil
	}
	tokens := slots / int64(n.shape.TopK)
	if shift := bits.Len64(uint64(tokens)) - 7; shift > 0 {
		tokens = (tokens + 1<<(shift-1)) >> shift << shift
	}
	key := [2]int64{int64(number), tokens}
	null, known := n.known[key]
	if !known {
		null, err = NullOf(n.shape, l, tokens, 0)
		n.known[key] = null
	}
	return null, err
}

// maxTopK is the largest top-k that NullOf simulates: the tables of the sampler
// grow with k². Real models stay below top-32.
const maxTopK = 512

// mostTokens bounds the tokens of a simulated step: chance leaves of more an imbalance below a millionth, which floats
// do not tell.
const mostTokens = 1 << 40

// NullOf simulates steps of the given number of tokens, counted over all ranks
// together. The simulation draws from the exact distribution, but for binomials of
// many trials (see binomial), in time that does not grow with the tokens.
// The same seed gives the same numbers. Errors wrap ErrShape.
func NullOf(s router.Shape, l router.Layout, tokens int64, seed uint64) (n Null, err error) {
	if err := s.Validate(); err != nil {
		return n, err
	}
	switch {
	case l.Experts() != s.Experts:
		return n, fmt.Errorf("%w: a layout of %d experts for a shape of %d", router.ErrShape, l.Experts(), s.Experts)
	case s.Experts > router.MaxExperts || s.TopK > maxTopK:
		return n, fmt.Errorf("%w: chance is simulated for at most %d experts and top-%d, have %d and %d",
			router.ErrShape, router.MaxExperts, maxTopK, s.Experts, s.TopK)
	case tokens < 1:
		return n, nil
	}
	n.Rank, n.Expert = &Distribution{make([]float64, simulations)}, &Distribution{make([]float64, simulations)}
	sampler, load := &subsetSampler{shape: s, splits: map[[2]int][][]float64{}}, router.NewLoad(s.Experts)
	tokens = min(tokens, mostTokens)
	rng := rand.New(rand.NewPCG(seed, uint64(tokens)))
	for i := range simulations {
		clear(load.PerExpert)
		sampler.draw(rng, tokens, load.PerExpert)
		n.Expert.draws[i] = load.Experts().MaxOverMean.Float64()
		n.Rank.draws[i] = load.Ranks(l).MaxOverMean.Float64()
	}
	return n, nil
}
