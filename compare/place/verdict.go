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
//     is uneven beyond the threshold by chance, and contiguous experts are no more uneven,
//     or the predicted time rises in some windows or fits and falls in others;
//   - not now: it helps fewer than leastHelped of the windows, or lowers the load of the
//     busiest rank by less than the threshold, or the predicted time rises;
//   - worth a trial otherwise.
func verdict(p Placement, of []Workload, threshold float64) (Verdict, string) {
	if len(of) == 0 {
		return NoVerdict, "these counts are one window, and learning and judging on the same counts proves nothing; add counts of another run with --judge"
	}
	if i := slices.IndexFunc(of, func(w Workload) bool { return w.Repeats }); i >= 0 {
		return NoVerdict, fmt.Sprintf("the counts of %s repeat those that were learned from, as where every step has the same tokens; judge on another run with --judge", filepath.Base(of[i].Window))
	}
	if p.Contiguous <= p.NullP95 && router.Above(p.NullP95, 1, threshold) {
		return NoVerdict, fmt.Sprintf("too few tokens: contiguous max/mean %s is within chance (95th percentile of random routing %s)", quantity.Ratio(p.Contiguous), quantity.Ratio(p.NullP95))
	}
	change := quantity.Percent(-p.Change) + " less load"
	if p.Change > 0 {
		change = quantity.Percent(p.Change) + " more load"
	}
	evidence := fmt.Sprintf("on counts it was not learned from, the busiest rank gets %s than with contiguous experts (max/mean %s, contiguous %s; threshold %s)",
		change, quantity.Ratio(p.Judged), quantity.Ratio(p.Contiguous), quantity.Percent(threshold))
	if p.Time != nil {
		evidence += "; predicted " + p.Time.String()
	}
	if p.PaidBackAfter.Defined() {
		evidence += fmt.Sprintf("; moving the weights is paid back after %s steps", quantity.Digits3(p.PaidBackAfter))
	}
	if p.BreakEvenTokens.Defined() {
		evidence += fmt.Sprintf("; below %s tokens in a step it costs time", quantity.Plain(p.BreakEvenTokens))
	}
	switch {
	case float64(p.Helped) < leastHelped*float64(len(of)):
		return NotNow, fmt.Sprintf("it helps %d and hurts %d of %s; %s", p.Helped, p.Hurt, quantity.Count(len(of), "judged window"), evidence)
	case float64(p.Change) > -threshold, p.Time != nil && p.Time.Low >= 0:
		return NotNow, evidence
	case p.Time != nil && p.Time.High >= 0:
		return NoVerdict, "the predicted time may rise or fall; " + evidence
	}
	return Trial, evidence
}

// String is the change in words.
func (t *TimeChange) String() string {
	return fmt.Sprintf("%s %s (%s to %s over %s, inferred)", t.Of, quantity.Change(t.Estimate), quantity.Change(t.Low), quantity.Change(t.High),
		quantity.Count(t.Windows, "judged window"))
}
