package metrics

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
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
	runs, err := ParseRuns("output", open(t, "pairs-abba.jsonl"), nil)
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
	r, err := Parse("output", strings.NewReader(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"token_throughput": 12.5, "step_time_mean": 2.5, "step_time_p50": 2.5,
		"step_time_min": 1} {
		if m, _ := r.Metric(name); float64(m.Value) != want {
			t.Errorf("%s = %v, want %v", name, m.Value, want)
		}
	}
	if len(r.Steps) != 4 || len(r.Proof.Layers) != 2 || r.Proof.Layers[1].RankMaxOverMean.Defined() ||
		r.Proof.Layers[1].ExpertMaxOverMean != 3 {
		t.Errorf("steps %v, layers %v", r.Steps, r.Proof.Layers)
	}
}

func TestParseRefuses(t *testing.T) {
	line := `{"perfect_router": false, "ranks": 2, "tokens_per_rank": 3, "tokens_per_second": 12.5}`
	for name, c := range map[string]struct{ in, want string }{
		"empty":      {"", "have an empty output"},
		"no result":  {"hello\nworld\n", "in 2 lines"},
		"cut object": {line[:40], "line 1: want a whole JSON object, have one that ends before"},
		"two launches": {line + "\n" + strings.Replace(line, "12.5", "13", 1),
			"line 2 (moebalance-workload): want token_throughput = 12.5 (line 1) as before, have 13"},
		"duplicate key": {strings.Replace(line, "}", `, "ranks": 4}`, 1),
			`line 1 (moebalance-workload): want one value of key "ranks", have two that differ`},
		"text for number": {strings.Replace(line, "12.5", `"fast"`, 1), "want a number"},
		"utf-16":          {"\xff\xfeh\x00", "UTF-16"},
	} {
		_, err := Parse("output", strings.NewReader(c.in), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Of several faults in one object it is always the first in the output that is named.
func TestParseNamesTheSameFault(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"iteration row": {`{"iter": 1, "iterLatencyMS": 2, "inflightBatchingStats": {"numGenRequests": "a", "numCtxTokens": "b", "numScheduledRequests": "c"}}`, "numScheduledRequests"},
		"trtllm-bench":  {`{"engine": {}, "performance": {"system_output_throughput_tok_s": 1, "request_throughput_req_s": 1, "total_latency_ms": 1}, "request_info": {"num_requests": 1, "avg_output_length": "a", "avg_input_length": "b"}}`, "avg_output_length"},
		"aiperf":        {`{"output_token_throughput": {"unit": "tokens/sec", "avg": 1}, "request_count": {"unit": "requests", "avg": 1}, "output_sequence_length": {"avg": "a"}, "input_sequence_length": {"avg": "b"}}`, "output_sequence_length"},
	} {
		for range 30 {
			if _, err := Parse("output", strings.NewReader(c.in), nil); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Fatalf("%s: error %v, want %q", name, err, c.want)
			}
		}
	}
}

func TestCustomMetrics(t *testing.T) {
	var custom []Custom
	for _, s := range []string{`speed:tok/s=speed = ([\d.,]+)`, "wait:ms:lower=$.a.b[1]", "dotted::higher=$.a['x.y']"} {
		c, err := ParseCustom(s)
		if err != nil {
			t.Fatal(err)
		}
		custom = append(custom, c)
	}
	rule, err := ParseCustom(`second::lower=\[(\d)`) // a pattern sees the lines of objects, too
	if err != nil {
		t.Fatal(err)
	}
	custom = append(custom, rule)
	in := "\x1b[32mspeed = 1,234.5 tok/s\x1b[0m\n{\n\"a\":\n{\"b\": [1, 7], \"x.y\": -2}}\n"
	r, err := Parse("output", strings.NewReader(in), custom)
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
	if _, err := Parse("output", strings.NewReader("speed = 1\nspeed = 2\n"), custom[:1]); err == nil ||
		!errors.Is(err, errTwice) {
		t.Errorf("two values of one metric: error %v", err)
	}
	for _, bad := range []string{"", "a", "a=", "=x", "a:b:c:d=x", "a:b:up=x", "a=(", "a=$.b..c", "a=$.b["} {
		if _, err := ParseCustom(bad); err == nil {
			t.Errorf("ParseCustom(%q) passed", bad)
		}
	}
}

// A rule of the user's wins over every format: one that is incomplete, contradicts
// itself or stands beside another leaves the number that was asked for.
func TestCustomMetricWinsOverFormats(t *testing.T) {
	rule, err := ParseCustom(`speed:tok/s=my speed (\d+)`)
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]string{
		"one label of trtllm-bench": "Total Output Throughput (tokens/sec): 5\n",
		"two values":                "Request Throughput (req/sec): 5\nRequest Throughput (req/sec): 6\n",
		"two formats":               "Throughput: 1 requests/s, 2 tokens/s\nAvg latency: 3 seconds\n",
	} {
		if _, err := Parse("output", strings.NewReader(in), nil); err == nil {
			t.Errorf("%s: passed without a rule", name)
		}
		r, err := Parse("output", strings.NewReader(in+"my speed 42\n"), []Custom{rule})
		if m, _ := r.Metric("speed"); err != nil || m.Value != 42 || r.Format != "custom" ||
			!strings.Contains(strings.Join(r.Warnings, "\n"), "only --metric was read: ") {
			t.Errorf("%s: %+v, error %v", name, r, err)
		}
	}
}

