package router

import (
	"encoding/binary"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var rows = flag.Int("rows", 200, "rows that TestPrunedIsExact routes per gate and kind of logits")

// routers are an exact router of a gate and one that prunes; nil if none does.
func routers(t *testing.T, g Gate) (exact, pruned *Router) {
	t.Helper()
	exact, err := NewRouter(g)
	if err != nil {
		t.Fatal(err)
	}
	if exact.pruner != nil {
		pruned, _ = NewRouter(g)
	}
	exact.pruner = nil
	return exact, pruned
}

// The bounds may only ever save work: with and without them the choice, its
// order, the tie and the weights are the same to the bit.
func TestPrunedIsExact(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector, and shares nothing")
	}
	random := rand.New(rand.NewPCG(8, 8))
	gatesPruned := 0
	for _, g := range gates(random) {
		exact, pruned := routers(t, g)
		if pruned == nil {
			continue
		}
		gatesPruned++
		k := g.Shape.TopK
		ids, want := make([]int32, k), make([]int32, k)
		weights, wantWeights := make([]float32, k), make([]float32, k)
		logits := make([]float32, g.Shape.Experts)
		for _, kind := range kinds {
			for range *rows {
				kind.fill(logits, random)
				wantTie, err := exact.Route(logits, want, wantWeights)
				if err != nil {
					t.Fatal(err)
				}
				tie, err := pruned.Route(logits, ids, weights)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(ids, want) || tie != wantTie || !slices.Equal(weights, wantWeights) {
					t.Fatalf("%s %v %s: pruned %v tie %v weights %v, exact %v tie %v weights %v\nlogits %v",
						g.Method, g.Shape, kind.name, ids, tie, weights, want, wantTie, wantWeights, logits)
				}
			}
		}
	}
	if gatesPruned < 10 {
		t.Errorf("only %d gates have bounds", gatesPruned)
	}
}

// What pruning rests on: no key is further from its score than the margin.
func TestKeysAreWithinTheMargin(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector, and shares nothing")
	}
	random := rand.New(rand.NewPCG(9, 9))
	for _, m := range []Method{DeepSeekV3, DeepSeekV4, Renormalize} {
		bias := make([]float32, 64)
		for e := range bias {
			bias[e] = float32(random.NormFloat64() * 50)
		}
		if !m.Biased() {
			bias = nil
		}
		g := Gate{Method: m, Shape: Shape{64, 4, 0, 0}, Bias: bias}
		r, err := NewRouter(g)
		if err != nil {
			t.Fatal(err)
		}
		p := newPruner(g)
		for range 20_000 {
			logits := anyLogits(random, 64)
			p.scan(logits)
			for e, x := range logits {
				key := p.key[e] >> 32
				if key >= special/2 {
					continue
				}
				off := math.Abs(float64(key)/keyUnit - float64(r.exact(logits, e)))
				if off > float64(p.margin)/keyUnit {
					t.Fatalf("%s: the key of expert %d with logit %v is off by %v, the margin is %v", m, e, x, off, float64(p.margin)/keyUnit)
				}
			}
		}
	}
}

// anyLogits are numbers of every size and kind, and the ends of table intervals.
func anyLogits(random *rand.Rand, n int) []float32 {
	logits := make([]float32, n)
	for i := range logits {
		bits := random.Uint32()
		switch random.IntN(4) {
		case 0:
			bits |= 0xffff
		case 1:
			bits &^= 0xffff
		}
		if random.IntN(4) > 0 { // most that are drawn so are far off
			bits = bits&^(0xff<<23) | uint32(118+random.IntN(12))<<23
		}
		logits[i] = math.Float32frombits(bits)
	}
	return logits
}

// The largest numbers are what sorting leaves in front.
func TestLargest(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	for range 2000 {
		n, places := random.IntN(40), 1+random.IntN(12)
		numbers := make([]int64, n)
		for i := range numbers { // no two are equal
			numbers[i] = pack(int32(random.Uint32())>>random.IntN(32), int32(i))
		}
		want := slices.Sorted(slices.Values(numbers))
		slices.Reverse(want)
		want = want[:min(n, places)]
		best := make([]int64, places+1)
		largest(best, numbers)
		if !slices.Equal(best[:len(want)], want) {
			t.Fatalf("the largest %d of %v are %v, want %v", places, numbers, best[:len(want)], want)
		}
	}
}

// Any bits at all: all ways agree, on errors too.
func FuzzRoute(f *testing.F) {
	random := rand.New(rand.NewPCG(12, 12))
	for _, kind := range kinds {
		row := make([]float32, 16)
		kind.fill(row, random)
		var raw []byte
		for _, x := range row {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		f.Add(raw)
	}
	f.Add([]byte{0, 0, 0xc0, 0x7f, 1, 0, 0x80, 0xff}) // two NaNs, the second with a single low bit
	f.Fuzz(func(t *testing.T, raw []byte) {
		logits := make([]float32, 64)
		for i := range logits {
			if len(raw) >= 4*(i+1) {
				logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
		}
		for _, m := range []Method{DeepSeekV3, DeepSeekV4, SigmoidRenorm, Llama4} {
			s := Shape{Experts: 64, TopK: 4}
			if m == DeepSeekV3 {
				s.Groups, s.TopKGroups = 8, 3
			}
			exact, pruned := routers(t, Gate{Method: m, Shape: s})
			var ids, want [4]int32
			var weights, wantWeights [4]float32
			wantTie, wantErr := exact.Route(logits, want[:], wantWeights[:])
			tie, err := pruned.Route(logits, ids[:], weights[:])
			if (err == nil) != (wantErr == nil) || err == nil && (ids != want || tie != wantTie || weights != wantWeights) {
				t.Fatalf("%s: pruned %v %v %v %v, exact %v %v %v %v", m, ids, weights, tie, err, want, wantWeights, wantTie, wantErr)
			}
		}
	})
}
