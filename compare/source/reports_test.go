package source

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/testdata/require"
)

// Runs of a client that one file holds are repetitions on one server, and count as one
// launch; lines of a program that starts its engine are a launch each.
func TestRepetitionsAreNoLaunches(t *testing.T) {
	throughput := regexp.MustCompile(`"output_throughput": ?[0-9.]+`)
	tokens := regexp.MustCompile(`"total_output_tokens": ?[0-9]+, ?`) // over the duration they are another throughput
	folder := t.TempDir()
	write := func(name, line string, values ...string) Side {
		var lines bytes.Buffer
		for _, v := range values {
			lines.WriteString(throughput.ReplaceAllString(tokens.ReplaceAllString(line, ""), `"output_throughput": `+v) + "\n")
		}
		return Side{Paths: []string{put(t, filepath.Join(folder, name), lines.String())}}
	}
	for _, client := range []string{"vllm", "sglang"} {
		line, _, _ := strings.Cut(strings.TrimSpace(get("../../testdata/outputs/serving-"+client+".jsonl")), "\n")
		r := require.Value(ReadReports([2]Side{write("normal.jsonl", line, "100", "104", "96", "98", "102", "100"),
			write("perfect.jsonl", line, "120", "124", "116", "118", "122", "120")}, ReportOptions{Trust: true,
			Metric: metrics.Wanted{Name: "output_throughput"}, Threshold: gain.DefaultThreshold}))
		if r.Verdict != gain.NoVerdict || r.Gain.N != 1 || r.Gain.Low.Defined() ||
			math.Abs(float64(r.Gain.Estimate)-0.2) > 1e-9 { // of means of 100 and 120
			t.Errorf("%s: %s of %+v", client, r.Verdict, r.Gain)
		}
		if !strings.Contains(strings.Join(r.Notes, "\n"), "normal.jsonl: 6 runs of a client count as one launch") ||
			slices.ContainsFunc(r.Checks, func(c gain.Check) bool { return c.Name == gain.CheckLaunches }) { // nothing to doubt
			t.Errorf("%s: notes %q, checks %+v", client, r.Notes, r.Checks)
		}
	}
}

// That each report of a client is of a start of its own of the server is said first. Printed reports tell less than
// JSON. Runs of other work are no launches.
func TestReportsOfClientsAreTakenAsLaunches(t *testing.T) {
	formats := [2]string{`{"backend":"vllm","completed":10,"duration":%g,"request_throughput":%d,"output_throughput":%d}`,
		"=== Serving Benchmark Result ===\nSuccessful requests: 10\nBenchmark duration (s): %g\n" +
			"Request throughput (req/s): %d\nOutput token throughput (tok/s): %d\n"} // which names no backend
	var sides [2]Side
	for i := range sides {
		for n := range 6 {
			sides[i].Paths = append(sides[i].Paths, put(t, filepath.Join(t.TempDir(), "r.json"),
				fmt.Sprintf(formats[n/5], 10/float64(10+2*i), 10+2*i, 100+20*i+n%2)))
		}
	}
	r := require.Value(ReadReports(sides, ReportOptions{Trust: true, Threshold: 0.1}))
	if r.Verdict != gain.Significant || len(r.First()) != 1 || r.First()[0].Name != gain.CheckLaunches {
		t.Errorf("%s, first %+v", r.Verdict, r.First())
	}
	const twice = `{"backend":"vllm","completed":20,"duration":1,"request_throughput":20,"output_throughput":130}`
	curve := []string{put(t, filepath.Join(t.TempDir(), "normal.json"), get(sides[0].Paths[0])+twice),
		put(t, filepath.Join(t.TempDir(), "perfect.json"), twice)}
	if _, err := Gather(t.Context(), curve, nil, nil); !strings.Contains(fmt.Sprint(err), "requests 10 and 20") {
		t.Errorf("a curve: %v", err)
	}
	failed := strings.Replace(twice, "20", `5,"failed":5`, 1)
	tenfold := strings.Replace(get(sides[1].Paths[3]), `"duration":`, `"duration":1`, 1) // its throughput is another
	if put(t, sides[1].Paths[3], tenfold); !strings.Contains(fmt.Sprint(require.Value(ReadReports(sides,
		ReportOptions{Trust: true})).Failed()), "throughput_times_duration") {
		t.Error("a report whose throughput contradicts its duration passes")
	}
	double := strings.Replace(twice, ":1,", `:4,"total_output_tokens":260,`, 1) // 65 a second, not 130
	noted := require.Value(metrics.Parse("r.json", strings.NewReader(double), nil)).Warnings
	if !strings.Contains(fmt.Sprint(noted), "output_throughput times duration is 520, but the report counts 260") {
		t.Errorf("%v: what a report contradicts in itself is not told", noted)
	}
	for text, want := range map[string]string{twice: "requests 10 and 20", failed: "<nil>"} {
		put(t, sides[1].Paths[3], text)
		if _, err := ReadReports(sides, ReportOptions{}); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("a launch of %s: %v, want %s", text, err, want)
		}
	}
}

