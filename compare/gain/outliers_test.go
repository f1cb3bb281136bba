package gain

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// Slow launches fall out with their pairs where four remain; where more than a quarter go, nothing is decided.
func TestSlowLaunches(t *testing.T) {
	for _, k := range []struct {
		pairs, slow, kept int
		want              Verdict
	}{{6, 1, 5, Significant}, {6, 2, 4, Inconclusive}, {8, 2, 6, Significant}, {8, 3, 5, Inconclusive}} {
		launches := paired(slices.Repeat([]float64{0.2}, k.pairs)...)
		for i := range launches {
			launches[i].Value *= 1 + 0.0005*float64(7*i%17)
			if i < 2*k.slow && launches[i].Arm == Perfect {
				launches[i].Value *= 0.7
			}
		}
		c := valid(launches)
		if r := Judge(c); r.Verdict != k.want || r.Gain.N != k.kept || r.Outliers() != k.slow {
			t.Errorf("%d pairs, %d slow: %s of %d, %d named", k.pairs, k.slow, r.Verdict, r.Gain.N, r.Outliers())
		}
		c.Threshold = 0.2 // which the interval holds
		if r := Judge(c); r.Undone() != (k.want == Inconclusive) {
			t.Errorf("%d pairs, %d slow: a gate is told by %+v", k.pairs, k.slow, r.Gain)
		}
	}
}

// The campaign of the field names its two slow launches, and asks for no more pairs.
func TestOutliersOfTheField(t *testing.T) {
	_, r := rejudged(t, "field/results/vllm-qwen3-campaign.json")
	if far := check(t, r, CheckOutliers); r.Outliers() != 2 ||
		fmt.Sprint(far.Args["launches"], far.Args["pairs"]) != "[7 8] [3 4]" {
		t.Errorf("outliers %+v, want launch 7 of the perfect arm and 8 of the normal one", far)
	}
	if r.Verdict != Inconclusive || r.PairsNeeded.Defined() {
		t.Errorf("%s, %v pairs needed", r.Verdict, r.PairsNeeded)
	}
	// Four of six pairs are left, more than a quarter go: nothing is decided, though the pairs left have an interval.
	if r.Gain.N != 4 || !r.Gain.Low.Defined() {
		t.Errorf("%+v", r.Gain)
	}
}

// A launch is named whose gain is further from the others' than in 2 % of campaigns the furthest of five is by chance.
func TestLaunchAtTheOutlierLevel(t *testing.T) {
	limit := 8.0526 * 0.01 * math.Sqrt(4.0/3) / 2 * math.Sqrt(5) // t of 3 degrees of freedom at 1 − 0.02/5/2
	for by, want := range map[float64]int{0.99: 0, 1.01: 1} {
		last := []float64{by * limit}
		r := Judge(within(blocksOf([]float64{-0.01}, []float64{0.01}, []float64{-0.01}, []float64{0.01}, last)))
		if r.Outliers() != want || want > 0 && fmt.Sprint(check(t, r, CheckOutliers).Args["launches"]) != "[4]" {
			t.Errorf("%v of the limit: %+v", by, r.First())
		}
	}
}
