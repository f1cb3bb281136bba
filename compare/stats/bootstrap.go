package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// MinBootstrapPairs is the fewest differences for which BCa gives an interval.
// Of 20 pairs of normal noise a 95 % BCa interval covers about 93 %, of fewer
// less; the exact interval of HodgesLehmann covers 95 % of any number.
const MinBootstrapPairs = 20

// BCa is the bias-corrected and accelerated bootstrap interval of a statistic
// of the values: resamples drawn with replacement from src, percentiles shifted
// by the bias z₀ = Φ⁻¹(share of resampled statistics below the observed one,
// half of those equal to it) and by the acceleration
//
//	a = Σ(ū−uᵢ)³ / (6·(Σ(ū−uᵢ)²)^(3/2)),   uᵢ the statistic without value i
//
// The statistic must not keep or change the slice it is given. Bounds are
// order statistics of the resampled values, so at least a few thousand
// resamples are wanted. The bounds are NaN for fewer than MinBootstrapPairs
// values, fewer than 100 resamples, a value or statistic that is not finite, or
// when the statistic never varies. Cost: (resamples + n) calls of the statistic.
//
// Efron, Journal of the American Statistical Association 82(397), 1987; Efron
// and Tibshirani, An Introduction to the Bootstrap, 1993, §14.3.
func BCa(values []float64, statistic func([]float64) float64, confidence float64, resamples int, src rand.Source) Interval {
	n := len(values)
	if n == 0 || !finite(values) {
		return undefinedInterval(math.NaN(), n)
	}
	result := undefinedInterval(statistic(values), n)
	if n < MinBootstrapPairs || resamples < 100 || !(confidence > 0 && confidence < 1) {
		return result
	}
	boot := resample(values, statistic, resamples, src)
	if !finite(boot) || boot[0] == boot[len(boot)-1] {
		return result
	}
	bias := biasOf(boot, result.Estimate)
	acceleration := accelerationOf(values, statistic)
	bound := func(p float64) float64 {
		z := bias + distuv.UnitNormal.Quantile(p)
		shifted := distuv.UnitNormal.CDF(bias + z/(1-acceleration*z))
		place := int(shifted * float64(resamples+1))
		return boot[min(max(place, 1), resamples)-1]
	}
	if math.IsNaN(bias) || math.IsInf(bias, 0) || math.IsNaN(acceleration) {
		return result
	}
	result.Low, result.High = bound((1-confidence)/2), bound((1+confidence)/2)
	result.Confidence = confidence
	return result
}

// resample is the statistic of each resample, ascending.
func resample(values []float64, statistic func([]float64) float64, resamples int, src rand.Source) []float64 {
	rng := rand.New(src)
	sample := make([]float64, len(values))
	boot := make([]float64, resamples)
	for b := range boot {
		for i := range sample {
			sample[i] = values[rng.IntN(len(values))]
		}
		boot[b] = statistic(sample)
	}
	slices.Sort(boot)
	return boot
}

func biasOf(boot []float64, observed float64) float64 {
	var below float64
	for _, b := range boot {
		switch {
		case b < observed:
			below++
		case b == observed:
			below += 0.5
		}
	}
	return distuv.UnitNormal.Quantile(below / float64(len(boot)))
}

func accelerationOf(values []float64, statistic func([]float64) float64) float64 {
	without := make([]float64, len(values))
	rest := make([]float64, len(values)-1)
	for i := range values {
		copy(rest, values[:i])
		copy(rest[i:], values[i+1:])
		without[i] = statistic(rest)
	}
	mean, _ := meanSD(without)
	var squares, cubes float64
	for _, u := range without {
		squares += (mean - u) * (mean - u)
		cubes += (mean - u) * (mean - u) * (mean - u)
	}
	if squares == 0 {
		return 0
	}
	return cubes / (6 * math.Pow(squares, 1.5))
}

// Mean is the arithmetic mean, a statistic for BCa; NaN for no values.
func Mean(values []float64) float64 {
	mean, _ := meanSD(values)
	return mean
}
