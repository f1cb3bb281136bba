package imbalance

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/moebalance/moebalance/router"
)

// The spread of a share is told from pairs of steps at most pairDistance apart, of three
// steps at least.
const (
	pairDistance = 8
	leastSteps   = 3
)

// noiseFloor is the max/mean that n equal ranks would show whose times vary from step to
// step as these do, by step and then by rank:
//
//	1 + σ·E[the largest of n standard normals]
//
// σ is the spread of a rank's share of its step, from the differences of the share between
// near steps. Their lower quartile decides: a rank that is hot in some steps and a load
// that drifts leave it, so that only what varies in all steps is noise. Undefined for fewer
// than three steps with time or two ranks.
func noiseFloor(steps [][]float64) router.Number {
	var shares [][]float64
	for _, step := range steps {
		if mean := stat.Mean(step, nil); mean > 0 && len(step) > 1 {
			share := slices.Clone(step)
			for i := range share {
				share[i] /= mean
			}
			shares = append(shares, share)
		}
	}
	if len(shares) < leastSteps {
		return router.Undefined()
	}
	var apart []float64
	for i, share := range shares {
		for _, later := range shares[i+1 : min(len(shares), i+1+pairDistance)] {
			for r := range share {
				apart = append(apart, math.Abs(later[r]-share[r]))
			}
		}
	}
	slices.Sort(apart)
	// a difference of two shares of n has the variance 2·σ²·(1 − 1/n)
	n := float64(len(shares[0]))
	quartile := distuv.UnitNormal.Quantile(0.625) // of |x|
	sigma := apart[len(apart)/4] / quartile / math.Sqrt(2*(1-1/n))
	return router.Number(1 + sigma*largestNormal(n))
}

// largestNormal is the expected largest of n standard normals.
func largestNormal(n float64) float64 {
	density := func(x float64) float64 {
		return x * n * math.Pow(distuv.UnitNormal.CDF(x), n-1) * distuv.UnitNormal.Prob(x)
	}
	const end, points = 9, 200
	return quad.Fixed(density, -end, end, points, nil, 0)
}
