package stats

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// BlockFit is the least-squares fit of a design in blocks: every block holds each
// treatment once, one after another, and a value is
//
//	block + treatment + position + noise
//
// It generalizes Crossover, whose pairs are blocks of two, to more treatments: the
// effects of the treatments are free of what each position adds, and of a linear drift.
// It assumes independent noise of one standard deviation in all treatments.
//
// Jones and Kenward, Design and Analysis of Cross-Over Trials, 3rd ed., ch. 4.
type BlockFit struct {
	N  int     // blocks
	DF int     // (a−1)·(N−2) for a treatments; (a−1)·(N−1) where all blocks have one order
	SD float64 // residual standard deviation of one value
	// Effects are the treatments against the first, from 1; Effects[0] is 0.
	Effects  []float64
	variance *mat.Dense // of Effects[1:], in units of SD²
}

// Block is the values of a block by treatment, and the position of each, from 0.
type Block struct {
	Values    []float64
	Positions []int
}

// FitBlocks fits blocks of as many treatments each, at least 2. Where the orders do not
// tell treatments from positions, the positions are left out. N is 0 where a value is
// not finite or there is no degree of freedom.
func FitBlocks(blocks []Block) BlockFit {
	if f, ok := fitBlocks(blocks, true); ok {
		return f
	}
	f, _ := fitBlocks(blocks, false)
	return f
}

func fitBlocks(blocks []Block, positions bool) (f BlockFit, ok bool) {
	if len(blocks) == 0 {
		return f, false
	}
	a := len(blocks[0].Values)
	columns := a - 1
	if positions {
		columns *= 2
	}
	f.N, f.DF = len(blocks), (a-1)*len(blocks)-columns
	if f.DF < 1 {
		return BlockFit{}, false
	}
	// Within a block every column sums to the same, so centering takes the blocks out.
	x, y := mat.NewDense(a*len(blocks), columns, nil), mat.NewVecDense(a*len(blocks), nil)
	for i, b := range blocks {
		mean, _ := meanSD(b.Values)
		for t, v := range b.Values {
			row := i*a + t
			y.SetVec(row, v-mean)
			for c := range columns {
				hit := c < a-1 && t == c+1 || c >= a-1 && b.Positions[t] == c-(a-1)+1
				x.Set(row, c, -1/float64(a))
				if hit {
					x.Set(row, c, 1-1/float64(a))
				}
			}
		}
	}
	var normal, inverse mat.Dense
	normal.Mul(x.T(), x)
	if err := inverse.Inverse(&normal); err != nil { // also where it is nearly singular
		return BlockFit{}, false
	}
	var xy, beta, fitted mat.VecDense
	xy.MulVec(x.T(), y)
	beta.MulVec(&inverse, &xy)
	fitted.MulVec(x, &beta)
	squares := 0.0
	for i := range y.Len() {
		squares += math.Pow(y.AtVec(i)-fitted.AtVec(i), 2)
	}
	f.SD = math.Sqrt(squares / float64(f.DF))
	if math.IsNaN(f.SD) || math.IsInf(f.SD, 0) {
		return BlockFit{}, false
	}
	f.Effects, f.variance = []float64{0}, mat.DenseCopyOf(inverse.Slice(0, a-1, 0, a-1))
	for t := range a - 1 {
		f.Effects = append(f.Effects, beta.AtVec(t))
	}
	return f, true
}

// Effect is that of a treatment, from 1, against the first, with Student's t interval.
// TTest.SD is the standard deviation of a difference within a block.
func (f BlockFit) Effect(treatment int, confidence float64) TTest {
	if f.N == 0 {
		return TTest{Interval: undefinedInterval(math.NaN(), 0), SE: math.NaN(), SD: math.NaN()}
	}
	r := TTest{Interval: undefinedInterval(f.Effects[treatment], f.N), DF: f.DF, SD: f.SD * math.Sqrt2}
	r.SE = f.SD * math.Sqrt(f.variance.At(treatment-1, treatment-1))
	if confidence > 0 && confidence < 1 {
		half := studentsT(f.DF).Quantile((1+confidence)/2) * r.SE
		r.Low, r.High, r.Confidence = r.Estimate-half, r.Estimate+half, confidence
	}
	return r
}

// Ratio is the effect of one treatment over that of another, with Fieller's interval.
func (f BlockFit) Ratio(part, whole int, confidence float64) Interval {
	if f.N == 0 {
		return undefinedInterval(math.NaN(), 0)
	}
	at := func(i, j int) float64 { return f.SD * f.SD * f.variance.At(i-1, j-1) }
	return fieller(f.Effects[part], f.Effects[whole], at(part, part), at(part, whole), at(whole, whole), f.N, f.DF,
		confidence)
}

// Ratio is the mean of the differences part over that of whole, their partners, with
// Fieller's interval.
func Ratio(part, whole []float64, confidence float64) Interval {
	n := len(part)
	if n < 2 || n != len(whole) || !finite(part) || !finite(whole) {
		return undefinedInterval(math.NaN(), n)
	}
	covariance := func(a, b []float64) float64 { return stat.Covariance(a, b, nil) / float64(n) }
	return fieller(stat.Mean(part, nil), stat.Mean(whole, nil), covariance(part, part), covariance(part, whole),
		covariance(whole, whole), n, n-1, confidence)
}

// fieller is all θ at which a − θ·b is not different from zero, by the variances of the
// estimates a and b and their covariance. It is undefined where the interval of b contains
// zero, because the set is then not bounded.
//
// Fieller, Journal of the Royal Statistical Society B 16(2), 1954.
func fieller(a, b, varA, cov, varB float64, n, df int, confidence float64) Interval {
	t := studentsT(df).Quantile((1 + confidence) / 2)
	r := undefinedInterval(a/b, n)
	square, half, rest := b*b-t*t*varB, a*b-t*t*cov, a*a-t*t*varA
	if square > 0 {
		root := math.Sqrt(max(0, half*half-square*rest)) // below 0 by rounding only
		r.Low, r.High, r.Confidence = (half-root)/square, (half+root)/square, confidence
	}
	return r
}
