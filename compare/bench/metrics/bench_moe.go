package metrics

import (
	"fmt"
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
)

// benchMoEFormat is the result of TensorRT-LLM's bench_moe, which times one MoE layer
// (tests/microbenchmarks/bench_moe). A file may hold several workloads, which are several
// measurements: a rule with --metric then chooses one.
const benchMoEFormat = "trtllm-bench-moe/json"

func isBenchMoE(o *object) bool {
	kind, _, _ := o.get("benchmark")
	return kind == "bench_moe" && o.has("results")
}

func readBenchMoE(f fields) {
	v, _ := f.value("results")
	results, ok := v.(*list)
	if !ok || len(results.items) != 1 {
		n := 0
		if ok {
			n = len(results.items)
		}
		f.rep.fail(f.line, input.Error{Expected: "one workload in results", Found: fmt.Sprint(n),
			Try: "--metric 'moe_latency:ms:lower=$.results[0].latency_ms.score'"})
		return
	}
	f.record([]member{{"results/0/latency_ms/score", labelRule{metric: "moe_latency"}, true}})
	for name, path := range map[string]string{"model": "model/name", "tokens": "results/0/workload/num_tokens",
		"backend": "results/0/actual_config/backend", "top_k": "model/top_k"} {
		if v, ok := f.value(path); ok {
			f.rep.set(name, settingText(v))
		}
	}
	const actual = "results/0/routing_control/actual/"
	if _, ok := f.value(actual + "enable_perfect_router"); ok {
		f.rep.proof.Perfect, f.rep.proof.Claimed = f.flag(actual+"enable_perfect_router"), true
	}
	if slots, ok := f.list(actual + "observed_dispatch_matrix_summary/col_sums"); ok && len(slots) > 0 {
		f.rep.proof.Ranks = len(slots)
		f.rep.proof.Layers, f.rep.proof.RankFloor = dispatched(slots)
	}
}

// dispatched is the balance of one layer whose ranks received these slots, and its floor:
// {1536, 171, 171, 170} → max/mean 3.00, floor 1. Undefined for no slots.
func dispatched(slots []router.Number) ([]LayerBalance, router.Number) {
	total, ranks := router.Number(0), router.Number(len(slots))
	for _, n := range slots {
		total += n
	}
	if !(total > 0) {
		return nil, 0
	}
	floor := router.Number(math.Ceil(float64(total/ranks))) * ranks / total
	return []LayerBalance{{0, router.Undefined(), slices.Max(slots) * ranks / total}}, floor
}
