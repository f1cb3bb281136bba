package router

import (
	"math"
	"math/rand/v2"
	"slices"
)

// slowRoute is how a method chooses, written down again with sorting and without any of Router's parts.
func slowRoute(g Gate, logits []float32) (ids []int32) {
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
	choose := func(open func(group int) bool) []int {
		var all []int
		for e := range n {
			if open(e / g.Shape.GroupSize()) {
				all = append(all, e)
			}
		}
		slices.SortFunc(all, better(score))
		return all[:g.Shape.TopK]
	}
	var chosen []int
	if !g.Shape.Grouped() {
		chosen = choose(func(int) bool { return true })
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
		chosen = choose(func(i int) bool { return slices.Contains(groups[:limit], i) })
	}
	for _, e := range chosen {
		ids = append(ids, int32(e))
	}
	return ids
}

// kinds are ways to fill a row, from harmless to full of ties.
var kinds = []struct {
	name string
	fill func(row []float32, random *rand.Rand)
}{
	{"normal", each(func(r *rand.Rand) float32 { return float32(2 * r.NormFloat64()) })},
	{"negative", each(func(r *rand.Rand) float32 { return -float32(r.ExpFloat64()) })},
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
		shapes := []Shape{{64, 4, 0, 0}, {16, 16, 0, 0}, {37, 5, 0, 0}, {36, 5, 0, 0}}
		if m.GroupLimited() {
			shapes = append(shapes, Shape{64, 4, 8, 4}, Shape{64, 8, 8, 3}, Shape{48, 6, 3, 2}, Shape{24, 3, 24, 5},
				Shape{40, 5, 4, 1}, Shape{64, 2, 4, 1}, Shape{32, 3, 8, 8}, Shape{256, 8, 8, 4}, Shape{256, 8, 0, 0})
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