// What ranks print of TensorRT-LLM's switch proves a report as it proves a launch: of every rank, also where
// two write into one line. Trust does not stand in for a rank that is silent beside others.
func TestReportsAreProvedByTheLinesOfEveryRank(t *testing.T) {
	content := get("../../testdata/outputs/trtllm-bench-b.txt") // of four ranks
	side := func(ranks ...int) Side {
		var text strings.Builder
		for i, rank := range ranks {
			fmt.Fprintf(&text, "Precomputing perfect router logits for 22 common batch sizes (ep_rank=%d)...", rank)
			text.WriteString(strings.Repeat("\n", i%2))
		}
		return Side{Paths: []string{put(t, filepath.Join(t.TempDir(), "out.txt"), text.String()+"\n"+content)}}
	}
	for _, c := range []struct {
		normal, perfect Side
		trust           bool
		grades          [2]gain.Grade
	}{
		{side(), side(0, 1, 2, 3), false, [2]gain.Grade{gain.Claimed, gain.Claimed}},
		{side(), side(0, 2, 1), false, [2]gain.Grade{gain.Claimed, gain.None}},
		{side(), side(0, 2, 1), true, [2]gain.Grade{gain.Claimed, gain.None}},
		{side(1), side(0, 1, 2, 3), true, [2]gain.Grade{gain.None, gain.Claimed}},
		{side(), side(), true, [2]gain.Grade{gain.Claimed, gain.Claimed}},
		{side(), side(), false, [2]gain.Grade{gain.None, gain.None}},
	} {
		r := require.Value(ReadReports([2]Side{c.normal, c.perfect}, ReportOptions{Trust: c.trust, Threshold: 0.1}))
		weakest, grades := [2]gain.Grade{}, []gain.Grade{gain.Measured, gain.Claimed, gain.None}
		for _, p := range r.Proof {
			of := &weakest[slices.Index(gain.Arms[:], p.Arm)]
			*of = grades[max(slices.Index(grades, *of), slices.Index(grades, p.Grade))]
		}
		if weakest != c.grades {
			t.Errorf("%+v: %s by %+v, want %s", c, weakest, r.Proof, c.grades)
		}
	}
}

// What a launch printed and its JSON beside that are one launch, which the printed lines prove.
func TestReportsOfOneLaunch(t *testing.T) {
	var sides [2]Side
	for i, line := range []string{"", "Precomputing perfect router logits for 22 common batch sizes (ep_rank=%d)\n"} {
		text := get("../../testdata/outputs/trtllm-bench-c.txt")
		for rank := range 8 * i {
			text = fmt.Sprintf(line, rank) + text
		}
		folder := t.TempDir()
		sides[i].Paths = []string{put(t, filepath.Join(folder, "r.json"), get("../../testdata/outputs/trtllm-report.json")),
			put(t, filepath.Join(folder, "stdout.log"), text)}
	}
	r := require.Value(ReadReports(sides, ReportOptions{Threshold: 0.1}))
	if r.Gain.N != 1 || r.Balance != gain.Claimed || !strings.Contains(strings.Join(r.Notes, "\n"), "report one launch") {
		t.Errorf("%+v, %s: %q", r.Gain, r.Balance, r.Notes)
	}
	for i := range sides { // which are slow, and are printed with two digits
		put(t, sides[i].Paths[0], fmt.Sprintf(`{"completed":9,"duration":4143,"request_throughput":0.0022,"output_throughput":%d.7031}`, 3+i))
		put(t, sides[i].Paths[1], fmt.Sprintf("=== Serving Benchmark Result ===\nSuccessful requests: 9\nBenchmark duration (s): "+
			"4143.00\nRequest throughput (req/s): 0.00\nOutput token throughput (tok/s): %d.70\n", 3+i))
	}
	if r := require.Value(ReadReports(sides, ReportOptions{Trust: true})); r.Gain.N != 1 {
		t.Errorf("slow ones: %+v", r.Gain)
	}
}

// Reports of two tools are no two arms, trusted or named.
func TestReportsOfTwoToolsAreNotComparable(t *testing.T) {
	sides := [2]Side{{Paths: []string{"../../testdata/outputs/serving-sglang.txt"}},
		{Paths: []string{"../../testdata/outputs/trtllm-bench-b.txt"}}}
	for _, o := range []ReportOptions{{Trust: true}, {Builds: gain.Builds{"a", "b"}}} {
		r := require.Value(ReadReports(sides, o))
		if r.Verdict != gain.NotComparable || !strings.Contains(fmt.Sprint(r.Failed()), "trtllm-bench") {
			t.Errorf("%+v: %s", o, r.Verdict)
		}
	}
}
