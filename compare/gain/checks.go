package gain

import (
	"fmt"
	"maps"
	"math"
	"reflect"
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
	// Subjects are the points and arms of which it holds, such as "tokens 64"; empty for all.
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
	Arm      Arm  `json:"arm,omitempty"` // the further arm that Perfect is of
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
	CheckLaunches   = "separate_launches" // the caller's
	CheckRate       = "fixed_rate"        // the caller's
	CheckAttempts   = "first_attempts"    // the caller's
)

// leads reports a check that a reader has to know of before the gain, where it warns.
func (c Check) leads() bool {
	return slices.Contains([]string{CheckExplained, CheckOutliers, CheckLaunches, CheckRate}, c.Name) || c.undoes()
}

// undoes reports a check whose warning undoes a verdict: so many attempts failed that what fails may choose
// the result, or the values are copies.
func (c Check) undoes() bool {
	return c.Name == CheckCopies || c.Name == CheckAttempts && c.Args["why"] == "selected"
}

// Warnings are what a check found, about each of its subjects.
func (c Check) Warnings() (all []router.Warning) {
	for _, subject := range c.Subjects {
		all = append(all, router.Warning{Code: c.Name, Subject: subject, Args: c.Args, Text: c.Text})
	}
	if len(all) == 0 {
		all = []router.Warning{{Code: c.Name, Args: c.Args, Text: c.Text}}
	}
	return all
}

// merged are the checks of so many comparisons; what several found alike is one check, and what all of them
// found is about no subject.
//
//	equal_work "pass" of tokens 8, equal_work "pass" of tokens 64, of 2 → equal_work "pass"
func merged(checks []Check, comparisons int) (list []Check) {
	for _, c := range checks {
		at := slices.IndexFunc(list, func(o Check) bool {
			return o.Name == c.Name && o.Status == c.Status && o.Text == c.Text && reflect.DeepEqual(o.Args, c.Args)
		})
		if at < 0 {
			list = append(list, c)
		} else {
			list[at].Subjects = append(slices.Clone(list[at].Subjects), c.Subjects...)
		}
	}
	for i := range list {
		if len(list[i].Subjects) == comparisons {
			list[i].Subjects = nil
		}
	}
	return list
}

// check answers whether the arms of a comparison may be compared, and what disturbs it.
func (c *comparison) check() {
	c.checks = append([]Check{c.checkDifferences(), c.checkWork()}, c.falls...)
	if c.copied() {
		c.checks = append(c.checks, NewCheck(CheckCopies, Warn, "same"))
	}
	if most := c.RankLoad - 1; !c.builds() && c.Ranks > 1 && most >= 0 && c.gain.Low > most {
		c.checks = append(c.checks, NewCheck(CheckExplained, Warn, "more", "gain", c.gain.Estimate, "most", most,
			"load", c.RankLoad))
	}
}

// checkProof wants every rank of both arms proved.
func (c *Campaign) checkProof() Check {
	switch missing := c.unproved(); {
	case len(missing) > 0:
		return NewCheck(CheckProof, Fail, "unproved", "missing", missing)
	case c.balance() == Claimed:
		return NewCheck(CheckProof, Warn, "claimed")
	case c.Chance:
		return NewCheck(CheckProof, Pass, "chance")
	}
	return NewCheck(CheckProof, Pass, "measured")
}

// balance is the grade of the weakest proof, None where a rank is unproved.
func (c *Campaign) balance() Grade {
	grade := Measured
	if len(c.unproved()) > 0 {
		grade = None
	}
	for _, p := range c.Proof {
		grade = Weaker(grade, p.Grade)
	}
	return grade
}

// unproved names, for each arm, the ranks without proof and what they lack: "perfect arm, rank 1: no line".
func (c *Campaign) unproved() (missing []string) {
	for _, arm := range Arms {
		of := slices.DeleteFunc(slices.Clone(c.Proof), func(p Proof) bool { return p.Arm != arm })
		if len(of) == 0 {
			missing = append(missing, fmt.Sprintf("%s arm: no evidence", arm))
		}
		of = slices.DeleteFunc(of, func(p Proof) bool { return Weaker(p.Grade, Claimed) != None })
		for _, evidence := range each(mapped(of, func(p Proof) string { return p.Evidence })) {
			alike := slices.DeleteFunc(slices.Clone(of), func(p Proof) bool { return p.Evidence != evidence })
			ranks := mapped(alike, func(p Proof) int { return int(p.Rank) })
			text := fmt.Sprintf("%s arm, rank %d: %s", arm, ranks[0], evidence)
			if len(ranks) > 1 {
				text = fmt.Sprintf("%s arm, ranks %s: %s", arm, quantity.Ranges(ranks), evidence)
			} else if ranks[0] == AllRanks {
				text = fmt.Sprintf("%s arm: %s", arm, evidence)
			}
			missing = append(missing, text)
		}
	}
	return missing
}

