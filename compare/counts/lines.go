package counts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// Reported is one line in which an engine states its own balance over ranks.
// Engines aggregate differently: SGLang prints the mean over layers of
// mean/max, vLLM the ratio of the layers' summed means to their summed maxima,
// and several of its releases reduced over the wrong axis; vllm-ascend prints
// the mean over layers of max/mean.
type Reported struct {
	Step         router.OptInt `json:"step"`            // undefined where the line does not say
	Phase        Phase         `json:"phase,omitempty"` // what tells the line from others
	Passes       int           `json:"passes"`          // forward passes that it is the mean of
	Balancedness router.Number `json:"balancedness"`
	MaxOverMean  router.Number `json:"max_over_mean"` // its inverse, or the other way round
}

// logLines say how even the load was, or count it. Groups are the step, the model, the passes that a line
// is of (SGLang sums decode up), balancedness (even) or max/mean (uneven), slots on all GPUs, and counts of ranks
// over all layers, of layers and experts, or in an object.
var logLines = []*regexp.Regexp{
	regexp.MustCompile(`\[Expert Balancedness\] .*?\bforward_pass_id=(?P<step>\d{1,18}) ` +
		`(?:.*?\baggregated_forward_passes=(?P<passes>\d{1,9}))?.*?\b(?:current_pass|average)_balancedness=` +
		`(?P<even>[0-9.eE+-]+)(?:.*\bgpu_physical_count_sum=(?P<slots>\d{1,18}))?`),
	regexp.MustCompile(`EPLB step: (?:(?P<step>\d{1,18})(?: for model (?P<model>.*?))?: )?avg_tokens=[0-9.]+, ` +
		`max_tokens=[0-9.]+, balancedness=(?P<even>[0-9.]+)(?P<vllm>)`),
	regexp.MustCompile(`\[Expert Hotness\] Current: mean=(?P<uneven>[0-9.]+), max=[0-9.]+`),
	regexp.MustCompile(`\brank_load step=(?P<step>\d{1,18}) rank_tokens=(?P<ranks>\[[\d, ]+\])`),
	regexp.MustCompile(`(?P<object>\{.*"logical_expert_counts":.*\})`),
	regexp.MustCompile(`(?m)^Iter (?P<step>\d{1,18}), (?P<experts>\[\[[\d, \[\]]+\]\])`),
}

// isLog reports a text that has one of the lines.
func isLog(d *document) bool {
	return d.isText() && slices.ContainsFunc(logLines, func(l *regexp.Regexp) bool { return l.Match(d.text) })
}

// engineLog is what the lines of a log said.
type engineLog struct {
	*collector
	tells []telling
	vllm  bool // a line was vLLM's
	idle  int
	last  map[string]telling // of vLLM's models
}

// telling is what may tell a line from others.
type telling struct {
	step    int64
	kind    string // prefill or decode, or the model
	isModel bool
	slots   int64 // of a pass, on all GPUs; 0 where the line does not say
	moved   bool  // vLLM has moved experts since the log began
}

// readLog reads the lines in which SGLang, vLLM and vllm-ascend report their balance, without
// counts, and lines that print counts. Idle steps, which vLLM reports as balancedness 0, are left
// out and counted.
func readLog(d *document, c *collector) error {
	log, n := engineLog{collector: c, last: map[string]telling{}}, 0
	for line := range bytes.Lines(d.text) {
		n++
		for _, pattern := range logLines {
			m := pattern.FindSubmatch(line)
			if m == nil {
				continue
			}
			groups := map[string]string{}
			for i, name := range pattern.SubexpNames() {
				if groups[name] = string(m[i]); name == "vllm" {
					groups[name] = name
				}
			}
			if err := log.add(groups); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			break
		}
	}
	log.label()
	if log.idle > 0 {
		c.warn("idle_steps", "steps", log.idle)
	}
	if log.vllm {
		c.warn("vllm_axis")
	}
	return nil
}

// add adds one line.
func (l *engineLog) add(m map[string]string) error {
	if object := []byte(m["object"]); json.Valid(object) {
		return l.walk(value{json: object}, &context{label: nothing()})
	}
	step := int64(router.NoID)
	if n, err := strconv.ParseInt(m["step"], 10, 64); err == nil {
		step = n
	}
	if list := cmp.Or(m["ranks"], m["experts"]); list != "" {
		a, err := numbers([]byte(list))
		axes := map[bool]Axes{true: {"ranks"}, false: {"layers", "experts"}}[m["ranks"] != ""]
		return cmp.Or(err, l.array(a, axes, label{step: step}))
	}
	text := cmp.Or(m["even"], m["uneven"])
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) {
		return fmt.Errorf("want a balancedness, have %q", text)
	}
	line := Reported{Step: router.OptInt(step), Passes: 1, Balancedness: router.Number(v), MaxOverMean: router.Number(1 / v)}
	if m["even"] == "" {
		line.Balancedness, line.MaxOverMean = line.MaxOverMean, line.Balancedness
	}
	tells := telling{step: step, kind: m["model"], isModel: m["model"] != ""}
	if m["vllm"] != "" {
		l.vllm = true
		last, begun := l.last[tells.kind] // steps begin anew when experts move
		tells.moved = last.moved || begun && step < last.step
		l.last[tells.kind] = tells
	} else if m["even"] != "" {
		if tells.kind = string(Prefill); m["passes"] != "" {
			passes, _ := strconv.Atoi(m["passes"]) // nine digits at most
			tells.kind, line.Passes = string(Decode), max(1, passes)
		}
	}
	if tells.slots, _ = strconv.ParseInt(m["slots"], 10, 64); v == 0 || m["slots"] != "" && tells.slots == 0 {
		l.idle++
		return nil
	}
	l.Reported, l.tells = append(l.Reported, line), append(l.tells, tells)
	return nil
}

