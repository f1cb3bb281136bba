package router

import "math"

// The scores below are the real functions in float64. Routers round them to float32
// once; GPU kernels round several times and may differ in the last bit.

// Score is what a method that adds a correction bias makes of a logit before it does:
// its sigmoid, or the square root of its softplus for DeepSeekV4.
func (m Method) Score(logit float32) float64 {
	if m == DeepSeekV4 {
		return sqrtSoftplus(logit)
	}
	return sigmoid(logit)
}

// sigmoid is σ(x) = 1/(1+e⁻ˣ), in [0, 1]; as a float32 exactly 1 from about x = 17.4 on.
func sigmoid(x float32) float64 { return 1 / (1 + math.Exp(-float64(x))) }

// sqrtSoftplus is √ln(1+eˣ), at least 0 and, for large x, about √x.
func sqrtSoftplus(x float32) float64 {
	return math.Sqrt(math.Max(float64(x), 0) + math.Log1p(math.Exp(-math.Abs(float64(x)))))
}
