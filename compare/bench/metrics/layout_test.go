package metrics

import (
	"strings"
	"testing"
)

// JSON is read by its grammar: where its lines break does not matter.
func TestJSONByGrammar(t *testing.T) {
	const members = `"completed": 8, "total_input_tokens": 8192, "total_output_tokens": 1024,BREAK "duration": 4.0,BREAK` +
		` "request_throughput": 2.0, "output_throughput": 256.0}`
	for name, broken := range map[string]string{"one line": "", "first key beside the brace": "\n", "no indent": "\n\n"} {
		r, err := Parse("a.json", strings.NewReader("{"+strings.ReplaceAll(members, "BREAK", broken)+"\n"), nil)
		if m, _ := r.Metric("output_throughput"); err != nil || m.Value != 256 {
			t.Errorf("%s: %v, %v", name, m.Value, err)
		}
	}
}

// A row that was cut does not take the rows behind it with it.
func TestCutRowsEndWithTheirLine(t *testing.T) {
	for _, row := range []string{`{"iter": 2, "iterLatencyMS": 5.0}`, `0: {"iter": 2, "iterLatencyMS": 5.0}`} {
		r, err := Parse("log", strings.NewReader(`{"iter": 1, "iterLatencyMS": 5.0, "x": `+"\n"+row+"\n"), nil)
		if err != nil || len(r.Steps) != 1 || r.Steps[0].Iter != 2 {
			t.Errorf("%q: %v, %v", row, r.Steps, err)
		}
	}
}

// SGLang's line about decoding stands for the steps since the line before: 32 running requests at 1600 token/s are a
// step of 20 ms. Ranks of attention data parallelism have lines of their own.
func TestSGLangDecodeLines(t *testing.T) {
	const line = "[2026-04-10 15:39:20 DP1 TP1 EP1] Decode batch, #running-req: 32, #token: 1938, token usage: 0.00, " +
		"cuda graph: True, gen throughput (token/s): 1600.00, #queue-req: 0\n"
	old := strings.NewReplacer("batch,", "batch.", "DP1 TP1 EP1", "TP0").Replace(line)
	r, err := Parse("server.log", strings.NewReader(line+line+old+old), nil)
	if m, _ := r.Metric("step_time_mean"); err != nil || m.Value != 20 || len(r.Steps) != 4 || r.Steps[1].Rank != 1 ||
		r.Steps[2].Rank != 0 || r.Steps[2].Requests != 32 {
		t.Errorf("%+v, %v", r, err)
	}
}
