package router

import (
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

func TestRouteByHand(t *testing.T) {
	check := func(g Gate, logits []float32, ids []int32, weights []float32) {
		t.Helper()
		r := require.Value(NewRouter(g))
		gotIDs, gotWeights := make([]int32, len(ids)), make([]float32, len(ids))
		r.Route(logits, gotIDs, gotWeights)
		if !slices.Equal(gotIDs, ids) {
			t.Errorf("%s: chose %v, want %v", g.Method, gotIDs, ids)
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
	// experts 3 and 2; 0.4/0.7 = 4/7 when renormalized.
	logits := []float32{ln(1), ln(2), ln(3), ln(4)}
	check(Gate{Method: Default, Shape: flat}, logits, []int32{3, 2}, []float32{0.4, 0.3})
	check(Gate{Method: Renormalize, Shape: flat}, logits, []int32{3, 2}, []float32{4. / 7, 3. / 7})
	check(Gate{Method: RenormalizeNaive, Shape: flat}, logits, []int32{3, 2}, []float32{4. / 7, 3. / 7})
	// σ(ln a) = a/(1+a): 1/2, 2/3, 3/4, 4/5. 0.8/(0.8+0.75) = 16/31.
	check(Gate{Method: Llama4, Shape: flat}, logits, []int32{3, 2}, []float32{0.8, 0.75})
	check(Gate{Method: SigmoidRenorm, Shape: flat}, logits, []int32{3, 2}, []float32{16. / 31, 15. / 31})
	// A bias of 0.2 lifts expert 1 to 0.8667, above 0.8 and 0.75; weights know
	// nothing of it: (2/3)/(2/3+4/5) = 10/22, times 2.5.
	check(Gate{Method: MiniMax2, Shape: flat, Bias: []float32{0, 0.2, 0, 0}, Scale: 2.5}, logits,
		[]int32{1, 3}, []float32{2.5 * 10. / 22, 2.5 * 12. / 22})
	// softplus(ln(e^(a²) − 1)) = a², whose root is a: scores 1 and 2 of 3.
	check(Gate{Method: DeepSeekV4, Shape: flat}, []float32{ln(math.E - 1), ln(math.Exp(4) - 1), -60, -60},
		[]int32{1, 0}, []float32{2. / 3, 1. / 3})
	// Groups {0,1} {2,3}: sums 1/2+2/3 = 1.1667 and 3/4+0 = 0.75, so the best
	// expert of all, 2, is not chosen. (2/3)/(7/6) = 4/7.
	check(Gate{Method: DeepSeekV3, Shape: Shape{4, 2, 2, 1}}, []float32{ln(1), ln(2), ln(3), -200},
		[]int32{1, 0}, []float32{4. / 7, 3. / 7})

	// Groups {0,1,2} {3,4,5}: a bias of 2 on experts 3 and 4 opens the second group, though the first has the
	// larger logits; weights know nothing of it: σ(0) each.
	check(Gate{Method: DeepSeekV3, Shape: Shape{6, 2, 2, 1}, Bias: []float32{0, 0, 0, 2, 2, 0}},
		[]float32{9, 9, 9, 0, 0, 0}, []int32{3, 4}, []float32{0.5, 0.5})
	// Groups of one expert are scored by it alone: 3 of 4 may be used, and the best two are in them.
	check(Gate{Method: DeepSeekV3, Shape: Shape{4, 2, 4, 3}}, []float32{ln(3), ln(1), ln(4), ln(2)}, []int32{2, 0}, nil)

	// Ties go to the lower index.
	check(Gate{Method: Renormalize, Shape: flat}, []float32{1, 2, 1, 1}, []int32{1, 0}, nil)
	check(Gate{Method: Renormalize, Shape: flat}, []float32{2, 1, 1, 0}, []int32{0, 1}, nil)
	check(Gate{Method: Renormalize, Shape: flat}, []float32{0, 1, 1, 0}, []int32{1, 2}, nil)
	check(Gate{Method: Renormalize, Shape: Shape{4, 4, 0, 0}}, []float32{none, 1, none, none}, []int32{1, 0, 2, 3}, nil)
	// σ is exactly 1 for both 20 and 30 in float32: by logit they differ, by
	// sigmoid they tie.
	check(Gate{Method: Llama4, Shape: Shape{4, 1, 0, 0}}, []float32{0, 20, 30, 0}, []int32{2}, nil)
	check(Gate{Method: SigmoidRenorm, Shape: Shape{4, 1, 0, 0}}, []float32{0, 20, 30, 0}, []int32{1}, nil)
	// Groups {0,1} and {2,3} tie; in the second row three groups tie for the second place.
	check(Gate{Method: DeepSeekV3, Shape: Shape{4, 1, 2, 1}}, []float32{1, 0, 0, 1}, []int32{0}, nil)
	check(Gate{Method: DeepSeekV3, Shape: Shape{8, 2, 4, 2}}, []float32{-9, -9, 3, 4, -9, -9, -9, -9}, []int32{3, 2},
		nil)
}

func TestGateRefuses(t *testing.T) {
	for _, g := range []Gate{
		{Method: "Nonesuch", Shape: Shape{8, 2, 0, 0}},
		{Method: Default, Shape: Shape{8, 9, 0, 0}},
		{Method: Default, Shape: Shape{8, 2, 4, 2}},
		{Method: Default, Shape: Shape{8, 2, 0, 0}, Bias: make([]float32, 8)},
		{Method: DeepSeekV3, Shape: Shape{8, 2, 0, 0}, Bias: make([]float32, 7)},
	} {
		if _, err := NewRouter(g); err == nil {
			t.Errorf("%+v was taken", g)
		}
	}
}
