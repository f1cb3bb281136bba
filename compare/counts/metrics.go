package counts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
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
	sums  map[string]*Reported // of balancedness and passes, by the mode of the forward pass
}

// readMetrics reads one scrape, which is one step: a sum since the engine started, but for vLLM's branches that set a
// gauge in each step.
func readMetrics(d *document, c *collector) error {
	if !bytes.HasSuffix(d.text, []byte("\n")) { // which the format asks for
		return errors.New("the text ends within a line, so the last number may be cut: scrape again")
	}
	s := scrape{c, map[int]series{}, map[string]*Reported{}}
	lines := bufio.NewScanner(bytes.NewReader(d.text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if m := metricsSample.FindStringSubmatch(lines.Text()); m != nil {
			if err := s.add(m[1], m[2], m[3]); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	for _, mode := range slices.Sorted(maps.Keys(s.sums)) { // those without any passes are left out
		if r := s.sums[mode]; r.Passes > 0 && r.Balancedness > 0 && mode != "idle" {
			r.Balancedness /= router.Number(r.Passes)
			r.MaxOverMean = 1 / r.Balancedness
			c.Reported = append(c.Reported, *r)
		}
	}
	c.Window, c.atLeast = !metricsGauge.Match(d.text), true
	if c.Window {
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
	if !ok && !strings.HasPrefix(name, "eplb_balancedness_") || of.histogram && labels[of.part] == "+Inf" {
		return nil // another metric, or the last rank's bucket again
	}
	count, err := strconv.ParseFloat(value, 64)
	if err != nil || !(count >= 0 && count <= maxCount) {
		return fmt.Errorf("want a count between 0 and %d, have %q", int64(maxCount), value)
	}
	if !ok {
		mode := labels["forward_mode"]
		if s.sums[mode] == nil {
			s.sums[mode] = &Reported{Step: router.NoID, Phase: phases[mode]}
		}
		switch name {
		case "eplb_balancedness_sum":
			s.sums[mode].Balancedness += router.Number(count)
		case "eplb_balancedness_count":
			s.sums[mode].Passes += int(count)
		}
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
