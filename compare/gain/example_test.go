package gain_test

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/gain"
)

// A campaign of six pairs in ABBA order, with the evidence that each arm was
// what it should be.
func ExampleJudge() {
	c := gain.Campaign{
		Criteria: gain.Criteria{Threshold: gain.DefaultThreshold, Confidence: gain.DefaultConfidence,
			Tolerance: gain.DefaultTolerance},
		Metric:   gain.Metric{Name: "output_throughput", Unit: "tok/s", HigherIsBetter: true},
		Compared: true,
		Differences: []gain.Difference{
			{Kind: "environment", Name: "ENABLE_PERFECT_ROUTER", Normal: "not set", Perfect: "1", Declared: true},
		},
		Proof: []gain.Proof{
			{Arm: gain.Normal, Rank: gain.AllRanks, Grade: gain.Measured, Evidence: "max/mean 1.36 over ranks"},
			{Arm: gain.Perfect, Rank: gain.AllRanks, Grade: gain.Measured, Evidence: "max/mean 1.00 over ranks"},
		},
	}
	normal := []float64{399, 381, 391, 385, 372, 380}
	perfect := []float64{456, 459, 466, 461, 450, 486}
	for pair := range normal {
		first, second := 2*pair, 2*pair+1
		if pair%2 == 1 {
			first, second = second, first
		}
		c.Measurements = append(c.Measurements,
			gain.Measurement{Unit: pair, Arm: gain.Normal, Position: first, Status: gain.StatusOK, Value: normal[pair]},
			gain.Measurement{Unit: pair, Arm: gain.Perfect, Position: second, Status: gain.StatusOK, Value: perfect[pair]})
	}
	r := gain.Judge(c)
	fmt.Println(r.Verdict)
	fmt.Printf("%.1f %% to %.1f %%\n", 100*r.Gain.Low, 100*r.Gain.High)

	c.Proof = c.Proof[:1]
	fmt.Println(gain.Judge(c).Verdict)
	// Output:
	// imbalance significant
	// 15.4 % to 25.0 %
	// invalid
}