// label names what tells lines of unlike passes apart: their kind, else their size, and whether experts had moved.
func (l *engineLog) label() {
	kinds, moved := map[bool]map[string]bool{true: {}, false: {}}, map[bool]bool{}
	var slots []int64
	for _, t := range l.tells {
		if moved[t.moved] = true; t.kind != "" {
			kinds[t.isModel][t.kind] = true
		}
		if t.slots > 0 {
			slots = append(slots, t.slots)
		}
	}
	sizes := sizes(slots)
	for i, t := range l.tells {
		parts := []string{sizes[t.slots], ""}
		if len(kinds[t.isModel]) > 1 {
			parts[0] = t.kind
		}
		if len(moved) > 1 {
			parts[1] = map[bool]string{false: "steps before experts moved", true: "steps since experts moved"}[t.moved]
		}
		l.Reported[i].Phase = Phase(strings.Trim(strings.Join(parts, ", "), ", "))
	}
}

// sizes names passes by their slots, where some have more than twice as many as others: prefill beside
// decode. 752, 760 and 75200 → "passes of 752 to 760 slots" and "passes of 75200 slots".
func sizes(slots []int64) map[int64]string {
	names := map[int64]string{}
	slices.Sort(slots)
	for begin, end := 0, 1; begin < len(slots); begin, end = end, end+1 {
		for end < len(slots) && slots[end] <= 2*slots[end-1] {
			end++
		}
		if begin == 0 && end == len(slots) { // all alike
			return nil
		}
		text := fmt.Sprintf("passes of %d slots", slots[begin])
		if last := slots[end-1]; last > slots[begin] {
			text = fmt.Sprintf("passes of %d to %d slots", slots[begin], last)
		}
		for _, n := range slots[begin:end] {
			names[n] = text
		}
	}
	return names
}

// The counters of vLLM's EPLB branches and of vllm-ascend, and SGLang's histogram and summary.
// Clients append _total to a counter's name in some versions.
var (
	metricsLine   = regexp.MustCompile(`(?m)^(vllm|sglang):(eplb_|phy_expert_heat)\w*\{`)
	metricsSample = regexp.MustCompile(`^(?:vllm|sglang):(\w+?)(?:_total)?\{(.*)\}\s+(\S+)`)
	metricsLabel  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	metricsGauge  = regexp.MustCompile(`(?m)^# TYPE vllm:eplb_tokens_routed_to_\w+ gauge\s*$`)
)

// series says which labels of a counter name the layer and the part that got
// the slots, and whether that part is an expert or a rank.
type series struct {
	layer, part, level string
	most               int64 // parts
	histogram          bool  // a bucket counts the parts up to its own
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
	s, n := scrape{c, map[int]series{}, map[string]*Reported{}}, 0
	for line := range bytes.Lines(d.text) {
		n++
		if m := metricsSample.FindSubmatch(line); m != nil {
			if err := s.add(string(m[1]), m[2], string(m[3])); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	for _, mode := range slices.Sorted(maps.Keys(s.sums)) {
		if r := s.sums[mode]; r.Passes > 0 && r.Balancedness > 0 && mode != "idle" {
			r.Balancedness /= router.Number(r.Passes)
			r.MaxOverMean = 1 / r.Balancedness
			c.Reported = append(c.Reported, *r)
		}
	}
	if c.stepped, c.atLeast = metricsGauge.Match(d.text), true; !c.stepped {
		c.warn("cumulative")
	}
	for key, in := range c.cells { // buckets count the ranks up to their own
		for rank := len(in.Received) - 1; s.ranks[key.layer].histogram && rank > 0; rank-- {
			in.Received[rank] = max(0, in.Received[rank]) - max(0, in.Received[rank-1])
			if in.Received[rank] < 0 {
				return fmt.Errorf("%v: rank %d: want a count from 0, have buckets that fall", key, rank)
			}
		}
	}
	return nil
}

// add adds a sample to its counter; other metrics are passed over.
func (s scrape) add(name string, labeled []byte, value string) error {
	labels := map[string]string{}
	for _, l := range metricsLabel.FindAllSubmatch(labeled, -1) {
		labels[string(l[1])] = string(l[2])
	}
	of, known := knownSeries[name]
	summed, isSum := strings.CutPrefix(name, "eplb_balancedness_")
	if !known && !isSum || of.histogram && labels[of.part] == "+Inf" {
		return nil // another metric, or the last rank's bucket again
	}
	count, err := strconv.ParseFloat(value, 64)
	if err != nil || !(count >= 0 && count <= maxCount) {
		return fmt.Errorf("want a count between 0 and %d, have %q", int64(maxCount), value)
	}
	if isSum {
		mode := labels["forward_mode"]
		if s.sums[mode] == nil {
			s.sums[mode] = &Reported{Step: router.NoID, Phase: phases[mode]}
		}
		switch summed {
		case "sum":
			s.sums[mode].Balancedness += router.Number(count)
		case "count":
			s.sums[mode].Passes += int(count)
		}
		return nil
	}
	layer, err := number(labels[of.layer], of.layer, maxLayers-1)
	part, also := number(labels[of.part], of.part, of.most-1)
	if err := cmp.Or(err, also); err != nil {
		return err
	}
	if of.level == router.LevelRank {
		if other, ok := s.ranks[int(layer)]; ok && other != of {
			return fmt.Errorf("layer %d: want one counter of the load per rank, have two", layer)
		}
		s.ranks[int(layer)] = of
	}
	return s.collector.add(s.at(stepKey{layer: int(layer)}), of.level, int(part), []int64{int64(count)}, false)
}
