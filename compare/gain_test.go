package compare

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"testing"
)

// abba reads the launches of the recorded campaign in the order they ran.
func abba(t *testing.T) []Launch {
	t.Helper()
	f, err := os.Open("../testdata/pairs-abba.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var launches []Launch
	for rows := bufio.NewScanner(f); rows.Scan(); {
		var row struct {
			Perfect bool    `json:"perfect_router"`
			Value   float64 `json:"tokens_per_second"`
		}
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		arm := Normal
		if row.Perfect {
			arm = Perfect
		}
		n := len(launches)
		launches = append(launches, Launch{Pair: n / 2, Arm: arm, Position: n, Status: StatusOK, Value: row.Value})
	}
	return launches
}

// armValues are the values of both arms by pair.
func armValues(launches []Launch) (normal, perfect []float64) {
	for _, l := range launches {
		if l.Arm == Perfect {
			perfect = append(perfect, l.Value)
		} else {
			normal = append(normal, l.Value)
		}
	}
	return normal, perfect
}

func checkNear(t *testing.T, what string, have, want, within float64) {
	t.Helper()
	if !(math.Abs(have-want) <= within) {
		t.Errorf("%s: have %.6g, want %.6g ± %.2g", what, have, want, within)
	}
}

func TestGainOfRecordedCampaign(t *testing.T) {
	normal, perfect := armValues(abba(t))
	g, err := GainOf(normal, perfect, true, 0.95, 1)
	if err != nil {
		t.Fatal(err)
	}
	checkNear(t, "estimate", float64(g.Estimate), 0.198, 0.0005)
	checkNear(t, "low", float64(g.Low), 0.141, 0.0005)
	checkNear(t, "high", float64(g.High), 0.281, 0.0005)
	checkNear(t, "confidence", float64(g.Confidence), 0.96875, 1e-12)
	checkNear(t, "p", float64(g.P), 0.03125, 1e-12)
	if g.N != 6 {
		t.Errorf("n: have %d, want 6", g.N)
	}
}
