package counts

import (
	"bufio"
	"bytes"
	"cmp"
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

const metricsFormat = "Prometheus text"

// series says which labels of a counter name the layer and the part that got
// the slots, and whether that part is an expert or a rank.
type series struct {
	layer, part, level string
	most               int  // parts
	histogram          bool // a bucket counts the parts up to its own
}

var knownSeries = map[string]series{
	"eplb_tokens_routed_to_expert":   {"layer_idx", "logical_expert_id", router.LevelExpert, maxExperts, false},
	"eplb_tokens_routed_to_ep_rank":  {"layer_idx", "dst_ep_rank", router.LevelRank, maxRanks, false},
	"phy_expert_heat":                {"layer", "rank", router.LevelRank, maxRanks, false},
	"eplb_gpu_physical_count_bucket": {"layer", "le", router.LevelRank, maxRanks, true},
}

// scrape is one answer of a metrics endpoint. A layer has one series of ranks.
type scrape struct {
	*collector
	ranks map[int]series
}

// readMetrics reads one scrape, which is one step: a window, but for vLLM's branches that set
// a gauge in each step; see Since for the difference of two.
func readMetrics(d *document, c *collector) error {
	if !bytes.HasSuffix(d.text, []byte("\n")) { // which the format asks for
		return errors.New("the text ends within a line, so the last number may be cut: scrape again")
	}
	s := scrape{c, map[int]series{}}
	lines := bufio.NewScanner(bytes.NewReader(d.text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if m := metricsSample.FindStringSubmatch(lines.Text()); m != nil {
			if err := s.add(m[1], m[2], m[3]); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	c.Reported = averaged(c.Reported)
	c.gauge, c.atLeast = metricsGauge.Match(d.text), true
	if c.Window = !c.gauge; c.Window {
		c.warn("cumulative")
	}
	for key, in := range c.cells { // buckets count the ranks up to their own
		for rank := len(in.Received) - 1; s.ranks[key.layer].histogram && rank > 0; rank-- {
			in.Received[rank] = max(0, in.Received[rank]) - max(0, in.Received[rank-1])
		}
		if err := checkCounts(filled(in.Received, len(in.Received))); err != nil {
			return fmt.Errorf("%v: rank %w", key, err)
		}
	}
	return lines.Err()
}

// add adds a sample to its counter; other metrics are passed over.
func (s scrape) add(name, labeled, value string) error {
	labels := map[string]string{}
	for _, l := range metricsLabel.FindAllStringSubmatch(labeled, -1) {
		labels[l[1]] = l[2]
	}
	of, ok := knownSeries[name]
	sum, summed := strings.CutPrefix(name, "eplb_balancedness_")
	if !ok && !summed || of.histogram && labels[of.part] == "+Inf" { // which repeats the last rank's
		return nil
	}
	count, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || !(count >= 0 && count <= maxCount):
		return fmt.Errorf("want a count between 0 and %d, have %q", int64(maxCount), value)
	case summed:
		s.summary(labels["forward_mode"], sum, count)
		return nil
	}
	layer, err := strconv.Atoi(labels[of.layer])
	if err != nil || layer < 0 || layer >= maxLayers {
		return fmt.Errorf("want a layer number in %s, have %q", of.layer, labels[of.layer])
	}
	part, err := strconv.ParseFloat(labels[of.part], 64) // a bucket is "3.0"
	if err != nil || !(part >= 0 && part < float64(of.most)) || part != float64(int(part)) {
		return fmt.Errorf("want a number in %s, have %q", of.part, labels[of.part])
	}
	if of.level == router.LevelRank {
		if other, ok := s.ranks[layer]; ok && other != of {
			return fmt.Errorf("layer %d: want one counter of the load per rank, have two", layer)
		}
		s.ranks[layer] = of
	}
	return s.collector.add(s.at(stepKey{layer: layer}), of.level, int(part), int64(count), false)
}

// summary adds a sample of SGLang's summary of balancedness, by the mode of the forward pass: its sum
// or its count.
func (s scrape) summary(mode, part string, v float64) {
	at := slices.IndexFunc(s.Reported, func(r Reported) bool { return r.mode == mode })
	if at < 0 {
		at = len(s.Reported)
		s.Reported = append(s.Reported, Reported{Step: router.NoID, Phase: phases[mode], mode: mode})
	}
	switch part {
	case "sum":
		s.Reported[at].Balancedness += router.Number(v)
	case "count":
		s.Reported[at].Passes += int(v)
	}
}

// averaged turns sums of balancedness into means, by mode; modes without any are left out.
func averaged(sums []Reported) (list []Reported) {
	for _, r := range sums {
		if r.Passes > 0 && r.Balancedness > 0 && r.mode != "idle" {
			r.Balancedness /= router.Number(r.Passes)
			r.MaxOverMean = 1 / r.Balancedness
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Reported) int { return cmp.Compare(a.mode, b.mode) })
	return list
}

// reportedSince is what a summary gained since an earlier one.
func reportedSince(now, earlier []Reported) (list []Reported, err error) {
	for _, r := range now {
		r.Balancedness *= router.Number(r.Passes)
		for _, was := range earlier {
			if was.mode == r.mode {
				r.Passes, r.Balancedness = r.Passes-was.Passes, r.Balancedness-was.Balancedness*router.Number(was.Passes)
			}
		}
		if r.Passes < 0 || r.Balancedness < -1e-9 {
			return nil, fmt.Errorf("the balancedness of %s fell: the engine restarted, or the records are in the wrong order",
				r.mode)
		}
		list = append(list, r)
	}
	return averaged(list), nil
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
	for _, s := range earlier.steps {
		before[s.key()] = s
	}
	var steps []Step
	for _, s := range r.steps {
		b := before[s.key()]
		s.Load.PerExpert, s.Received = slices.Clone(s.Load.PerExpert), slices.Clone(s.Received)
		if err := cmp.Or(subtract(s.Load.PerExpert, b.Load.PerExpert), subtract(s.Received, b.Received)); err != nil {
			return nil, fmt.Errorf("%q since %q: layer %d: %w", r.Source, earlier.Source, s.Layer, err)
		}
		steps = append(steps, s)
	}
	out := r.with(steps)
	if r.Format == metricsFormat {
		var err error
		if out.Reported, err = reportedSince(r.Reported, earlier.Reported); err != nil {
			return nil, err
		}
	}
	out.Warnings = slices.DeleteFunc(slices.Clone(r.Warnings),
		func(w router.Warning) bool { return w.Code == "cumulative" })
	return out, nil
}

// subtract takes what was counted before from what is counted now.
func subtract(now, before []int64) error {
	for i, n := range before {
		if i >= len(now) || now[i] < n {
			return fmt.Errorf("counter %d fell from %d: the engine restarted, or the records are in the wrong order", i, n)
		}
		now[i] -= n
	}
	return nil
}
