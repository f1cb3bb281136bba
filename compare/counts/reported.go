package counts

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Reported is one line in which an engine states its own balance over ranks.
// Engines aggregate differently: SGLang prints the mean over layers of
// mean/max, vLLM the ratio of the layers' summed means to their summed maxima,
// and several of its releases reduced over the wrong axis; vllm-ascend prints
// the mean over layers of max/mean.
type Reported struct {
	Step         router.Whole  `json:"step"` // undefined where the line does not say
	Balancedness router.Number `json:"balancedness"`
	MaxOverMean  router.Number `json:"max_over_mean"` // its inverse, or the other way round
}

var (
	logLine   = regexp.MustCompile(`\[Expert Balancedness\] |EPLB step: \d+|\[Expert Hotness\] `)
	logSGLang = regexp.MustCompile(`\[Expert Balancedness\] forward_pass_id=(\d{1,18}) current_pass_balancedness=([0-9.eE+-]+)`)
	logVLLM   = regexp.MustCompile(`EPLB step: (\d{1,18}).*?avg_tokens=([0-9.]+), max_tokens=([0-9.]+), balancedness=([0-9.]+)`)
	logAscend = regexp.MustCompile(`\[Expert Hotness\] Current: mean=([0-9.]+), max=([0-9.]+)`)
)

// readLog reads the lines in which SGLang, vLLM and vllm-ascend report their
// balance. They hold no counts. Idle steps, which vLLM reports as balancedness
// 0, are left out and counted.
func readLog(s *source, r *Record) error {
	lines, idle, vllm := bufio.NewScanner(bytes.NewReader(s.content)), 0, false
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		step, inverse := int64(router.None), false
		var value string
		if m := logSGLang.FindStringSubmatch(text); m != nil {
			step, _ = strconv.ParseInt(m[1], 10, 64)
			value = m[2]
		} else if m := logVLLM.FindStringSubmatch(text); m != nil {
			step, _ = strconv.ParseInt(m[1], 10, 64)
			value, vllm = m[4], true
		} else if m := logAscend.FindStringSubmatch(text); m != nil {
			value, inverse = m[1], true
		} else {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 0) {
			return fmt.Errorf("line %d: %q is no balancedness", n, value)
		}
		if v == 0 {
			idle++
			continue
		}
		line := Reported{Step: router.Whole(step), Balancedness: router.Number(v), MaxOverMean: router.Number(1 / v)}
		if inverse {
			line.Balancedness, line.MaxOverMean = line.MaxOverMean, line.Balancedness
		}
		r.Reported = append(r.Reported, line)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if idle > 0 {
		r.warn("idle_steps", "%s excluded", quantity.Count(idle, "idle step"))
	}
	if vllm {
		r.warn("vllm_axis", "several vLLM releases computed this balancedness over layers instead of ranks (fixed with pull request 51813): check the version")
	}
	return nil
}
