package counts

import (
	"bufio"
	"bytes"
	"cmp"
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
	Step router.OptInt `json:"step"` // undefined where the line does not say
	// where the lines differ in it: newer releases of SGLang sum decode passes up, and print each
	// of prefill; vLLM names the model
	Phase        Phase         `json:"phase,omitempty"`
	Passes       int           `json:"passes"` // forward passes that it is the mean of
	Balancedness router.Number `json:"balancedness"`
	MaxOverMean  router.Number `json:"max_over_mean"` // its inverse, or the other way round

	slots    int64 // of a pass, on all GPUs; 0 where the line does not say
	replaced bool  // vLLM has moved experts since the log began
}

// logLines say how even the load was, or count it. Groups are the step, the model, the passes that a line
// is of (SGLang sums decode up), balancedness (even) or max/mean (uneven), slots on all GPUs, and counts of ranks
// over all layers, or of layers and experts.
var logLines = []*regexp.Regexp{
	regexp.MustCompile(`\[Expert Balancedness\] .*?\bforward_pass_id=(?P<step>\d{1,18}) ` +
		`(?:.*?\baggregated_forward_passes=(?P<passes>\d{1,9}))?.*?\b(?:current_pass|average)_balancedness=` +
		`(?P<even>[0-9.eE+-]+)(?:.*\bgpu_physical_count_sum=(?P<slots>\d{1,18}))?`),
	regexp.MustCompile(`EPLB step: (?:(?P<step>\d{1,18})(?: for model (?P<model>.*?))?: )?avg_tokens=[0-9.]+, ` +
		`max_tokens=[0-9.]+, balancedness=(?P<even>[0-9.]+)(?P<vllm>)`),
	regexp.MustCompile(`\[Expert Hotness\] Current: mean=(?P<uneven>[0-9.]+), max=[0-9.]+`),
	regexp.MustCompile(`\brank_load step=(?P<step>\d{1,18}) rank_tokens=(?P<ranks>\[[\d, ]+\])`),
	regexp.MustCompile(`(?m)^Iter (?P<step>\d{1,18}), (?P<experts>\[\[[\d, \[\]]+\]\])`),
}

// isLog reports a text that has one of the lines.
func isLog(d *document) bool {
	return d.isText() && slices.ContainsFunc(logLines, func(l *regexp.Regexp) bool { return l.Match(d.text) })
}

// engineLog is what the lines of a log said.
type engineLog struct {
	*collector
	vllm bool // a line was vLLM's
	idle int
	last map[Phase]Reported // of vLLM's models
}

// readLog reads the lines in which SGLang, vLLM and vllm-ascend report their balance, without
// counts, and lines that print counts. Idle steps, which vLLM reports as balancedness 0, are left
// out and counted.
func readLog(d *document, c *collector) error {
	lines, log := bufio.NewScanner(bytes.NewReader(d.text)), engineLog{collector: c, last: map[Phase]Reported{}}
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		for _, pattern := range logLines {
			m := pattern.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			groups := map[string]string{}
			for i, name := range pattern.SubexpNames() {
				if m[i] != "" || name == "vllm" {
					groups[name] = m[i]
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
	return lines.Err()
}

// add adds one line.
func (l *engineLog) add(m map[string]string) error {
	step := router.OptInt(router.NoID)
	if n, err := strconv.ParseInt(m["step"], 10, 64); err == nil {
		step = router.OptInt(n)
	}
	if list := cmp.Or(m["ranks"], m["experts"]); list != "" {
		a, err := numbers([]byte(list))
		if err != nil {
			return err
		}
		if key := (stepKey{iteration: int64(step)}); m["ranks"] != "" {
			return l.list(l.at(key), router.LevelRank, a.Values, true)
		} else {
			return l.rows(key, a.Rows())
		}
	}
	line := Reported{Step: step, Phase: Phase(m["model"]), Passes: 1}
	text := cmp.Or(m["even"], m["uneven"])
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) {
		return fmt.Errorf("want a balancedness, have %q", text)
	}
	if line.Balancedness, line.MaxOverMean = router.Number(v), router.Number(1/v); m["even"] == "" {
		line.Balancedness, line.MaxOverMean = line.MaxOverMean, line.Balancedness
	}
	if _, ok := m["vllm"]; ok {
		l.vllm = true
		last, begun := l.last[line.Phase] // steps begin anew when experts move
		line.replaced = last.replaced || begun && line.Step < last.Step
		l.last[line.Phase] = line
	} else if m["even"] != "" {
		if line.Phase = Prefill; m["passes"] != "" {
			passes, _ := strconv.Atoi(m["passes"]) // nine digits at most
			line.Phase, line.Passes = Decode, max(1, passes)
		}
	}
	if line.slots, _ = strconv.ParseInt(m["slots"], 10, 64); v == 0 || m["slots"] != "" && line.slots == 0 {
		l.idle++
		return nil
	}
	l.Reported = append(l.Reported, line)
	return nil
}

// label tells lines of unlike passes apart, and takes a label away that tells nothing apart: prefill
// without decode, one model alone.
func (l *engineLog) label() {
	kinds := map[bool]map[Phase]bool{true: {}, false: {}} // prefill and decode, models
	isKind := func(p Phase) bool { return p == Prefill || p == Decode }
	moved := map[Phase]map[bool]bool{}
	for _, line := range l.Reported {
		if line.Phase != "" {
			kinds[isKind(line.Phase)][line.Phase] = true
		}
		if moved[line.Phase] == nil {
			moved[line.Phase] = map[bool]bool{}
		}
		moved[line.Phase][line.replaced] = true
	}
	sizes := l.sizes()
	for i, line := range l.Reported {
		var parts []string
		if len(kinds[isKind(line.Phase)]) > 1 {
			parts = append(parts, string(line.Phase))
		} else if of := sizes[line.slots]; of != "" {
			parts = append(parts, of)
		}
		if len(moved[line.Phase]) > 1 {
			parts = append(parts, map[bool]string{false: "steps before experts moved",
				true: "steps since experts moved"}[line.replaced])
		}
		l.Reported[i].Phase = Phase(strings.Join(parts, ", "))
	}
}

// sizes names passes by their slots, where some have more than twice as many as others: prefill beside
// decode. 752, 760 and 75200 → "passes of 752 to 760 slots" and "passes of 75200 slots".
func (l *engineLog) sizes() map[int64]string {
	of, group := map[int64]string{}, []int64{}
	name := func() {
		text := fmt.Sprintf("passes of %d slots", group[0])
		if last := group[len(group)-1]; last > group[0] {
			text = fmt.Sprintf("passes of %d to %d slots", group[0], last)
		}
		for _, n := range group {
			of[n] = text
		}
	}
	var all []int64
	for _, line := range l.Reported {
		if line.slots > 0 {
			all = append(all, line.slots)
		}
	}
	slices.Sort(all)
	for _, n := range all {
		if len(group) > 0 && n > 2*group[len(group)-1] {
			name()
			group = group[:0]
		}
		group = append(group, n)
	}
	if len(of) == 0 { // all alike
		return nil
	}
	name()
	return of
}
