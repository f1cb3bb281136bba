package render

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
)

// An open campaign leads with its launches.
func TestCampaignWithinLaunches(t *testing.T) {
	var text strings.Builder
	err := output.Write(&text, output.View{Format: output.Text}, Campaign(source.Campaign{Result: gain.Result{
		Head: gain.Head{Design: gain.WithinLaunch}, Verdict: gain.Inconclusive, Launches: []gain.Unit{{Values: gain.Values{
			Normal: 1000, Perfect: 1073, Gain: 0.073, Status: gain.PairComplete, Note: "normal failed"}}}}}))
	if err != nil || !strings.Contains(text.String(), "\n     0    1000     1073  7.3 %  normal failed") {
		t.Errorf("no table of launches: %v\n%s", err, text.String())
	}
}
