package gain

import (
	"encoding/json"
	"fmt"
	"math"
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
	if far := check(t, r, CheckOutliers); r.Outliers() != 2 ||
		fmt.Sprint(far.Args["launches"], far.Args["pairs"]) != "[7 8] [3 4]" {
		t.Errorf("outliers %+v, want launch 7 of the perfect arm and 8 of the normal one", far)
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

// What slow launches that no limit shows may have added, by hand: (0.1/0.4 + 0.1/0.2) · 0.1/2.
func TestHidden(t *testing.T) {
	for arm, want := range map[Arm]float64{Normal: 0.0375, Perfect: -0.0375} {
		c := comparison{Recorded: &Recorded{Head: Head{Metric: Metric{HigherIsBetter: true}}}}
		far := []distance{{&Measurement{Arm: arm}, -0.4}, {&Measurement{Arm: arm}, -0.2}}
		checkNear(t, "hidden", c.hidden(far, 0.1), want, 1e-12)
	}
}
