package router

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var rows = flag.Int("rows", 40_000, "rows per kind of logits in TestPrunedIsExact")

// slowRoute is the method's definition, written down again with sorting and
// without any of Router's parts. choices are all experts sets that another order
// among equal scores could give, at least when there are more than one.
func slowRoute(g Gate, logits []float32) (ids []int32, weights []float32, tie bool) {
	n := g.Shape.Experts
	s := make([]float64, n) // the method's function of x, not yet rounded
	sum := 0.0
	most := math.Inf(-1)
	for _, x := range logits {
		most = max(most, float64(x))
	}
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	for e, x32 := range logits {
		x := float64(x32)
		switch g.Method {
		case Default, RenormalizeNaive:
			s[e] = math.Exp(x-most) / sum
		case Renormalize, Llama4:
			s[e] = x
		case DeepSeekV4:
			s[e] = math.Sqrt(max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))) // another form of softplus
		default:
			s[e] = 1 / (1 + math.Exp(-x))
		}
	}
	score := make([]float32, n)
	for e := range score {
		score[e] = float32(s[e])
		if g.Bias != nil {
			score[e] += g.Bias[e]
		}
	}
	better := func(score []float32) func(a, b int) int {
		return func(a, b int) int {
			switch {
			case score[a] > score[b]:
				return -1
			case score[a] < score[b]:
				return 1
			}
			return a - b
		}
	}
	choose := func(open func(group int) bool) (chosen []int, tie bool) {
		var all []int
		for e := range n {
			if open(e / g.Shape.GroupSize()) {
				all = append(all, e)
			}
		}
		slices.SortFunc(all, better(score))
		k := g.Shape.TopK
		return all[:k], len(all) > k && score[all[k]] == score[all[k-1]]
	}
	var chosen []int
	if !g.Shape.Grouped() {
		chosen, tie = choose(func(int) bool { return true })
	} else {
		size := g.Shape.GroupSize()
		groups, rank := make([]int, g.Shape.Groups), make([]float32, g.Shape.Groups)
		for i := range groups {
			groups[i] = i
			members := slices.Clone(score[i*size : (i+1)*size])
			slices.Sort(members)
			rank[i] = members[size-1]
			if size > 1 {
				rank[i] += members[size-2]
			}
		}
		slices.SortFunc(groups, better(rank))
		limit := g.Shape.TopKGroups
		chosen, tie = choose(func(i int) bool { return slices.Contains(groups[:limit], i) })
		// Exchange each open group at the boundary for each closed one of equal
		// rank, and see whether the choice changes.
		for _, out := range groups[:limit] {
			for _, in := range groups[limit:] {
				if rank[out] == rank[in] {
					other, otherTie := choose(func(i int) bool { return i == in || (i != out && slices.Contains(groups[:limit], i)) })
					a, b := slices.Clone(chosen), slices.Clone(other)
					slices.Sort(a)
					slices.Sort(b)
					tie = tie || otherTie || !slices.Equal(a, b)
				}
			}
		}
	}
	weights = slowWeights(g, chosen, s, logits)
	for _, e := range chosen {
		ids = append(ids, int32(e))
	}
	return ids, weights, tie
}

func slowWeights(g Gate, chosen []int, s []float64, logits []float32) []float32 {
	weights := make([]float32, len(chosen))
	var sum float32
	exp := 0.0
	for _, e := range chosen {
		sum += float32(s[e])
		exp += math.Exp(float64(logits[e]) - float64(logits[chosen[0]]))
	}
	scale := g.Scale
	if scale == 0 {
		scale = 1
	}
	for i, e := range chosen {
		switch g.Method {
		case Default:
			weights[i] = float32(s[e])
		case Renormalize:
			weights[i] = float32(math.Exp(float64(logits[e])-float64(logits[chosen[0]])) / exp)
		case RenormalizeNaive:
			weights[i] = float32(s[e]) / sum
		case Llama4:
			weights[i] = float32(1 / (1 + math.Exp(-float64(logits[e]))))
		default:
			weights[i] = float32(s[e]) / (sum + 1e-20) * scale
		}
	}
	return weights
}