// Of a time less is better. Where neither unit nor name tells, a direction is asked for.
func TestCustomDirection(t *testing.T) {
	for rule, want := range map[string]string{
		"x:ms=(1)": "lower", "x:s=(1)": "lower", "x:s/it=(1)": "lower", "ttft_p99=(1)": "lower", "latency=(1)": "lower",
		"total_ms=(1)": "lower",
		"x:tok/s=(1)":  "higher", "x:req/sec=(1)": "higher", "x:tps=(1)": "higher", "throughput=(1)": "higher",
		"speed=(1)":             "higher",
		"latency:ms:higher=(1)": "higher", "x::lower=(1)": "lower", "x=(1)": "", "x:tokens=(1)": "", "x::=(1)": "",
	} {
		c, err := ParseCustom(rule)
		if got := map[bool]string{true: "higher", false: "lower"}[c.HigherIsBetter]; err == nil && got != want ||
			(err != nil) != (want == "") {
			t.Errorf("%s: %s, error %v; want %q", rule, got, err, want)
		}
	}
}

// SGLang's bench_offline_throughput (sgl-project/sglang @00d02fb45319,
// python/sglang/bench_offline_throughput.py prints these labels and keys), with the
// counts and the time of pull request 1968.
func TestSGLangOffline(t *testing.T) {
	stdout := `====== Offline Throughput Benchmark Result =======
Backend:                                 engine    
Successful requests:                     1000      
Benchmark duration (s):                  28.64     
Total input tokens:                      233369    
Total generated tokens:                  126886    
Last generation throughput (tok/s):      12.50     
Request throughput (req/s):              34.92     
Input token throughput (tok/s):          8148.43   
Output token throughput (tok/s):         4430.38   
Total token throughput (tok/s):          12578.81  
==================================================
`
	line := `{"backend": "engine", "successful_requests": 1000, "total_latency": 28.64, "total_input_tokens": 233369, "total_output_tokens": 126886,
		"request_throughput": 34.92, "input_throughput": 8148.43, "output_throughput": 4430.38, "total_throughput": 12578.81}`
	for format, in := range map[string]string{"sglang-offline/stdout": stdout,
		"sglang-offline/json": strings.ReplaceAll(line, "\n", " ")} {
		r, err := Parse("output", strings.NewReader(in), nil)
		if err != nil {
			t.Fatal(err)
		}
		checkResult(t, r, expectation{format: format, primary: "output_throughput",
			values: map[string]float64{"output_throughput": 4430.38, "total_throughput": 12578.81,
				"input_throughput": 8148.43, "request_throughput": 34.92, "duration": 28640},
			work: Work{Requests: count(1000), InputTokens: count(233369), OutputTokens: count(126886)}})
	}
}

