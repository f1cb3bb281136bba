package gain

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
	f, err := os.Open("../../testdata/pairs-abba.jsonl")
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

// gainOf is the gain over pairs: normal[i] and perfect[i] are of pair i.
func gainOf(normal, perfect []float64, higherIsBetter bool) Gain {
	logs := make([]float64, len(normal))
	for i := range normal {
		logs[i] = logGain(normal[i], perfect[i], higherIsBetter)
	}
	return gainOfLogs(logs, 0.95)
}

func TestGainOfRecordedCampaign(t *testing.T) {
	normal, perfect := armValues(abba(t))
	g := gainOf(normal, perfect, true)
	checkNear(t, "estimate", float64(g.Estimate), 0.198, 0.0005)
	checkNear(t, "low", float64(g.Low), 0.141, 0.0005)
	checkNear(t, "high", float64(g.High), 0.281, 0.0005)
	checkNear(t, "confidence", float64(g.Confidence), 0.96875, 1e-12)
	checkNear(t, "p", float64(g.P), 0.03125, 1e-12)
	if g.N != 6 {
		t.Errorf("n: have %d, want 6", g.N)
	}
}

func TestGainByHand(t *testing.T) {
	// Ratios 1.1 and 1.21: logs λ and 2λ with λ = ln 1.1. Walsh averages λ, 1.5λ,
	// 2λ: estimate 1.1^1.5 − 1 = 0.153690; the geometric mean is the same.
	g := gainOf([]float64{100, 100}, []float64{110, 121}, true)
	checkNear(t, "estimate", float64(g.Estimate), 0.153690, 5e-7)
	checkNear(t, "geometric mean", float64(g.TEstimate), 0.153690, 5e-7)
	if g.Low.Defined() || g.High.Defined() || g.Confidence.Defined() {
		t.Errorf("2 pairs have no 95 %% interval: %+v", g)
	}
	// Half the interval: t₀.₉₇₅,₁ = 12.7062 times sd λ/√2 over √2, λ/2.
	checkNear(t, "t low", float64(g.TLow), math.Exp(math.Log(1.1)*(1.5-12.70620/2))-1, 1e-6)
}

func TestGainLaws(t *testing.T) {
	normal, perfect := armValues(abba(t))
	g := gainOf(normal, perfect, true)
	// A time in place of a rate, lower is better: the same gain.
	times := func(rates []float64) []float64 {
		out := make([]float64, len(rates))
		for i, r := range rates {
			out[i] = 1e6 / r
		}
		return out
	}
	l := gainOf(times(normal), times(perfect), false)
	checkNear(t, "times", float64(l.Estimate), float64(g.Estimate), 1e-12)
	checkNear(t, "times, low", float64(l.Low), float64(g.Low), 1e-12)
	// Arms exchanged: the reciprocal, interval and all.
	x := gainOf(perfect, normal, true)
	checkNear(t, "exchanged", (1+float64(x.Estimate))*(1+float64(g.Estimate)), 1, 1e-12)
	checkNear(t, "exchanged bounds", (1+float64(x.Low))*(1+float64(g.High)), 1, 1e-12)
	checkNear(t, "exchanged p", float64(x.P), float64(g.P), 0)
}

func TestGainOfNothing(t *testing.T) {
	for _, k := range [][2]float64{{0, 1}, {1, -1}, {math.NaN(), 1}, {1, math.Inf(1)}, {math.Inf(1), 1}} {
		if log := logGain(k[0], k[1], true); !math.IsNaN(log) {
			t.Errorf("%v against %v: have %v, want NaN", k[0], k[1], log)
		}
	}
	if g := gainOf(nil, nil, true); g.N != 0 || g.Estimate.Defined() || g.P.Defined() {
		t.Errorf("no pairs: have %+v, want all undefined", g)
	}
}
