package gain

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// recordedLaunches are the segments of five launches of vLLM on an H100 that held both arms.
func recordedLaunches(t *testing.T, metric string) (all []Measurement) {
	for launch := range 5 {
		text := require.Value(os.ReadFile(
			fmt.Sprintf("../../testdata/field/results/vllm-one-launch-h100/launch%d.json", launch)))
		var record struct {
			Blocks []struct {
				Segments []struct {
					Arm   Arm
					Value map[string]float64
				}
			}
		}
		require.NoError(t, json.Unmarshal(text, &record))
		position := 0
		for b, block := range record.Blocks {
			for _, s := range block.Segments {
				all = append(all, Measurement{Unit: launch, Block: b, Arm: s.Arm, Position: position, Status: StatusOK,
					Value: s.Value[metric]})
				position++
			}
		}
	}
	return all
}

// The five launches against numbers computed by hand: of each
// launch the mean over blocks of the log ratios of geometric means, and Student's t over launches.
func TestFieldOneLaunch(t *testing.T) {
	// the gain, its bounds, and the gains of the launches, in %, without a segment that falls out
	for metric, want := range map[string][]float64{
		"prefill": {5.35, 5.14, 5.57, 5.39, 5.47, 5.14, 5.21, 5.55},
		"decode":  {-1.10, -1.79, -0.41, -1.37, -0.86, -0.84, -0.51, -1.94},
	} {
		c := Recorded{Measurements: recordedLaunches(t, metric), Head: Head{Design: WithinLaunch, Threshold: 0.1,
			Metric: Metric{Name: metric, HigherIsBetter: true},
			Proof:  []Proof{{Arm: Normal, Grade: Claimed}, {Arm: Perfect, Grade: Claimed}}}}
		r := Judge(c)
		got := []float64{float64(r.Gain.Estimate), float64(r.Gain.Low), float64(r.Gain.High)}
		for _, l := range r.Launches {
			got = append(got, float64(l.Gain))
		}
		if len(got) != len(want) || r.Gain.Method != LaunchT || r.Verdict != NotSignificant {
			t.Fatalf("%s: %v by %s, %s", metric, got, r.Gain.Method, r.Verdict)
		}
		for i := range want {
			if math.Abs(100*got[i]-want[i]) > 0.006 {
				t.Errorf("%s: number %d is %.3f %%, want %.2f %%", metric, i, 100*got[i], want[i])
			}
		}
	}
}