// A line of SGLang's client of 2024 (datacrunch-research/h200-benchmarks
// @c091ef530a52, sglang/outputs/deepseek_dp_mla_output.jsonl): no request_throughput.
func TestSGLangWithoutRequestThroughput(t *testing.T) {
	in := `{"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": null, "total_input_tokens": 10000, "total_output_tokens": 5120000, "total_output_tokens_retokenized": 5115342, "median_ttft_ms": 10014.104524045251, "mean_e2e_latency_ms": 381236.82297268615, "output_throughput": 12412.394674113431, "duration": 412.49091206211597, "completed": 10000}`
	r, err := Parse("output", strings.NewReader(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkResult(t, r, expectation{format: "sglang-serving/json", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 12412.394674113431, "ttft_p50": 10014.104524045251,
			"request_latency_mean": 381236.82297268615, "duration": 412490.91206211597},
		work: Work{Requests: count(10000), InputTokens: count(10000), OutputTokens: count(5120000)}})
}

// The keys that vLLM's pull request 29495 adds.
func TestVLLMThroughputOfGeneratedTokens(t *testing.T) {
	in := `{"elapsed_time": 120.5, "num_requests": 1000, "total_num_tokens": 6514, "total_input_tokens": 5014, "total_output_tokens": 1500, "requests_per_second": 8.30, "tokens_per_second": 1244.81, "output_tokens_per_second": 1072.15}`
	r, err := Parse("output", strings.NewReader(in), nil)
	if err != nil || len(r.Warnings) > 0 {
		t.Fatalf("error %v, warnings %q", err, r.Warnings)
	}
	checkResult(t, r, expectation{format: "vllm-throughput/json", primary: "output_throughput",
		values: map[string]float64{"output_throughput": 1072.15, "total_throughput": 1244.81,
			"request_throughput": 8.3},
		work: Work{Requests: count(1000), InputTokens: count(5014), OutputTokens: count(1500)}})
}

func TestWantedIsPositive(t *testing.T) {
	rule, err := ParseCustom(`speed:tok/s=speed (\S+)`)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"0": "speed is 0", "-3": "speed is −3.00", "NaN": "not a number",
		"inf": "not a number", "1e-300": ""} {
		r, err := Parse("output", strings.NewReader("speed "+value), []Custom{rule})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Wanted(""); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a value of %s: error %v, want %q", value, err, want)
		}
	}
	if _, err := (Result{Format: "f", Metrics: []Metric{{gain.Metric{Name: "a"}, 1},
		{gain.Metric{Name: "b"}, 1}}}).Wanted("c"); err == nil || !strings.Contains(err.Error(), "want one of a, b") {
		t.Errorf("error %v", err)
	}
}

// The layout of October 2025 (ai-dynamo/aiperf @7c31f57933ad, examples/artifacts/run1),
// and an error summary beside a null count (nvda-ci/aiperf @8e6a033d162b,
// docs/tutorials/working-with-profile-exports.md); some of their values.
func TestAIPerfRecordsAndErrors(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		values map[string]float64
		work   Work
	}{
		"records": {`{"records": {"error_request_count": {"unit": "requests", "avg": 11.0, "min": null},
			"ttft": {"unit": "ms", "avg": 2343.219436988764, "p99": 3833.3894000399996, "std": 1049.8},
			"request_count": {"unit": "requests", "avg": 89.0}, "total_isl": {"unit": "tokens", "avg": 48950.0}, "total_osl": {"unit": "tokens", "avg": 21624.0},
			"benchmark_duration": {"unit": "sec", "avg": 9.317788951}, "request_throughput": {"unit": "requests/sec", "avg": 9.551622221540914},
			"output_token_throughput": {"unit": "tokens/sec", "avg": 2320.7222350404572, "p50": null}},
			"was_cancelled": false, "error_summary": [{"error_details": {"code": 499}, "count": 11}]}`,
			map[string]float64{"output_throughput": 2320.7222350404572, "ttft_p99": 3833.3894000399996,
				"ttft_mean": 2343.219436988764, "duration": 9317.788951},
			Work{count(89), count(48950), count(21624), count(11)}},
		"error summary": {`{"request_throughput": {"unit": "requests/sec", "avg": 13.16084556379392}, "time_to_first_token": {"unit": "ms", "avg": 1588.797775365},
			"request_count": {"unit": "requests", "avg": 200.0}, "total_isl": {"unit": "tokens", "avg": 110000.0}, "total_osl": {"unit": "tokens", "avg": 19370.0},
			"error_summary": [{"error_details": {"code": 499}, "count": 81}, {"error_details": {"code": 500}, "count": 3}], "goodput": null, "error_request_count": null}`,
			map[string]float64{"request_throughput": 13.16084556379392, "ttft_mean": 1588.797775365},
			Work{count(200), count(110000), count(19370), count(84)}},
	} {
		r, err := Parse("output", strings.NewReader(strings.ReplaceAll(c.in, "\n", " ")), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for metric, want := range c.values {
			if m, _ := r.Metric(metric); math.Abs(float64(m.Value)-want) > 1e-9*want {
				t.Errorf("%s: %s is %v, want %v", name, metric, m.Value, want)
			}
		}
		if r.Work != c.work {
			t.Errorf("%s: work %+v, want %+v", name, r.Work, c.work)
		}
	}
}

