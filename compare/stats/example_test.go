package stats_test

import (
	"fmt"
	"math"

	"github.com/moebalance/moebalance/compare/stats"
)

// Six pairs of launches, as log ratios of their throughputs.
var pairs = []float64{0.132, 0.186, 0.176, 0.181, 0.194, 0.247}

func ExampleHodgesLehmann() {
	hl := stats.HodgesLehmann(pairs, 0.95)
	fmt.Printf("%+.1f %%, %.1f %% interval %+.1f %% to %+.1f %%\n",
		100*math.Expm1(hl.Estimate), 100*hl.Confidence, 100*math.Expm1(hl.Low), 100*math.Expm1(hl.High))
	fmt.Println("5 pairs are enough:", stats.HodgesLehmann(pairs[:5], 0.95).Defined())
	// Output:
	// +20.3 %, 96.9 % interval +14.1 % to +28.0 %
	// 5 pairs are enough: false
}

func ExampleSignedRank() {
	fmt.Printf("p = %.4f\n", stats.SignedRank(pairs)) // all six positive: 2/2⁶
	// Output: p = 0.0312
}

func ExamplePairsToDecide() {
	// An effect of 5 % with a spread of 4 % between pairs, to be told from zero
	// with probability 0.8: (2.447 + 0.842)·0.04/√8 = 0.0465 is below
	// ln 1.05 = 0.0488, and with 7 pairs it would be 0.0516.
	n, ok := stats.PairsToDecide(math.Log(1.05), 0.04, 0.95, 0.8)
	fmt.Println(n, ok)
	// Output: 8 true
}
