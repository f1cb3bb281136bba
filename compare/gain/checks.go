package gain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// CheckStatus is the outcome of a check.
type CheckStatus string

// The outcomes. Only Fail makes a campaign invalid; Unknown says that the check's
// input was not recorded.
const (
	Pass    CheckStatus = "pass"
	Warn    CheckStatus = "warn"
	Fail    CheckStatus = "fail"
	Unknown CheckStatus = "unknown"
)

// Check is one question about whether the arms may be compared, and its answer.
type Check struct {
	Name   string      `json:"name"` // stable, for programs: "equal_work", "outliers", …
	Status CheckStatus `json:"status"`
	Text   string      `json:"text"` // one line: what was compared and found; empty until Args are worded
	Args   router.Args `json:"args,omitempty"`
	// Subject is the comparison that it is about, such as "tokens 64"; empty for all.
	Subject string `json:"subject,omitempty"`
	// Subjects held it in the first results of version 5.
	Subjects []string `json:"subjects,omitempty"`
}

// NewCheck is the answer of a check by its case and what its words need.
func NewCheck(name string, status CheckStatus, why string, args ...any) Check {
	return Check{Name: name, Status: status, Args: router.Warn("", "", append(args, "why", why)...).Args}
}

// Difference is something recorded in which the arms differ.
type Difference struct {
	Kind    string `json:"kind"` // "environment" or "argument"
	Name    string `json:"name"`
	Normal  string `json:"normal"`
	Perfect string `json:"perfect"`
	// Declared differences are the treatment itself, or accepted by name.
	Declared bool `json:"declared"`
	Arm      Arm  `json:"arm,omitempty"` // the further arm whose value Perfect holds
}

// The names of the checks; stable, for programs. Outliers, segments and later ones are there only where they warn.
const (
	CheckProof      = "treatment_proved"
	CheckDifference = "only_one_difference"
	CheckWork       = "equal_work"
	CheckOutliers   = "outliers"
	CheckSegments   = "outlying_segments"
	CheckCopies     = "copied_values"
	CheckExplained  = "explained_gain"
	CheckPlausible  = "implausible_gain"
	CheckLaunches   = "separate_launches" // the caller's
	CheckRate       = "fixed_rate"        // the caller's
	CheckAttempts   = "first_attempts"    // the caller's
	CheckAttention  = "uneven_attention"  // the caller's
)

// leads reports a warning that a reader has to know of before the gain.
func (c Check) leads() bool {
	return c.undoes() || c.Status == Warn &&
		slices.Contains([]string{CheckExplained, CheckOutliers, CheckLaunches, CheckRate, CheckAttention}, c.Name)
}

// undoes reports a check whose warning undoes a verdict: so many attempts failed that what fails may choose
// the result, the values are copies, or no routing can do this.
func (c Check) undoes() bool {
	return c.Status == Warn && (c.Name == CheckCopies || c.Name == CheckPlausible ||
		c.Name == CheckAttempts && c.Args["why"] == "selected")
}

// Warning is what a check found.
func (c Check) Warning() router.Warning {
	return router.Warning{Code: c.Name, Subject: c.Subject, Args: c.Args, Text: c.Text}
}

// warn adds a check of this comparison that warns.
func (c *comparison) warn(name, why string, args ...any) {
	check := NewCheck(name, Warn, why, args...)
	check.Subject = c.label()
	c.checks = append(c.checks, check)
}

// leastUneven is the imbalance of attention from which it is told, as in a trace.
const leastUneven = 0.03

// plausible is by what factor routing alone may change a benchmark: the most that was seen is 3.6, at few tokens, where
// a plan reads fewer experts. Beyond it arms report in different units: 1150 tok/s and 1.15. Builds may be further
// apart: the most that was seen of one engine is 3.2 (vLLM's issue 50647), and units that are taken for one another are
// 1000 apart (s and ms, tok/s and ktok/s); plausibleBuild is between them, with room for a debug build.
const plausible, plausibleBuild = 5, 100