func (c *comparison) checkDifferences() Check {
	var declared, other []string
	for _, d := range c.Differences {
		if d.Arm != c.arm && (d.Arm != "" || c.further) {
			continue
		}
		text := fmt.Sprintf("%s %s: %s %q, %s %q", d.Kind, d.Name, c.called(0), d.Normal, c.called(1), d.Perfect)
		if d.Declared {
			declared = append(declared, text)
		} else {
			other = append(other, text)
		}
	}
	switch {
	case len(other) > 0:
		return NewCheck(CheckDifference, Fail, "other", "differences", other)
	case c.within():
		return NewCheck(CheckDifference, Pass, "within")
	case !c.Compared:
		return NewCheck(CheckDifference, Unknown, "unrecorded")
	case len(declared) > 0:
		return NewCheck(CheckDifference, Pass, "declared", "differences", declared)
	case c.builds():
		return NewCheck(CheckDifference, Warn, "same")
	}
	return NewCheck(CheckDifference, Fail, "untreated")
}

// tolerance is the relative difference in work below which two launches still did the same: a request more or
// less in a hundred.
const tolerance = 0.01

// checkWork compares what the two measurements did that stand for each other in a block.
func (c *comparison) checkWork() Check {
	var setups, unequal, lacking []string
	halves, told := 0, map[string]int{} // in how many of the halves both measurements tell a kind of work
	for _, u := range c.all {
		where := fmt.Sprintf("pair %d", u.Pair)
		for _, b := range u.blocks {
			if c.within() {
				where = fmt.Sprintf("launch %d, block %d", u.Pair, b.Block+1)
			}
			for i := range min(len(b.sides[0]), len(b.sides[1])) {
				halves++
				setups = append(setups, c.otherwise(b.sides[0][i], b.sides[1][i])...)
				for _, differ := range c.unequal(b.sides[0][i], b.sides[1][i], told) {
					unequal = append(unequal, where+": "+differ)
				}
			}
		}
	}
	names := slices.Sorted(maps.Keys(told))
	lacking = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return told[name] == halves })
	switch {
	case len(setups) > 0:
		return NewCheck(CheckWork, Fail, "setup", "differences", each(setups))
	case len(unequal) > 0:
		args := []any{"differences", each(unequal), "tolerance", tolerance}
		if c.within() && strings.Contains(strings.Join(unequal, " "), WorkOutputTokens) {
			args = append(args, "fix", "lengths")
		}
		return NewCheck(CheckWork, Fail, "unequal", args...)
	case len(lacking) > 0:
		return NewCheck(CheckWork, Warn, "half", "names", lacking)
	case len(names) == 0:
		return NewCheck(CheckWork, Unknown, "none")
	}
	return NewCheck(CheckWork, Pass, "equal", "names", names, "tolerance", tolerance)
}

// otherwise says in what the setups of two measurements differ: "model (normal a, perfect b)".
func (c *comparison) otherwise(normal, other *Measurement) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(normal.Setup)) {
		may := c.builds() && (name == "backend" || name == "quantization") // of one model, run otherwise
		if a, b := normal.Setup[name], other.Setup[name]; b != "" && a != b && !may {
			found = append(found, fmt.Sprintf("%s (%s %s, %s %s)", name, c.called(0), a, c.called(1), b))
		}
	}
	return found
}

// unequal says in what two measurements did different work, and counts the kinds of work that both of them tell.
func (c *comparison) unequal(normal, other *Measurement, told map[string]int) (found []string) {
	differ := func(name string, a, b any) {
		found = append(found, fmt.Sprintf("%s: %s %v, %s %v", name, c.called(0), a, c.called(1), b))
	}
	tooMany := func(m *Measurement) bool { return m.Work[WorkErrors] > tolerance*m.Work[WorkRequests] }
	work := map[string]float64{}
	maps.Copy(work, normal.Work)
	maps.Copy(work, other.Work)
	for _, name := range slices.Sorted(maps.Keys(work)) {
		a, inNormal := normal.Work[name]
		b, inOther := other.Work[name]
		if told[name] += 0; !inNormal || !inOther {
			continue
		}
		told[name]++
		// errors are a share of the requests: without their number any is too many
		if name == WorkErrors && (tooMany(normal) || tooMany(other)) ||
			name != WorkErrors && math.Abs(a-b) > tolerance*max(math.Abs(a), math.Abs(b)) {
			differ(name, a, b)
		}
	}
	return found
}

// each are the texts, each once.
func each(texts []string) (once []string) {
	for _, t := range texts {
		if !slices.Contains(once, t) {
			once = append(once, t)
		}
	}
	return once
}
