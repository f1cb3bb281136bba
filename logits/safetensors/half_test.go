package safetensors

import (
	"math"
	"testing"
)

// Every kind of a half-precision number, by IEEE 754: zeros, subnormals, the ends of the normal ones,
// infinities.
func TestHalfPrecision(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		dtype DType
		bits  uint16
		want  float64
	}{
		{F16, 0x0000, 0}, {F16, 0x8000, math.Copysign(0, -1)}, {F16, 0x0001, 0x1p-24}, {F16, 0x83ff, -0x1.ff8p-15},
		{F16, 0x0400, 0x1p-14}, {F16, 0x3c01, 1 + 0x1p-10}, {F16, 0xfbff, -65504}, {F16, 0x7c00, inf}, {F16, 0xfc00, -inf},
		{BF16, 0x8000, math.Copysign(0, -1)}, {BF16, 0x0001, 0x1p-133}, {BF16, 0x3f81, 1 + 0x1p-7}, {BF16, 0xff80, -inf},
	} {
		var got [1]float32
		if err := Decode(got[:], []byte{byte(c.bits), byte(c.bits >> 8)}, c.dtype); err != nil ||
			float64(got[0]) != c.want || math.Signbit(float64(got[0])) != math.Signbit(c.want) {
			t.Errorf("%s %#04x: %v, want %v, %v", c.dtype, c.bits, got[0], c.want, err)
		}
	}
	for d, bits := range map[DType]uint16{F16: 0x7c01, BF16: 0xffc0} {
		var got [1]float32
		if err := Decode(got[:], []byte{byte(bits), byte(bits >> 8)}, d); err != nil || got[0] == got[0] {
			t.Errorf("%s %#04x: %v is a number, %v", d, bits, got[0], err)
		}
	}
}
