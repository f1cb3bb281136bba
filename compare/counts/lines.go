package counts

import (
	"bytes"
	"fmt"
	"maps"
	"math"
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
	Source       string        `json:"source"`
	Step         router.OptInt `json:"step"`            // undefined where the line does not say
	Phase        Phase         `json:"phase,omitempty"` // what tells the line from others
	Passes       int           `json:"passes"`          // forward passes that it is the mean of
	Balancedness router.Number `json:"balancedness"`
	MaxOverMean  router.Number `json:"max_over_mean"` // its inverse, or the other way round

	Slots  float64   `json:"-"` // of a pass on all GPUs, of vLLM on the mean rank; 0 where the line does not say
	labels [4]string // what may tell it from others
}

// The labels of a line, the last of which says whether it is before or after a move of experts.
const ofModel, ofPhase, ofSize, ofMove = 0, 1, 2, 3

// patterns of lines that say how even the load was, or count it. Groups are the fields of an object: the step, the
// model, the passes that a line is of (SGLang sums decode up), balancedness (even) or max/mean (uneven), slots on all
// GPUs or their mean, and counts of ranks over all layers, of layers and experts, or in an object.
var patterns = []*regexp.Regexp{
	regexp.MustCompile(`\[Expert Balancedness\] .*?\bforward_pass_id=(?P<step>\d{1,18}) ` +
		`(?:.*?\baggregated_forward_passes=(?P<passes>\d{1,9}))?.*?\b(?:current_pass|average)_balancedness=` +
		`(?P<even>[0-9.eE+-]+)(?:.*\bgpu_physical_count_sum=(?P<size>\d{1,18}))?`),
	regexp.MustCompile(`EPLB step: (?:(?P<step>\d{1,18})(?: for model (?P<model>.*?))?: )?avg_tokens=(?P<mean>[0-9.]+), ` +
		`max_tokens=[0-9.]+, balancedness=(?P<even>[0-9.]+)`),
	regexp.MustCompile(`\[Expert Hotness\] Current: mean=(?P<uneven>[0-9.]+), max=[0-9.]+`),
	regexp.MustCompile(`rank_load step=(?P<step>\d{1,18}) rank_tokens=(?P<rankcounts>\[[\d, ]+\])`),
	regexp.MustCompile(`(?P<object>\{.*"logical_expert_counts":.*\})`),
	regexp.MustCompile(`^Iter (?P<step>\d{1,18}), (?P<expertcounts>\[\[[\d, \[\]]+\]\])`),
}

// readLines reads the lines in which SGLang, vLLM and vllm-ascend report their balance, without
// counts, and lines that print counts.
func (c *collector) readLines(text []byte) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		for _, pattern := range patterns {
			if m := pattern.FindSubmatch(line); m != nil {
				object, of := map[string]any{}, nothing()
				for i, name := range pattern.SubexpNames() {
					if name != "" && len(m[i]) > 0 {
						object[name] = celled(string(m[i]))
					}
				}
				c.Format = logFormat
				within(fmt.Sprint("line ", n), func() { c.walk(object, &of) })
				c.Format = logFormat // the counts of a line have another
				break
			}
		}
	}
	c.labelReported()
}

// report reads what a line says of balance. vLLM counts steps anew when experts move. Idle steps, which it reports as
// balancedness 0, are left out and counted.
func (c *collector) report(line any, of context) {
	even, uneven := word(part(line, "even")), word(part(line, "uneven"))
	v, err := strconv.ParseFloat(even+uneven, 64)
	if err != nil || !(v >= 0) || even != "" && v > 1.001 || uneven != "" && v > 0 && v < 0.999 { // rounded
		fail("want a balancedness from 0 to 1, or a max/mean from 1 on, have %q", even+uneven)
	}
	passes, single := number(part(line, "passes"))
	slots, unsized := strconv.ParseFloat(word(part(line, "size"))+word(part(line, "mean")), 64)
	step := max(router.NoID, router.OptInt(of.numbers[isStep]))
	r := Reported{Source: c.Source, Step: step, Passes: int(max(1, passes)), Balancedness: router.Number(v),
		MaxOverMean: router.Number(1 / v), Slots: slots}
	switch r.labels[ofModel] = string(of.model); {
	case uneven != "":
		r.Balancedness, r.MaxOverMean = r.MaxOverMean, r.Balancedness
	case part(line, "mean") != nil:
		r.labels[ofMove] = "steps before experts moved"
		if before, begun := c.last[of.model]; begun && step < before {
			r.labels[ofMove], step = "steps since experts moved", math.MaxInt64
		}
		c.last[of.model] = step
	case single != nil:
		r.labels[ofPhase] = string(Prefill)
	default:
		r.labels[ofPhase] = string(Decode)
	}
	if v == 0 || unsized == nil && slots == 0 {
		c.idle++
	} else {
		c.Reported = append(c.Reported, r)
	}
}

// sizes names passes by their slots, apart where some have more than twice as many as others: prefill beside
// decode. 752, 760 and 75200 → "passes of about 752 slots" and "passes of about 75200 slots".
func sizes(lines []Reported) map[float64]string {
	names := map[float64]string{}
	for _, r := range lines {
		names[r.Slots] = ""
	}
	name, before := "", 0.0 // of unknown size
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if n > 2*before {
			name = fmt.Sprintf("passes of about %.0f slots", n)
		}
		names[n], before = name, n
	}
	return names
}

// labelReported names the kind of each line by what tells lines of unlike passes apart: for want of a phase, the size
// of the pass. vLLM's lines are of many passes.
func (c *collector) labelReported() {
	sizes, phased := sizes(c.Reported), len(c.last) > 0
	for at := range ofMove + 1 {
		kinds := map[string]bool{"": true}
		for i := range c.Reported {
			r := &c.Reported[i]
			r.labels[ofSize] = sizes[r.Slots]
			kinds[r.labels[at]] = true
		}
		if len(kinds) < 3 || at == ofSize && phased {
			continue
		}
		phased = phased || at == ofPhase
		for i := range c.Reported {
			r := &c.Reported[i]
			r.Phase = Phase(strings.Trim(string(r.Phase)+", "+r.labels[at], ", "))
		}
	}
	if c.idle > 0 {
		c.warn("idle_steps", "steps", c.idle)
	}
	if len(c.last) > 0 {
		c.warn("vllm_axis")
	}
}
