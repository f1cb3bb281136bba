package metrics

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// trtllmRule is how trtllm-bench takes percentiles: sorted[int(n·q)], no
// interpolation, so p99 is the maximum below 101 requests
// (tensorrt_llm/bench/dataclasses/general.py).
const trtllmRule = "trtllm-bench, sorted[floor(n·q)]"

const trtllmReportFormat = "trtllm-bench/report-json"

// trtllmText is what trtllm-bench prints, in three generations of labels:
//
//	a  Token Throughput (tokens/sec)           about 0.12 to 0.17
//	b  Total Output Throughput (tokens/sec)    about 0.18 and 0.19
//	c  … and Per User Output Speed (tps/user)  0.20 and later
//
// (tensorrt_llm/bench/dataclasses/reporting.py and its predecessors).
var trtllmText = textFormat{
	name:   "trtllm-bench/stdout",
	rule:   trtllmRule,
	labels: trtllmLabels,
	// "[TPOT] P50    :", of the second generation on.
	spread:   regexp.MustCompile(`^\[(?P<of>TPOT|TTFT|Latency|GTPS)\] (?P<stat>MINIMUM|MAXIMUM|AVERAGE|P\d{1,2})$`),
	families: map[string]string{"TPOT": "tpot", "TTFT": "ttft", "Latency": "request_latency", "GTPS": "user_speed"},
	line:     trtllmLine,
	needs:    []string{"output_throughput", "request_throughput", "duration"},
	finish:   finishTRTLLMText,
}

var trtllmLabels = map[string]labelRule{
	"Token Throughput (tokens/sec)":                    {metric: "output_throughput", anchor: true},
	"Total Output Throughput (tokens/sec)":             {metric: "output_throughput", anchor: true, generation: "b"},
	"Total Token Throughput (tokens/sec)":              {metric: "total_throughput", anchor: true, generation: "b"},
	"Request Throughput (req/sec)":                     {metric: "request_throughput", anchor: true},
	"Total Latency (ms)":                               {metric: "duration"},
	"Average request latency (ms)":                     {metric: "request_latency_mean"},
	"Per User Output Throughput (tokens/sec/user)":     {metric: "user_throughput"},
	"Per User Output Throughput [w/ ctx] (tps/user)":   {metric: "user_throughput", generation: "c"},
	"Per GPU Output Throughput (tokens/sec/gpu)":       {metric: "gpu_throughput"},
	"Per GPU Output Throughput (tps/gpu)":              {metric: "gpu_throughput", generation: "c"},
	"Average time-to-first-token (ms)":                 {metric: "ttft_mean"},
	"Average time-to-first-token [TTFT] (ms)":          {metric: "ttft_mean"},
	"Average inter-token latency (ms)":                 {metric: "tpot_mean"},
	"Average time-per-output-token [TPOT] (ms)":        {metric: "tpot_mean"},
	"Per User Output Speed [1/TPOT] (tokens/sec/user)": {metric: "user_speed"},
	"Per User Output Speed (tps/user)":                 {metric: "user_speed", generation: "c"},
	"Total Energy (J)":                                 {metric: "energy"},
	"Average GPU Power (W)":                            {metric: "gpu_power"},
	"Output Tokens per Second per Watt (tps/W)":        {metric: "output_per_watt"},
	"Number of requests":                               requests,
	"Average Input Length (tokens)": {into: func(rep *report,
		v float64) {
		rep.inputLength = router.Number(v)
	}},
	"Average Output Length (tokens)": {into: func(rep *report,
		v float64) {
		rep.outputLength = router.Number(v)
	}},
	"EP Size": {into: (*report).ranks},
}

// trtllmLine notes what a line says beside its value.
func trtllmLine(rec record, rep *report) (label string, v float64) {
	if strings.HasPrefix(rec.text, "= DECODING STATISTICS") {
		rep.warn(speculation)
	}
	if model, ok := strings.CutPrefix(rec.text, "Model:"); ok {
		rep.set("model", strings.TrimSpace(model))
	}
	return rec.label, rec.value
}

// speculation is the warning about decoding statistics.
const speculation = "speculative decoding was on: its acceptance depends on the text, which a perfect router makes " +
	"meaningless; compare step times of equal batches"

// finishTRTLLMText names the generation, which its labels show.
func finishTRTLLMText(rep *report) {
	rep.format += "-" + cmp.Or(rep.generation, "a")
	rep.countTokens()
}

// ranks takes a size of the expert-parallel group, if it can be one.
func (rep *report) ranks(size float64) {
	if size >= 1 && size < 1<<20 {
		rep.proof.Ranks = int(size)
	}
}

// trtllmReport is --report_json of trtllm-bench (get_statistics_dict).
var trtllmReport = []member{
	{"performance/system_output_throughput_tok_s", labelRule{metric: "output_throughput"}, true},
	{"performance/request_throughput_req_s", labelRule{metric: "request_throughput"}, true},
	{"performance/total_latency_ms", labelRule{metric: "duration"}, true},
	{"performance/system_total_throughput_tok_s", labelRule{metric: "total_throughput"}, false},
	{"performance/output_throughput_per_user_tok_s", labelRule{metric: "user_throughput"}, false},
	{"performance/output_throughput_per_gpu_tok_s", labelRule{metric: "gpu_throughput"}, false},
	{"performance/avg_request_latency_ms", labelRule{metric: "request_latency_mean"}, false},
	{"streaming_metrics/token_output_speed_tok_s", labelRule{metric: "user_speed"}, false},
	{"streaming_metrics/avg_ttft_ms", labelRule{metric: "ttft_mean"}, false},
	{"streaming_metrics/avg_tpot_ms", labelRule{metric: "tpot_mean"}, false},
	{"energy/total_energy_j", labelRule{metric: "energy"}, false},
	{"energy/average_gpu_power", labelRule{metric: "gpu_power"}, false},
	{"energy/output_tps_per_w", labelRule{metric: "output_per_watt"}, false},
	{"request_info/num_requests", requests, false},
	{"world_info/ep_size", labelRule{into: (*report).ranks}, false},
}

func readTRTLLMReport(f fields) {
	f.record(trtllmReport)
	f.spread("performance/request_latency_percentiles_ms", "request_latency")
	f.spread("streaming_metrics/tpot_percentiles", "tpot")
	f.spread("streaming_metrics/ttft_percentiles", "ttft")
	f.spread("streaming_metrics/gen_tps_percentiles", "user_speed")
	f.rep.inputLength, _ = f.number("request_info/avg_input_length")
	f.rep.outputLength, _ = f.number("request_info/avg_output_length")
	f.rep.countTokens()
	f.rep.lengths = Lengths{f.lengths("dataset/isl_stats"), f.lengths("dataset/osl_stats")}
	if _, ok := f.value("decoding_stats"); ok {
		f.rep.warn(speculation)
	}
}
