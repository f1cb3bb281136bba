package metrics

const (
	oneBatchFormat       = "sglang-one-batch"
	oneBatchServerFormat = "sglang-one-batch-server"
)

// isOneBatch recognises a row of SGLang's bench_one_batch, in seconds and tok/s
// over the whole batch.
func isOneBatch(o *object) bool {
	return o.has("batch_size", "input_len", "output_len", "prefill_latency", "total_latency", "overall_throughput")
}

func readOneBatch(o *object, line int, t *tally) {
	f := fields{o: o, line: line, t: t, rule: "sglang bench_one_batch, linear"}
	f.needMetric("overall_throughput", "total_throughput", 1)
	f.needMetric("total_latency", "duration", 1e3)
	f.metric("prefill_throughput", "prefill_throughput", 1)
	f.metric("median_decode_throughput", "decode_throughput", 1)
	f.metric("prefill_latency", "prefill_latency_mean", 1e3)
	f.metric("median_decode_latency", "decode_latency_p50", 1e3)
	f.oneBatchWork()
}

// isOneBatchServer recognises a row of SGLang's bench_one_batch_server.
func isOneBatchServer(o *object) bool {
	return o.has("batch_size", "input_len", "output_len", "latency", "output_throughput", "overall_throughput")
}

// readOneBatchServer reads it. Its output_throughput divides all generated
// tokens by the time after the last first token, which is not what the word
// means elsewhere, and has a definition of its own.
func readOneBatchServer(o *object, line int, t *tally) {
	f := fields{o: o, line: line, t: t, rule: "sglang bench_one_batch_server"}
	f.needMetric("overall_throughput", "total_throughput", 1)
	f.needMetric("latency", "duration", 1e3)
	t.metric(line, metricOf("output_throughput", "", "generated tokens over the time after the last first token", f.need("output_throughput")))
	f.metric("input_throughput", "input_throughput", 1)
	if last, ok := f.number("last_ttft"); ok {
		f.put("ttft_max", 1e3*last)
	}
	f.oneBatchWork()
}

// oneBatchWork is batch size times lengths.
func (f fields) oneBatchWork() {
	batch, in, out := f.whole("batch_size"), f.whole("input_len"), f.whole("output_len")
	if f.t.err != nil || batch < 0 || in < 0 || out < 0 {
		return
	}
	f.t.count(f.line, "requests", &f.t.work.Requests, float64(batch))
	f.t.count(f.line, "input tokens", &f.t.work.InputTokens, float64(batch*in))
	f.t.count(f.line, "output tokens", &f.t.work.OutputTokens, float64(batch*out))
}