// check names what disturbs a comparison beside what falls out.
func (c *comparison) check() {
	if c.copied() {
		c.warn(CheckCopies, "same")
	}
	load, uneven := router.Number(0), 0.0 // the largest: of ranks under the learned router, and of their attention
	for _, m := range only(c.Measurements, func(m Measurement) bool { return m.Point == c.Value }) {
		uneven = max(uneven, m.Attention)
		if m.Arm == Normal && m.Load.Measured {
			load = max(load, m.Load.MaxOverMean)
		}
	}
	if uneven > leastUneven {
		c.warn(CheckAttention, "tokens", "imbalance", uneven)
	}
	most, key := load-1, "load"
	if load == 0 {
		most, key = router.Number(c.Ranks)-1, "ranks"
	}
	switch times := 1 + c.Gain.Estimate; {
	case c.builds() && (times > plausibleBuild || times < 1./plausibleBuild):
		c.warn(CheckExplained, "builds", "gain", c.Gain.Estimate)
	case c.builds():
	case times > max(plausible, most+1) || times < 1./plausible:
		c.warn(CheckPlausible, "units", "gain", c.Gain.Estimate)
	case c.Ranks > 1 && c.Gain.Low > most:
		c.warn(CheckExplained, "more", "gain", c.Gain.Estimate, "most", most, key, most+1)
	}
}

// checkProof wants every rank of both arms proved. The grade is the weakest proof's, None where a rank is unproved.
func (r *Recorded) checkProof() (Grade, Check) {
	switch missing := r.unproved(); {
	case len(missing) > 0 && strings.Contains(missing[0], Swapped):
		return None, NewCheck(CheckProof, Fail, "swapped", "missing", missing)
	case len(missing) > 0:
		return None, NewCheck(CheckProof, Fail, "unproved", "missing", missing)
	case slices.ContainsFunc(r.Proof, func(p Proof) bool { return p.Grade != Measured }):
		return Claimed, NewCheck(CheckProof, Warn, "claimed")
	}
	return Measured, NewCheck(CheckProof, Pass, "measured")
}

// unproved names, for each arm, the ranks without proof and what they lack: "perfect arm, rank 1: no line".
func (r *Recorded) unproved() (missing []string) {
	for _, arm := range Arms {
		ranks, seen := map[string][]int{}, false // by evidence
		for _, p := range r.Proof {
			if seen = seen || p.Arm == arm; p.Arm == arm && p.Grade != Measured && p.Grade != Claimed {
				ranks[p.Evidence] = append(ranks[p.Evidence], int(p.Rank))
			}
		}
		if !seen {
			missing = append(missing, fmt.Sprintf("%s arm: no evidence", arm))
		}
		for _, evidence := range slices.Sorted(maps.Keys(ranks)) {
			which := ""
			if of := ranks[evidence]; len(of) > 1 {
				which = ", ranks " + quantity.Ranges(of)
			} else if of[0] != AllRanks {
				which = fmt.Sprintf(", rank %d", of[0])
			}
			missing = append(missing, fmt.Sprintf("%s arm%s: %s", arm, which, evidence))
		}
	}
	return missing
}

// checkDifferences wants that the arms differ in what is declared, and in nothing else.
func (r *Recorded) checkDifferences() Check {
	told := func(declared bool) []string {
		of := only(r.Differences, func(d Difference) bool { return d.Declared == declared })
		return mapped(of, func(d Difference) string {
			return fmt.Sprintf("%s %s: %s %q, %s %q", d.Kind, d.Name,
				r.Builds.Called(Normal), d.Normal, cmp.Or(d.Arm, r.Builds.Called(Perfect)), d.Perfect)
		})
	}
	untreated := func(arm Arm) bool { // the perfect arm is "" here, as in Difference
		return !slices.ContainsFunc(r.Differences, func(d Difference) bool { return d.Declared && d.Arm == arm })
	}
	switch {
	case len(told(false)) > 0:
		return NewCheck(CheckDifference, Fail, "other", "differences", told(false))
	case r.within():
		return NewCheck(CheckDifference, Pass, "within")
	case !r.Compared:
		return NewCheck(CheckDifference, Unknown, "unrecorded")
	case !slices.ContainsFunc(append([]Arm{""}, r.More...), untreated):
		return NewCheck(CheckDifference, Pass, "declared", "differences", told(true))
	case r.Builds.Named():
		return NewCheck(CheckDifference, Warn, "same")
	}
	return NewCheck(CheckDifference, Fail, "untreated")
}

