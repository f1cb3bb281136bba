package place

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/trace"
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

// leastFall is the least fall of the step time that is worth a trial: below a gain of 1 % the arms of a benchmark count
// as the same.
const leastFall = 0.01

// evenLoad is the largest max/mean of the judged load that counts as even: recorded counts of balanced routing have
// 1.000.
const evenLoad = 1.005

// mostChance is the most imbalance that random routing may exceed once in twenty times: where it exceeds more, as with
// few tokens, a baseline that is no more uneven may be even.
const mostChance = 0.1

// verdict judges a placement by what it does to the windows it was not learned from,
// and names what decided:
//
//   - not enough evidence: there is no such window, or one that repeats the counts that
//     were learned from, or none but of the learned kinds, or so few tokens that random routing
//     is uneven beyond 10 % by chance, and the baseline is no more uneven,
//     or the load is even as it is, as balanced routing makes it,
//     or the predicted time rises in some windows and falls in others,
//     or load explains too little of the trace's time, or contradicts it;
//   - not now: the trace's expert time is even under uneven load, so that no placement lowers it; or it does not help
//     every window, or may lower the predicted time, in one of them, by less than leastFall, or where none is predicted
//     the load of the busiest rank by less than the threshold;
//   - worth a trial otherwise.
func verdict(p Placement, of []Workload, threshold float64, noTime router.Warning) (Verdict, router.Warning) {
	t := p.Predicted()
	loaded := slices.DeleteFunc(slices.Clone(of), func(w Workload) bool { return !w.Change.Defined() })
	again := slices.DeleteFunc(slices.Clone(loaded), func(w Workload) bool { return !w.Repeats })
	fall := because("load", "change", p.Change, "threshold", threshold)
	if t != nil {
		fall = because("time", "least", -t.High, "threshold", leastFall)
	}
	switch {
	case t == nil && noTime.Args["why"] == Flat: // whatever other counts say
		return NotNow, router.Warning{Code: "placement", Args: noTime.Args}
	case len(of) == 0:
		return NoVerdict, because("no_windows")
	case !p.Change.Defined():
		return NoVerdict, because("no_load")
	case len(again) > 0:
		return NoVerdict, because("repeats", "repeats", len(again), "windows", len(loaded))
	case !slices.ContainsFunc(loaded, func(w Workload) bool { return !w.alike }):
		return NoVerdict, because("alike", "windows", len(loaded))
	case p.Baseline <= p.NullP95 && router.Above(p.NullP95, 1, mostChance):
		return NoVerdict, because("chance", "load", p.Baseline, "null", p.NullP95)
	case p.Baseline <= evenLoad:
		return NoVerdict, because("even", "load", p.Baseline)
	case p.Helped < len(loaded):
		return NotNow, outcome(p, len(loaded))
	case t != nil && t.Low >= 0:
		return NotNow, because("time_rises")
	case t != nil && t.High >= 0:
		return NoVerdict, because("time_open")
	case t != nil && t.High > -leastFall || t == nil && float64(p.Change) > -threshold:
		return NotNow, fall
	case noTime.Args["doubt"] == trace.CountsContradict:
		return NoVerdict, because(Contradicts, "layer", noTime.Args["layer"])
	case noTime.Args["why"] == Unlike:
		return NoVerdict, because(Unlike, "explained", noTime.Args["explained"])
	}
	return Trial, fall
}

// Predicted is the change of time that a trace predicts, or else a campaign, over all its points; nil for neither.
func (p Placement) Predicted() *TimeChange {
	if p.Time != nil {
		return p.Time
	}
	var points []*TimeChange
	for _, g := range p.Gains {
		if g.Refused == nil {
			points = append(points, &TimeChange{Estimate: less(g.Estimate), Low: less(g.High), High: less(g.Low)})
		}
	}
	return overall(points)
}

// because is what decided.
func because(why string, args ...any) router.Warning {
	return router.Warn("placement", "", append(args, "why", why)...)
}

// outcome is how the judged windows went.
func outcome(p Placement, windows int) router.Warning {
	switch {
	case p.Hurt == windows:
		return because("worse", "windows", windows)
	case p.Hurt == 0:
		return because("mixed", "better", p.Helped, "windows", windows)
	}
	return because("mixed", "better", p.Helped, "windows", windows, "worse", p.Hurt)
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
