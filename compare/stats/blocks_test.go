package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// squares are n blocks of three in Latin squares and their mirrors.
var squares = [][]int{{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}} // order of the treatments

// laid are n blocks of the design; value is that of a treatment in a block and position.
func laid(n int, value func(block, treatment, position int) float64) (blocks []Block) {
	for i := range n {
		b := Block{Values: make([]float64, 3), Positions: make([]int, 3)}
		for position, treatment := range squares[i%6] {
			b.Values[treatment], b.Positions[treatment] = value(i, treatment, position), position
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// Blocks, treatments and positions without noise come back exactly.
func TestFitBlocksByHand(t *testing.T) {
	effects, positions := []float64{0, 0.25, -0.5}, []float64{0, -0.125, 0.75}
	for _, n := range []int{3, 4, 6, 8} {
		f := FitBlocks(laid(n, func(b, tr, p int) float64 { return 3*float64(b) + effects[tr] + positions[p] }))
		if f.N != n || f.DF != 2*(n-2) || f.SD > 1e-12 || math.Abs(f.Effects[1]-0.25) > 1e-12 ||
			math.Abs(f.Effects[2]+0.5) > 1e-12 {
			t.Errorf("%d blocks: %+v, want effects 0.25 and −0.5 without noise", n, f)
		}
	}
	// By hand: one order only, treatment 1 is 2 and 4 above treatment 0.
	f := FitBlocks([]Block{{[]float64{0, 2}, []int{0, 1}}, {[]float64{1, 5}, []int{0, 1}}})
	if e := f.Effect(1, 0.95); e.DF != 1 || math.Abs(e.Estimate-3) > 1e-12 || math.Abs(e.SE-1) > 1e-12 ||
		math.Abs(e.SD-math.Sqrt2) > 1e-12 {
		t.Errorf("one order: %+v, want 3 with a standard error of 1", e)
	}
	for _, bad := range [][]Block{nil, {{[]float64{1, 2}, []int{0, 1}}}, {{[]float64{1, math.NaN()}, []int{0, 1}},
		{[]float64{1, 2}, []int{1, 0}}, {[]float64{1, 2}, []int{1, 0}}}} {
		f := FitBlocks(bad)
		if e := f.Effect(1, 0.95); f.N != 0 || e.Defined() || f.Ratio(1, 1, 0.95).Defined() {
			t.Errorf("%v: %+v, want nothing", bad, f)
		}
	}
}

// Of two treatments, the fit is the crossover t.
func TestFitBlocksOfTwoIsCrossover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		var blocks []Block
		var first, second []float64
		for i := range 5 + rng.IntN(6) {
			b := Block{[]float64{rng.NormFloat64(), rng.NormFloat64()}, []int{i % 2, 1 - i%2}}
			if d := b.Values[1] - b.Values[0]; i%2 == 0 {
				first = append(first, d)
			} else {
				second = append(second, d)
			}
			blocks = append(blocks, b)
		}
		have, want := FitBlocks(blocks).Effect(1, 0.9), Crossover(first, second, 0.9)
		for i, v := range []float64{have.Estimate - want.Estimate, have.Low - want.Low, have.High - want.High,
			have.SD - want.SD} {
			if have.DF != want.DF || have.N != want.N || !(math.Abs(v) < 1e-9) {
				t.Fatalf("number %d: %+v, want %+v", i, have, want)
			}
		}
	}
}

// Swapped treatments change the sign; a ratio does not depend on the scale, is 1 of the
// same treatment, and is undefined where the whole is not clear of zero.
func TestRatioLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	effects := []float64{0, 0.2, 0.1}
	values := map[[2]int]float64{}
	draw := func(scale float64) []Block {
		return laid(6, func(b, tr, p int) float64 {
			if _, ok := values[[2]int{b, tr}]; !ok {
				values[[2]int{b, tr}] = effects[tr] + 0.01*rng.NormFloat64()
			}
			return scale * values[[2]int{b, tr}]
		})
	}
	one, ten := FitBlocks(draw(1)), FitBlocks(draw(10))
	a, b := one.Ratio(2, 1, 0.95), ten.Ratio(2, 1, 0.95)
	if !a.Defined() || math.Abs(a.Low-b.Low) > 1e-9 || math.Abs(a.High-b.High) > 1e-9 ||
		!(a.Low < 0.5 && 0.5 < a.High) {
		t.Errorf("%+v and scaled %+v, want the same about 0.5", a, b)
	}
	if same := one.Ratio(1, 1, 0.95); math.Abs(same.Low-1) > 1e-6 || math.Abs(same.High-1) > 1e-6 {
		t.Errorf("a treatment is %+v of itself", same)
	}
	effects, values = []float64{0, 0, 0.1}, map[[2]int]float64{}
	if r := FitBlocks(draw(1)).Ratio(2, 1, 0.95); r.Defined() {
		t.Errorf("%+v of nothing", r)
	}
}

// The coverage of Fieller's interval in the cells of package gain's table, one of which
// has three times the noise in the arm whose share is asked for.
func TestRatioCoverage(t *testing.T) {
	const trials, share = 1500, 0.6
	for _, k := range ratioCells {
		rng := rand.New(rand.NewPCG(3, 9))
		hit, all := 0, 0
		for range trials {
			f := FitBlocks(laid(k.blocks, func(_, tr, p int) float64 {
				return k.ceiling*[]float64{0, 1, share}[tr] +
					k.add(rng, tr, p)
			}))
			if r := f.Ratio(2, 1, 0.95); r.Defined() {
				all++
				if contains(r, share) {
					hit++
				}
			}
		}
		if c := float64(hit) / float64(all); all < trials/2 || c < k.least-3*math.Sqrt(0.05*0.95/float64(all)) {
			t.Errorf("%s, %d blocks: coverage %.3f of %d, want %.2f", k.name, k.blocks, c, all, k.least)
		}
	}
}

var ratioCells = []struct {
	name    string
	blocks  int
	ceiling float64 // log gain of the whole
	add     func(rng *rand.Rand, treatment, position int) float64
	least   float64
}{
	{"1 %", 6, 0.18, func(rng *rand.Rand, _, _ int) float64 { return 0.01 * rng.NormFloat64() }, 0.95},
	{"1 %", 12, 0.18, func(rng *rand.Rand, _, _ int) float64 { return 0.01 * rng.NormFloat64() }, 0.95},
	{"3 %, ceiling 9 %", 8, 0.09, func(rng *rand.Rand, _, _ int) float64 { return 0.03 * rng.NormFloat64() }, 0.94},
	{"positions 5 % apart", 6, 0.18,
		func(rng *rand.Rand, _, p int) float64 { return 0.01*rng.NormFloat64() - 0.05*float64(p) }, 0.95},
	{"t3 of 1 %", 8, 0.18, func(rng *rand.Rand, _, _ int) float64 { return 0.01 * student3(rng) }, 0.95},
	{"3 % in the further arm", 8, 0.18,
		func(rng *rand.Rand, tr, _ int) float64 { return 0.01 * []float64{1, 1, 3}[tr] * rng.NormFloat64() }, 0.86},
}
