package source

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
)

// Runs of a client that one file holds are repetitions on one server, and count as one
// launch; lines of a program that starts its engine are a launch each.
func TestRepetitionsAreNoLaunches(t *testing.T) {
	throughput := regexp.MustCompile(`"output_throughput": ?[0-9.]+`)
	folder := t.TempDir()
	write := func(name, line string, values ...string) Side {
		var lines bytes.Buffer
		for _, v := range values {
			lines.WriteString(throughput.ReplaceAllString(line, `"output_throughput": `+v) + "\n")
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return Side{Paths: []string{path}}
	}
	for _, client := range []string{"vllm", "sglang"} {
		content, err := os.ReadFile("../../testdata/outputs/serving-" + client + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(content)), "\n")
		set, err := ReadReports([2]Side{write("normal.jsonl", line, "100", "104", "96", "98", "102", "100"),
			write("perfect.jsonl", line, "120", "124", "116", "118", "122", "120")}, ReportOptions{Trust: true,
			Metric:   "output_throughput",
			Criteria: gain.Criteria{Threshold: gain.DefaultThreshold, Confidence: 0.95, Tolerance: 0.01}})
		if err != nil {
			t.Fatal(err)
		}
		l := set.Campaign.Launches
		if len(l) != 2 || math.Abs(l[0].Value-100) > 1e-9 || math.Abs(l[1].Value-120) > 1e-9 {
			t.Errorf("%s: launches %+v, want one of 100 and one of 120", client, l)
		}
		if !strings.Contains(strings.Join(set.Notes, "\n"), "normal.jsonl: 6 runs of a client count as one launch") {
			t.Errorf("%s: notes %q", client, set.Notes)
		}
		if r := gain.Judge(set.Campaign); r.Verdict != gain.Inconclusive || r.Gain.N != 1 || r.Gain.Low.Defined() {
			t.Errorf("%s: %s of %+v", client, r.Verdict, r.Gain)
		}
	}
}
