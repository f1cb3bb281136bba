package counts

import (
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
		`(?P<even>[0-9.eE+-]+)(?:.*\bgpu_physical_count_sum=(?P<size>\d{1,18}))?`),
	regexp.MustCompile(`EPLB step: (?:(?P<step>\d{1,18})(?: for model (?P<model>.*?))?: )?avg_tokens=[0-9.]+, ` +
		`max_tokens=[0-9.]+, balancedness=(?P<even>[0-9.]+)(?P<vllm>)`),
	regexp.MustCompile(`\[Expert Hotness\] Current: mean=(?P<uneven>[0-9.]+), max=[0-9.]+`),
	regexp.MustCompile(`\brank_load step=(?P<step>\d{1,18}) rank_tokens=(?P<rankcounts>\[[\d, ]+\])`),
	regexp.MustCompile(`(?P<object>\{.*"logical_expert_counts":.*\})`),
	regexp.MustCompile(`(?mi)^\s*layer[ _](?P<layer>\d{1,5})\s*[:=]\s*(?P<expertcounts>\[[\d, ]+\])`),
	regexp.MustCompile(`(?m)^Iter (?P<step>\d{1,18}), (?P<expertcounts>\[\[[\d, \[\]]+\]\])`),
}

// isLog reports a text that has one of the lines.
func isLog(d *document) bool {
	return d.isText() && slices.ContainsFunc(logLines, func(l *regexp.Regexp) bool { return l.Match(d.text) })
}

// readLog reads the lines in which SGLang, vLLM and vllm-ascend report their balance, without
// counts, and lines that print counts. Idle steps, which vLLM reports as balancedness 0, are left
// out and counted.
func readLog(d *document, c *collector) error {
	log, n := engineLog{Record: c.Record, last: map[string]int64{}, moved: map[string]bool{}}, 0
	c.lined = true
	for line := range bytes.Lines(d.text) {
		n++
		for _, pattern := range logLines {
			m := pattern.FindSubmatch(line)
			if m == nil {
				continue
			}
			groups, object := map[string]string{}, row{}
			for i, name := range pattern.SubexpNames() {
				if groups[name] = string(m[i]); groups[name] != "" && name != "" {
					object = append(object, field{name, celled(groups[name])})
				}
			}
			err := error(nil)
			if groups["even"] == "" && groups["uneven"] == "" {
				of := nothing()
				err = c.walk(value{item: object}, &of)
			} else {
				err = log.add(groups)
			}
			if err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			break
		}
	}
	log.label()
	if log.idle > 0 {
		c.warn("idle_steps", "steps", log.idle)
	}
	if len(log.last) > 0 {
		c.warn("vllm_axis")
	}
	return nil
}

// engineLog is what the lines of a log said.
type engineLog struct {
	*Record
	tells []telling // of each line that is reported
	idle  int
	last  map[string]int64 // step of vLLM's models
	moved map[string]bool  // vLLM has moved experts since the log began
}

// telling is what may tell a line from others: the model, prefill or decode, and whether experts had moved; and the
// slots of a pass on all GPUs, 0 where the line does not say.
type telling struct {
	labels [3]string
	slots  int64
}

// add adds one line that reports balance.
func (l *engineLog) add(m map[string]string) error {
	step, tells := int64(router.NoID), telling{labels: [3]string{m["model"]}}
	if n, err := strconv.ParseInt(m["step"], 10, 64); err == nil {
		step = n
	}
	text := cmp.Or(m["even"], m["uneven"])
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) {
		return fmt.Errorf("want a balancedness, have %q", text)
	}
	line := Reported{Step: router.OptInt(step), Passes: 1, Balancedness: router.Number(v),
		MaxOverMean: router.Number(1 / v)}
	if _, vllm := m["vllm"]; vllm {
		last, begun := l.last[m["model"]] // steps begin anew when experts move
		l.moved[m["model"]] = l.moved[m["model"]] || begun && step < last
		l.last[m["model"]] = step
		if tells.labels[2] = "steps before experts moved"; l.moved[m["model"]] {
			tells.labels[2] = "steps since experts moved"
		}
	} else if m["even"] == "" {
		line.Balancedness, line.MaxOverMean = line.MaxOverMean, line.Balancedness
	} else if tells.labels[1] = string(Prefill); m["passes"] != "" {
		passes, _ := strconv.Atoi(m["passes"]) // nine digits at most
		tells.labels[1], line.Passes = string(Decode), max(1, passes)
	}
	if tells.slots, _ = strconv.ParseInt(m["size"], 10, 64); v == 0 || m["size"] != "" && tells.slots == 0 {
		l.idle++
		return nil
	}
	l.Reported, l.tells = append(l.Reported, line), append(l.tells, tells)
	return nil
}

