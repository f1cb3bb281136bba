package counts

import (
	"bufio"
	"bytes"
	"cmp"
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
	// where the lines differ in it: newer releases of SGLang sum decode passes up, and print each
	// of prefill; vLLM names the model
	Phase        Phase         `json:"phase,omitempty"`
	Passes       int           `json:"passes"` // forward passes that it is the mean of
	Balancedness router.Number `json:"balancedness"`
	MaxOverMean  router.Number `json:"max_over_mean"` // its inverse, or the other way round
}

var (
	logLine = regexp.MustCompile(`\[Expert Balancedness\] |EPLB step: (\d+|avg_tokens=)|\[Expert Hotness\] |` +
		`\brank_tokens=\[\d|(?m)^Iter \d+, \[\[\d`)
	logSGLang = regexp.MustCompile(
		`\[Expert Balancedness\] .*?\bforward_pass_id=(\d{1,18}) .*?\b(?:current_pass|average)_balancedness=([0-9.eE+-]+)`)
	logDecode = regexp.MustCompile(`\[Expert Balancedness\] .*\baggregated_forward_passes=(\d{1,9})`)
	logIdle   = regexp.MustCompile(`gpu_physical_count_sum=0(\D|$)`) // of which SGLang reports a balancedness of 1
	logVLLM   = regexp.MustCompile(
		`EPLB step: (?:(\d{1,18})(?: for model (.*?))?: )?avg_tokens=[0-9.]+, max_tokens=[0-9.]+, ` +
			`balancedness=([0-9.]+)(?:.*?steps until the next rearrangement: (-?\d{1,18}))?`)
	logAscend = regexp.MustCompile(`\[Expert Hotness\] Current: mean=([0-9.]+), max=([0-9.]+)`)
	// lines with counts: of ranks, over all layers; of layers and experts
	logRanks  = regexp.MustCompile(`\brank_load step=(\d{1,18}) rank_tokens=(\[[\d, ]+\])`)
	logMatrix = regexp.MustCompile(`^Iter (\d{1,18}), (\[\[[\d, \[\]]+\]\])`)
)

// readLog reads the lines in which SGLang, vLLM and vllm-ascend report their balance, without
// counts, and lines that print counts. Idle steps, which vLLM reports as balancedness 0, are left
// out and counted.
func readLog(d *document, r *Record) error {
	lines, log := bufio.NewScanner(bytes.NewReader(d.text)),
		engineLog{Record: r, labels: map[Phase]bool{}, models: map[string]*countdown{}}
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		if err := log.add(lines.Text()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	delete(log.labels, "")
	both := log.labels[Prefill] && log.labels[Decode]
	delete(log.labels, Prefill)
	delete(log.labels, Decode)
	for i, line := range r.Reported { // a label that all lines of an engine have tells nothing apart
		if kind := line.Phase == Prefill || line.Phase == Decode; kind && !both || !kind && len(log.labels) < 2 {
			r.Reported[i].Phase = ""
		}
	}
	log.warnStalled()
	if log.idle > 0 {
		r.warn("idle_steps", "steps", log.idle)
	}
	if log.vllm {
		r.warn("vllm_axis")
	}
	return lines.Err()
}

// engineLog is what the lines of a log said.
type engineLog struct {
	*Record
	vllm   bool // a line was vLLM's
	idle   int
	labels map[Phase]bool
	models map[string]*countdown // of vLLM
}

// countdown is vLLM's steps until the next rearrangement.
type countdown struct {
	step   router.OptInt // of the last line
	left   int64
	frozen int // lines since the step last changed
}

func (l *engineLog) count(model string, step router.OptInt, left string) {
	n, err := strconv.ParseInt(left, 10, 64)
	if err != nil {
		return
	}
	last := l.models[model]
	if last == nil {
		last = &countdown{step: router.NoID}
		l.models[model] = last
	}
	if last.frozen++; step != last.step {
		last.frozen = 0
	}
	last.step, last.left = step, n
}

// warnStalled says which models are no longer rebalanced. The counter returns to 0 with
// each rearrangement, so at the end of a log a countdown below 0 is overdue. Step 0
// may come again and again where the balance is logged once a rearrangement; any
// other step that comes three times in a row is stuck.
func (l *engineLog) warnStalled() {
	for _, model := range slices.Sorted(maps.Keys(l.models)) {
		switch last := l.models[model]; {
		case last.left < 0:
			l.warn("eplb_not_running", "why", "overdue", "model", model, "left", last.left)
		case last.step > 0 && last.frozen >= 2:
			l.warn("eplb_not_running", "why", "stuck", "model", model, "lines", last.frozen+1, "step", last.step)
		}
	}
}

// add reads one line. A balancedness may be the inverse of what the line says.
func (l *engineLog) add(text string) error {
	line, value, inverse := Reported{Step: router.NoID, Passes: 1}, "", false
	if m := logSGLang.FindStringSubmatch(text); m != nil {
		line.Step, line.Phase, value = stepNumber(m[1]), Prefill, m[2]
		if m := logDecode.FindStringSubmatch(text); m != nil {
			passes, _ := strconv.Atoi(m[1]) // nine digits at most
			line.Phase, line.Passes = Decode, max(1, passes)
		}
		if logIdle.MatchString(text) {
			value = "0"
		}
	} else if m := logVLLM.FindStringSubmatch(text); m != nil {
		line.Step, line.Phase, value, l.vllm = stepNumber(m[1]), Phase(m[2]), m[3], true
		l.count(m[2], line.Step, m[4])
	} else if m := logAscend.FindStringSubmatch(text); m != nil {
		value, inverse = m[1], true
	} else {
		return l.addCounts(text)
	}
	v, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil || !(v >= 0):
		return fmt.Errorf("want a balancedness, have %q", value)
	case v == 0:
		l.idle++
		return nil
	}
	line.Balancedness, line.MaxOverMean = router.Number(v), router.Number(1/v)
	if inverse {
		line.Balancedness, line.MaxOverMean = line.MaxOverMean, line.Balancedness
	}
	l.Reported, l.labels[line.Phase] = append(l.Reported, line), true
	return nil
}

// addCounts reads a line that prints counts; others are passed over.
func (l *engineLog) addCounts(text string) error {
	for _, line := range []*regexp.Regexp{logRanks, logMatrix} {
		m := line.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		a, err := numbers([]byte(m[2]))
		if err != nil {
			return err
		}
		key := stepKey{iteration: int64(stepNumber(m[1]))}
		if line == logMatrix {
			return l.addLayers(key, a.Rows())
		}
		s := key.step()
		s.Received, l.Ranks = a.Values, cmp.Or(l.Ranks, len(a.Values))
		l.held = append(l.held, s)
	}
	return nil
}

// stepNumber is the number of at most 18 digits, undefined for none.
func stepNumber(digits string) router.OptInt {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return router.NoID
	}
	return router.OptInt(n)
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
