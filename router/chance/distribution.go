package chance

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
)

// Distribution is how a max/mean is distributed under chance, for one step or the
// mean over several, as equally likely simulated values. A nil Distribution describes
// nothing: all of it is undefined.
type Distribution struct{ draws []float64 }

// Median is exceeded by half of the values.
func (d *Distribution) Median() router.Number { return d.quantile(0.5) }

// P95 is exceeded by one value in twenty.
func (d *Distribution) P95() router.Number { return d.quantile(0.95) }

// quantile is by nearest rank: the least value that at least that share of the
// draws does not exceed.
func (d *Distribution) quantile(q float64) router.Number {
	if d == nil {
		return router.Undefined()
	}
	sorted := slices.Sorted(slices.Values(d.draws))
	return router.Number(sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)])
}

// MeanOf is the chance of the mean over independent steps, given each step's
// own, all with as many draws; for one step it is that step's. Undefined without
// steps, and where the chance of any step is.
//
// Each simulated mean takes one draw of every step. Steps that share a Distribution
// also share its error, because D draws stand for infinitely many,
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
		from := rng.IntN(len(step.draws)) // in their order from one of them on
		for i := range mean.draws {
			mean.draws[i] += step.draws[(from+i)%len(step.draws)]
		}
	}
	center, _ := stat.PopMeanVariance(mean.draws, nil)
	wider := widening(steps) - 1
	for i, x := range mean.draws {
		mean.draws[i] = (x + (x-center)*wider) / float64(len(steps))
	}
	return mean
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
