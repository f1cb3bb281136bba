package place

import (
	"cmp"
	"fmt"
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
// and names what decided:
//
//   - not enough evidence: there is no such window, or one that repeats the counts that
//     were learned from, or so few tokens that random routing
//     is uneven beyond the threshold by chance, and the baseline is no more uneven,
//     or the predicted time rises in some windows or fits and falls in others;
//   - not now: it helps fewer than leastHelped of the windows, or lowers the load of the
//     busiest rank by less than the threshold, or the predicted time rises;
//   - worth a trial otherwise.
func verdict(p Placement, of []Workload, threshold float64) (Verdict, string) {
	if len(of) == 0 {
		return NoVerdict, "no counts are left to judge on; add those of another run with --judge"
	}
	if !p.Change.Defined() {
		return NoVerdict, "the judged windows hold no load; give another run with --judge"
	}
	of = slices.DeleteFunc(slices.Clone(of), func(w Workload) bool { return !w.Change.Defined() }) // without load
	repeats := 0
	for _, w := range of {
		if w.Repeats {
			repeats++
		}
	}
	if repeats > 0 {
		return NoVerdict, fmt.Sprintf("the learned counts come again in %d of %s; give another run with --judge",
			repeats, quantity.Count(len(of), "judged window"))
	}
	if p.Baseline <= p.NullP95 && router.Above(p.NullP95, 1, threshold) {
		return NoVerdict, fmt.Sprintf("too few tokens: max/mean %s is within chance (null p95 %s)",
			quantity.Ratio(p.Baseline), quantity.Ratio(p.NullP95))
	}
	load := quantity.Percent(-p.Change) + " less load"
	if p.Change > 0 {
		load = quantity.Percent(p.Change) + " more load"
	}
	load = fmt.Sprintf("the busiest rank gets %s on other counts (threshold %s)", load, quantity.Percent(threshold))
	switch {
	case float64(p.Helped) < leastHelped*float64(len(of)):
		return NotNow, outcome(p, len(of))
	case float64(p.Change) > -threshold:
		return NotNow, load
	case p.Time != nil && p.Time.Low >= 0:
		return NotNow, "the predicted time rises, though the load is more even"
	case p.Time != nil && p.Time.High >= 0 && p.Time.Error > max(p.Time.Estimate, -p.Time.Estimate):
		reason := fmt.Sprintf("the fitted cost errs by %s of the %s, more than it predicts", quantity.Percent(p.Time.Error),
			p.Time.Of)
		if p.Time.traced {
			reason += "; check that the counts are of the traced run (--counts)"
		}
		return NoVerdict, reason
	case p.Time != nil && p.Time.High >= 0:
		return NoVerdict, "the predicted time may rise or fall"
	}
	return Trial, load
}

// outcome is how the judged windows went.
func outcome(p Placement, windows int) string {
	of := quantity.Count(windows, "judged window")
	switch {
	case p.Helped == 0 && p.Hurt == 0:
		return "no change in " + of
	case p.Hurt == windows:
		return "worse in " + of
	}
	return fmt.Sprintf("better in %d of %s, worse in %d", p.Helped, of, p.Hurt)
}

// Answer is the verdict with its reason, in a line.
func (p Placement) Answer() string {
	return fmt.Sprintf("%s: %s on %s: %s", p.Verdict, p.Title(), quantity.Count(p.Ranks, "rank"), p.Reason)
}

// Title names the placement in words.
func (p Placement) Title() string {
	name := map[string]string{PlanRobust: "a robust plan", PlanMoves: "few moves"}[p.Name]
	return cmp.Or(name, "EPLB") + " with " + quantity.Count(p.Redundant, "redundant expert")
}

// Running names the baseline in words.
func (p Placement) Running() string {
	if p.Before == Contiguous || p.Before == "" {
		return "contiguous experts"
	}
	return "the running placement"
}

// String is the change in words.
func (t *TimeChange) String() string {
	of, gain := t.Of, "a gain of "
	if t.AtMost {
		of, gain = of+" at most", gain+"at most "
	}
	text := fmt.Sprintf("%s %s (%s to %s over %s, inferred)", of, quantity.Change(t.Estimate), quantity.Change(t.Low),
		quantity.Change(t.High),
		quantity.Count(t.Windows, "judged window"))
	if t.Of == "step time" {
		text += ", " + gain + quantity.Change(1/(1+t.Estimate)-1)
	}
	return text
}
