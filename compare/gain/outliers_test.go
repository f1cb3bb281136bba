package gain

import (
	"encoding/json"
	"fmt"
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
	// Four of six pairs are left, more than a quarter go: nothing is decided, though the pairs left have an interval.
	if r.Gain.N != 4 || !r.Gain.Low.Defined() {
		t.Errorf("%+v", r.Gain)
	}
}