// A client that saves every request may write its totals last.
func TestTotalsAfterLongLists(t *testing.T) {
	texts := strings.Repeat(`"a text that nobody reads", `, 2*maxElements)
	r, err := Parse("output",
		strings.NewReader(`{"generated_texts": [`+texts+`""], "completed": 3, "duration": 2, "request_throughput": 1.5, "output_throughput": 70}`), nil)
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
		r, err := Parse("output", strings.NewReader(strings.Replace(line, "CLOCK", clock, 1)), nil)
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
	r, err := Parse("output", strings.NewReader(rows+"\nspeed: 4\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 3 || r.Steps[2].Iter != 3 || r.Steps[1].TimeMS != 3 || r.Steps[0].Clock != hostStep {
		t.Errorf("steps %+v", r.Steps)
	}
}

func FuzzParseCustom(f *testing.F) {
	for _, s := range []string{`speed:tok/s=speed = ([\d.,]+)`, "wait:ms:lower=$.a.b[1]", `dotted=$['x.y']["z"]`,
		"a:b:c:d=x", "=$.", "n=("} {
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
		if r, err := Parse("output", strings.NewReader(output), []Custom{c}); err == nil {
			if m, ok := r.Metric(c.Name); !ok || r.Primary != c.Name || m.Unit != c.Unit ||
				m.HigherIsBetter != c.HigherIsBetter {
				t.Errorf("%q found %+v in %+v", rule, m, r)
			}
		}
	})
}

// Messages show a rule as it was typed: quoted, `\d` would read `\\d`.
func TestRuleAsTyped(t *testing.T) {
	const typed = `rounds=took (\d+\.\d+) per "round"`
	_, err := ParseCustom(typed)
	if err == nil || !strings.Contains(err.Error(), typed) {
		t.Errorf("no direction: %v", err)
	}
	for _, text := range []string{"throughput ([0-9.]+)", "x ("} {
		if _, _, err := ParseWanted(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is no name of a metric: %v", text, err)
		}
	}
	if _, _, err := ParseWanted("x=x ("); err == nil || !strings.Contains(err.Error(), "missing closing )") {
		t.Errorf("no regular expression: %v", err)
	}
	_, rule, err := ParseWanted("x:ms=took (\\d+) ms")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("log", strings.NewReader("nothing\n"), rule); err == nil ||
		!strings.Contains(err.Error(), `took (\d+) ms`) {
		t.Errorf("no match: %v", err)
	}
}

// The numbers of a segment are metrics where their names tell what is better.
func TestOfSegment(t *testing.T) {
	value := []byte(`{"prefill": 3, "decode_ms": 2, "throughput": 5, "note": "x"}`)
	r, err := OfSegment(1.5, value, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"decode_ms": false, "throughput": true, "duration": false} {
		if m, ok := r.Metric(name); !ok || m.HigherIsBetter != want || r.Primary != "" {
			t.Errorf("%s: %+v, %t; primary %s, want none of several", name, m, ok, r.Primary)
		}
	}
	for value, want := range map[string]string{"null": "duration", "{}": "duration", `{"decode_ms": 2}`: "decode_ms",
		`{"prefill": 3}`: "", "3": ""} {
		if r, err := OfSegment(1.5, []byte(value), nil); err != nil || r.Primary != want {
			t.Errorf("%s: primary %q, %v; want %q", value, r.Primary, err, want)
		}
	}
	if _, ok := r.Metric("prefill"); ok || RuleOf("prefill", value) == "" || RuleOf("note", value) != "" {
		t.Errorf("%+v: want no prefill without a direction, and a rule for it", r.Metrics)
	}
}
