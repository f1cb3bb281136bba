package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSignFlipPublished(t *testing.T) {
	// Fisher, The Design of Experiments, §21: of the 2¹⁵ sign assignments of the
	// maize differences, 863 give a total of at least the observed 314.
	r := SignFlip(maize, 0, nil)
	checkNear(t, "sum", r.Sum, 314, 0)
	checkNear(t, "p", r.P, 2*863.0/32768, 1e-15)
	if !r.Exact || r.Draws != 0 {
		t.Errorf("have %+v, want an exact test", r)
	}
}

func TestSignFlipByHand(t *testing.T) {
	// ±1 ±2 ±3: |sum| ≥ 4 for 6, 4, −4, −6 of the eight.
	checkNear(t, "1 −… 3", SignFlip([]float64{-1, 2, 3}, 0, nil).P, 4.0/8, 0)
	checkNear(t, "all zero", SignFlip([]float64{0, 0}, 0, nil).P, 1, 0)
	checkNear(t, "sum zero", SignFlip([]float64{1, -1}, 0, nil).P, 1, 0)
	checkNear(t, "one", SignFlip([]float64{5}, 0, nil).P, 1, 0)
	checkNaN(t, "undefined", SignFlip(nil, 10, nil).P, SignFlip([]float64{math.NaN()}, 10, nil).P)
	// 0.1+0.2 and 0.3 differ in the last bit only: a tie.
	checkNear(t, "rounding tie", SignFlip([]float64{0.1, 0.2, -0.3}, 0, nil).P, 1, 0)
}

func TestSignFlipAgainstEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 200 {
		d := make([]float64, 1+rng.IntN(12))
		var observed float64
		for i := range d {
			d[i] = float64(rng.IntN(11) - 4) // whole numbers: sums are exact
			observed += d[i]
		}
		hits := 0
		for signs := range uint(1) << len(d) {
			var sum float64
			for i, x := range d {
				sum += x * float64(1-2*int(signs>>i&1))
			}
			if math.Abs(sum) >= math.Abs(observed) {
				hits++
			}
		}
		checkNear(t, "p", SignFlip(d, 0, nil).P, float64(hits)/math.Ldexp(1, len(d)), 1e-15)
	}
}

// At the edge of the exact range 30 equal differences have a known answer, and
// beyond it the drawn p must agree with the exact one.
func TestSignFlipRange(t *testing.T) {
	ones := make([]float64, MaxFlipExact)
	for i := range ones {
		ones[i] = 1
	}
	checkNear(t, "30 ones", SignFlip(ones, 0, nil).P, math.Ldexp(2, -30), 1e-25)
	for i := range 10 {
		ones[i] = -1 // 20 against 10: P(|S| ≥ 10) of 30 fair coins
	}
	var tail float64
	for k := 20; k <= 30; k++ {
		tail += binomial(30, k)
	}
	exact := 2 * math.Ldexp(tail, -30)
	checkNear(t, "30 mixed", SignFlip(ones, 0, nil).P, exact, 1e-15)
	checkNaN(t, "31 without draws", SignFlip(append(ones, 1e-9), 0, nil).P)
	drawn := SignFlip(append(ones, 1e-9), 40_000, rand.NewPCG(3, 2))
	if drawn.Exact || drawn.Draws != 40_000 {
		t.Errorf("have %+v, want 40000 draws", drawn)
	}
	// The last difference only breaks ties at |S| = 10, half of them: between
	// the exact p and the p without those ties. Standard error 0.001.
	low := exact - math.Ldexp(binomial(30, 20), -30)
	if drawn.P < low-0.004 || drawn.P > exact+0.004 {
		t.Errorf("drawn p %g, want between %g and %g", drawn.P, low, exact)
	}
	// 100 equal differences: no draw of 999 reaches them, so 1/1000.
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = 2
	}
	checkNear(t, "never reached", SignFlip(hundred, 999, rand.NewPCG(3, 3)).P, 1.0/1000, 0)
	again := SignFlip(append(ones, 1e-9), 40_000, rand.NewPCG(3, 2))
	checkNear(t, "same seed", again.P, drawn.P, 0)
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b = b * float64(n-i) / float64(i+1)
	}
	return b
}

func BenchmarkSignFlipExact(b *testing.B) {
	d := make([]float64, MaxFlipExact)
	for i := range d {
		d[i] = float64(i) + 0.5
	}
	for b.Loop() {
		SignFlip(d, 0, nil)
	}
}
