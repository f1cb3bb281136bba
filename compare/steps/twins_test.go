package steps

import (
	"math/rand/v2"
	"testing"
)

// Two microbatches of 60 and 40 % of the tokens, by loads that differ by 5 %, run layers in turn or one model behind
// the other; even loads, layers of their own and ranks that are hot in turn, for two layers each, are no twins.
func TestTwins(t *testing.T) {
	const ranks, layers = 4, 6
	random := rand.New(rand.NewPCG(1, 2))
	loads := func(layers int, by float64) (list [ranks][]float64) {
		for r := range list {
			for range layers {
				list[r] = append(list[r], 1-by+2*by*random.Float64())
			}
		}
		return list
	}
	one, even, more := loads(layers, 0.4), loads(2*layers, 0.005), loads(2*layers, 0.4)
	for _, c := range []struct {
		name  string
		noise float64
		load  func(rank, layer int) float64
		want  bool
	}{
		{"in turn", 0.05, func(r, l int) float64 { return one[r][l/2] * []float64{0.6, 0.4}[l%2] }, true},
		{"behind", 0.05, func(r, l int) float64 { return one[r][l%layers] * []float64{0.6, 0.4}[l/layers] }, true},
		{"even, two in another kernel", 0.05, func(r, l int) float64 { return even[r][l] * float64(1+(13-l)/12) }, false},
		{"layers of their own", 0.05, func(r, l int) float64 { return more[r][l] }, false},
		{"hot in turn", 0.001, func(r, l int) float64 { return 1 + 0.4*float64(1-2*((r+l/2)%2)) }, false},
		{"hot in turn, pairs alike", 0.0003, func(r, l int) float64 {
			return 1 + 0.4*float64(1-2*((r+l/2)%2)) + 0.005*float64(l/2%3)
		}, false},
		{"balanced", 0.001, func(r, l int) float64 { return 1 + 0.002*float64((r+l/2*7)%5) }, false},
	} {
		times := make([][]float64, ranks)
		for r := range times {
			for l := range 2 * layers {
				times[r] = append(times[r], c.load(r, l)*(1-c.noise+2*c.noise*random.Float64()))
			}
		}
		if have := Twins(times); have != c.want || Twins(times[:1]) { // one rank shows too little
			t.Errorf("%s: %v", c.name, have)
		}
	}
}
