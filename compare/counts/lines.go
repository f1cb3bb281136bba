package counts

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
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

	labels [4]string // what may tell it from others: model, prefill or decode, size, and whether experts had moved
	slots  int64     // of a pass on all GPUs, 0 where the line does not say
	idle   bool      // no slots were counted
}

// lines say how even the load was, or count it. Groups are the step, the model, the passes that a line
// is of (SGLang sums decode up), balancedness (even) or max/mean (uneven), slots on all GPUs, and counts of ranks
// over all layers, of layers and experts, or in an object.
var lines = []*regexp.Regexp{
	regexp.MustCompile(`\[Expert Balancedness\] .*?\bforward_pass_id=(?P<step>\d{1,18}) ` +
		`(?:.*?\baggregated_forward_passes=(?P<passes>\d{1,9}))?.*?\b(?:current_pass|average)_balancedness=` +
		`(?P<even>[0-9.eE+-]+)(?:.*\bgpu_physical_count_sum=(?P<size>\d{1,18}))?`),
	regexp.MustCompile(`EPLB step: (?:(?P<step>\d{1,18})(?: for model (?P<model>.*?))?: )?avg_tokens=[0-9.]+, ` +
		`max_tokens=[0-9.]+, balancedness=(?P<even>[0-9.]+)(?P<vllm>)`),
	regexp.MustCompile(`\[Expert Hotness\] Current: mean=(?P<uneven>[0-9.]+), max=[0-9.]+`),
	regexp.MustCompile(`rank_load step=(?P<step>\d{1,18}) rank_tokens=(?P<rankcounts>\[[\d, ]+\])`),
	regexp.MustCompile(`(?P<object>\{.*"logical_expert_counts":.*\})`),
	regexp.MustCompile(`^Iter (?P<step>\d{1,18}), (?P<expertcounts>\[\[[\d, \[\]]+\]\])`),
}

// readLines reads the lines in which SGLang, vLLM and vllm-ascend report their balance, without
// counts, and lines that print counts, whose groups are the fields of an object. Idle steps, which vLLM reports as
// balancedness 0, are left out and counted.
func (c *collector) readLines(d *document) {
	idle, last := 0, map[string]int64{}
	for line := range bytes.Lines(d.text) {
		c.unit, c.number = "line", c.number+1
		for _, pattern := range lines {
			m := pattern.FindSubmatch(line)
			if m == nil {
				continue
			}
			groups, object, of := map[string]string{}, &tensor.Parts{}, nothing()
			for i, name := range pattern.SubexpNames() {
				if groups[name] = string(m[i]); groups[name] != "" && name != "" {
					*object = append(*object, tensor.Part{Name: name, Value: celled(groups[name])})
				}
			}
			if groups["even"]+groups["uneven"] == "" {
				c.walk(object, &of)
			} else if told := report(groups, last); told.idle {
				idle++
			} else {
				c.Reported = append(c.Reported, told)
			}
			c.Format = "engine log lines"
			break
		}
	}
	if c.labelReported(); idle > 0 {
		c.warn("idle_steps", "steps", idle)
	}
	if len(last) > 0 {
		c.warn("vllm_axis")
	}
}

// report is what the groups of a line say. last are the steps of vLLM's models, the largest number once experts moved:
// steps begin anew when they do.
func report(m map[string]string, last map[string]int64) Reported {
	v, err := strconv.ParseFloat(m["even"]+m["uneven"], 64)
	if err != nil || !(v >= 0) || m["even"] != "" && v > 1.001 || m["uneven"] != "" && v > 0 && v < 0.999 { // rounded
		fail("want a balancedness from 0 to 1, or a max/mean from 1 on, have %q", m["even"]+m["uneven"])
	}
	step, numbered := number(m["step"])
	slots, sized := number(m["size"])
	passes, several := number(m["passes"])
	r := Reported{Step: router.NoID, Passes: int(max(1, passes)), Balancedness: router.Number(v),
		MaxOverMean: router.Number(1 / v), labels: [4]string{m["model"]}, slots: slots, idle: v == 0 || sized && slots == 0}
	if numbered {
		r.Step = router.OptInt(step)
	}
	if _, vllm := m["vllm"]; vllm {
		r.labels[3] = "steps before experts moved"
		if before, begun := last[m["model"]]; begun && step < before {
			r.labels[3], step = "steps since experts moved", math.MaxInt64
		}
		last[m["model"]] = step
	} else if m["even"] == "" {
		r.Balancedness, r.MaxOverMean = r.MaxOverMean, r.Balancedness
	} else if r.labels[1] = string(Prefill); several {
		r.labels[1] = string(Decode)
	}
	return r
}

// labelReported names the kind of each line by what tells lines of unlike passes apart: for want of a phase, the size
// of the pass.
func (c *collector) labelReported() {
	sizes, kinds := sizes(slices.Clone(c.Reported)), [4]map[string]bool{{}, {}, {}, {}}
	for i := range c.Reported {
		r := &c.Reported[i]
		r.Source, r.labels[2] = c.Source, sizes[r.slots]
		for at, label := range r.labels {
			kinds[at][label] = true
		}
	}
	for i := range c.Reported {
		r := &c.Reported[i]
		for at, label := range r.labels {
			delete(kinds[at], "")
			if len(kinds[at]) > 1 && (at != 2 || len(kinds[1]) < 2) {
				r.Phase = Phase(strings.Trim(string(r.Phase)+", "+label, ", "))
			}
		}
	}
}

// sizes names passes by their slots, apart where some have more than twice as many as others: prefill beside decode.
// 752, 760 and 75200 → "passes of 752 to 760 slots" and "passes of 75200 slots".
func sizes(list []Reported) map[int64]string {
	var groups [][]int64
	slices.SortFunc(list, func(a, b Reported) int { return cmp.Compare(a.slots, b.slots) })
	for i, r := range list {
		if i == 0 || r.slots > 2*list[i-1].slots {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], r.slots)
	}
	names := map[int64]string{}
	for _, slots := range groups {
		text := fmt.Sprintf("passes of %d slots", slots[0])
		if last := slots[len(slots)-1]; last > slots[0] {
			text = fmt.Sprintf("passes of %d to %d slots", slots[0], last)
		}
		for _, n := range slots {
			names[n] = text
		}
	}
	names[0] = "" // the line does not say
	return names
}
