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

const fieldData = "../../testdata/field/"

func lines[T any](t *testing.T, path string) (all []T) {
	t.Helper()
	f, err := os.Open(path)
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

// armGain is what an arm lost to balanced routing at one load, in %.
type armGain struct {
	arm             string
	tokens          int
	gain, low, high float64
}

// The launches over two and four H100s against numbers computed by hand from their segments: of each launch the
// mean over its segments of the log throughput of balanced routing less that of the arm, then Student's t.
func TestFieldCampaigns(t *testing.T) {
	readme, err := os.ReadFile(fieldData + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folder             string
		launches, segments int     // timed ones of an arm in each launch
		quantile           float64 // of Student's t, 97.5 %
		arms               []armGain
		balanced           int         // layers of balanced steps, all at the floor
		points             [][]float64 // of the campaign, each at 97.5 %, so both at 95 %
		rows               []string    // of the README
		prefix             string      // of the files
	}{
		{"results/vllm-two-h100/", 4, 4, 3.18245, []armGain{
			{"normal", 8192, 9.44, 8.47, 10.43}, {"target-1.2", 8192, 7.36, 6.74, 7.98}, {"target-1.5", 8192, 14.20, 13.39, 15.01},
			{"normal", 64, -3.40, -4.13, -2.67}, {"target-1.2", 64, -1.71, -2.34, -1.09}, {"target-1.5", 64, -0.93, -2.14, 0.30},
		}, 117600, [][]float64{{-3.40, -4.35, -2.44}, {9.44, 8.16, 10.74}}, []string{
			"| recorded counts | 1.28 | +9.4 % (8.2 to 10.7) | −3.4 % (−4.4 to −2.4) |",
			"| target:1.2 | 1.20 | +7.4 % (6.7 to 8.0) | −1.7 % (−2.3 to −1.1) |",
			"| target:1.5 | 1.50 | +14.2 % (13.4 to 15.0) | −0.9 % (−2.1 to +0.3) |",
		}, ""},
		{"results/vllm-four-h100/", 5, 4, 2.77645, []armGain{
			{"normal", 8192, 12.72, 12.52, 12.92}, {"target-1.2", 8192, 5.81, 5.61, 6.02}, {"target-2", 8192, 18.11, 17.80, 18.42},
			{"normal", 64, -2.38, -3.16, -1.59}, {"target-1.2", 64, -0.96, -1.43, -0.50}, {"target-2", 64, -1.11, -1.47, -0.76},
		}, 134592, [][]float64{{-2.38, -3.36, -1.39}, {12.72, 12.47, 12.98}}, []string{
			"| tensor-parallel attention, recorded counts | 1.62 | +12.7 % (12.5 to 13.0) | −2.4 % (−3.4 to −1.4) |",
			"| target:1.2 | 1.20 | +5.8 % (5.6 to 6.0) | −1.0 % (−1.4 to −0.5) |",
			"| target:2 | 2.00 | +18.1 % (17.8 to 18.4) | −1.1 % (−1.5 to −0.8) |", "All 134,592 layers of balanced steps",
		}, ""},
		{"results/vllm-four-h100/", 5, 2, 2.77645, []armGain{{"normal", 8192, 15.30, 14.74, 15.86}, {"normal", 64, -2.34, -2.86, -1.81}},
			77952, [][]float64{{-2.34, -2.99, -1.67}, {15.30, 14.60, 16.00}}, []string{
				"| data-parallel attention, recorded counts | 1.62 | +15.3 % (14.6 to 16.0) | −2.3 % (−3.0 to −1.7) |",
				"and 77,952 with data-parallel attention",
			}, "dep."},
		{"results/vllm-four-h100/", 2, 2, 12.7062, []armGain{{"normal", 8192, 16.64, 5.24, 29.28}}, 16512, nil,
			[]string{"+16.6 % (5.2 to 29.3)", "All 16,512 layers of balanced steps"}, "first."},
		{"results/vllm-four-h100/", 3, 2, 4.30265, []armGain{{"normal", 8192, 8.52, -1.38, 19.42}, {"normal", 256, 4.09, -4.56, 13.53}},
			60624, nil, []string{"+8.5 % (−1.4 to +19.4)", "+4.1 % (−4.6 to +13.5)", "and 60,624 without are at the floor"}, "eager."},
	} {
		folder := fieldData + c.folder
		segments := lines[segment](t, folder+c.prefix+"segments.jsonl")
		for _, want := range c.arms {
			logs := gained(t, segments, want, c.launches, c.segments)
			n, mean, squares := float64(len(logs)), 0.0, 0.0
			for _, log := range logs {
				mean += log / n
			}
			for _, log := range logs {
				squares += (log - mean) * (log - mean)
			}
			half := c.quantile * math.Sqrt(squares/(n-1)/n)
			equalPercent(t, c.folder+want.arm, []float64{mean, mean - half, mean + half}, []float64{want.gain, want.low, want.high})
		}
		if at, other := atFloor(t, folder+c.prefix+"counts.jsonl"); at != c.balanced || other != 0 {
			t.Errorf("%s: %d layers of balanced steps at the floor, %d of others", c.folder, at, other)
		}
		for _, row := range c.rows {
			if !strings.Contains(string(readme), row) {
				t.Errorf("testdata/field/README.md: want %q", row)
			}
		}
		if c.points == nil {
			continue
		}
		text, err := os.ReadFile(folder + c.prefix + "campaign.json")
		if err != nil {
			t.Fatal(err)
		}
		var r gain.Result
		if err := json.Unmarshal(text, &r); err != nil || len(r.Points) != len(c.points) {
			t.Fatalf("%d points, %v", len(r.Points), err)
		}
		for i, want := range c.points {
			g := r.Points[i].Gain
			have := []float64{math.Log1p(float64(g.Estimate)), math.Log1p(float64(g.Low)), math.Log1p(float64(g.High))}
			equalPercent(t, c.folder, have, want)
		}
	}
}

type segment struct {
	Launch          int
	Arm             string
	Timed           bool
	TokensPerStep   int     `json:"tokens_per_step"`
	TokensPerSecond float64 `json:"tokens_per_second"`
}

// gained is of each launch the log of balanced throughput over the arm's.
func gained(t *testing.T, segments []segment, of armGain, launches, each int) (logs []float64) {
	t.Helper()
	for launch := range launches {
		log, timed := 0.0, map[string]int{}
		for _, s := range segments {
			if s.Launch != launch || s.TokensPerStep != of.tokens || !s.Timed {
				continue
			}
			timed[s.Arm]++
			switch s.Arm {
			case "perfect":
				log += math.Log(s.TokensPerSecond) / float64(each)
			case of.arm:
				log -= math.Log(s.TokensPerSecond) / float64(each)
			}
		}
		if timed["perfect"] != each || timed[of.arm] != each {
			t.Fatalf("launch %d: %v segments, want %d of each", launch, timed, each)
		}
		logs = append(logs, log)
	}
	return logs
}

// atFloor counts the layers of balanced steps, which must all be at the floor, and those of others that are.
func atFloor(t *testing.T, path string) (balanced, others int) {
	t.Helper()
	for _, c := range lines[struct {
		Router  string
		Layers  int `json:"layers_of_steps"`
		AtFloor int `json:"at_the_floor"`
	}](t, path) {
		switch {
		case c.Router != "perfect":
			others += c.AtFloor
		case c.AtFloor != c.Layers:
			t.Errorf("%+v: want every layer of a balanced step at the floor", c)
		default:
			balanced += c.Layers
		}
	}
	return balanced, others
}

func equalPercent(t *testing.T, what string, logs, percent []float64) {
	t.Helper()
	for i, log := range logs {
		if have := 100 * math.Expm1(log); math.Abs(have-percent[i]) > 0.006 {
			t.Errorf("%s: number %d is %.3f %%, want %.2f %%", what, i, have, percent[i])
		}
	}
}
