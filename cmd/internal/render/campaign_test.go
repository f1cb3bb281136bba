package render

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/cmd/internal/output"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
)

// withinLaunches is a campaign of launches of two blocks, whose launches have these log gains.
func withinLaunches(logs ...float64) source.Campaign {
	c := gain.Recorded{Design: gain.WithinLaunch, Metric: gain.Metric{Name: "throughput", Unit: "tok/s",
		HigherIsBetter: true}, Threshold: 0.1}
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

// An open campaign leads with its launches; JSON has the keys that
// others read, and every check its words.
func TestCampaignWithinLaunches(t *testing.T) {
	d := Campaign(withinLaunches(0.07, 0.11, 0.14, 0.08, 0.13))
	show := func(v output.View) string {
		var text strings.Builder
		if err := output.Write(&text, v, d); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	if text := show(output.View{Format: output.Text}); !strings.Contains(text, "\n     0    1000     1073   7.3 %  normal failed") {
		t.Errorf("no table of launches:\n%s", text)
	}
	var result struct {
		Design   string
		Launches []struct {
			Launch int
			Gain   float64
			Blocks []struct {
				Order  string
				Gain   *float64
				Status string
			}
		}
		Gain   struct{ N int }
		Checks []struct{ Name, Status, Text string }
	}
	if err := json.Unmarshal([]byte(show(output.View{Format: output.JSON})), &result); err != nil {
		t.Fatal(err)
	}
	first := result.Launches[0]
	if result.Design != "within_launch" || len(result.Launches) != 5 || math.Abs(first.Gain-0.0725) > 0.001 ||
		first.Blocks[0].Order != "ABBA" || first.Blocks[1].Gain != nil || first.Blocks[1].Status != "incomplete" ||
		result.Gain.N != 5 {
		t.Errorf("%+v", result)
	}
	for _, c := range result.Checks {
		if c.Text == "" && c.Status != string(gain.Pass) {
			t.Errorf("check %s (%s) without words", c.Name, c.Status)
		}
	}
}
