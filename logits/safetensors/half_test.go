package safetensors

import (
	"math"
	"math/rand/v2"
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
		h := uint16(i)
		for _, c := range []struct {
			name string
			got  float32
			want float64
		}{
			{"float16", Float16ToFloat32(h), slowDecode(h, 5, 10)},
			{"bfloat16", BFloat16ToFloat32(h), slowDecode(h, 8, 7)},
		} {
			same := float64(c.got) == c.want && math.Signbit(float64(c.got)) == math.Signbit(c.want)
			if !same && !(c.got != c.got && math.IsNaN(c.want)) {
				t.Fatalf("%s %#04x: got %v, want %v", c.name, h, c.got, c.want)
			}
		}
	}
}

func TestHalfRoundTripsEveryPattern(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		if x := Float16ToFloat32(h); x == x && Float32ToFloat16(x) != h {
			t.Fatalf("float16 %#04x is %v, which encodes as %#04x", h, x, Float32ToFloat16(x))
		}
		if x := BFloat16ToFloat32(h); x == x && Float32ToBFloat16(x) != h {
			t.Fatalf("bfloat16 %#04x is %v, which encodes as %#04x", h, x, Float32ToBFloat16(x))
		}
	}
}

// Between two neighbouring finite patterns lies a midpoint: it goes to the even
// one, and the float32 just below and above it go down and up.
func TestHalfRoundsToNearestEven(t *testing.T) {
	check := func(name string, h uint16, decode func(uint16) float32, encode func(float32) uint16) {
		t.Helper()
		low, high := float64(decode(h)), float64(decode(h+1))
		mid := float32((low + high) / 2) // exact: one more bit than the format has
		even := h + h&1
		for _, c := range []struct {
			x    float32
			want uint16
		}{
			{mid, even},
			{math.Nextafter32(mid, float32(math.Inf(-1))), h},
			{math.Nextafter32(mid, float32(math.Inf(1))), h + 1},
		} {
			if got := encode(c.x); got != c.want {
				t.Fatalf("%s: %v between %#04x and %#04x encodes as %#04x, want %#04x", name, c.x, h, h+1, got, c.want)
			}
			if got := encode(-c.x); got != c.want|0x8000 {
				t.Fatalf("%s: %v encodes as %#04x, want %#04x", name, -c.x, got, c.want|0x8000)
			}
		}
	}
	for h := uint16(0); h < 0x7bff; h++ {
		check("float16", h, Float16ToFloat32, Float32ToFloat16)
	}
	for h := uint16(1); h < 0x7f7f; h++ {
		check("bfloat16", h, BFloat16ToFloat32, Float32ToBFloat16)
	}
}

func TestHalfEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name      string
		got, want uint16
	}{
		{"1 as float16", Float32ToFloat16(1), 0x3c00},
		{"-2 as float16", Float32ToFloat16(-2), 0xc000},
		{"65504 as float16", Float32ToFloat16(65504), 0x7bff},
		{"just below the midpoint to 65536", Float32ToFloat16(math.Nextafter32(65520, 0)), 0x7bff},
		{"the midpoint itself, tie to even", Float32ToFloat16(65520), 0x7c00},
		{"the largest float32 as float16", Float32ToFloat16(math.MaxFloat32), 0x7c00},
		{"infinity as float16", Float32ToFloat16(inf), 0x7c00},
		{"smallest float16", Float32ToFloat16(0x1p-24), 0x0001},
		{"half of it, tie to even", Float32ToFloat16(0x1p-25), 0x0000},
		{"minus zero as float16", Float32ToFloat16(float32(math.Copysign(0, -1))), 0x8000},
		{"1 as bfloat16", Float32ToBFloat16(1), 0x3f80},
		{"the largest float32 as bfloat16", Float32ToBFloat16(math.MaxFloat32), 0x7f80},
		{"minus infinity as bfloat16", Float32ToBFloat16(-inf), 0xff80},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %#04x, want %#04x", c.name, c.got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		x := math.Float32frombits(0x7f800001 + rng.Uint32N(0x7ffffe) | rng.Uint32N(2)<<31)
		if x == x {
			t.Fatalf("%#x is not a NaN", math.Float32bits(x))
		}
		sign := uint16(math.Float32bits(x) >> 16 & 0x8000)
		for name, h := range map[string]uint16{"float16": Float32ToFloat16(x), "bfloat16": Float32ToBFloat16(x)} {
			y := Float16ToFloat32(h)
			if name == "bfloat16" {
				y = BFloat16ToFloat32(h)
			}
			if y == y || h&0x8000 != sign {
				t.Fatalf("NaN %#x became %#04x as %s", math.Float32bits(x), h, name)
			}
		}
	}
}
