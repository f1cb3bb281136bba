package safetensors

import "math"

// BFloat16ToFloat32 is exact.
func BFloat16ToFloat32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// Float16ToFloat32 is exact: the bits of an IEEE 754 binary16 (5 exponent and 10
// fraction bits), moved to their places in a float32, are the value times 2⁻¹¹²,
// subnormals included.
func Float16ToFloat32(h uint16) float32 {
	b := math.Float32bits(math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112)
	if h&0x7c00 == 0x7c00 { // infinities and NaN
		b |= 0x7f800000
	}
	return math.Float32frombits(b | uint32(h&0x8000)<<16)
}
