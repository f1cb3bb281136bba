package compare

import "github.com/moebalance/moebalance/compare/bench"

// What a campaign records and what is judged of it go by the same words: these are
// package bench's.
type (
	Arm         = bench.Arm
	Proof       = bench.Proof
	Difference  = bench.Difference
	Check       = bench.Check
	CheckStatus = bench.CheckStatus
)

// The arms.
const (
	Normal  = bench.Normal
	Perfect = bench.Perfect
)

// Arms lists both in the order reports show them.
var Arms = bench.Arms

// AllRanks is the rank of evidence that covers all ranks of an arm together.
const AllRanks = bench.AllRanks

// The outcomes of checks.
const (
	Pass    = bench.Pass
	Warn    = bench.Warn
	Fail    = bench.Fail
	Unknown = bench.Unknown
)

// Metric is what a campaign compares. Unit is as printed, such as "tok/s".
type Metric struct {
	Name           string `json:"name"`
	Unit           string `json:"unit"`
	HigherIsBetter bool   `json:"higher_is_better"`
	// Definition says how the number is computed, in the words of what reported
	// it: two launches with different definitions measured different things.
	Definition string `json:"definition"`
}
