package chance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
)

// Distribution is that of a max/mean under chance, of one step or of the
// mean over several, as equally likely simulated values. A nil Distribution is that of
// nothing: all of it is undefined.
type Distribution struct{ draws []float64 }

// Median is exceeded by half of the values.
func (c *Distribution) Median() router.Number { return c.quantile(0.5) }

// P95 is exceeded by one value in twenty.
func (c *Distribution) P95() router.Number { return c.quantile(0.95) }

// quantile is by nearest rank: the least value that at least that share of the
// draws does not exceed.
func (c *Distribution) quantile(q float64) router.Number {
	if c == nil {
		return router.Undefined()
	}
	sorted := slices.Sorted(slices.Values(c.draws))
	return router.Number(sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)])
}

// MeanOf is the chance of the mean over independent steps, given that of each,
// all of as many draws; of one step it is that step's own. Undefined without
// steps, and where the chance of any step is.
//
// Each simulated mean takes one draw of every step. Steps that share a Distribution
// also share its error, that of a mean of D draws instead of infinitely many,
// which does not average out: with n steps sharing draws of variance s², the
// deviations from the mean are widened by
//
//	√(1 + Σ n·(n−1)·s²/D / Σ n·s²)
//
// so that P95 is a limit for recorded means, not only for other simulated ones.
func MeanOf(steps []*Distribution) *Distribution {
	if len(steps) == 0 || slices.Contains(steps, nil) {
		return nil
	}
	mean := &Distribution{make([]float64, len(steps[0].draws))}
	rng := rand.New(rand.NewPCG(0, uint64(len(steps))))
	for _, step := range steps {
		mean.add(step, rng.IntN(len(step.draws)))
	}
	center, _ := stat.PopMeanVariance(mean.draws, nil)
	wider := widening(steps) - 1
	for i, x := range mean.draws {
		mean.draws[i] = (x + (x-center)*wider) / float64(len(steps))
	}
	return mean
}

// add adds the draws of another chance, in their order from one of them on.
func (c *Distribution) add(other *Distribution, from int) {
	for i := range c.draws {
		c.draws[i] += other.draws[(from+i)%len(other.draws)]
	}
}

// widening is by how much more a sum over steps deviates than simulated sums
// show; see MeanOf.
func widening(steps []*Distribution) float64 {
	sharing := map[*Distribution]int{}
	for _, c := range steps {
		sharing[c]++
	}
	var own, shared float64 // variances of the sum
	for _, c := range steps {
		n := float64(sharing[c])
		if n == 0 {
			continue
		}
		sharing[c] = 0 // each counts once, in the order of the steps
		_, variance := stat.PopMeanVariance(c.draws, nil)
		own += n * variance
		shared += n * (n - 1) * variance / float64(len(c.draws))
	}
	if own == 0 {
		return 1
	}
	return math.Sqrt(1 + shared/own)
}

// Options says how finely chance is simulated. The zero value means
// DefaultDraws draws from seed 0.
type Options struct {
	Draws int    // simulated steps; 0 means DefaultDraws
	Seed  uint64 // same seed, same numbers
}

// DefaultDraws is the default number of simulated steps: enough that, from seed to
// seed, the 95th percentile of an imbalance (max/mean − 1) has a standard
// deviation of about a twentieth of itself.
const DefaultDraws = 200

// Null is what chance gives: the balance of a step in which every token chooses
// its experts uniformly at random, distinct ones, within uniformly random
// groups where the shape is grouped. A flag that asks less of real routing than
// of dice would be raised at every small batch.
type Null struct {
	Rank, Expert *Distribution // of max/mean over ranks and over experts; nil without tokens
	// ActiveMean is E·(1 − (1 − k/E)^T), the expected number of experts with any
	// load: exact, since every token holds a given expert with probability k/E.
	ActiveMean router.Number
}

// maxTopK is the largest top-k that NullOf simulates: the tables of the sampler
// grow with k². Real models stay below top-32.
const maxTopK = 512

