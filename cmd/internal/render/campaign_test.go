package render

import (
	"math"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
)

// withinLaunches is a campaign of launches of two blocks, whose launches have these log gains.
func withinLaunches(logs ...float64) source.Campaign {
	c := gain.Recorded{Head: gain.Head{Design: gain.WithinLaunch, Threshold: 0.1,
		Metric: gain.Metric{Name: "throughput", Unit: "tok/s", HigherIsBetter: true}}}
	for _, arm := range gain.Arms {
		c.Proof = append(c.Proof, gain.Proof{Arm: arm, Rank: gain.AllRanks, Grade: gain.Measured, Evidence: "counts"})
	}
	for i, log := range logs {
		for place, side := range []int{0, 1, 1, 0, 1, 0, 0, 1} {
			c.Measurements = append(c.Measurements, gain.Measurement{Unit: i, Block: place / 4, Arm: gain.Arms[side],
				Position: place,
				Status:   gain.StatusOK, Value: 1000 * math.Exp(float64(side)*log+1e-5*float64(place))})
		}
	}
	c.Measurements[5].Status = "failed"
	return source.Campaign{Result: gain.Judge(c), Run: gain.Run{Folder: "camp", Launches: len(logs)}}
}

// An open campaign leads with its launches.
func TestCampaignWithinLaunches(t *testing.T) {
	var text strings.Builder
	err := output.Write(&text, output.View{Format: output.Text}, Campaign(withinLaunches(0.07, 0.11, 0.14, 0.08, 0.13)))
	if err != nil || !strings.Contains(text.String(), "\n     0    1000     1073   7.3 %  normal failed") {
		t.Errorf("no table of launches: %v\n%s", err, text.String())
	}
}
