package router

import "math"

// The scores below are the real functions, computed in float64 and rounded to
// float32 once. GPU kernels round several times and may differ in the last bit.

// sigmoid is σ(x) = 1/(1+e⁻ˣ), in [0, 1]; exactly 1 from about x = 17.4 on.
func sigmoid(x float32) float32 {
	return float32(1 / (1 + math.Exp(-float64(x))))
}

// sqrtSoftplus is √ln(1+eˣ), at least 0 and, for large x, about √x.
func sqrtSoftplus(x float32) float32 {
	v := float64(x)
	if v > 40 { // e⁻⁴⁰ is below half a unit in the last place of 40
		return float32(math.Sqrt(v))
	}
	return float32(math.Sqrt(math.Log1p(math.Exp(v))))
}

// Score is what a method that adds a correction bias makes of a logit before it does:
// its sigmoid, or the square root of its softplus for DeepSeekV4.
func (m Method) Score(logit float32) float32 {
	if m == DeepSeekV4 {
		return sqrtSoftplus(logit)
	}
	return sigmoid(logit)
}

// GroupScore is the score by which DeepSeekV3 ranks a group of experts: the sum of its
// two largest scores, or the only one.
func GroupScore(scores []float32) float32 { return topTwo(scores) }