// kinds are ways to fill a row, from harmless to full of ties.
var kinds = []struct {
	name string
	fill func(row []float32, random *rand.Rand)
}{
	{"normal", each(func(r *rand.Rand) float32 { return float32(2 * r.NormFloat64()) })},
	{"bfloat16", each(func(r *rand.Rand) float32 {
		return math.Float32frombits(math.Float32bits(float32(r.NormFloat64())) &^ 0xffff)
	})},
	{"integers", each(func(r *rand.Rand) float32 { return float32(r.IntN(7) - 3) })},
	{"saturated", each(func(r *rand.Rand) float32 { return float32(r.NormFloat64() * 40) })},
	{"tiny", each(func(r *rand.Rand) float32 { return float32(r.NormFloat64() * 1e-7) })},
	{"crowded", each(func(r *rand.Rand) float32 {
		return math.Float32frombits(math.Float32bits(1.5) + uint32(r.IntN(12)))
	})},
	{"two values", func(row []float32, r *rand.Rand) {
		for i := range row {
			row[i] = -10
		}
		for range 2 + r.IntN(12) {
			row[r.IntN(len(row))] = 10
		}
	}},
	{"infinite", each(func(r *rand.Rand) float32 {
		if r.IntN(9) == 0 {
			return float32(math.Inf(-1))
		}
		return float32(r.NormFloat64())
	})},
}

func each(value func(*rand.Rand) float32) func([]float32, *rand.Rand) {
	return func(row []float32, r *rand.Rand) {
		for i := range row {
			row[i] = value(r)
		}
	}
}

// gates are shapes and biases for every method.
func gates(random *rand.Rand) []Gate {
	var out []Gate
	for _, m := range Methods() {
		shapes := []Shape{{64, 4, 0, 0}, {16, 16, 0, 0}, {37, 5, 0, 0}}
		if m.GroupLimited() {
			shapes = append(shapes, Shape{64, 4, 8, 4}, Shape{64, 8, 8, 3}, Shape{48, 6, 3, 2}, Shape{24, 3, 24, 5}, Shape{40, 5, 4, 1}, Shape{256, 8, 8, 4})
		}
		for _, s := range shapes {
			out = append(out, Gate{Method: m, Shape: s})
			if m.Biased() {
				for _, unit := range []float64{0.5, 0.01, 300} {
					bias := make([]float32, s.Experts)
					for e := range bias {
						bias[e] = float32(math.Round(random.NormFloat64()*4) / 4 * unit)
					}
					out = append(out, Gate{Method: m, Shape: s, Bias: bias, Scale: 2.5})
				}
			}
		}
	}
	return out
}

func TestRouteAgainstSlow(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, g := range gates(random) {
		r, err := NewRouter(g)
		if err != nil {
			t.Fatal(err)
		}
		ids, weights := make([]int32, g.Shape.TopK), make([]float32, g.Shape.TopK)
		logits := make([]float32, g.Shape.Experts)
		for _, kind := range kinds {
			for range 25 {
				kind.fill(logits, random)
				tie, err := r.Route(logits, ids, weights)
				if err != nil {
					t.Fatalf("%s %v %s: %v", g.Method, g.Shape, kind.name, err)
				}
				wantIDs, wantWeights, wantTie := slowRoute(g, logits)
				if !slices.Equal(ids, wantIDs) || tie != wantTie {
					t.Fatalf("%s %v %s: chose %v tie %v, want %v tie %v\nlogits %v", g.Method, g.Shape, kind.name, ids, tie, wantIDs, wantTie, logits)
				}
				for i := range weights {
					if d := math.Abs(float64(weights[i] - wantWeights[i])); !(d <= 1e-6*math.Abs(float64(wantWeights[i]))) {
						t.Fatalf("%s %v %s: weights %v, want %v", g.Method, g.Shape, kind.name, weights, wantWeights)
					}
				}
			}
		}
	}
}

// The bounds may only ever save work: with and without them the choice, its
// order, the tie and the weights are the same to the bit.
func TestPrunedIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	pruned := 0
	for _, g := range gates(random) {
		if g.Method.scoring() != bySigmoid && g.Method.scoring() != bySqrtSoftplus || g.Shape.Experts > 64 && *rows < 1e6 && g.Scale != 0 && g.Bias[0] != 0 {
			continue
		}
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
			for range *rows * 16 / g.Shape.Experts / 8 {
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
	for _, m := range []Method{DeepSeekV3, DeepSeekV4} {
		bias := make([]float32, 64)
		for e := range bias {
			bias[e] = float32(random.NormFloat64() * 50)
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
				off := math.Abs(float64(r.pruner.key[e])/keyUnit - float64(r.exact(logits, e)))
				if off > float64(r.pruner.margin)/keyUnit {
					t.Fatalf("%s: the key of logit %v with bias %v is off by %v, the margin is %v", m, logits[e], bias[e], off, float64(r.pruner.margin)/keyUnit)
				}
			}
		}
	}
}

