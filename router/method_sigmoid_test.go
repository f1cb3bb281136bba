package router

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
)

var every = flag.Int("every", 997, "TestSigmoidTableIsExact takes each float32 whose bits are a multiple of this; 1 is all of them, and takes minutes")

// oneRater tells what the table says about one logit, as a finder reads it.
type oneRater struct {
	finder
	logits, bias, plain []float32
	experts             []int32
	scores              []int64
}

func newOneRater(f finder) *oneRater {
	return &oneRater{f, make([]float32, 1), make([]float32, 1), make([]float32, 1), make([]int32, 1+findRoom), make([]int64, 1+findRoom)}
}

func (r *oneRater) one(x float32) (score float32, ok bool) {
	r.logits[0] = x
	ok = r.rate(sigmoids(), r.logits, r.bias, r.plain, r.experts[:1], r.scores)
	return r.plain[0], ok
}

// someFinder makes a finder for what needs no keys.
func someFinder(m makeFinder) finder { return m(&logitKeys().key, make([]int32, 8), 8) }

// What the table knows is the function's value to the bit; what it does not know
// is little, and all that lies outside.
func TestSigmoidTableIsExact(t *testing.T) {
	for _, m := range []makeFinder{newFinder, newFours} {
		f := someFinder(m)
		t.Run(fmt.Sprintf("%T", f), func(t *testing.T) { checkSigmoidTable(t, f) })
	}
}

func checkSigmoidTable(t *testing.T, f finder) {
	rater := newOneRater(f)
	known, unknown := 0, 0
	check := func(bits uint32) {
		x := math.Float32frombits(bits)
		score, ok := rater.one(x)
		inside := math.Abs(float64(x)) < sigmoidLimit
		switch {
		case ok && !inside:
			t.Fatalf("the table knows %v", x)
		case ok && score != sigmoid(x):
			t.Fatalf("σ(%v) is %v by the table, %v by the function", x, score, sigmoid(x))
		case ok:
			known++
		case inside:
			unknown++
		}
	}
	for bits := uint64(0); bits < 1<<32; bits += uint64(*every) {
		check(uint32(bits))
	}
	for i := range len(sigmoids()) { // both sides of each border between intervals
		border := math.Float32bits(float32(i)/sigmoidUnit - sigmoidLimit)
		for d := range uint32(7) {
			check(border - 3 + d)
		}
	}
	if unknown >= known/1000 {
		t.Errorf("the table knows %d logits and not %d; want at most one in a thousand unknown", known, unknown)
	}
	t.Logf("%d known, %d unknown", known, unknown)
}

// A logit that the table does not know is scored by the function.
func TestRouteWhereTheTableDoubts(t *testing.T) {
	rater := newOneRater(someFinder(newFinder))
	doubtful := math.Float32bits(0.5)
	for {
		if _, ok := rater.one(math.Float32frombits(doubtful)); !ok {
			break
		}
		doubtful++
	}
	g := Gate{Method: SigmoidRenorm, Shape: Shape{16, 2, 0, 0}}
	fast, _ := NewRouter(g)
	exact, _ := NewRouter(g)
	exact.pruner = nil
	logits := make([]float32, 16)
	for _, other := range []float32{-1, 0.75, 31.96875, 40, float32(math.Inf(1))} {
		logits[3], logits[9] = math.Float32frombits(doubtful), other
		var ids, want [2]int32
		var weights, wantWeights [2]float32
		_, err := fast.Route(logits, ids[:], weights[:])
		_, wantErr := exact.Route(logits, want[:], wantWeights[:])
		if ids != want || !slices.Equal(weights[:], wantWeights[:]) || (err == nil) != (wantErr == nil) {
			t.Errorf("%v and %v: chose %v with %v (%v), want %v with %v (%v)", logits[3], other, ids, weights, err, want, wantWeights, wantErr)
		}
	}
}
