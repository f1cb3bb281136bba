package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// TTest is the result of PairedT.
type TTest struct {
	Interval         // mean, with the t interval at the confidence asked for
	T        float64 // (mean − m) / standard error
	DF       float64 // n − 1
	// P is two-sided; PGreater is small when the mean is above m, PLess when it
	// is below.
	P, PGreater, PLess float64
	SD                 float64 // sample standard deviation, divisor n−1
}

// PairedT is Student's t test that the mean of the differences d is m, with
// the interval
//
//	mean ± t₍(1+confidence)/2, n−1₎ · sd/√n
//
// It assumes independent differences that are roughly normal; with heavy tails
// it is conservative, with skewed ones its coverage falls below the nominal.
// Interval and p are NaN for fewer than 2 differences, for one that is not
// finite, and when all are equal, where the spread is unknown rather than nil.
//
// Student, Biometrika 6(1), 1908.
func PairedT(d []float64, m, confidence float64) TTest {
	n := len(d)
	mean, sd := meanSD(d)
	r := TTest{
		Interval: undefinedInterval(mean, n), T: math.NaN(), DF: float64(n - 1),
		P: math.NaN(), PGreater: math.NaN(), PLess: math.NaN(), SD: sd,
	}
	if !finite(d) || n < 2 || sd == 0 {
		return r
	}
	se := sd / math.Sqrt(float64(n))
	null := studentsT(n - 1)
	r.T = (mean - m) / se
	r.PGreater, r.PLess = null.Survival(r.T), null.CDF(r.T)
	r.P = min(1, 2*min(r.PGreater, r.PLess))
	if confidence > 0 && confidence < 1 {
		half := null.Quantile((1+confidence)/2) * se
		r.Low, r.High, r.Confidence = mean-half, mean+half, confidence
	}
	return r
}

func studentsT(df int) distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(df)}
}

// meanSD is the mean and the sample standard deviation (divisor n−1), each NaN
// where it is undefined. All-equal values give exactly zero deviation.
func meanSD(d []float64) (mean, sd float64) {
	if len(d) > 1 && !slices.ContainsFunc(d, func(x float64) bool { return x != d[0] }) {
		return d[0], 0
	}
	return stat.MeanStdDev(d, nil)
}
