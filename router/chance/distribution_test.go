package chance

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// Of means over steps that chance made, one in twenty lies above P95, whatever
// the number of steps; steps of two sizes take turns. Of single steps of small
// batches it is fewer, as they have few values and P95 is one of them.
func TestChanceIsExceededOnceInTwenty(t *testing.T) {
	for _, c := range []struct {
		shape  router.Shape
		ranks  int
		tokens [2]int64
		single float64 // least share of single steps above
	}{
		{router.Shape{Experts: 8, TopK: 2}, 8, [2]int64{2, 3}, 0},
		{router.Shape{Experts: 128, TopK: 4}, 8, [2]int64{64, 96}, 0.005},
		{router.Shape{Experts: 128, TopK: 4}, 8, [2]int64{16, 200}, 0.005},
		{router.Shape{Experts: 64, TopK: 4, Groups: 8, TopKGroups: 2}, 8, [2]int64{32, 48}, 0.005},
	} {
		ranks, experts := simulated(t, c.shape, c.ranks, c.tokens)
		for _, steps := range []int{1, 4, 200} {
			least := 0.025
			if steps == 1 {
				least = c.single
			}
			for level, share := range map[string]float64{"ranks": exceeded(ranks, steps),
				"experts": exceeded(experts, steps)} {
				if share < least || share > 0.075 {
					t.Errorf("%v, %v tokens, %d steps, over %s: %.3f of the means are above P95, want about 0.05",
						c.shape, c.tokens, steps, level, share)
				}
			}
		}
	}
}

// simulated are many max/mean of steps with either number of tokens.
func simulated(t *testing.T, shape router.Shape, ranks int, tokens [2]int64) (ofRanks, ofExperts [2][]float64) {
	layout := mustLayout(shape.Experts, ranks)
	for i, n := range tokens {
		for seed := range uint64(10) {
			null := require.Value(NullOf(shape, layout, n, 2*seed+uint64(i)))
			ofRanks[i], ofExperts[i] = append(ofRanks[i], null.Rank.draws...), append(ofExperts[i], null.Expert.draws...)
		}
	}
	return ofRanks, ofExperts
}

// exceeded is the share of means over steps above P95, chance and steps alike
// being drawn from these values.
func exceeded(values [2][]float64, steps int) float64 {
	const chances, means = 400, 10
	rng := rand.New(rand.NewPCG(1, uint64(steps)))
	draw := func(step int) float64 { return values[step%2][rng.IntN(len(values[step%2]))] }
	count := 0
	for range chances {
		var of [2]*Distribution
		for i := range of {
			of[i] = &Distribution{make([]float64, simulations)}
			for j := range of[i].draws {
				of[i].draws[j] = draw(i)
			}
		}
		var null []*Distribution
		for i := range steps {
			null = append(null, of[i%2])
		}
		limit := MeanOf(null).P95()
		for range means {
			sum := 0.0
			for i := range steps {
				sum += draw(i)
			}
			if sum/float64(steps) > limit.Float64()*(1+1e-12) {
				count++
			}
		}
	}
	return float64(count) / (chances * means)
}

// One step is its own mean; a step that varies by nothing leaves the mean where
// it is; one of unknown chance leaves nothing known.
func TestMeanOf(t *testing.T) {
	c := &Distribution{[]float64{1, 2, 3, 4}}
	if one := MeanOf([]*Distribution{c}); one.Median() != 2 || one.P95() != 4 {
		t.Errorf("one step: %+v", one)
	}
	constant := &Distribution{[]float64{8, 8, 8, 8}}
	if same := MeanOf([]*Distribution{constant, constant, constant}); same.Median() != 8 || same.P95() != 8 {
		t.Errorf("three steps that cannot differ: %+v", same)
	}
	// Two steps of their own: the variances 1.25 and 0 add to 1.25, and deviations
	// of 1.5, 0.5, −0.5, −1.5 are halved around (2.5 + 8)/2.
	if two := MeanOf([]*Distribution{c, constant}); two.Median() != 5 || two.P95() != 6 {
		t.Errorf("a varying and a constant step: %+v", two)
	}
	// n steps that share one of D draws: the variance of the mean is
	// s²/n·(1 + (n−1)/D), here of 400 steps and 4 draws 100.75 times s²/400.
	_, variance := stat.PopMeanVariance(MeanOf(slices.Repeat([]*Distribution{c}, 400)).draws, nil)
	if want := 1.25 / 400 * 100.75; variance < want/4 || variance > want*4 { // of four values
		t.Errorf("a variance of %v for 400 steps, want about %v", variance, want)
	}
	for name, steps := range map[string][]*Distribution{"no steps": nil, "an unknown step": {c, nil}} {
		if unknown := MeanOf(steps); unknown.Median().Defined() || unknown.P95().Defined() {
			t.Errorf("%s: %+v", name, unknown)
		}
	}
}
