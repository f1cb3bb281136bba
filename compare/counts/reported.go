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

// Reported is one line in which an engine states its own balance over ranks.
// Engines aggregate differently: SGLang prints the mean over layers of
// mean/max, vLLM the ratio of the layers' summed means to their summed maxima,
// and several of its releases reduced over the wrong axis; vllm-ascend prints
// the mean over layers of max/mean.
type Reported struct {
	Step router.OptInt `json:"step"` // undefined where the line does not say
	// where the log tells: newer releases of SGLang sum decode passes up, and print each of prefill
	Phase        Phase         `json:"phase,omitempty"`
	Passes       int           `json:"passes"` // forward passes that it is the mean of
	Balancedness router.Number `json:"balancedness"`
	MaxOverMean  router.Number `json:"max_over_mean"` // its inverse, or the other way round
}

var (
	logLine   = regexp.MustCompile(`\[Expert Balancedness\] |EPLB step: (\d+|avg_tokens=)|\[Expert Hotness\] `)
	logSGLang = regexp.MustCompile(
		`\[Expert Balancedness\] .*?\bforward_pass_id=(\d{1,18}) .*?\b(?:current_pass|average)_balancedness=([0-9.eE+-]+)`)
	logDecode = regexp.MustCompile(`\[Expert Balancedness\] .*\baggregated_forward_passes=(\d{1,9})`)
	logIdle   = regexp.MustCompile(`gpu_physical_count_sum=0(\D|$)`) // of which SGLang reports a balancedness of 1
	logVLLM   = regexp.MustCompile(
		`EPLB step: (?:(\d{1,18}) for model (.*?): )?avg_tokens=[0-9.]+, max_tokens=[0-9.]+, ` +
			`balancedness=([0-9.]+)(?:.*?steps until the next rearrangement: (-?\d{1,18}))?`)
	logAscend = regexp.MustCompile(`\[Expert Hotness\] Current: mean=([0-9.]+), max=([0-9.]+)`)
)

// readLog reads the lines in which SGLang, vLLM and vllm-ascend report their
// balance. They hold no counts. Idle steps, which vLLM reports as balancedness
// 0, are left out and counted.
func readLog(s *source, r *Record) error {
	lines, idle, log := bufio.NewScanner(bytes.NewReader(s.content)), 0, engineLog{timers: countdowns{}}
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		line, value, inverse := log.read(lines.Text())
		if value == "" {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 0) {
			return fmt.Errorf("line %d: want a balancedness, have %q", n, value)
		}
		if v == 0 {
			idle++
			continue
		}
		line.Balancedness, line.MaxOverMean = router.Number(v), router.Number(1/v)
		if inverse {
			line.Balancedness, line.MaxOverMean = line.MaxOverMean, line.Balancedness
		}
		r.Reported = append(r.Reported, line)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for i := range r.Reported {
		if !log.phases {
			r.Reported[i].Phase = ""
		}
	}
	log.timers.warn(r)
	if idle > 0 {
		r.warn("idle_steps", "steps", idle)
	}
	if log.vllm {
		r.warn("vllm_axis")
	}
	return nil
}

// engineLog is what the lines of a log said beside the balance.
type engineLog struct {
	vllm, phases bool // a line was vLLM's; of SGLang's decode
	timers       countdowns
}

// read finds the balancedness in a line, or with inverse what it is the inverse of; a line
// without has no value.
func (l *engineLog) read(text string) (line Reported, value string, inverse bool) {
	line = Reported{Step: router.NoID, Passes: 1}
	if m := logSGLang.FindStringSubmatch(text); m != nil {
		line.Step, line.Phase, value = stepNumber(m[1]), Prefill, m[2]
		if m := logDecode.FindStringSubmatch(text); m != nil {
			line.Phase, l.phases = Decode, true
			passes, _ := strconv.Atoi(m[1]) // nine digits at most
			line.Passes = max(1, passes)
		}
		if logIdle.MatchString(text) {
			value = "0"
		}
	} else if m := logVLLM.FindStringSubmatch(text); m != nil {
		line.Step, value, l.vllm = stepNumber(m[1]), m[3], true
		l.timers.add(m[2], line.Step, m[4])
	} else if m := logAscend.FindStringSubmatch(text); m != nil {
		value, inverse = m[1], true
	}
	return line, value, inverse
}

// stepNumber is that of a line of at most 18 digits, undefined for none.
func stepNumber(digits string) router.OptInt {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return router.NoID
	}
	return router.OptInt(n)
}

// countdowns are vLLM's steps until the next rearrangement, by model.
type countdowns map[string]*countdown

type countdown struct {
	step   router.OptInt // of the last line
	left   int64
	frozen int // lines since the step last changed
}

func (c countdowns) add(model string, step router.OptInt, left string) {
	n, err := strconv.ParseInt(left, 10, 64)
	if err != nil {
		return
	}
	last := c[model]
	if last == nil {
		last = &countdown{step: router.NoID}
		c[model] = last
	}
	if step == last.step {
		last.frozen++
	} else {
		last.frozen = 0
	}
	last.step, last.left = step, n
}

// warn says which models are no longer rebalanced. The counter returns to 0 with
// each rearrangement, so at the end of a log a countdown below 0 is overdue. Step 0
// may come again and again where the balance is logged once a rearrangement; any
// other step that comes three times in a row is stuck.
func (c countdowns) warn(r *Record) {
	for _, model := range slices.Sorted(maps.Keys(c)) {
		switch last := c[model]; {
		case last.left < 0:
			r.warn("eplb_not_running", "why", "overdue", "model", model, "left", last.left)
		case last.step > 0 && last.frozen >= 2:
			r.warn("eplb_not_running", "why", "stuck", "model", model, "lines", last.frozen+1, "step", last.step)
		}
	}
}

// balance is SGLang's Prometheus summary of balancedness, by the mode of the forward pass.
type balance map[string]*struct{ sum, count float64 }

// add adds a sample of the summary: its sum or its count; other parts are passed over.
func (b balance) add(part, labeled, value string) error {
	mode := labelsOf(labeled)["forward_mode"]
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v >= 0 && v <= maxCount) {
		return fmt.Errorf("want a number between 0 and %d, have %q", int64(maxCount), value)
	}
	if b[mode] == nil {
		b[mode] = &struct{ sum, count float64 }{}
	}
	switch part {
	case "sum":
		b[mode].sum += v
	case "count":
		b[mode].count += v
	}
	return nil
}

// since is what was added after an earlier scrape.
func (b balance) since(earlier balance) (balance, error) {
	out := balance{}
	for _, mode := range slices.Sorted(maps.Keys(b)) {
		added, now := *b[mode], b[mode]
		if was := earlier[mode]; was != nil {
			added.sum, added.count = now.sum-was.sum, now.count-was.count
		}
		if added.count < 0 || added.sum < 0 {
			return nil, fmt.Errorf("the balancedness of %s fell: the engine restarted, or the records are in the wrong order",
				mode)
		}
		out[mode] = &added
	}
	return out, nil
}

// reported is the mean of each mode that has any.
func (b balance) reported() (list []Reported) {
	for _, mode := range slices.Sorted(maps.Keys(b)) {
		if of := b[mode]; of.count > 0 && of.sum > 0 && mode != "idle" {
			mean := router.Number(of.sum / of.count)
			list = append(list, Reported{Step: router.NoID, Phase: phases[mode], Passes: int(of.count),
				Balancedness: mean, MaxOverMean: 1 / mean})
		}
	}
	return list
}
