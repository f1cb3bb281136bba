package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/metrics"
)

// iterationLog writes a log of 20 decode steps of one batch shape, the odd ones
// a millisecond longer, on two ranks.
func iterationLog(t *testing.T, name string, ms float64) string {
	t.Helper()
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "{'iter': %d, 'iterLatencyMS': 99, 'gpuForwardTimeMS': %g, 'attentionDpRank': %d, 'inflightBatchingStats': "+
			"{'numScheduledRequests': 8, 'numCtxTokens': 0, 'numGenRequests': 8}}\n", i/2, ms+float64(i/2%2), i%2)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompareMatchesStepsByShape(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"compare", "--trust-arms", "--format", "json", iterationLog(t, "normal.txt", 11.5),
		iterationLog(t, "perfect.txt", 9.5)}
	if code := run(context.Background(), args, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var got struct {
		Verdict string         `json:"verdict"`
		Matched *metrics.Match `json:"matched_steps"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	// Of the 20 steps of a rank the first 2, a tenth, are warm-up; 9 odd and 9 even
	// ones stay: 12 ms on average against 10.
	if m := got.Matched; m == nil || len(m.Strata) != 2 || math.Abs(float64(m.Gain)-0.2) > 1e-12 ||
		m.Strata[1].Rank != 1 || m.Strata[1].NormalSteps != 18 {
		t.Errorf("matched steps %+v", m)
	}
	if got.Verdict == "" {
		t.Error("the verdict is gone")
	}
}

// Files of --log_iteration_data hold no times: their iterations are compared, the headline
// says that there is no gain, and a gate does not pass.
func TestCompareIterationData(t *testing.T) {
	normal := filepath.Join("..", "..", "testdata", "outputs", "log-iteration-data.txt")
	text, err := os.ReadFile(normal)
	if err != nil {
		t.Fatal(err)
	}
	perfect := filepath.Join(t.TempDir(), "perfect.txt") // iteration 92 runs another batch
	lines := strings.SplitAfter(string(text), "\n")
	lines[2] = strings.Replace(lines[2], `"Scheduled Requests":239`, `"Scheduled Requests":230`, 1)
	if err := os.WriteFile(perfect, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, gate := range []string{"--trust-arms", "--require-verdict"} {
		out, errs, code := invoke(context.Background(), "compare", gate, normal, perfect)
		if code != exitFailed || out != "" || !strings.Contains(errs, "3 iteration rows and no times") {
			t.Errorf("%s: exit %d, %s", gate, code, errs)
		}
	}
	var errs string
	if _, errs, _ = invoke(context.Background(), "compare", normal,
		iterationLog(t, "perfect.txt", 9)); !strings.Contains(errs, "3 iteration rows and no times") {
		t.Errorf("beside a log with times: %s", errs)
	}
}
