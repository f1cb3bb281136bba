package source

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

const twoH100 = "../../testdata/field/results/vllm-two-h100/"

func lines[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	f, err := os.Open(twoH100 + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var one T
		if err := json.Unmarshal(s.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// The four launches over two H100s against numbers computed by hand from their segments: of each launch the
// mean over its segments of the log throughput of balanced routing less that of the arm.
func TestFieldTwoGPUs(t *testing.T) {
	type segment struct {
		Launch          int
		Arm             string
		Timed           bool
		TokensPerStep   int     `json:"tokens_per_step"`
		TokensPerSecond float64 `json:"tokens_per_second"`
	}
	const quantile = 3.18245 // Student's t of 3 degrees of freedom, 97.5 %
	segments := lines[segment](t, "segments.jsonl")
	for _, want := range []struct {
		arm             string
		tokens          int
		gain, low, high float64 // %
	}{
		{"normal", 8192, 9.44, 8.47, 10.43}, {"target-1.2", 8192, 7.36, 6.74, 7.98}, {"target-1.5", 8192, 14.20, 13.39, 15.01},
		{"normal", 64, -3.40, -4.13, -2.67}, {"target-1.2", 64, -1.71, -2.34, -1.09}, {"target-1.5", 64, -0.93, -2.14, 0.30},
	} {
		var logs, squares float64
		for launch := range 4 {
			var gained float64
			timed := map[string]int{}
			for _, s := range segments {
				if s.Launch != launch || s.TokensPerStep != want.tokens || !s.Timed {
					continue
				}
				timed[s.Arm]++
				switch s.Arm {
				case "perfect":
					gained += math.Log(s.TokensPerSecond) / 4
				case want.arm:
					gained -= math.Log(s.TokensPerSecond) / 4
				}
			}
			if timed["perfect"] != 4 || timed[want.arm] != 4 {
				t.Fatalf("launch %d: %v segments, want 4 of each", launch, timed)
			}
			logs, squares = logs+gained, squares+gained*gained
		}
		half := quantile * math.Sqrt((squares-logs*logs/4)/3) / 2
		for i, log := range []float64{logs / 4, logs/4 - half, logs/4 + half} {
			if have := 100 * math.Expm1(log); math.Abs(have-[]float64{want.gain, want.low, want.high}[i]) > 0.006 {
				t.Errorf("%s at %d: number %d is %.3f %%, want %.2f %%", want.arm, want.tokens, i, have,
					[]float64{want.gain, want.low, want.high}[i])
			}
		}
	}

	type counted struct {
		Router  string
		Layers  int `json:"layers_of_steps"`
		AtFloor int `json:"at_the_floor"`
	}
	balanced, learned := 0, 0
	for _, c := range lines[counted](t, "counts.jsonl") {
		switch {
		case c.Router != "perfect":
			learned += c.AtFloor
		case c.AtFloor != c.Layers:
			t.Errorf("%+v: want every layer of a balanced step at the floor", c)
		default:
			balanced += c.Layers
		}
	}
	if balanced != 117600 || learned != 0 {
		t.Errorf("%d layers of balanced steps at the floor, %d of others", balanced, learned)
	}

	text, err := os.ReadFile(twoH100 + "campaign.json")
	if err != nil {
		t.Fatal(err)
	}
	var r gain.Result
	if err := json.Unmarshal(text, &r); err != nil || len(r.Points) != 2 {
		t.Fatalf("%d points, %v", len(r.Points), err)
	}
	for i, want := range [][]float64{{-3.40, -4.35, -2.44}, {9.44, 8.16, 10.74}} { // each at 97.5 %, so both at 95 %
		g := r.Points[i].Gain
		for j, have := range []float64{float64(g.Estimate), float64(g.Low), float64(g.High)} {
			if math.Abs(100*have-want[j]) > 0.006 {
				t.Errorf("point %d: number %d is %.3f %%, want %.2f %%", i, j, 100*have, want[j])
			}
		}
	}
	readme, err := os.ReadFile("../../testdata/field/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| recorded counts | 1.28 | +9.4 % (8.2 to 10.7) | −3.4 % (−4.4 to −2.4) |",
		"| target:1.2 | 1.20 | +7.4 % (6.7 to 8.0) | −1.7 % (−2.3 to −1.1) |",
		"| target:1.5 | 1.50 | +14.2 % (13.4 to 15.0) | −0.9 % (−2.1 to +0.3) |",
	} {
		if !strings.Contains(string(readme), row) {
			t.Errorf("testdata/field/README.md: want %q", row)
		}
	}
}
