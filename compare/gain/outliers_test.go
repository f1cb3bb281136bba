package gain

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// The campaign of the field names its two slow launches, and asks for no more pairs.
func TestOutliersOfTheField(t *testing.T) {
	content, err := os.ReadFile("../../testdata/field/results/vllm-qwen3-campaign.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded Result
	if err := json.Unmarshal(content, &recorded); err != nil {
		t.Fatal(err)
	}
	var launches []Measurement
	for _, p := range recorded.Pairs {
		second := map[string]int{"AB": 1}[p.Order]
		launches = append(launches,
			Measurement{Unit: p.Pair, Arm: Normal, Position: 2*p.Pair + 1 - second, Status: StatusOK,
				Value: p.Normal.Float64()},
			Measurement{Unit: p.Pair, Arm: Perfect, Position: 2*p.Pair + second, Status: StatusOK,
				Value: p.Perfect.Float64()})
	}
	r := Judge(valid(launches))
	if len(r.Outliers) != 2 || r.Outliers[0].Launch != 7 || r.Outliers[0].Arm != Perfect || r.Outliers[1].Launch != 8 ||
		r.Outliers[1].Pair != 4 {
		t.Errorf("outliers %+v, want launch 7 of the perfect arm and 8 of the normal one", r.Outliers)
	}
	if r.Verdict != Inconclusive || r.PairsNeeded.Defined() {
		t.Errorf("%s, %v pairs needed", r.Verdict, r.PairsNeeded)
	}
	// One outlier each way: nothing leans but the skew of the gains, which reaches higher.
	if math.Abs((r.Gain.Estimate-recorded.Gain.Estimate).Float64()) > 1e-12 ||
		math.Abs((r.Gain.Low-recorded.Gain.Low).Float64()) > 1e-12 || !(r.Gain.High > recorded.Gain.High) {
		t.Errorf("%+v, want %+v", r.Gain, recorded.Gain)
	}
}

// A gain below the threshold that slow launches of one arm lift above it decides nothing.
func TestVerdictOnOutliers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, slow := range []int{0, 6} {
		gains := make([]float64, 20)
		for i := range gains {
			gains[i] = 0.08
		}
		launches := paired(gains...)
		for i := range launches {
			launches[i].Value *= math.Exp(0.005 * rng.NormFloat64())
			if launches[i].Arm == Normal && launches[i].Unit%3 == 0 && launches[i].Unit/3 < slow {
				launches[i].Value *= 0.7
			}
		}
		r, want := Judge(valid(launches)), NotSignificant
		if slow > 0 {
			want = Inconclusive
		}
		if r.Verdict != want || (len(r.Leading()) > 0) != (slow > 0) {
			t.Errorf("%d slow launches: %s, caveats %v; want %s", slow, r.Verdict, r.Leading(), want)
		}
	}
}

// What slow launches that no limit shows may have added, by hand: (0.1/0.4 + 0.1/0.2) · 0.1/2.
func TestHidden(t *testing.T) {
	for side, want := range []float64{0.0375, -0.0375} {
		c := comparison{Campaign: &Campaign{Metric: Metric{HigherIsBetter: true}}}
		checkNear(t, "hidden", c.hidden([]distance{{side: side, log: -0.4}, {side: side, log: -0.2}}, 0.1), want, 1e-12)
	}
}
