package source

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
)

// A layer that is not known is none, not layer −1.
func TestProfiledArmWithoutLayer(t *testing.T) {
	for name, overall := range map[string][]imbalance.Summary{
		"one rank": nil,
		"no layers": {{Level: router.LevelRank, Quantity: imbalance.Time, WorstLayer: trace.NoID,
			WorstMaxOverMean: 1.5}},
		"expert time": {{Level: router.LevelExpert, Quantity: imbalance.Time, WorstLayer: 3, WorstMaxOverMean: 1.5}},
	} {
		p := ProfiledArm{Layer: router.NoID, MaxOverMean: router.Undefined()}
		p.describe(&trace.Trace{Overall: overall}, bench.Treatment{})
		if text, err := json.Marshal(p); err != nil || !strings.Contains(string(text), `"layer":null`) ||
			p.MaxOverMean.Defined() != (name == "no layers") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}