func TestRouteByHand(t *testing.T) {
	check := func(g Gate, logits []float32, ids []int32, weights []float32, tie bool) {
		t.Helper()
		r, err := NewRouter(g)
		if err != nil {
			t.Fatal(err)
		}
		gotIDs, gotWeights := make([]int32, len(ids)), make([]float32, len(ids))
		gotTie, err := r.Route(logits, gotIDs, gotWeights)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(gotIDs, ids) || gotTie != tie {
			t.Errorf("%s: chose %v tie %v, want %v tie %v", g.Method, gotIDs, gotTie, ids, tie)
		}
		for i, w := range weights {
			if math.Abs(float64(gotWeights[i]-w)) > 2e-7 {
				t.Errorf("%s: weights %v, want %v", g.Method, gotWeights, weights)
			}
		}
	}
	ln := func(x float64) float32 { return float32(math.Log(x)) }
	flat := Shape{Experts: 4, TopK: 2}

	// softmax(ln 1, ln 2, ln 3, ln 4) = 0.1 0.2 0.3 0.4: the two largest are
	// experts 3 and 2; 0.4/0.7 = 4/7 when renormalised.
	logits := []float32{ln(1), ln(2), ln(3), ln(4)}
	check(Gate{Method: Default, Shape: flat}, logits, []int32{3, 2}, []float32{0.4, 0.3}, false)
	check(Gate{Method: Renormalize, Shape: flat}, logits, []int32{3, 2}, []float32{4. / 7, 3. / 7}, false)
	check(Gate{Method: RenormalizeNaive, Shape: flat}, logits, []int32{3, 2}, []float32{4. / 7, 3. / 7}, false)
	// σ(ln a) = a/(1+a): 1/2, 2/3, 3/4, 4/5. 0.8/(0.8+0.75) = 16/31.
	check(Gate{Method: Llama4, Shape: flat}, logits, []int32{3, 2}, []float32{0.8, 0.75}, false)
	check(Gate{Method: SigmoidRenorm, Shape: flat}, logits, []int32{3, 2}, []float32{16. / 31, 15. / 31}, false)
	// A bias of 0.2 lifts expert 1 to 0.8667, above 0.8 and 0.75; weights know
	// nothing of it: (2/3)/(2/3+4/5) = 10/22, times 2.5.
	check(Gate{Method: MiniMax2, Shape: flat, Bias: []float32{0, 0.2, 0, 0}, Scale: 2.5}, logits,
		[]int32{1, 3}, []float32{2.5 * 10. / 22, 2.5 * 12. / 22}, false)
	// softplus(ln(e^(a²) − 1)) = a², whose root is a: scores 1 and 2 of 3.
	check(Gate{Method: DeepSeekV4, Shape: flat}, []float32{ln(math.E - 1), ln(math.Exp(4) - 1), -60, -60},
		[]int32{1, 0}, []float32{2. / 3, 1. / 3}, false)
	// Groups {0,1} {2,3}: sums 1/2+2/3 = 1.1667 and 3/4+0 = 0.75, so the best
	// expert of all, 2, is not chosen. (2/3)/(7/6) = 4/7.
	check(Gate{Method: DeepSeekV3, Shape: Shape{4, 2, 2, 1}}, []float32{ln(1), ln(2), ln(3), -200},
		[]int32{1, 0}, []float32{4. / 7, 3. / 7}, false)

	// Ties go to the lower index, and are told only when they decide.
	check(Gate{Method: Renormalize, Shape: flat}, []float32{1, 2, 1, 1}, []int32{1, 0}, nil, true)
	check(Gate{Method: Renormalize, Shape: flat}, []float32{2, 1, 1, 0}, []int32{0, 1}, nil, true)
	check(Gate{Method: Renormalize, Shape: flat}, []float32{0, 1, 1, 0}, []int32{1, 2}, nil, false)
	// σ is exactly 1 for both 20 and 30 in float32: by logit they differ, by
	// sigmoid they tie.
	check(Gate{Method: Llama4, Shape: Shape{4, 1, 0, 0}}, []float32{0, 20, 30, 0}, []int32{2}, nil, false)
	check(Gate{Method: SigmoidRenorm, Shape: Shape{4, 1, 0, 0}}, []float32{0, 20, 30, 0}, []int32{1}, nil, true)
	// Groups {0,1} and {2,3} tie and hold the choice; in the second row three
	// groups tie for the second place, but nobody in them is chosen.
	check(Gate{Method: DeepSeekV3, Shape: Shape{4, 1, 2, 1}}, []float32{1, 0, 0, 1}, []int32{0}, nil, true)
	check(Gate{Method: DeepSeekV3, Shape: Shape{8, 2, 4, 2}}, []float32{-9, -9, 3, 4, -9, -9, -9, -9}, []int32{3, 2}, nil, false)
}

func TestRouteRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	check := func(m Method, logits []float32, want string) {
		t.Helper()
		r, err := NewRouter(Gate{Method: m, Shape: Shape{8, 2, 0, 0}})
		if err != nil {
			t.Fatal(err)
		}
		row := make([]float32, 8)
		copy(row, logits)
		var ids [2]int32
		var weights [2]float32
		_, err = r.Route(row, ids[:], weights[:])
		if !errors.Is(err, ErrLogits) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %v: error %v, want one about %s", m, logits, err, want)
		}
	}
	for _, m := range Methods() {
		check(m, []float32{0, 0, 0, nan}, "expert 3 is NaN")
		check(m, []float32{0, -nan}, "expert 1 is NaN")
	}
	for _, m := range []Method{Default, Renormalize, RenormalizeNaive} {
		check(m, []float32{inf}, "undefined")
		check(m, slices.Repeat([]float32{-inf}, 8), "undefined")
	}
	check(DeepSeekV4, []float32{inf}, "undefined")

	for _, g := range []Gate{
		{Method: "Nonesuch", Shape: Shape{8, 2, 0, 0}},
		{Method: Default, Shape: Shape{8, 9, 0, 0}},
		{Method: Default, Shape: Shape{8, 2, 4, 2}},
		{Method: Default, Shape: Shape{8, 2, 0, 0}, Bias: make([]float32, 8)},
		{Method: Llama4, Shape: Shape{8, 2, 0, 0}, Scale: 2},
		{Method: DeepSeekV3, Shape: Shape{8, 2, 0, 0}, Bias: make([]float32, 7)},
		{Method: DeepSeekV3, Shape: Shape{8, 2, 0, 0}, Bias: []float32{0, 0, 0, nan, 0, 0, 0, 0}},
		{Method: DeepSeekV3, Shape: Shape{8, 2, 0, 0}, Scale: inf},
		{Method: DeepSeekV3, Shape: Shape{8, 2, 0, 0}, Scale: -1},
	} {
		if _, err := NewRouter(g); err == nil {
			t.Errorf("%+v was taken", g)
		}
	}
}

func TestRouteAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		method Method
		two    bool
	}{{DeepSeekV3, false}, {DeepSeekV3, true}, {Renormalize, false}, {Default, false}, {DeepSeekV4, false}} {
		groups := 0
		if c.method == DeepSeekV3 {
			groups = 8
		}
		g, logits := gateRows(t, c.method, groups, 4, c.two, 64)
		r, err := NewRouter(g)
		if err != nil {
			t.Fatal(err)
		}
		ids, weights := make([]int32, 8), make([]float32, 8)
		n := 0
		if got := testing.AllocsPerRun(60, func() {
			_, _ = r.Route(logits[n*256:(n+1)*256], ids, weights)
			n++
		}); got != 0 {
			t.Errorf("%s: %v allocations per token", c.method, got)
		}
	}
}

func TestParseMethod(t *testing.T) {
	for _, m := range Methods() {
		if got, err := ParseMethod(strings.ToUpper(string(m))); got != m || err != nil {
			t.Errorf("%s: %v, %v", m, got, err)
		}
	}
	if _, err := ParseMethod("2"); err == nil || !strings.Contains(err.Error(), "DeepSeekV3, DeepSeekV4") {
		t.Errorf("a number is no method, and the error lists the names; got %v", err)
	}
}

func ExampleRouter_Route() {
	r, _ := NewRouter(Gate{Method: Renormalize, Shape: Shape{Experts: 4, TopK: 2}})
	var ids [2]int32
	var weights [2]float32
	tie, err := r.Route([]float32{0, 2, -1, 2}, ids[:], weights[:])
	fmt.Println(ids, weights, tie, err)
	// Output: [1 3] [0.5 0.5] false <nil>
}
