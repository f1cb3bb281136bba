package metrics

import (
	"regexp"
	"strconv"
	"strings"
)

// The C++ benchmarks of older TensorRT-LLM (benchmarks/cpp).
const gptManagerRule = "gptManagerBenchmark, sorted[ceil(q·n)-1]"

// gptManagerText are lines "[BENCHMARK] key(unit) value" of gptManagerBenchmark.
// Its first releases count the tokens that were asked for, later ones those that
// were generated; only the later ones print num_error_samples.
var gptManagerText = textFormat{
	name:   "gptManagerBenchmark",
	line:   readGPTManagerLine,
	needs:  [][]string{{"output_throughput"}, {"request_throughput"}, {"duration"}},
	finish: finishGPTManager,
}

var (
	gptManagerLine   = regexp.MustCompile(`^\[BENCHMARK\] (\w+)(?:\(([^)]*)\))? ([-+\w.]+)$`)
	gptManagerSpread = regexp.MustCompile(`^(avg|max|min|p\d\d)_(sequence_latency|time_to_first_token|inter_token_latency|user_tokens_per_second|request_queueing_latency)$`)
)

var gptManagerFamily = map[string]string{
	"sequence_latency": "request_latency", "time_to_first_token": "ttft", "inter_token_latency": "tpot",
	"user_tokens_per_second": "user_speed", "request_queueing_latency": "queue_time",
}

func readGPTManagerLine(rec record, t *tally) {
	if !strings.HasPrefix(rec.text, "[BENCHMARK] ") {
		return
	}
	m := gptManagerLine.FindStringSubmatch(strings.TrimSuffix(strings.TrimSpace(rec.text), ","))
	if m == nil {
		return
	}
	v, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return
	}
	switch key := m[1]; key {
	case "num_samples":
		t.found = true
		t.count(rec.line, "requests", &t.work.Requests, v)
	case "num_error_samples":
		t.count(rec.line, "failed requests", &t.work.Errors, v)
	case "total_latency":
		entry{metric: "duration"}.take(rec, gptManagerRule, v, t)
	case "seq_throughput":
		entry{metric: "request_throughput"}.take(rec, gptManagerRule, v, t)
	case "token_throughput":
		entry{metric: "output_throughput"}.take(rec, gptManagerRule, v, t)
	default:
		if m := gptManagerSpread.FindStringSubmatch(key); m != nil {
			stat, _ := aggregateName(m[1])
			entry{metric: gptManagerFamily[m[2]] + "_" + stat}.take(rec, gptManagerRule, v, t)
		}
	}
}

func finishGPTManager(t *tally) {
	if t.work.Errors.Known {
		return
	}
	for i, m := range t.metrics {
		if m.Name == "output_throughput" {
			t.metrics[i].Definition = m.Name + "/tokens asked for over wall time"
		}
	}
	t.noteOnce("this gptManagerBenchmark counts the tokens that were asked for, whether or not they were generated")
}

// gptSessionText is the line of pairs that gptSessionBenchmark prints.
var gptSessionText = textFormat{
	name:  "gptSessionBenchmark",
	line:  readGPTSessionLine,
	needs: [][]string{{"batch_latency_mean"}},
}

func readGPTSessionLine(rec record, t *tally) {
	if !strings.HasPrefix(rec.text, "[BENCHMARK] batch_size ") {
		return
	}
	words := strings.Fields(rec.text)
	t.found = true
	pairs := map[string]float64{}
	for i := 1; i+1 < len(words); i += 2 {
		v, err := strconv.ParseFloat(words[i+1], 64)
		if err != nil {
			t.fail(notANumber(t.format, rec.line, words[i], words[i+1]))
			return
		}
		pairs[words[i]] = v
	}
	take := func(key, name string) {
		if v, ok := pairs[key]; ok {
			entry{metric: name}.take(rec, "gptSessionBenchmark", v, t)
		}
	}
	take("tokensPerSec", "output_throughput")
	take("latency(ms)", "batch_latency_mean")
	take("generationTokensPerSec", "decode_throughput")
	batch := pairs["batch_size"]
	t.count(rec.line, "requests", &t.work.Requests, batch)
	t.count(rec.line, "input tokens", &t.work.InputTokens, batch*pairs["input_length"])
	t.count(rec.line, "output tokens", &t.work.OutputTokens, batch*pairs["output_length"])
}
