package safetensors

import "math"

// Float32ToBFloat16 rounds to the nearest bfloat16 (8 exponent and 7 fraction
// bits), ties to even. Values beyond the largest become ±Inf; a NaN stays a NaN
// of the same sign and is made quiet.
func Float32ToBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x0040
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// BFloat16ToFloat32 is exact.
func BFloat16ToFloat32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// Float32ToFloat16 rounds to the nearest IEEE 754 binary16 (5 exponent and 10
// fraction bits), ties to even, subnormals included. Values that round beyond
// 65504 become ±Inf; a NaN stays a NaN of the same sign and is made quiet.
func Float32ToFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, mag := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case mag > 0x7f800000: // NaN: keep the top of the payload
		return sign | 0x7e00 | uint16(mag>>13&0x1ff)
	case mag >= 0x477ff000: // 65520, the midpoint above 65504, and up
		return sign | 0x7c00
	case mag >= 0x38800000: // 2⁻¹⁴ and up: a normal half
		mag -= (127 - 15) << 23
		return sign | uint16((mag+0xfff+mag>>13&1)>>13)
	}
	// Subnormal: adding 0.5 moves the last bit of a float32 to 2⁻²⁴, the
	// spacing of subnormal halves, so the addition itself rounds to even.
	return sign | uint16(math.Float32bits(math.Float32frombits(mag)+0.5)-0x3f000000)
}

// Float16ToFloat32 is exact.
func Float16ToFloat32(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0: // zero or subnormal: frac · 2⁻²⁴
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*0x1p-24))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}
