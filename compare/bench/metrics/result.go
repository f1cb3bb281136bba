package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// Result is what one launch of a benchmark reported.
type Result struct {
	// which tool and layout, such as "moebalance-workload" or "trtllm-bench/report-json"
	Format string `json:"format"`
	// the metric to compare unless another is asked for: the first custom one, else the format's throughput, else its
	// time; "" without metrics
	Primary string   `json:"primary"`
	Metrics []Metric `json:"metrics"` // custom ones first, then in the order of the output; names are unique
	// Work is how much a launch did, as far as its output says, by the names of gain.Work…. Two arms are only
	// comparable when they did the same.
	Work  map[string]float64 `json:"work"`
	Proof Proof              `json:"proof"`
	// Attention is how uneven data-parallel ranks' tokens are: Σ max / Σ mean − 1 over the iterations of a log.
	Attention float64 `json:"attention_imbalance,omitzero"`
	// Setup is how the output describes its model and the run, by name: "max_concurrency" "8".
	Setup map[string]string `json:"setup,omitempty"`
	// Warnings are things a reader of the numbers should know, one line each.
	Warnings []string `json:"warnings,omitempty"`
}

// Metric is one number a benchmark reported: the vocabulary's word, such as
// "output_throughput" or "ttft_p99", without a unit where a custom metric has none, and a
// definition that tells apart numbers that share a name but are computed by different rules,
// above all percentiles: "… p99 by trtllm-bench, sorted[floor(n·q)]" is not "… p99 by serving
// client, linear".
type Metric struct {
	gain.Metric
	Value router.Number `json:"value"` // not defined where the output says NaN or an infinity
	line  int           // where it stands; 0 is the whole report
}

func (r *Result) warn(text string) { r.Warnings = append(r.Warnings, text) }

// Metric returns the metric of that name.
func (r Result) Metric(name string) (Metric, bool) {
	if i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return r.Metrics[i], true
	}
	return Metric{}, false
}

// Wanted returns the metric of that name, the primary one where the name is empty. It
// must be there and be a positive finite number, because gains are ratios.
func (r Result) Wanted(name string) (Metric, error) {
	name = cmp.Or(name, r.Primary)
	m, ok := r.Metric(name)
	var names []string
	for _, m := range r.Metrics {
		names = append(names, m.Name)
	}
	switch {
	case !ok && len(names) == 0:
		return m, fmt.Errorf("this %s report holds no metric: %s", r.Format, strings.Join(r.Warnings, "; "))
	case !ok:
		return m, fmt.Errorf("no metric %q in this %s report: want one of %s%s", name, r.Format,
			strings.Join(names, ", "), router.Near(name, names))
	case !m.Value.Defined() || m.Value <= 0:
		return m, fmt.Errorf("%s is %v in this %s report: want a positive number", name, m.Value, r.Format)
	}
	return m, nil
}

// Proof is what the output itself says about the treatment. It is evidence of
// the launch's own making, weaker than a trace and stronger than a variable in
// the environment.
type Proof struct {
	Claimed bool           `json:"claimed"`          // the output says whether its routing was perfect
	Perfect bool           `json:"perfect"`          // what it says; meaningless unless Claimed
	Ranks   int            `json:"ranks,omitempty"`  // expert-parallel ranks; 0 unknown
	Layers  []LayerBalance `json:"layers,omitempty"` // in layer order
	// The least max/mean that whole slots allow, in every layer; 0 unknown.
	ExpertFloor router.Number `json:"expert_floor,omitempty"`
	RankFloor   router.Number `json:"rank_floor,omitempty"`
}

// LayerBalance is the load of one layer as the launch measured it, over all its
// ranks. Undefined where the output does not say.
type LayerBalance struct {
	Layer             int           `json:"layer"` // 0, 1, … in the order of the output
	ExpertMaxOverMean router.Number `json:"expert_max_over_mean"`
	RankMaxOverMean   router.Number `json:"rank_max_over_mean"`
}

// preferred is the metric to compare by, best first: throughput of what the router
// works on, which are the prompts where each request generates one token, then of requests, then times, then the
// first of all.
func (r Result) preferred() string {
	generated := r.Work[outputTokens]
	first := map[bool]string{true: "total_throughput"}[generated > 0 && generated <= r.Work[requests]]
	for _, name := range []string{first, "output_throughput", "token_throughput", "total_throughput",
		"request_throughput", "gpu_throughput", "step_time_mean", "batch_latency_mean"} {
		if _, ok := r.Metric(name); ok {
			return name
		}
	}
	return append(r.Metrics, Metric{})[0].Name
}
