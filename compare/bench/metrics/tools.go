package metrics

import (
	"math"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"gonum.org/v1/gonum/stat"
)

// readClient counts failed requests where a client does not: it asked for them and they were not completed. It also
// takes the root mean squares of the lengths that clients list with --save-detailed, which tell apart sides of equal
// totals: 100 and 100 → 100, 40 and 160 → 116.6.
func readClient(r *report, d *document) {
	asked, ok := r.number(d, "num_prompts", true)
	if done := r.at(requests); ok && r.at(failures) < 0 && done >= 0 {
		r.put(d.line, failures, max(0, asked-r.found[done].Value))
	}
	for path, name := range map[string]string{"input_lens": gain.WorkInputLength, "output_lens": gain.WorkOutputLength} {
		if lengths := r.list(d, path); len(lengths) > 0 {
			r.put(d.line, name, router.Number(math.Sqrt(stat.MomentAbout(2, lengths, 0, nil))))
		}
	}
}

// readExport sums the error summary, which lists failed requests by kind even where error_request_count is null.
func readExport(r *report, d *document) {
	if d.of("was_cancelled") == true {
		r.fail(d.line, input.Error{Expected: "a complete run", Found: "was_cancelled: true", Try: "repeat the run"})
	}
	kinds, ok := d.of("error_summary").(list)
	sum := router.Number(0)
	for i := range int(kinds) {
		n, _ := r.number(d, "error_summary/"+strconv.Itoa(i)+"/count", true)
		sum += n
	}
	if ok && r.at(failures) < 0 {
		r.put(d.line, failures, sum)
	}
}

// readMoE reads the result of TensorRT-LLM's bench_moe, which times one MoE layer
// (tests/microbenchmarks/bench_moe). Its dispatch shows the load of ranks:
//
//	"col_sums": [1536, 171, 171, 170]  → max/mean 3.00, floor 1
func readMoE(r *report, d *document) {
	const actual = "results/0/routing_control/actual/"
	r.out.Proof.Perfect, r.out.Proof.Claimed = d.of(actual + "enable_perfect_router").(bool)
	slots := r.list(d, actual+"observed_dispatch_matrix_summary/col_sums")
	if mean := stat.Mean(slots, nil); mean > 0 {
		r.put(d.line, ranks, router.Number(len(slots)))
		r.out.Proof.RankFloor = router.Number(math.Ceil(mean) / mean)
		r.out.Proof.Layers = []LayerBalance{{ExpertMaxOverMean: router.Undefined(),
			RankMaxOverMean: router.Number(slices.Max(slots) / mean)}}
	}
}

// readWorkload reads the JSON line of the built-in workload, and of the H200 program that recorded the
// captures, whose first_iterations_ms are its warm-up and are not used: one object per launch.
//
//	tokens_per_second       tokens of all ranks per second of timed steps: the primary metric
//	iteration_ms[]          every timed step: mean and median of the step time
//	clock                   which time that is: "cpu" of the workload; absent is wall time
//	perfect_router, ranks   the launch's own word on the treatment
//	expert_max_over_mean[], rank_max_over_mean[]   per layer
func readWorkload(r *report, d *document) {
	if steps := r.list(d, "iteration_ms"); len(steps) > 0 {
		slices.Sort(steps)
		r.put(d.line, "step_time_mean", router.Number(stat.Mean(steps, nil)))
		r.put(d.line, "step_time_p50", router.Number(stats.Median(steps)))
	}
	proof := &r.out.Proof
	proof.Perfect, proof.Claimed = d.of("perfect_router").(bool)
	experts, ranks := r.list(d, "expert_max_over_mean"), r.list(d, "rank_max_over_mean")
	for i := range min(len(experts), len(ranks), router.MaxExperts) {
		proof.Layers = append(proof.Layers, LayerBalance{i, router.Number(experts[i]), router.Number(ranks[i])})
	}
	expertFloor, _ := d.of("expert_floor").(float64)
	rankFloor, _ := d.of("rank_floor").(float64)
	proof.ExpertFloor, proof.RankFloor = router.Number(expertFloor), router.Number(rankFloor)
}
