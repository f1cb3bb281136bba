package metrics

import (
	"fmt"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Result is what one launch of a benchmark reported.
type Result struct {
	// which tool and layout, such as "moebalance-workload" or "trtllm-bench/report-json"
	Format string `json:"format"`
	// the metric to compare unless another is asked for: the first custom one, else the format's throughput, else its
	// time; "" without metrics
	Primary string   `json:"primary"`
	Metrics []Metric `json:"metrics"` // custom ones first, then in the order of the output; names are unique
	Work    Work     `json:"work"`
	Lengths Lengths  `json:"lengths,omitzero"`
	Proof   Proof    `json:"proof"`
	Steps   []Step   `json:"steps,omitempty"`
	// Setup is what the output says of its model and how that was run, by name.
	Setup map[string]string `json:"setup,omitempty"`
	// Warnings are things a reader of the numbers should know, one line each.
	Warnings []string `json:"warnings,omitempty"`
}

// Metric returns the metric of that name.
func (r Result) Metric(name string) (Metric, bool) {
	for _, m := range r.Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// Wanted returns the metric of that name, the primary one where the name is empty. It
// must be there and be a positive finite number, because gains are ratios.
func (r Result) Wanted(name string) (Metric, error) {
	if name == "" {
		name = r.Primary
	}
	m, ok := r.Metric(name)
	switch {
	case len(r.Metrics) == 0 && len(r.Steps) > 0:
		return m, fmt.Errorf(
			"this %s holds %s and no times: add a report of throughput, or name a number with --metric 'NAME:UNIT:higher=REGEX'",
			r.Format, quantity.Count(len(r.Steps), "iteration row"))
	case len(r.Metrics) == 0:
		return m, fmt.Errorf("this %s report holds no metric: name a number with --metric 'NAME:UNIT:higher=REGEX'",
			r.Format)
	case !ok:
		var names []string
		for _, m := range r.Metrics {
			names = append(names, m.Name)
		}
		return m, fmt.Errorf("no metric %q in this %s report: want one of %s%s", name, r.Format,
			strings.Join(names, ", "), router.Near(name, names))
	case !m.Value.Defined():
		return m, fmt.Errorf("%s is not a number in this %s report: want a positive number", name, r.Format)
	case m.Value <= 0:
		return m, fmt.Errorf("%s is %s in this %s report: want a positive number", name, quantity.Digits3(m.Value),
			r.Format)
	}
	return m, nil
}

// Count is a number of things that an output may not mention. The zero value
// is unknown.
type Count struct {
	N     int64 `json:"n"`
	Known bool  `json:"known"`
}

// Exactly is a known count.
func Exactly(n int64) Count { return Count{N: n, Known: true} }

// Work is how much a launch did, as far as its output says. Two arms are only
// comparable when they did the same.
type Work struct {
	Requests     Count `json:"requests"`
	InputTokens  Count `json:"input_tokens"`
	OutputTokens Count `json:"output_tokens"`
	Errors       Count `json:"errors"` // failed requests
}

// Lengths are the root mean squares of what requests read and wrote, in tokens, as far as a
// report lists single requests or their percentiles; 0 unknown. Sides of equal totals whose
// lengths differ have different ones.
type Lengths struct {
	Input  router.Number `json:"input,omitempty"`
	Output router.Number `json:"output,omitempty"`
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

// Step is one iteration of an engine: what it ran and how long it took. What the
// log does not state of it is undefined.
type Step struct {
	Iter            int64         `json:"iter"` // the log's own number; the position in the output where it has none
	Rank            router.OptInt `json:"rank"`
	Requests        router.OptInt `json:"requests"`         // scheduled requests
	ContextTokens   router.OptInt `json:"context_tokens"`   // prompt tokens in the step; 0 is a pure decode step
	GeneratedTokens router.OptInt `json:"generated_tokens"` // decode tokens, draft tokens included
	TimeMS          router.Number `json:"time_ms"`          // by Clock
	// which time: "gpu_forward", "device_step", "host_step", "elapsed", "iteration"
	Clock  string `json:"clock"`
	Warmup bool   `json:"warmup"` // not part of the steady state, see cutWarmup
}

// The limits that keep memory constant however long the output is.
const (
	maxLine = 64 << 10 // bytes of a text line that are looked at; JSON has no such limit
	// values kept of one JSON document, 32 bytes of text counting as one; of the rest only members of the document
	// itself are
	maxElements = 1 << 17
	maxSteps    = 1 << 17 // iteration rows kept; later ones are counted in a warning
)
