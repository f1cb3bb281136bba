package place

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// Verdict is whether to try a placement on an engine.
type Verdict string

// The verdicts.
const (
	Trial     Verdict = "worth a trial"
	NotNow    Verdict = "not now"
	NoVerdict Verdict = "not enough evidence"
)

// leastHelped is the share of the judged windows that a placement worth a trial helps,
// as vllm-ascend's screening asks (its issue 16795).
const leastHelped = 0.8

// verdict judges a placement by what it does to the windows it was not learned from,
// and names the numbers that decided:
//
//   - not enough evidence: there is no such window, or one that repeats the counts that
//     were learned from, or so few tokens that random routing
//     is uneven beyond the threshold by chance, and contiguous experts are no more uneven;
//   - not now: it helps fewer than leastHelped of the windows, or lowers the load of the
//     busiest rank by less than the threshold;
//   - worth a trial otherwise.
func verdict(p Placement, of []Workload, nullP95 router.Number, threshold float64) (Verdict, string) {
	if len(of) == 0 {
		return NoVerdict, "these counts are one window, and learning and judging on the same counts proves nothing; add counts of another run with --judge"
	}
	if i := slices.IndexFunc(of, func(w Workload) bool { return w.Repeats }); i >= 0 {
		return NoVerdict, fmt.Sprintf("the counts of %s repeat those that were learned from, as where every step has the same tokens; judge on another run with --judge", filepath.Base(of[i].Window))
	}
	if p.Contiguous <= nullP95 && router.Above(nullP95, 1, threshold) {
		return NoVerdict, fmt.Sprintf("too few tokens: contiguous max/mean %s is within chance (95th percentile of random routing %s)", quantity.Ratio(p.Contiguous), quantity.Ratio(nullP95))
	}
	helped := 0
	for _, w := range of {
		if w.Change < 0 {
			helped++
		}
	}
	change := quantity.Percent(-p.Change) + " less load"
	if p.Change > 0 {
		change = quantity.Percent(p.Change) + " more load"
	}
	evidence := fmt.Sprintf("on counts it was not learned from, the busiest rank gets %s than with contiguous experts (max/mean %s, contiguous %s; threshold %s)",
		change, quantity.Ratio(p.Judged), quantity.Ratio(p.Contiguous), quantity.Percent(threshold))
	switch {
	case float64(helped) < leastHelped*float64(len(of)):
		return NotNow, fmt.Sprintf("it helps %d of %s; %s", helped, quantity.Count(len(of), "judged window"), evidence)
	case float64(p.Change) > -threshold:
		return NotNow, evidence
	}
	return Trial, evidence
}
