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