// NullOf simulates steps of the given number of tokens, those of all ranks
// together. The simulation draws from the exact distribution (no normal or
// multinomial approximation) in time that does not grow with the tokens.
// Errors wrap ErrShape.
func NullOf(s router.Shape, l router.Layout, tokens int64, o Options) (Null, error) {
	if o.Draws == 0 {
		o.Draws = DefaultDraws
	}
	n := Null{ActiveMean: router.Undefined()}
	if err := s.Validate(); err != nil {
		return n, err
	}
	switch {
	case l.Experts() != s.Experts:
		return n, fmt.Errorf("%w: a layout of %d experts for a shape of %d", router.ErrShape, l.Experts(), s.Experts)
	case s.Experts > router.MaxExperts || s.TopK > maxTopK:
		return n, fmt.Errorf("%w: chance is simulated for at most %d experts and top-%d, have %d and %d",
			router.ErrShape, router.MaxExperts, maxTopK, s.Experts, s.TopK)
	case tokens < 0 || tokens > math.MaxInt64/int64(s.TopK):
		return n, fmt.Errorf("%w: want between 0 and %d tokens, have %d", router.ErrShape, math.MaxInt64/int64(s.TopK),
			tokens)
	case o.Draws < 1:
		return n, fmt.Errorf("%w: want at least 1 draw, have %d", router.ErrShape, o.Draws)
	case tokens == 0:
		return n, nil
	}
	n.Rank, n.Expert = &Distribution{make([]float64, o.Draws)}, &Distribution{make([]float64, o.Draws)}
	sampler, load := newSubsetSampler(s), router.NewLoad(s.Experts)
	rng := rand.New(rand.NewPCG(o.Seed, uint64(tokens)))
	maxOverMean := func(parts []int64) float64 {
		return float64(router.OverMean(slices.Max(parts), tokens*int64(s.TopK), len(parts)))
	}
	for i := range o.Draws {
		clear(load.PerExpert)
		sampler.draw(rng, tokens, load.PerExpert)
		n.Expert.draws[i] = maxOverMean(load.PerExpert)
		n.Rank.draws[i] = maxOverMean(l.RankLoad(load.PerExpert))
	}
	k, e := float64(s.TopK), float64(s.Experts)
	n.ActiveMean = router.Number(-e * math.Expm1(float64(tokens)*math.Log1p(-k/e)))
	return n, nil
}

// binomial draws the number of successes in n independent trials of probability
// p in [0, 1], exactly, in time that does not grow with n: by inversion where
// few successes are expected, and by transformed rejection elsewhere (Hörmann,
// "The generation of binomial random variates", 1993, algorithm BTRS).
func binomial(rng *rand.Rand, n int64, p float64) int64 {
	switch {
	case n == 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	case p > 0.5:
		return n - binomial(rng, n, 1-p)
	case float64(n)*p < 10:
		return binomialInversion(rng, n, p)
	}
	return binomialRejection(rng, n, p)
}

// binomialInversion walks up the distribution function; it expects n·p < 10.
func binomialInversion(rng *rand.Rand, n int64, p float64) int64 {
	odds, none := p/(1-p), math.Exp(float64(n)*math.Log1p(-p))
	for {
		u, mass := rng.Float64(), none
		for x := int64(0); x <= n; x++ {
			if u < mass {
				return x
			}
			u -= mass
			mass *= odds * float64(n-x) / float64(x+1)
		}
	}
}

// binomialRejection expects p ≤ 0.5 and n·p ≥ 10. The constants are those of
// the paper's table of the BTRS algorithm.
func binomialRejection(rng *rand.Rand, n int64, p float64) int64 {
	trials := float64(n)
	deviation := math.Sqrt(trials * p * (1 - p))
	b := 1.15 + 2.53*deviation
	a := -0.0873 + 0.0248*b + 0.01*p
	c := trials*p + 0.5
	squeeze := 0.92 - 4.2/b
	for {
		u, v := rng.Float64()-0.5, rng.Float64()
		us := 0.5 - math.Abs(u)
		x := math.Floor((2*a/us+b)*u + c)
		if us >= 0.07 && v <= squeeze {
			return int64(x)
		}
		if x < 0 || x > trials {
			continue
		}
		mode := math.Floor((trials + 1) * p)
		v *= (2.83 + 5.1/b) * deviation / (a/(us*us) + b)
		bound := logFactorial(mode) + logFactorial(trials-mode) - logFactorial(x) - logFactorial(trials-x) +
			(x-mode)*math.Log(p/(1-p))
		if math.Log(v) <= bound {
			return int64(x)
		}
	}
}

func logFactorial(n float64) float64 {
	l, _ := math.Lgamma(n + 1)
	return l
}
