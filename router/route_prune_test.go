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

// The bounds may only ever save work: with and without them the choice, its
// order, the tie and the weights are the same to the bit.
func TestPrunedIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	pruned := 0
	for _, g := range gates(random) {
		fast, _ := NewRouter(g)
		if fast.pruner == nil {
			continue
		}
		exact, _ := NewRouter(g)
		exact.pruner = nil
		pruned++
		k := g.Shape.TopK
		ids, want := make([]int32, k), make([]int32, k)
		weights, wantWeights := make([]float32, k), make([]float32, k)
		logits := make([]float32, g.Shape.Experts)
		for _, kind := range kinds {
			for range *rows {
				kind.fill(logits, random)
				tie, err := fast.Route(logits, ids, weights)
				wantTie, wantErr := exact.Route(logits, want, wantWeights)
				if err != nil || wantErr != nil {
					t.Fatal(err, wantErr)
				}
				if !slices.Equal(ids, want) || tie != wantTie || !slices.Equal(weights, wantWeights) {
					t.Fatalf("%s %v %s: pruned %v tie %v weights %v, exact %v tie %v weights %v\nlogits %v", g.Method, g.Shape, kind.name, ids, tie, weights, want, wantTie, wantWeights, logits)
				}
			}
		}
	}
	if pruned < 10 {
		t.Errorf("only %d gates have bounds", pruned)
	}
}

// What pruning rests on: no key is further from its score than the margin.
func TestKeysAreWithinTheMargin(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	for _, m := range []Method{DeepSeekV3, DeepSeekV4, Renormalize} {
		bias := make([]float32, 64)
		for e := range bias {
			bias[e] = float32(random.NormFloat64() * 50)
		}
		if !m.Biased() {
			bias = nil
		}
		r, err := NewRouter(Gate{Method: m, Shape: Shape{64, 4, 0, 0}, Bias: bias})
		if err != nil {
			t.Fatal(err)
		}
		logits := make([]float32, 64)
		for range 20_000 {
			for i := range logits { // every size of number, and the ends of table intervals
				bits := random.Uint32()
				switch random.IntN(4) {
				case 0:
					bits |= 0xffff
				case 1:
					bits &^= 0xffff
				}
				if logits[i] = math.Float32frombits(bits); !(math.Abs(float64(logits[i])) < 16) {
					logits[i] = float32(random.NormFloat64() * 5)
				}
			}
			if !r.pruner.scan(logits) {
				continue
			}
			for e := range logits {
				off := math.Abs(float64(r.pruner.fours[e/4].key[e%4]>>32)/keyUnit - float64(r.exact(logits, e)))
				if off > float64(r.pruner.margin)/keyUnit {
					t.Fatalf("%s: the key of expert %d with logit %v is off by %v, the margin is %v", m, e, logits[e], off, float64(r.pruner.margin)/keyUnit)
				}
			}
		}
	}
}

// Any bits at all: both ways agree, on errors too.
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
		logits := make([]float32, 32)
		for i := range logits {
			if len(raw) >= 4*(i+1) {
				logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
		}
		for _, m := range []Method{DeepSeekV3, DeepSeekV4, SigmoidRenorm, Llama4} {
			s := Shape{Experts: 32, TopK: 4}
			if m == DeepSeekV3 {
				s.Groups, s.TopKGroups = 8, 3
			}
			fast, err := NewRouter(Gate{Method: m, Shape: s})
			if err != nil {
				t.Fatal(err)
			}
			exact, _ := NewRouter(Gate{Method: m, Shape: s})
			exact.pruner = nil
			var ids, want [4]int32
			var weights, wantWeights [4]float32
			tie, err := fast.Route(logits, ids[:], weights[:])
			wantTie, wantErr := exact.Route(logits, want[:], wantWeights[:])
			if (err == nil) != (wantErr == nil) || err == nil && (ids != want || tie != wantTie || weights != wantWeights) {
				t.Fatalf("%s: pruned %v %v %v %v, exact %v %v %v %v", m, ids, weights, tie, err, want, wantWeights, wantTie, wantErr)
			}
		}
	})
}
