package metrics

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open("../../../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestParseRunsReadsTheRecordedPairs(t *testing.T) {
	runs, err := ParseRuns(open(t, "pairs-abba.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 12 {
		t.Fatalf("have %d runs, want 12", len(runs))
	}
	// A B, B A, …: the order the launches ran in.
	for i, r := range runs {
		want := i%4 == 1 || i%4 == 2
		if !r.Proof.Claimed || r.Proof.Perfect != want || r.Proof.Ranks != 4 {
			t.Errorf("run %d: proof %+v, want perfect %v on 4 ranks", i, r.Proof, want)
		}
	}
	m, ok := runs[0].Metric("token_throughput")
	if !ok || m.Value != 399378.73984891246 || m.Unit != "tok/s" || !m.HigherIsBetter || runs[0].Primary != m.Name {
		t.Errorf("first run: %+v, primary %q", m, runs[0].Primary)
	}
	if len(runs[0].Steps) != 0 {
		t.Errorf("warm-up iterations became %d steps", len(runs[0].Steps))
	}
}

func TestParseWorkloadLine(t *testing.T) {
	in := "starting\r\n{\"perfect_router\": false, \"ranks\": 2, \"tokens_per_rank\": 3, \"tokens_per_second\": 12.5, " +
		"\"iteration_ms\": [4, 1, 2, 3], \"expert_max_over_mean\": [2, 3], \"rank_max_over_mean\": [1.5, NaN]}\n"
	r, err := Parse(strings.NewReader(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"token_throughput": 12.5, "step_time_mean": 2.5, "step_time_p50": 2.5, "step_time_min": 1} {
		if m, _ := r.Metric(name); float64(m.Value) != want {
			t.Errorf("%s = %v, want %v", name, m.Value, want)
		}
	}
	if len(r.Steps) != 4 || len(r.Proof.Layers) != 2 || r.Proof.Layers[1].RankMaxOverMean.Defined() || r.Proof.Layers[1].ExpertMaxOverMean != 3 {
		t.Errorf("steps %v, layers %v", r.Steps, r.Proof.Layers)
	}
}

func TestParseRefuses(t *testing.T) {
	line := `{"perfect_router": false, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5}`
	for name, c := range map[string]struct{ in, want string }{
		"empty":           {"", "output is empty"},
		"no result":       {"hello\nworld\n", "in 2 lines"},
		"cut object":      {line[:40], "line 1 ends before"},
		"two launches":    {line + "\n" + strings.Replace(line, "12.5", "13", 1), "appears twice with different values"},
		"duplicate key":   {strings.Replace(line, "}", `, "ranks": 4}`, 1), `key "ranks" appears twice`},
		"text for number": {strings.Replace(line, "12.5", `"fast"`, 1), "want a number"},
		"utf-16":          {"\xff\xfeh\x00", "UTF-16"},
	} {
		_, err := Parse(strings.NewReader(c.in), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := Parse(strings.NewReader("x"), nil); !errors.Is(err, ErrUnrecognised) {
		t.Errorf("error %v is not ErrUnrecognised", err)
	}
}

// Of several faults in one object it is always the first that is named.
func TestParseNamesTheSameFault(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"iteration row": {`{"iter": 1, "iterLatencyMS": 2, "inflightBatchingStats": {"numGenRequests": "a", "numCtxTokens": "b", "numScheduledRequests": "c"}}`, "numScheduledRequests"},
		"trtllm-bench":  {`{"engine": {}, "performance": {"system_output_throughput_tok_s": 1, "request_throughput_req_s": 1, "total_latency_ms": 1}, "request_info": {"num_requests": 1, "avg_output_length": "a", "avg_input_length": "b"}}`, "avg_input_length"},
		"aiperf":        {`{"output_token_throughput": {"unit": "tokens/sec", "avg": 1}, "request_count": {"unit": "requests", "avg": 1}, "output_sequence_length": {"avg": "a"}, "input_sequence_length": {"avg": "b"}}`, "input_sequence_length"},
	} {
		for range 30 {
			if _, err := Parse(strings.NewReader(c.in), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s: error %v, want %q", name, err, c.want)
			}
		}
	}
}

func TestCustomMetrics(t *testing.T) {
	var custom []Custom
	for _, s := range []string{`speed:tok/s=speed = ([\d.,]+)`, "wait:ms:lower=$.a.b[1]", "dotted=$.a['x.y']"} {
		c, err := ParseCustom(s)
		if err != nil {
			t.Fatal(err)
		}
		custom = append(custom, c)
	}
	rule, err := ParseCustom(`second=\[(\d)`) // a pattern sees the lines of objects, too
	if err != nil {
		t.Fatal(err)
	}
	custom = append(custom, rule)
	in := "\x1b[32mspeed = 1,234.5 tok/s\x1b[0m\n{\n\"a\":\n{\"b\": [1, 7], \"x.y\": -2}}\n"
	r, err := Parse(strings.NewReader(in), custom)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"speed": 1234.5, "wait": 7, "dotted": -2, "second": 1} {
		if m, ok := r.Metric(name); !ok || float64(m.Value) != want {
			t.Errorf("%s = %v, want %v", name, m.Value, want)
		}
	}
	if m, _ := r.Metric("wait"); m.HigherIsBetter || m.Unit != "ms" || r.Primary != "speed" || r.Format != "custom" {
		t.Errorf("%+v in %q with primary %q", m, r.Format, r.Primary)
	}
	if _, err := Parse(strings.NewReader("speed = 1\nspeed = 2\n"), custom[:1]); err == nil || !errors.Is(err, errTwice) {
		t.Errorf("two values of one metric: error %v", err)
	}
	for _, bad := range []string{"", "a", "a=", "=x", "a:b:c:d=x", "a:b:up=x", "a=(", "a=$.b..c", "a=$.b["} {
		if _, err := ParseCustom(bad); err == nil {
			t.Errorf("ParseCustom(%q) passed", bad)
		}
	}
}

// A client that saves every request may write its totals last.
func TestTotalsAfterLongLists(t *testing.T) {
	texts := strings.Repeat(`"a text that nobody reads", `, 2*MaxElements)
	r, err := Parse(strings.NewReader(`{"generated_texts": [`+texts+`""], "completed": 3, "duration": 2, "request_throughput": 1.5, "output_throughput": 70}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := r.Metric("output_throughput"); !ok || m.Value != 70 || r.Work.Requests != Exactly(3) {
		t.Errorf("%+v of %+v", m, r.Work)
	}
}

func TestWorkloadClocksDoNotCompare(t *testing.T) {
	line := `{"perfect_router": false, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5, "iteration_ms": [4], "clock": "CLOCK"}`
	read := func(clock string) Result {
		r, err := Parse(strings.NewReader(strings.Replace(line, "CLOCK", clock, 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	wall, cpu := read("wall"), read("cpu")
	for i := range wall.Metrics {
		if wall.Metrics[i].Comparable(cpu.Metrics[i]) == nil {
			t.Errorf("%s compares between the clocks", wall.Metrics[i].Name)
		}
	}
	if wall.Steps[0].Clock == cpu.Steps[0].Clock {
		t.Errorf("steps have the clock %q", cpu.Steps[0].Clock)
	}
}

// trtllm-serve's /metrics answers with a list of rows on one line.
func TestListOfRowsOnOneLine(t *testing.T) {
	rows := `[{"iter": 1, "iterLatencyMS": 2.5, "hostStepTimeMS": 2}, {"iter": 2, "iterLatencyMS": 3.5, "hostStepTimeMS": 3},{"iter": 3, "iterLatencyMS": 4, "hostStepTimeMS": 4}]`
	r, err := Parse(strings.NewReader(rows+"\nspeed: 4\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 3 || r.Steps[2].Iter != 3 || r.Steps[1].TimeMS != 3 || r.Steps[0].Clock != hostStep {
		t.Errorf("steps %+v", r.Steps)
	}
}

func FuzzParseCustom(f *testing.F) {
	for _, s := range []string{`speed:tok/s=speed = ([\d.,]+)`, "wait:ms:lower=$.a.b[1]", `dotted=$['x.y']["z"]`, "a:b:c:d=x", "=$.", "n=("} {
		f.Add(s, "speed = 1,5\n{\"a\": {\"b\": [0, 1e3]}, \"x.y\": {\"z\": 2}}\n")
	}
	f.Fuzz(func(t *testing.T, rule, output string) {
		c, err := ParseCustom(rule)
		if err != nil {
			return
		}
		if c.Name == "" || (c.Pattern == nil) == (c.Path == nil) {
			t.Errorf("%q makes %+v", rule, c)
		}
		if r, err := Parse(strings.NewReader(output), []Custom{c}); err == nil {
			if m, ok := r.Metric(c.Name); !ok || r.Primary != c.Name || m.Unit != c.Unit || m.HigherIsBetter != c.HigherIsBetter {
				t.Errorf("%q found %+v in %+v", rule, m, r)
			}
		}
	})
}
