package chance

import (
	"math"
	"math/rand/v2"
)

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

// binomialRejection expects p ≤ 0.5 and n·p ≥ 10. The constants stand in
// the paper's table for the BTRS algorithm.
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
