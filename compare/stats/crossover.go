package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// TTest is an estimate with Student's t interval at the confidence asked for.
type TTest struct {
	Interval
	DF int     // degrees of freedom
	SE float64 // standard error of the estimate
	SD float64 // pooled sample standard deviation of one difference, about the mean of its group

	lean float64 // see Leaning
}

// Leaning is the test where something may have raised the mean by as much as bias, or lowered it where that
// is negative: its interval reaches that much further to this side, and a test of a mean there likewise.
//
//	0.10 (0.08 to 0.12) leaning by 0.01 → 0.10 (0.07 to 0.12)
func (t TTest) Leaning(bias float64) TTest {
	t.lean = bias
	t.Low, t.High = t.Low-max(0, bias), t.High+max(0, -bias)
	return t
}

// PairedT estimates the mean of the differences d by their mean, with the interval
//
//	mean ± t₍(1+confidence)/2, n−1₎ · sd/√n
//
// It assumes independent differences that are roughly normal; with heavy tails
// it is conservative, with skewed ones its coverage falls below the nominal.
// The interval is NaN for fewer than 2 differences and for one that is not finite;
// equal differences give one of no width.
//
// Student, Biometrika 6(1), 1908.
func PairedT(d []float64, confidence float64) TTest { return Crossover(confidence, d) }

// Crossover estimates the mean difference of a design in which each pair ran in one of
// two orders, free of what the order adds: of d = effect ± order the mean over the
// orders' means,
//
//	(mean(first) + mean(second)) / 2 ± t₍(1+confidence)/2, n₁+n₂−2₎ · sd·√(1/n₁ + 1/n₂)/2
//
// with the standard deviation pooled within the orders. The groups are the pairs of each order.
// A linear drift adds the same to every pair of an order, and
// so goes out with it. The assumptions are PairedT's, and equal spread in both
// orders. One group alone gives PairedT.
//
// Jones and Kenward, Design and Analysis of Cross-Over Trials, 3rd ed., §2.3.
func Crossover(confidence float64, groups ...[]float64) TTest {
	n, sum, squares, inverse := 0, 0.0, 0.0, 0.0
	for _, d := range groups {
		if !finite(d) || len(d) == 0 {
			sum = math.NaN()
			continue
		}
		mean, sd := meanSD(d)
		n += len(d)
		sum += mean
		inverse += 1 / float64(len(d))
		if len(d) > 1 {
			squares += sd * sd * float64(len(d)-1)
		}
	}
	k := float64(len(groups))
	r := TTest{Interval: undefinedInterval(sum/k, n), DF: n - len(groups), SE: math.NaN(), SD: math.NaN()}
	if r.DF < 1 || math.IsNaN(sum) {
		return r
	}
	r.SD = math.Sqrt(squares / float64(r.DF))
	r.SE = r.SD * math.Sqrt(inverse) / k
	if confidence > 0 && confidence < 1 {
		half := studentsT(r.DF).Quantile((1+confidence)/2) * r.SE
		r.Low, r.High, r.Confidence = r.Estimate-half, r.Estimate+half, confidence
	}
	return r
}

// P is the two-sided p-value of the hypothesis that the mean is m.
func (t TTest) P(m float64) float64 {
	return min(1, 2*math.Min(t.greater(m), t.less(m)))
}

// PWithin is the p-value of the hypothesis that the mean lies outside (low, high), by two
// one-sided tests: below α, the mean is inside, and so is the 1−2α interval. NaN unless
// low < high.
//
// Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987.
func (t TTest) PWithin(low, high float64) float64 {
	if !(low < high) {
		return math.NaN()
	}
	return math.Max(t.greater(low), t.less(high))
}

// greater is small where the mean is above m, less where it is below.
func (t TTest) greater(m float64) float64 { return t.tail((t.Estimate - max(0, t.lean) - m) / t.SE) }
func (t TTest) less(m float64) float64    { return t.tail((m - t.Estimate - max(0, -t.lean)) / t.SE) }

func (t TTest) tail(x float64) float64 {
	switch {
	case t.SE == 0 && math.IsNaN(x):
		return 0.5 // the mean is exactly there
	case math.IsNaN(x) || t.DF < 1:
		return math.NaN()
	}
	return studentsT(t.DF).Survival(x)
}

func studentsT(df int) distuv.StudentsT {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(df)}
}

// meanSD is the mean and the sample standard deviation (divisor n−1), each NaN
// where it is undefined. All-equal values give exactly zero deviation.
func meanSD(d []float64) (mean, sd float64) {
	constant := len(d) > 1
	for _, x := range d {
		constant = constant && x == d[0]
	}
	if constant {
		return d[0], 0
	}
	return stat.MeanStdDev(d, nil)
}
