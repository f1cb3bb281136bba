package metrics

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/quantity"
)

// speculation is the warning about decoding statistics.
const speculation = "speculative decoding was on: its acceptance depends on the text, which a perfect router makes " +
	"meaningless; compare step times of equal batches"

func readTRTLLMReport(r *report, doc *document) {
	if doc.values["decoding_stats"] != nil {
		r.warn(speculation)
	}
}

func readClient(r *report, doc *document) {
	asked, ok := r.number(doc, "num_prompts")
	if done, _ := r.of(requests.to); ok && r.rule == servingRule && r.at(failures.to) < 0 && done.Defined() {
		r.put(doc.line, metricOf(failures.to, "", "", max(0, asked-done)))
	}
	if accepted, ok := r.number(doc, "accept_length"); ok && accepted > 1 {
		r.warn(speculation)
	}
}

func isAIPerf(d *document) bool {
	return slices.ContainsFunc([]string{"output_token_throughput/", "request_throughput/",
		"records/output_token_throughput/", "records/request_throughput/"},
		func(at string) bool { return d.has(at+"unit", at+"avg") })
}

// readAIPerf sums the error summary, which lists failed requests by kind even where error_request_count is null.
func readAIPerf(r *report, doc *document) {
	if doc.values["was_cancelled"] == true {
		r.fail(doc.line, input.Error{Expected: "a complete run", Found: "was_cancelled: true", Try: "repeat the run"})
	}
	sum, kinds := 0.0, 0
	for _, path := range doc.paths {
		if strings.HasPrefix(path, "error_summary/") && strings.HasSuffix(path, "/count") {
			n, _ := r.number(doc, path)
			sum, kinds = sum+float64(n), kinds+1
		}
	}
	l, _ := doc.values["error_summary"].(*list)
	if l != nil && l.dropped == 0 && kinds == len(l.items) && r.at(failures.to) < 0 {
		r.put(doc.line, metricOf(failures.to, "", "", router.Number(sum)))
	}
	if doc.has("records") {
		r.out.Lengths = Lengths{Input: rootMeanSquare(doc, "records/"+r.sizes[0]),
			Output: rootMeanSquare(doc, "records/"+r.sizes[1])}
	}
}

// readMoE reads the result of TensorRT-LLM's bench_moe, which times one MoE layer
// (tests/microbenchmarks/bench_moe). A file may hold several workloads, which are several
// measurements: a rule with --metric then chooses one. Its dispatch shows the load of ranks:
//
//	"col_sums": [1536, 171, 171, 170]  → max/mean 3.00, floor 1
func readMoE(r *report, doc *document) {
	l, ok := doc.values["results"].(*list)
	if !ok || len(l.items) != 1 {
		r.fail(doc.line, input.Error{Expected: "one workload in results", Found: kind(doc.values["results"]) +
			" of another length", Try: "--metric 'moe_latency:ms:lower=$.results[0].latency_ms.score'"})
		return
	}
	const actual = "results/0/routing_control/actual/"
	r.out.Proof.Perfect, r.out.Proof.Claimed = doc.values[actual+"enable_perfect_router"].(bool)
	slots, _ := r.list(doc, actual+"observed_dispatch_matrix_summary/col_sums")
	total, n := router.Number(0), router.Number(len(slots))
	for _, of := range slots {
		total += of
	}
	switch {
	case len(slots) > maxRanks:
		r.fail(doc.line, input.Error{Expected: "at most " + quantity.Count(maxRanks, "rank"), Found: strconv.Itoa(len(slots))})
	case total > 0:
		r.out.Proof.Ranks, r.out.Proof.RankFloor = len(slots), router.Number(math.Ceil(float64(total/n)))*n/total
		r.out.Proof.Layers = []LayerBalance{{ExpertMaxOverMean: router.Undefined(),
			RankMaxOverMean: slices.Max(slots) * n / total}}
	}
}

// processor is the built-in workload's clock of processor time.
const processor = "cpu"

// readWorkload reads the JSON line of the built-in workload, and of the H200 program that recorded the
// captures, whose first_iterations_ms are its warm-up and are not used: one object per launch.
//
//	tokens_per_second       tokens of all ranks per second of timed steps: the primary metric
//	iteration_ms[]          every timed step: mean, median and minimum of the step time
//	clock                   which time that is; absent or "wall" is wall time
//	perfect_router, ranks   the launch's own word on the treatment
//	expert_max_over_mean[], rank_max_over_mean[]   per layer
func readWorkload(r *report, doc *document) {
	of := ""
	switch v, ok := doc.get("clock"); {
	case v == processor:
		of = "; time is processor time: of each phase, that of the rank that used most"
	case ok && v != "wall":
		r.wrong(doc, "clock", "wall or "+processor, v)
	}
	put := func(name string, v router.Number) {
		m := metricOf(name, r.rule, "", v)
		m.Definition += of
		r.put(doc.line, m)
	}
	if v, ok := r.number(doc, "tokens_per_second"); ok {
		put("token_throughput", v)
	}
	if steps, ok := r.list(doc, "iteration_ms"); ok && len(steps) > 0 {
		mean, median, least := summary(steps)
		put("step_time_mean", mean)
		put("step_time_p50", median)
		put("step_time_min", least)
	}
	if r.out.Proof.Perfect, r.out.Proof.Claimed = doc.values["perfect_router"].(bool); !r.out.Proof.Claimed {
		r.wrong(doc, "perfect_router", "true or false", doc.values["perfect_router"])
	}
	experts, haveExperts := r.list(doc, "expert_max_over_mean")
	ranks, haveRanks := r.list(doc, "rank_max_over_mean")
	if haveExperts && haveRanks && len(experts) != len(ranks) {
		r.fail(doc.line, input.Error{Expected: quantity.Count(len(experts), "layer") +
			" in rank_max_over_mean as in expert_max_over_mean", Found: strconv.Itoa(len(ranks))})
		return
	}
	r.out.Proof.Layers = nil
	for i := range max(len(experts), len(ranks)) {
		layer := LayerBalance{Layer: i, ExpertMaxOverMean: router.Undefined(), RankMaxOverMean: router.Undefined()}
		if haveExperts {
			layer.ExpertMaxOverMean = experts[i]
		}
		if haveRanks {
			layer.RankMaxOverMean = ranks[i]
		}
		r.out.Proof.Layers = append(r.out.Proof.Layers, layer)
	}
}