// tolerance is the relative difference in work below which two launches still did the same: a request more or
// less in a hundred.
const tolerance = 0.01

// workChecks are the cases of the check of work, the worst first, and what their words need.
var workChecks = []struct {
	why    string
	status CheckStatus
	args   string
}{{"setup", Fail, "differences"}, {"unequal", Fail, "differences"}, {"half", Warn, "names"}, {"equal", Pass, "names"}}

// differs reports whether two measurements that stand for each other in a block did different work.
func (c *comparison) differs() bool { return len(c.work["setup"])+len(c.work["unequal"]) > 0 }

// checkWork says whether all arms did the same work.
func (r *Recorded) checkWork(all []*comparison) Check {
	for _, k := range workChecks {
		var texts []string
		for _, one := range all {
			texts = append(texts, one.work[k.why]...)
		}
		args := []any{"tolerance", tolerance}
		if k.why != "unequal" { // which stands in the order of launches
			slices.Sort(texts)
		} else if r.within() && strings.Contains(strings.Join(texts, " "), WorkOutputTokens) {
			args = append(args, "fix", "lengths")
		}
		if len(texts) > 0 {
			return NewCheck(CheckWork, k.status, k.why, append(args, k.args, slices.Compact(texts))...)
		}
	}
	return NewCheck(CheckWork, Unknown, "none")
}

// compareWork compares what the two measurements did that stand for each other in a block.
func (c *comparison) compareWork() {
	for _, u := range c.all {
		for _, b := range u.blocks {
			where := fmt.Sprintf("pair %d", u.Pair)
			if c.within() {
				where = fmt.Sprintf("launch %d, block %d", u.Pair, b.Block+1)
			}
			where = strings.TrimPrefix(c.label()+", "+where, ", ")
			for i := range min(len(b.sides[0]), len(b.sides[1])) {
				c.compareSetup(b.sides[0][i], b.sides[1][i])
				c.compareCounts(where, b.sides[0][i], b.sides[1][i])
			}
		}
	}
}

// found adds a text to a case of the check of work.
func (c *comparison) found(why, format string, args ...any) {
	c.work[why] = append(c.work[why], fmt.Sprintf(format, args...))
}

// compareSetup says in what the setups of two measurements differ: "model (normal a, perfect b)".
func (c *comparison) compareSetup(normal, other *Measurement) {
	for _, name := range slices.Sorted(maps.Keys(normal.Setup)) {
		may := c.builds() && (name == "backend" || strings.HasPrefix(name, "runtime ")) // of one model, run otherwise
		if a, b := normal.Setup[name], other.Setup[name]; b != "" && !strings.EqualFold(a, b) && !may {
			c.found("setup", "%s (%s %s, %s %s)", name, c.called(0), a, c.called(1), b)
		}
	}
}

// compareCounts says in what two measurements did different work: "pair 3: requests: normal 10, perfect 20". Errors
// are a share of the requests: without their number any is too many.
func (c *comparison) compareCounts(where string, normal, other *Measurement) {
	tooMany := func(m *Measurement) bool { return m.Work[WorkErrors] > tolerance*m.Work[WorkRequests] }
	names := slices.AppendSeq(slices.Collect(maps.Keys(normal.Work)), maps.Keys(other.Work))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a, inNormal := normal.Work[name]
		b, inOther := other.Work[name]
		unequal := inNormal && inOther && math.Abs(a-b) > tolerance*max(math.Abs(a), math.Abs(b))
		if name == WorkErrors {
			unequal = tooMany(normal) || tooMany(other)
		}
		switch {
		case name == WorkConcurrency || name == WorkImplied: // measured, which a faster arm hardly moves
			if inNormal && inOther && max(a, b) > 2*min(a, b) && !(name == WorkImplied && c.differs()) {
				c.found("setup", "%s (%s %.6g, %s %.6g)", name, c.called(0), a, c.called(1), b)
			}
		case unequal:
			c.found("unequal", "%s: %s: %s %v, %s %v", where, name, c.called(0), a, c.called(1), b)
		case inNormal && inOther:
			c.found("equal", "%s", name)
		default:
			c.found("half", "%s", name)
		}
	}
}
