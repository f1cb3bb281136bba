package stats_test

import (
	"fmt"
	"math"

	"github.com/moebalance/moebalance/compare/stats"
)

func ExamplePairsToDecide() {
	// An effect of 5 % with a spread of 4 % between pairs, to be told from zero
	// with probability 0.8: (2.447 + 0.842)·0.04/√8 = 0.0465 is below
	// ln 1.05 = 0.0488, and with 7 pairs it would be 0.0516.
	n, ok := stats.PairsToDecide(math.Log(1.05), 0.04, 0.95, 0.8)
	fmt.Println(n, ok)
	// Output: 8 true
}
