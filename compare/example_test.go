package compare_test

import (
	"fmt"

	"github.com/moebalance/moebalance/compare"
)

// A campaign of six pairs in ABBA order, with the evidence that each arm was
// what it should be.
func ExampleJudge() {
	c := compare.Campaign{
		Criteria: compare.DefaultCriteria(),
		Metric:   compare.Metric{Name: "output_throughput", Unit: "tok/s", HigherIsBetter: true},
		Compared: true,
		Differences: []compare.Difference{
			{Kind: "environment", Name: "ENABLE_PERFECT_ROUTER", Normal: "not set", Perfect: "1", Declared: true},
		},
		Proof: []compare.Proof{
			{Arm: compare.Normal, Rank: compare.AllRanks, Proved: true, Evidence: "max/mean 1.36 over ranks"},
			{Arm: compare.Perfect, Rank: compare.AllRanks, Proved: true, Evidence: "max/mean 1.00 over ranks"},
		},
	}
	normal := []float64{399, 381, 391, 385, 372, 380}
	perfect := []float64{456, 459, 466, 461, 450, 486}
	for pair := range normal {
		first, second := 2*pair, 2*pair+1
		if pair%2 == 1 {
			first, second = second, first
		}
		c.Launches = append(c.Launches,
			compare.Launch{Pair: pair, Arm: compare.Normal, Position: first, Status: compare.StatusOK, Value: normal[pair]},
			compare.Launch{Pair: pair, Arm: compare.Perfect, Position: second, Status: compare.StatusOK, Value: perfect[pair]})
	}
	r := compare.Judge(c)
	fmt.Println(r.Verdict)
	fmt.Println(r.Reasons[0])

	c.Proof = c.Proof[:1]
	fmt.Println(compare.Judge(c).Verdict)
	// Output:
	// imbalance significant
	// gain +20.1 %, 96.9 % interval +14.3 % to +27.9 %, 6 pairs: above the threshold of +10.0 %
	// invalid
}
