package counts

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/moebalance/moebalance/router"
)

// The counters of vLLM's EPLB branches and of vllm-ascend. Clients append
// _total to a counter's name in some versions.
var (
	prometheusLine   = regexp.MustCompile(`(?m)^vllm:(eplb_tokens_routed_to_ep_rank|eplb_tokens_routed_to_expert|phy_expert_heat)(_total)?\{`)
	prometheusSample = regexp.MustCompile(`^vllm:(\w+?)(?:_total)?\{(.*)\}\s+(\S+)`)
	prometheusLabel  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

// series says which labels of a counter name the layer and the part that got
// the slots, and whether that part is an expert or a rank.
var series = map[string]struct{ layer, part, level string }{
	"eplb_tokens_routed_to_expert":  {"layer_idx", "logical_expert_id", router.LevelExpert},
	"eplb_tokens_routed_to_ep_rank": {"layer_idx", "dst_ep_rank", router.LevelRank},
	"phy_expert_heat":               {"layer", "rank", router.LevelRank},
}

// readPrometheus reads one scrape. Its counters run since the engine started,
// so it is one step, a window; see Since for the difference of two scrapes.
func readPrometheus(s *source, r *Record) error {
	c := counters{}
	lines := bufio.NewScanner(bytes.NewReader(s.content))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if m := prometheusSample.FindStringSubmatch(lines.Text()); m != nil {
			if err := c.add(m[1], m[2], m[3]); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	r.Window = true
	r.Experts, r.Ranks, r.held = c.steps()
	r.warn("cumulative", "these counters run since the engine started, warm-up included: take two scrapes and their difference")
	return nil
}

// counters are the slots of each part, by layer and level.
type counters map[counterKey]map[int]int64

type counterKey struct {
	layer int
	level string
}

// add adds a sample to its counter; those of other metrics are passed over.
func (c counters) add(name, labelled, value string) error {
	s, ok := series[name]
	if !ok {
		return nil
	}
	labels := map[string]string{}
	for _, l := range prometheusLabel.FindAllStringSubmatch(labelled, -1) {
		labels[l[1]] = l[2]
	}
	layer, err := strconv.Atoi(labels[s.layer])
	if err != nil || layer < 0 || layer >= maxLayers {
		return fmt.Errorf("want a layer number in %s, have %q", s.layer, labels[s.layer])
	}
	part, err := strconv.Atoi(labels[s.part])
	if err != nil || part < 0 || part >= maxExperts || s.level == router.LevelRank && part >= maxRanks {
		return fmt.Errorf("want a number in %s, have %q", s.part, labels[s.part])
	}
	count, err := strconv.ParseFloat(value, 64)
	if err != nil || !(count >= 0 && count <= maxCount) {
		return fmt.Errorf("want a count between 0 and %d, have %q", int64(maxCount), value)
	}
	key := counterKey{layer, s.level}
	if c[key] == nil {
		c[key] = map[int]int64{}
	}
	c[key][part] += int64(count)
	return nil
}

// steps is one step per layer, of as many parts as the largest number says.
func (c counters) steps() (experts, ranks int, steps []Step) {
	byLayer := map[int]*Step{}
	for key, parts := range c {
		byLayer[key.layer] = &Step{Layer: key.layer}
		most := slices.Max(slices.Collect(maps.Keys(parts))) + 1
		if key.level == router.LevelRank {
			ranks = max(ranks, most)
		} else {
			experts = max(experts, most)
		}
	}
	for key, parts := range c {
		if key.level == router.LevelRank {
			byLayer[key.layer].Received = dense(parts, ranks)
		} else {
			byLayer[key.layer].Load = router.Load{PerExpert: dense(parts, experts)}
		}
	}
	for _, s := range byLayer {
		steps = append(steps, *s)
	}
	return experts, ranks, steps
}

func dense(parts map[int]int64, n int) []int64 {
	out := make([]int64, n)
	for i, v := range parts {
		out[i] = v
	}
	return out
}

// Since is what was added to cumulative counters after an earlier record of the
// same engine. A counter that fell means that the engine restarted in between,
// which is an error.
func (r *Record) Since(earlier *Record) (*Record, error) {
	if r.Format != earlier.Format || r.Experts != earlier.Experts || r.Ranks != earlier.Ranks {
		return nil, fmt.Errorf("%q is %s of %d experts and %d ranks, %q is %s of %d and %d: want two records of one engine",
			r.Source, r.Format, r.Experts, r.Ranks, earlier.Source, earlier.Format, earlier.Experts, earlier.Ranks)
	}
	before := map[stepKey]Step{}
	for s, err := range earlier.Steps() {
		if err != nil {
			return nil, err
		}
		s.Load.PerExpert, s.Received = slices.Clone(s.Load.PerExpert), slices.Clone(s.Received)
		before[s.key()] = s
	}
	out := *r
	out.Warnings, out.held = nil, nil
	for _, w := range r.Warnings {
		if w.Code != "cumulative" {
			out.Warnings = append(out.Warnings, w)
		}
	}
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
		s.Sent = nil
		out.held = append(out.held, s)
	}
	out.stream = each(out.held)
	return &out, out.total()
}

func added(now, before []int64) ([]int64, error) {
	out := append([]int64(nil), now...)
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
