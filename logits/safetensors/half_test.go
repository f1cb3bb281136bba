package safetensors

import (
	"math"
	"testing"
)

// slowDecode is the definition of a binary interchange format (IEEE 754-2008
// §3.4) in float64: sign, exponent and fraction taken apart by arithmetic.
func slowDecode(h uint16, expBits, fracBits int) float64 {
	bias := 1<<(expBits-1) - 1
	exp := int(h>>fracBits) & (1<<expBits - 1)
	frac := float64(h & (1<<fracBits - 1))
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, 1-bias-fracBits)
	case 1<<expBits - 1:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1+math.Ldexp(frac, -fracBits), exp-bias)
}

func TestHalfDecodesEveryPattern(t *testing.T) {
	for i := range 1 << 16 {
		h, decoded := uint16(i), [2]float32{}
		for at, d := range []DType{F16, BF16} {
			if err := Decode(decoded[at:at+1], []byte{byte(h), byte(h >> 8)}, d); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			name string
			got  float32
			want float64
		}{
			{"float16", decoded[0], slowDecode(h, 5, 10)},
			{"bfloat16", decoded[1], slowDecode(h, 8, 7)},
		} {
			same := float64(c.got) == c.want && math.Signbit(float64(c.got)) == math.Signbit(c.want)
			if !same && !(c.got != c.got && math.IsNaN(c.want)) {
				t.Fatalf("%s %#04x: got %v, want %v", c.name, h, c.got, c.want)
			}
		}
	}
}
