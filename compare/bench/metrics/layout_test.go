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

// Infinity of one client is "inf" of another.
func TestOneInfinity(t *testing.T) {
	for _, text := range []string{"Infinity", `"inf"`, `"+Inf"`} {
		r, err := Parse("a.json", strings.NewReader(`{"completed": 1, "request_throughput": 2.0, "output_throughput": 3.0, `+
			`"duration": 4.0, "request_rate": `+text+"}"), nil)
		if err != nil || r.Setup["request_rate"] != "inf" {
			t.Errorf("%s: %q, %v", text, r.Setup["request_rate"], err)
		}
	}
}

// SGLang's benchmarks of one batch: the warm-up's numbers are not used.
func TestOneBatch(t *testing.T) {
	const block = "#Input tokens: 16384\n#Output tokens: OUT\nbatch size: 16\ninput_len: 1024\noutput_len: 16\n" +
		"latency: 0.50 s\ninput throughput: 50249.39 tok/s\noutput throughput: SPEED tok/s\nlast_ttft: 0.33 s\n" +
		"last generation throughput: 1337.26 tok/s\n"
	out := "======== Warmup Begin ========\n" + strings.NewReplacer("OUT", "256", "SPEED", "1477.75").Replace(block) +
		"======== Warmup End   ========\n\n" + strings.NewReplacer("OUT", "16384", "SPEED", "1340.45").Replace(block)
	r, err := Parse("run.log", strings.NewReader(out), nil)
	if err != nil || r.Format != oneBatchServerFormat || r.Work != (Work{Exactly(16), Exactly(16384), Exactly(16384), Count{}}) {
		t.Errorf("%+v, %v", r, err)
	}
	if m, _ := r.Metric("output_throughput"); m.Value != 1340.45 || r.Primary != "output_throughput" {
		t.Errorf("%v, primary %s", m, r.Primary)
	}
	const line = `{"run_name": "test_run", "batch_size": 8, "input_len": 1024, "output_len": 1024, "prefill_latency": 7.16, ` +
		`"prefill_throughput": 1143.7, "median_decode_latency": 0.0231, "median_decode_throughput": 346.3, ` +
		`"total_latency": 30.8, "overall_throughput": 531.7}`
	r, err = Parse("result.jsonl", strings.NewReader(line+"\n"), nil)
	if m, _ := r.Metric("total_throughput"); err != nil || m.Value != 531.7 || r.Work.OutputTokens != Exactly(8192) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TensorRT-LLM's bench_moe: the latency, what it claims of its router, and what its dispatch shows.
func TestBenchMoE(t *testing.T) {
	const file = `{"benchmark": "bench_moe", "environment": {"world_size": 4}, "model": {"name": "deepseek_v3", "top_k": 8},
 "results": [{"workload": {"num_tokens": 256}, "actual_config": {"backend": "TRTLLM"}, "status": "success",
 "latency_ms": {"score": 1.24, "raw_score": 1.2533}, "routing_control": {"actual": {"enable_perfect_router": false,
 "observed_dispatch_matrix_summary": {"col_sums": [1536, 171, 171, 170]}}}}MORE], "rankings": []}`
	r, err := Parse("hotspot.json", strings.NewReader(strings.Replace(file, "MORE", "", 1)), nil)
	m, _ := r.Metric("moe_latency")
	if err != nil || m.Value != 1.24 || m.HigherIsBetter || !r.Proof.Claimed || r.Proof.Perfect || r.Proof.Ranks != 4 ||
		len(r.Proof.Layers) != 1 || r.Proof.Layers[0].RankMaxOverMean != 3 || r.Proof.RankFloor != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Parse("two.json", strings.NewReader(strings.Replace(file, "MORE", ", {}", 1)), nil); err == nil ||
		!strings.Contains(err.Error(), "--metric") {
		t.Errorf("two workloads: %v", err)
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
