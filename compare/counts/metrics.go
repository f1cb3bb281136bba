package counts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// The counters of vLLM's EPLB branches and of vllm-ascend, and SGLang's histogram and summary.
// Clients append _total to a counter's name in some versions.
var (
	metricsLine = regexp.MustCompile(
		`(?m)^(vllm|sglang):(eplb_tokens_routed_to_ep_rank|eplb_tokens_routed_to_expert|phy_expert_heat|` +
			`eplb_gpu_physical_count_bucket|eplb_balancedness_count)(_total)?\{`)
	metricsSample = regexp.MustCompile(`^(?:vllm|sglang):(\w+?)(?:_total)?\{(.*)\}\s+(\S+)`)
	metricsLabel  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	metricsGauge  = regexp.MustCompile(`(?m)^# TYPE vllm:eplb_tokens_routed_to_\w+ gauge\s*$`)
)

// series says which labels of a counter name the layer and the part that got
// the slots, and whether that part is an expert or a rank.
type series struct {
	layer, part, level string
	histogram          bool // a bucket counts the parts up to its own
}

var knownSeries = map[string]series{
	"eplb_tokens_routed_to_expert":   {layer: "layer_idx", part: "logical_expert_id", level: router.LevelExpert},
	"eplb_tokens_routed_to_ep_rank":  {layer: "layer_idx", part: "dst_ep_rank", level: router.LevelRank},
	"phy_expert_heat":                {layer: "layer", part: "rank", level: router.LevelRank},
	"eplb_gpu_physical_count_bucket": {layer: "layer", part: "le", level: router.LevelRank, histogram: true},
}

// ParseMetrics reads what a metrics endpoint answered: counters that run since the engine
// started; see Since for what two answers have between them. Errors are of type *input.Error.
func ParseMetrics(address string, content []byte) (*Record, error) {
	if !metricsLine.Match(content) {
		return nil, unreadable(address, errors.New("want counters of expert load, have none; see 'moebalance counts --help "+
			"metrics'"))
	}
	return parse(address, content)
}

// readMetrics reads one scrape, which is one step: a window, but for vLLM's branches that set
// a gauge in each step; see Since for the difference of two.
func readMetrics(d *document, r *Record) error {
	if !bytes.HasSuffix(d.text, []byte("\n")) { // which the format asks for
		return errors.New("the text ends within a line, so the last number may be cut: scrape again")
	}
	c := counters{tally{}, map[int]series{}}
	r.balance = balance{}
	lines := bufio.NewScanner(bytes.NewReader(d.text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if m := metricsSample.FindStringSubmatch(lines.Text()); m != nil {
			add := func() error { return c.add(m[1], m[2], m[3]) }
			if part, ok := strings.CutPrefix(m[1], "eplb_balancedness_"); ok {
				add = func() error { return r.balance.add(part, m[2], m[3]) }
			}
			if err := add(); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	r.gauge, r.atLeast, r.Reported = metricsGauge.Match(d.text), true, r.balance.reported()
	if r.Window = !r.gauge; r.Window {
		r.warn("cumulative")
	}
	c.steps(r)
	return nil
}

// counters collect the slots of each part, by layer; a layer has one series of ranks.
type counters struct {
	tally
	ranks map[int]series
}

// add adds a sample to its counter; those of other metrics are passed over.
func (c counters) add(name, labeled, value string) error {
	s, ok := knownSeries[name]
	if !ok {
		return nil
	}
	labels := labelsOf(labeled)
	if s.histogram && labels[s.part] == "+Inf" {
		return nil // repeats the last rank's
	}
	layer, err := strconv.Atoi(labels[s.layer])
	if err != nil || layer < 0 || layer >= maxLayers {
		return fmt.Errorf("want a layer number in %s, have %q", s.layer, labels[s.layer])
	}
	part, err := strconv.ParseFloat(labels[s.part], 64) // a bucket is "3.0"
	if err != nil || !(part >= 0 && part < maxExperts) || part != float64(int(part)) || s.level == router.LevelRank &&
		part >= maxRanks {
		return fmt.Errorf("want a number in %s, have %q", s.part, labels[s.part])
	}
	count, err := strconv.ParseFloat(value, 64)
	if err != nil || !(count >= 0 && count <= maxCount) {
		return fmt.Errorf("want a count between 0 and %d, have %q", int64(maxCount), value)
	}
	if s.level == router.LevelRank {
		if other, ok := c.ranks[layer]; ok && other != s {
			return fmt.Errorf("layer %d: want one counter of the load per rank, have two", layer)
		}
		c.ranks[layer] = s
	}
	c.at(stepKey{layer: layer}).add(s.level, int(part), int64(count))
	return nil
}

// labelsOf are the labels of a sample.
func labelsOf(text string) map[string]string {
	labels := map[string]string{}
	for _, l := range metricsLabel.FindAllStringSubmatch(text, -1) {
		labels[l[1]] = l[2]
	}
	return labels
}

// steps makes one step per layer. Buckets count the ranks up to their own.
func (c counters) steps(r *Record) {
	r.hold(c.tally)
	for _, s := range r.held {
		for rank := len(s.Received) - 1; c.ranks[s.Layer].histogram && rank > 0; rank-- {
			s.Received[rank] -= s.Received[rank-1]
		}
	}
}

// Since is what was added to cumulative counters after an earlier record of the
// same engine. A counter that fell means that the engine restarted in between,
// which is an error.
func (r *Record) Since(earlier *Record) (*Record, error) {
	if r.Format != earlier.Format || r.Experts != earlier.Experts || r.Ranks != earlier.Ranks {
		return nil, fmt.Errorf("%q is %s of %d experts and %d ranks, %q is %s of %d and %d: want two records of one engine",
			r.Source, r.Format, r.Experts, r.Ranks, earlier.Source, earlier.Format, earlier.Experts, earlier.Ranks)
	}
	if r.gauge || earlier.gauge {
		return nil, fmt.Errorf("%q and %q hold gauges of one step each, which do not add up: give them as they are, "+
			"without --since and --for", r.Source, earlier.Source)
	}
	before := map[stepKey]Step{}
	for s, err := range earlier.Steps() {
		if err != nil {
			return nil, err
		}
		s.Load.PerExpert, s.Received = slices.Clone(s.Load.PerExpert), slices.Clone(s.Received)
		before[s.key()] = s
	}
	var steps []Step
	for s, err := range r.Steps() {
		if err != nil {
			return nil, err
		}
		b := before[s.key()]
		if s.Load.PerExpert, err = added(s.Load.PerExpert, b.Load.PerExpert); err == nil {
			s.Received, err = added(s.Received, b.Received)
		}
		if err != nil {
			return nil, fmt.Errorf("%q since %q: layer %d: %w", r.Source, earlier.Source, s.Layer, err)
		}
		steps = append(steps, s)
	}
	out, err := r.with(steps)
	if err != nil {
		return nil, err
	}
	if r.balance != nil {
		if out.balance, err = r.balance.since(earlier.balance); err != nil {
			return nil, err
		}
		out.Reported = out.balance.reported()
	}
	out.Warnings = slices.DeleteFunc(slices.Clone(r.Warnings),
		func(w router.Warning) bool { return w.Code == "cumulative" })
	return out, nil
}

func added(now, before []int64) ([]int64, error) {
	out := slices.Clone(now)
	for i, n := range before {
		if i < len(out) {
			out[i] -= n
		}
		if i >= len(out) || out[i] < 0 {
			return nil, fmt.Errorf("counter %d fell from %d: the engine restarted, or the records are in the wrong order", i, n)
		}
	}
	return out, nil
}
