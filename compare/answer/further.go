package answer

import (
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/place"
)

// Evidence is what a page holds beside the answer that it leads with.
type Evidence struct {
	Builds   bool // two builds, whose balance nobody asks about
	Traces   bool // of any arm
	Balanced bool // the answer is of a trace of the perfect arm
	Cache    bool // the answer is of a cache
}

// Further is what to do where an answer itself asks for nothing: what the evidence lacks, or how
// to use it.
func (a Answer) Further(e Evidence) Step {
	gains := a.Verdict == Verdict(gain.Significant)
	switch {
	case e.Builds:
		return Step{"Compare the builds at the loads that you serve.", "moebalance bench --arms A,B -- YOUR_BENCHMARK"}
	case gains && !e.Traces:
		return Step{"Record where the time goes, and add the traces to this page.", recordAll.Command}
	case gains:
		return Step{"Plan a placement on recorded expert counts, and judge it on others.",
			"moebalance place --judge OTHER_COUNTS COUNTS"}
	case e.Balanced:
		return Step{"Record the same with learned routing, and compare both.", "moebalance compare NORMAL PERFECT"}
	case a.Verdict == Even, a.Verdict == Verdict(gain.NotSignificant):
		return Step{Text: "Leave the experts where they are; repeat this at the loads that you serve."}
	case a.Verdict == Verdict(place.NotNow):
		return Step{Text: "Keep the running placement; repeat this when the traffic changes."}
	case e.Cache:
		return Step{"Benchmark with it.", oneServer}
	}
	return measure
}
