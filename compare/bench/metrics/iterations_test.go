package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// The first ten full decode steps, or the first tenth where they are fewer than 100, are warm-up.
func TestSteadyByHand(t *testing.T) {
	decode := func(n int, requests router.OptInt) (steps []step) {
		for range n {
			steps = append(steps, step{requests: requests, ms: router.Number(requests)})
		}
		return steps
	}
	prefill := step{requests: 9, prompt: 512, ms: 50}
	// filling up, 21 full steps with a prompt between them, running empty
	mixed := slices.Concat([]step{prefill}, decode(1, 3), decode(20, 4),
		[]step{prefill, {requests: 4, prompt: 7}}, decode(1, 4), decode(5, 2))
	for name, c := range map[string]struct {
		rows []step
		want int
	}{"21 full ones": {mixed, 19}, "500": {decode(500, 8), 490}, "99": {decode(99, 8), 90}, "9": {decode(9, 8), 9},
		"only prefill": {[]step{prefill}, 0}, "none": {nil, 0}} {
		full := steady(c.rows)
		if len(full) != c.want {
			t.Errorf("%s: %d steady steps, want %d", name, len(full), c.want)
		}
		for _, s := range full {
			if s.prompt != 0 || s.requests < 4 {
				t.Errorf("%s: %+v is among the steady steps", name, s)
			}
		}
	}
}

// Ranks of attention data parallelism run batches of their own: an iteration takes as long as its slowest rank.
func TestRanksOfAnIteration(t *testing.T) {
	var text strings.Builder
	for iter := range 30 {
		for rank, ms := range []float64{12.5, 2.5 + 20*float64(iter%2)} {
			fmt.Fprintf(&text, "iter = %d, global_rank = %d, rank = 0, num_scheduled_requests = %d, host_step_time = %gms, "+
				"states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 30}\n",
				iter+1, rank, 30-10*rank, ms)
		}
	}
	r, err := Parse("log", strings.NewReader(text.String()), nil)
	m, _ := r.Metric("step_time_mean") // of iterations 4 to 30: 14 of 22.5 ms and 13 of 12.5
	if want := router.Number(14*22.5+13*12.5) / 27; err != nil || m.Value-want > 1e-9 || want-m.Value > 1e-9 {
		t.Errorf("step time %v, error %v, want %v", m.Value, err, want)
	}
}

// A row that was cut does not take the rows behind it with it.
func TestCutRowsEndWithTheirLine(t *testing.T) {
	for _, row := range []string{`{"iter": 2, "iterLatencyMS": 5.0, "inflightBatchingStats": {"numCtxTokens": 7}}`,
		`0: {"iter": 2, "iterLatencyMS": 5.0, "inflightBatchingStats": {"numCtxTokens": 7}}`} {
		r, err := Parse("log", strings.NewReader(`{"iter": 1, "iterLatencyMS": 5.0, "x": `+"\n"+row+"\n"), nil)
		if err != nil || !strings.Contains(strings.Join(r.Warnings, "\n"), "no times of steady decode steps") {
			t.Errorf("%q: %+v, %v", row, r, err)
		}
	}
}

// SGLang's line about decoding stands for the steps since the line before: 32 running requests at 1600 token/s are a
// step of 20 ms. Ranks of attention data parallelism have lines of their own.
func TestSGLangDecodeLines(t *testing.T) {
	const line = "[2026-04-10 15:39:20 DP1 TP1 EP1] Decode batch, #running-req: 32, #token: 1938, token usage: 0.00, " +
		"cuda graph: True, gen throughput (token/s): 1600.00, #queue-req: 0\n"
	old := strings.NewReplacer("batch,", "batch.", "DP1 TP1 EP1", "TP0", "1600", "800").Replace(line)
	r, err := Parse("server.log", strings.NewReader(line+line+old+old), nil)
	all := strings.Join(r.Warnings, "\n")
	if m, _ := r.Metric("step_time_mean"); err != nil || m.Value != 40 ||
		!strings.Contains(all, "4 of 4 iteration rows") ||
		!strings.Contains(all, "rank 0 40.0 ms for 32 requests, rank 1 20.0 ms") {
		t.Errorf("%+v, %v", r, err)
	}
	// Lines have no numbers of iterations, and a unit that is none is no time.
	for _, text := range []string{strings.ReplaceAll(line, "throughput (token/s): 1600.00", "throughput (token/s): None"),
		"iter = 7, host_step_time = 12furlongs, states = {'num_ctx_tokens': 0, 'num_generation_tokens': 4}\n"} {
		r, err := Parse("server.log", strings.NewReader(text), nil)
		all := strings.Join(r.Warnings, "\n")
		if len(r.Metrics) > 0 || strings.Contains(all, "--iterations") == strings.Contains(text, "#running") {
			t.Errorf("%.40s: %+v, %v", text, r, err)
		}
	}
}
