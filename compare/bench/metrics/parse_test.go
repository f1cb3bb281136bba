package metrics

import (
	"strings"
	"testing"
)

const workloadLine = `{"perfect_router": false, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5}`

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"empty":           {"", "have an empty output"},
		"no result":       {"hello\nworld\n", "want a benchmark result, have none"},
		"cut object":      {workloadLine[:40], "line 1: want a whole JSON object, have one that ends before"},
		"two launches":    {workloadLine + "\n" + strings.Replace(workloadLine, "12.5", "13", 1), "have 2 reports"},
		"two formats":     {"Throughput: 1 requests/s, 2 tokens/s\n" + workloadLine, "want one report"},
		"duplicate key":   {strings.Replace(workloadLine, "}", `, "ranks": 4}`, 1), "ranks = 2 (line 1) as before, have 4"},
		"text for number": {strings.Replace(workloadLine, "12.5", `"fast"`, 1), "want a number"},
		"too many ranks":  {strings.Replace(workloadLine, `"ranks": 2`, `"ranks": 1e7`, 1), "a possible number of ranks"},
		"less than none":  {`{"completed": -1, "request_throughput": 1, "output_throughput": 2, "duration": 3}`, "number of requests"},
		"states alone":    {"states = {'a': 1}\n", "have none"},
		"unknown unit": {`{"schema_version": 1, "request_throughput": {"unit": "furlongs", "avg": 2}}`,
			`want a known unit in "request_throughput/avg", have furlongs`},
		"a label with two values": {"Total Output Throughput (tokens/sec): 5\nRequest Throughput (req/sec): 5\n" +
			"Request Throughput (req/sec): 6\nTotal Latency (ms): 7\n", "= 5 (line 2) as before, have 6"},
		"one label of trtllm-bench": {"Total Output Throughput (tokens/sec): 5\n", "the output is cut or from an unknown"},
		"a canceled run": {`{"schema_version": 1, "request_throughput": {"unit": "requests/s", "avg": 2},
			"was_cancelled": true}`, "complete run"},
		"utf-16": {"\xff\xfeh\x00", "UTF-16"},
		"several workloads": {`{"benchmark": "bench_moe", "results": [{"latency_ms": {"score": 1}}, {}]}`,
			"--metric"},
		"a log of TensorRT-LLM": {"[11/20/2026-10:00:00] [TRT-LLM] [I] loading weights\n", "print_iter_log"},
		"a log of SGLang":       {"server_args=ServerArgs(model_path='m')\n", "--decode-log-interval"},
	} {
		_, err := Parse("output", strings.NewReader(c.in), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := readText(strings.NewReader("12345"), 4); err == nil {
		t.Error("more than the most is read")
	}
}

// What an output can make grow is bounded. A client that saves every request may write its totals last.
func TestLargeOutputs(t *testing.T) {
	report := `"completed": 3, "duration": 2, "request_throughput": 1.5, "output_throughput": 70}`
	many := strings.Repeat("7, ", 2*maxValues)
	for name, text := range map[string]string{
		"many values":          `{"generated_texts": [` + many + `""], ` + report,
		"values at a long key": `{"` + strings.Repeat("k", 1<<20) + `": [` + many + `""], ` + report,
		"a long line":          "x. y: 1" + strings.Repeat(", 2 z", 1<<20) + "\n{" + report,
		"the same many times":  strings.Repeat("{"+report+"\n", maxReports),
		"one more":             strings.Repeat("{"+report+"\n", maxReports+1),
	} {
		r, err := Parse("output", strings.NewReader(text), nil)
		if m, ok := r.Metric("output_throughput"); (err != nil) != (name == "one more") || ok != (err == nil) ||
			ok && (m.Value != 70 || r.Work[requests] != 3) {
			t.Errorf("%s: %v, %v, error %v", name, r.Metrics, r.Work, err)
		}
	}
}

// What was read of a broken object is read again as lines, but not where it is long.
func TestLongBrokenObjects(t *testing.T) {
	for _, n := range []int{maxAgain/3 - 8, maxAgain / 3} {
		line := `{"a":` + strings.Repeat(" ", n-len(`{"a":`+"\n")) + "\n"
		p := parser{left: strings.Repeat(line, 3) + "  "}
		p.next()
		if again := p.left != ""; again != (3*n+2 <= maxAgain) {
			t.Errorf("lines of %d bytes: read again %v", n, again)
		}
	}
}
