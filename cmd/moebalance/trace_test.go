package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// Without ranges that name layers there is no layer −1 to blame. A layer is judged against
// its floor: a noisy one with a larger max/mean does not fail, and hides no other.
func TestTraceGate(t *testing.T) {
	row := func(layer router.OptInt, maxOverMean, floor router.Number) imbalance.Row {
		return imbalance.Row{Layer: layer, Level: router.LevelRank, Quantity: imbalance.Time, MaxOverMean: maxOverMean,
			Imbalance: maxOverMean - 1, Floor: floor}
	}
	for _, c := range []struct {
		rows []imbalance.Row
		want string
	}{
		{[]imbalance.Row{row(trace.NoID, 1.5, router.Undefined())}, "of all layers is 50.0 %"},
		{[]imbalance.Row{row(0, 1.3, 1.25)}, ""},
		{[]imbalance.Row{row(0, 1.3, 1.25), row(1, 1.2, 1.01)}, "of layer 1 is 20.0 %"},
		{nil, "no layer has expert time"},
	} {
		if err := traceGate(&trace.Trace{Imbalance: c.rows}, 0.1); fmt.Sprint(err) == "<nil>" != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: have %v", c.rows, err)
		}
	}
	// the answer leaves the decode steps out
	decode := trace.StepKind{Kind: 2, Name: "decode, 8 tokens", Steps: []int{1, 2, 3}, Time: imbalance.Summary{WorstLayer: 2,
		WorstMaxOverMean: 1.5, WorstFloor: router.Undefined()}}
	trace := &trace.Trace{Imbalance: []imbalance.Row{row(0, 1.02, router.Undefined())},
		StepKinds: []trace.StepKind{decode}, Replays: []trace.Replay{{Kind: 2}}}
	if err := traceGate(trace, 0.1); err == nil ||
		!strings.Contains(err.Error(), "of layer 2 is 50.0 % in steps 1 to 3 (decode, 8 tokens)") {
		t.Error(err)
	}
	if err := traceGate(trace, 0.6); err != nil {
		t.Error(err)
	}
}