// label names what tells lines of unlike passes apart, where not all share it: for want of a phase, the size of the
// pass.
func (l *engineLog) label() {
	distinct := [3]map[string]bool{{"": true}, {"": true}, {"": true}}
	var slots []int64
	for _, t := range l.tells {
		for i, label := range t.labels {
			distinct[i][label] = true
		}
		if t.slots > 0 {
			slots = append(slots, t.slots)
		}
	}
	sizes := sizes(slots)
	for i, t := range l.tells {
		var parts []string
		for at, label := range t.labels {
			if len(distinct[at]) < 3 {
				label = map[bool]string{true: sizes[t.slots]}[at == 1]
			}
			if label != "" {
				parts = append(parts, label)
			}
		}
		l.Reported[i].Phase = Phase(strings.Join(parts, ", "))
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

// Samples of counters: of vLLM's EPLB branches, of vllm-ascend, and of SGLang's histogram. Clients append _total to
// a counter's name in some versions.
var (
	metricsLine   = regexp.MustCompile(`(?m)^(vllm|sglang):(eplb_|phy_expert_heat)\w*\{`)
	metricsSample = regexp.MustCompile(`^(?:vllm|sglang):(?:eplb_tokens_routed_to_expert|(eplb_tokens_routed_to_ep_rank|` +
		`phy_expert_heat|eplb_gpu_physical_count_bucket))(?:_total)?\{(.*)\}\s+(\S+)`)
	metricsLabel = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	metricsGauge = regexp.MustCompile(`(?m)^# TYPE vllm:eplb_tokens_routed_to_\w+ gauge\s*$`)
)

// readMetrics reads one scrape, which is one step: a sum since the engine started, but for vLLM's branches that set a
// gauge in each step.
func readMetrics(d *document, c *collector) error {
	if !bytes.HasSuffix(d.text, []byte("\n")) { // which the format asks for
		return errors.New("the text ends within a line, so the last number may be cut: scrape again")
	}
	c.lined, c.sums = true, true
	n, counter := 0, ""
	for line := range bytes.Lines(d.text) {
		n++
		m := metricsSample.FindSubmatch(line)
		if m == nil || bytes.Contains(m[2], []byte(`le="+Inf"`)) { // the last rank's bucket again
			continue
		}
		err := c.sample(m[2], string(m[3]))
		if of := string(m[1]); of != "" && counter != "" && of != counter {
			err = fmt.Errorf("want one counter of the load per rank, have %s and %s", counter, of)
		} else {
			counter = cmp.Or(counter, of)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if c.stepped = metricsGauge.Match(d.text); !c.stepped {
		c.warn("cumulative")
	}
	if counter != "eplb_gpu_physical_count_bucket" {
		return nil
	}
	for key, in := range c.cells { // buckets count the ranks up to their own
		for rank := len(in.Received) - 1; rank > 0; rank-- {
			in.Received[rank] = max(0, in.Received[rank]) - max(0, in.Received[rank-1])
			if in.Received[rank] < 0 {
				return fmt.Errorf("%v: rank %d: want a count from 0, have buckets that fall", key, rank)
			}
		}
	}
	return nil
}

// sample adds a count of a layer's expert or rank.
func (c *collector) sample(labeled []byte, text string) error {
	count, err := strconv.ParseFloat(text, 64)
	if err != nil || !(count >= 0 && count <= maxCount) {
		return fmt.Errorf("want a count between 0 and %d, have %q", int64(maxCount), text)
	}
	of := nothing()
	for _, l := range metricsLabel.FindAllSubmatch(labeled, -1) {
		if err := c.describe(&of, string(l[1]), value{cell: string(l[2])}); err != nil {
			return fmt.Errorf("%s: %w", l[1], err)
		}
	}
	of.numbers[isCount] = int64(count)
	if of.numbers[isLayer] < 0 || of.numbers[isExpert] < 0 && of.numbers[isRank] < 0 {
		return fmt.Errorf("want the labels of a layer and of an expert or a rank, have %s", labeled)
	}
	return c.cell(of)
}
