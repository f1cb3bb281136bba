package stats

import (
	"math"
	"testing"
)

func TestPairedTPublished(t *testing.T) {
	// Student's sleep data as R prints it: t = 4.0621, df = 9, p = 0.002833,
	// interval 0.7001142 to 2.4598858, mean 1.58.
	r := PairedT(sleep, 0, 0.95)
	checkNear(t, "t", r.T, 4.0621, 5e-5)
	checkNear(t, "df", r.DF, 9, 0)
	checkNear(t, "p", r.P, 0.002833, 5e-7)
	checkNear(t, "low", r.Low, 0.7001142, 5e-8)
	checkNear(t, "high", r.High, 2.4598858, 5e-8)
	checkNear(t, "mean", r.Estimate, 1.58, 1e-12)
	checkNear(t, "one-sided", r.PGreater, r.P/2, 1e-15)
	// Fisher, §17: mean 20.93, t = 2.148 with 14 degrees of freedom.
	m := PairedT(maize, 0, 0.95)
	checkNear(t, "maize mean", m.Estimate, 20.93, 0.005)
	checkNear(t, "maize t", m.T, 2.148, 5e-4)
	checkNear(t, "maize p", m.P, 0.0497, 5e-5)
}

func TestPairedTByHand(t *testing.T) {
	// 1, 3: mean 2, sd √2, standard error 1; against 1 t = 1 with 1 degree of
	// freedom, where P(|T| > 1) = ½ and t₀.₉₇₅ = 12.7062.
	r := PairedT([]float64{1, 3}, 1, 0.95)
	checkNear(t, "t", r.T, 1, 1e-15)
	checkNear(t, "p", r.P, 0.5, 1e-12)
	checkNear(t, "low", r.Low, 2-12.7062, 1e-4)
	checkNear(t, "sd", r.SD, math.Sqrt2, 1e-15)
}

func TestPairedTUndefined(t *testing.T) {
	for _, d := range [][]float64{nil, {1}, {0.1, 0.1, 0.1}, {1, math.NaN()}, {1, math.Inf(1)}} {
		r := PairedT(d, 0, 0.95)
		checkNaN(t, "p and bounds", r.P, r.Low, r.High, r.PGreater, r.PLess)
	}
	for _, confidence := range []float64{0, 1, math.NaN()} {
		r := PairedT(sleep, 0, confidence)
		checkNaN(t, "impossible confidence", r.Low, r.High, r.Confidence)
		checkNear(t, "impossible confidence, p", r.P, 0.002833, 5e-7)
	}
	checkNear(t, "equal values, mean", PairedT([]float64{0.1, 0.1, 0.1}, 0, 0.95).Estimate, 0.1, 0)
}
