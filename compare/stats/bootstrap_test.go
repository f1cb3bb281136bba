package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Spatial perception of 26 children, test A (Efron and Tibshirani, An
// Introduction to the Bootstrap, table 14.1).
var spatial = []float64{48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41}

func plugInVariance(values []float64) float64 {
	mean := Mean(values)
	return squaresAbout(values, mean) / float64(len(values))
}

func TestBCaPublished(t *testing.T) {
	// The book's §14.2–14.3: variance 171.5, 90 % BCa interval 115.8 to 259.6
	// from 2000 resamples, acceleration 0.061, bias 0.146 (both with their own
	// Monte Carlo error).
	r := BCa(spatial, plugInVariance, 0.90, 20_000, rand.NewPCG(4, 1))
	checkNear(t, "variance", r.Estimate, 171.5, 0.05)
	checkNear(t, "acceleration", accelerationOf(spatial, plugInVariance), 0.061, 0.0005)
	checkNear(t, "low", r.Low, 115.8, 2)
	checkNear(t, "high", r.High, 259.6, 5)
	boot := resample(spatial, plugInVariance, 20_000, rand.NewPCG(4, 1))
	checkNear(t, "bias", biasOf(boot, r.Estimate), 0.146, 0.03)
	again := BCa(spatial, plugInVariance, 0.90, 20_000, rand.NewPCG(4, 1))
	if again != r {
		t.Errorf("same seed: have %+v, want %+v", again, r)
	}
}

// For a symmetric statistic of many normal values BCa must agree with theory.
func TestBCaOfMean(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	d := make([]float64, 200)
	for i := range d {
		d[i] = rng.NormFloat64()
	}
	b, s := BCa(d, Mean, 0.95, 10_000, rand.NewPCG(4, 3)), PairedT(d, 0, 0.95)
	checkNear(t, "low", b.Low, s.Low, 0.02)
	checkNear(t, "high", b.High, s.High, 0.02)
}

func TestBCaUndefined(t *testing.T) {
	src := rand.NewPCG(4, 4)
	few := BCa(spatial[:MinBootstrapPairs-1], Mean, 0.95, 1000, src)
	checkNaN(t, "19 values", few.Low, few.High, few.Confidence)
	checkNear(t, "19 values, estimate", few.Estimate, Mean(spatial[:19]), 0)
	if !BCa(spatial[:MinBootstrapPairs], Mean, 0.95, 1000, src).Defined() {
		t.Error("20 values: want an interval")
	}
	equal := BCa(make([]float64, 30), Mean, 0.95, 1000, src)
	checkNaN(t, "no spread", equal.Low, equal.High)
	bad := append([]float64{math.NaN()}, spatial...)
	r := BCa(bad, Mean, 0.95, 1000, src)
	checkNaN(t, "not finite", r.Estimate, r.Low)
	r = BCa(spatial, Mean, 0.95, 99, src)
	checkNaN(t, "few resamples", r.Low)
	checkNaN(t, "no values", Mean(nil), BCa(nil, Mean, 0.95, 1000, src).Estimate)
	r = BCa(spatial, Mean, 1, 1000, src)
	checkNaN(t, "impossible confidence", r.Low, r.High)
}
