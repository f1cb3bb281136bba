package stats

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

func TestPairedTPublished(t *testing.T) {
	// Student's sleep data as R prints it: t = 4.0621, df = 9, p = 0.002833,
	// interval 0.7001142 to 2.4598858, mean 1.58.
	r := PairedT(sleep, 0.95)
	require.Near(t, "low", r.Low, 0.7001142, 5e-8)
	require.Near(t, "high", r.High, 2.4598858, 5e-8)
	require.Near(t, "mean", r.Estimate, 1.58, 1e-12)
	// Fisher, §17: mean 20.93, t = 2.148 with 14 degrees of freedom.
	m := PairedT(maize, 0.95)
	require.Near(t, "maize mean", m.Estimate, 20.93, 0.005)
	require.Near(t, "maize t", m.Estimate/(m.SD/math.Sqrt(15)), 2.148, 5e-4)
}

// Between six of about 2 and one of 0 the middle is 1, beyond what t reaches: 2.1/2.4469 standard errors. Their noise
// (sd 0.1·√(6/5)) adds t₀.₆₂₅ = 0.33672 of its standard errors. Ten show that nine are of the more frequent kind.
func TestOverGroupsByHand(t *testing.T) {
	seven := []float64{2.1, 1.9, 0, 2.1, 1.9, 2.1, 1.9}
	r, alone := OverGroups(seven, 0.95), PairedT(seven, 0.95)
	require.Near(t, "low", r.Low, 1-0.33672*0.1*math.Sqrt(6./5)*math.Sqrt(1+1./6)/2, 1e-6)
	require.Near(t, "high", r.High, alone.High, 0)
	ten := append(seven, 2, 2, 2)
	require.Near(t, "low of ten", OverGroups(ten, 0.95).Low, PairedT(ten, 0.95).Low, 0)
}

func TestPairedTUndefined(t *testing.T) {
	for _, d := range [][]float64{nil, {1}, {1, math.NaN()}, {1, math.Inf(1)}} {
		if r := PairedT(d, 0.95); !math.IsNaN(r.Low) || !math.IsNaN(r.High) {
			t.Errorf("%v: %+v, want no bounds", d, r)
		}
	}
	require.Near(t, "equal values", PairedT([]float64{0.1, 0.1, 0.1}, 0.95).Low, 0.1, 1e-12)
}

// Effects 0.11 and 0.13 with the normal arm first, 0.05 and 0.07 with it second: means
// 0.12 and 0.06, so the effect is 0.09. The pooled sd is
// √(0.0002/2 + 0.0002/2)… = √0.0002, the standard error √0.0002·√(1/2+1/2)/2 = 0.0070711,
// and t₀.₉₇₅ of 2 degrees of freedom 4.30265.
func TestCrossoverByHand(t *testing.T) {
	first, second := []float64{0.11, 0.13}, []float64{0.05, 0.07}
	r := Crossover(0.95, first, second)
	require.Near(t, "estimate", r.Estimate, 0.09, 1e-15)
	require.Near(t, "low", r.Low, 0.09-4.30265*math.Sqrt(0.0002)/2, 1e-7)
	// Any order effect goes out; unequal orders weigh the same.
	for i := range first {
		first[i] += 0.5
		second[i] -= 0.5
	}
	s := Crossover(0.95, first, second)
	require.Near(t, "shifted estimate", s.Estimate, r.Estimate, 1e-15)
	require.Near(t, "shifted low", s.Low, r.Low, 1e-14)
	require.Near(t, "odd", Crossover(0.95, []float64{1, 2, 3}, []float64{0, 1}).Estimate, 1.25, 1e-15)
}

// Heights of 15 pairs of cross- and self-fertilized maize plants, differences
// in eighths of an inch (Darwin, 1876; Fisher, The Design of Experiments, §§17–21).
var maize = []float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}

// Extra hours of sleep on two drugs, 10 patients (Student, 1908). Holds a zero
// and a tie of absolute values.
var sleep = []float64{1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4}
