package gain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The names of the checks; stable, for programs.
const (
	CheckProof      = "treatment_proved"
	CheckDifference = "only_one_difference"
	CheckWork       = "equal_work"
	CheckPairs      = "complete_pairs"
	CheckBlocks     = "complete_blocks"
	CheckOutliers   = "outliers"
	CheckSegments   = "outlying_segments"
	CheckCopies     = "copied_values"
	CheckSign       = "sign_of_gain"
	CheckExplained  = "explained_gain"
	CheckOneRank    = "one_rank"
	CheckLaunches   = "separate_launches" // the caller's
	CheckRate       = "fixed_rate"        // the caller's
	CheckAttempts   = "first_attempts"    // the caller's
)

// leads are the checks that a reader has to know of before the gain, where they warn.
var leads = []string{CheckExplained, CheckOutliers, CheckLaunches, CheckRate, CheckCopies}

func (c Check) leads() bool { return slices.Contains(leads, c.Name) || c.undoes() }

// undoes reports a check whose warning undoes a verdict: so many attempts failed that what fails may choose
// the result, or the values are copies.
func (c Check) undoes() bool {
	return c.Name == CheckCopies || c.Name == CheckAttempts && c.Args["why"] == "selected"
}

// check answers whether the arms of a comparison may be compared, and what disturbs it.
func (c *comparison) check() (checks []Check) {
	if !c.builds() {
		checks = append(checks, c.checkProof())
	}
	checks = append(checks, c.checkDifferences(), c.checkWork(), c.checkComplete())
	checks = append(checks, c.falls...)
	if c.copied() {
		checks = append(checks, NewCheck(CheckCopies, Warn, "same"))
	}
	if c.builds() {
		return checks
	}
	if c.Ranks == 1 {
		checks = append(checks, NewCheck(CheckOneRank, Warn, "experts"))
	}
	if c.Ranks > 1 && c.RankLoad >= 1 && c.gain.Estimate.Defined() {
		checks = append(checks, c.checkExplained(c.gain))
	}
	return append(checks, checkSign(c.gain))
}

// checkProof wants every rank of both arms proved.
func (c *Campaign) checkProof() Check {
	missing := c.unproved()
	switch {
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
	if len(c.unproved()) > 0 {
		return None
	}
	grade := Measured
	for _, p := range c.Proof {
		grade = Weaker(grade, p.Grade)
	}
	return grade
}

// unproved names, for each arm, the ranks without proof and what they lack.
func (c *Campaign) unproved() (missing []string) {
	for _, arm := range Arms {
		var lacks []string // what unproved ranks have to show, each once
		seen, ranks := false, map[string][]int{}
		for _, p := range c.Proof {
			if p.Arm != arm {
				continue
			}
			if seen = true; Weaker(p.Grade, Claimed) == None {
				lacks = append(lacks, p.Evidence)
				ranks[p.Evidence] = append(ranks[p.Evidence], int(p.Rank))
			}
		}
		if !seen {
			missing = append(missing, fmt.Sprintf("%s arm: no evidence", arm))
		}
		for _, evidence := range each(lacks) {
			missing = append(missing, where(arm, ranks[evidence])+": "+evidence)
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

// A half is two measurements of a block, one of each arm, that must have done the same.
type half struct {
	where string
	unit  int
	two   [2]*Measurement
}

func (c *comparison) halves() (all []half) {
	for _, u := range c.all {
		for _, b := range u.blocks {
			for i := range min(len(b.sides[0]), len(b.sides[1])) {
				all = append(all, half{c.name(u, b), u.Pair, [2]*Measurement{b.sides[0][i], b.sides[1][i]}})
			}
		}
	}
	return all
}

// checkWork compares what the measurements of each half did.
func (c *comparison) checkWork() Check {
	halves, work := c.halves(), map[string]float64{} // all that any of them reports
	for _, h := range halves {
		maps.Copy(work, h.two[0].Work)
		maps.Copy(work, h.two[1].Work)
	}
	names := slices.Sorted(maps.Keys(work))
	var unequal, lacking []string // lacking: what not both measurements of a half reported
	var in []int                  // these units
	for _, h := range halves {
		found, lacks := c.unequal(h, names)
		if unequal, lacking = append(unequal, found...), append(lacking, lacks...); len(lacks) > 0 {
			in = append(in, h.unit)
		}
	}
	lengths := func(s string) bool { return strings.Contains(s, WorkOutputTokens) }
	switch {
	case c.within() && slices.ContainsFunc(unequal, lengths):
		return NewCheck(CheckWork, Fail, "other_lengths", "differences", each(unequal), "tolerance", c.Tolerance)
	case len(unequal) > 0:
		return NewCheck(CheckWork, Fail, "unequal", "differences", each(unequal), "tolerance", c.Tolerance)
	case len(names) == 0:
		return NewCheck(CheckWork, Unknown, "none")
	case len(lacking) > 0:
		return NewCheck(CheckWork, Warn, "half", "names", set(lacking), "pairs", set(in))
	}
	return NewCheck(CheckWork, Pass, "equal", "names", names, "tolerance", c.Tolerance)
}

// unequal says in what two measurements did different work, and what one of them does not tell.
func (c *comparison) unequal(h half, names []string) (found, lacks []string) {
	differ := func(name string, a, b any) {
		found = append(found, fmt.Sprintf("%s: %s: %s %v, %s %v", h.where, name, c.called(0), a, c.called(1), b))
	}
	for _, name := range slices.Sorted(maps.Keys(h.two[0].Setup)) {
		a, b := h.two[0].Setup[name], h.two[1].Setup[name]
		may := c.builds() && (name == "backend" || name == "quantization") // of one model, run otherwise
		if b != "" && a != b && !may {
			differ(name, a, b)
		}
	}
	for _, name := range names {
		a, inNormal := h.two[0].Work[name]
		b, inOther := h.two[1].Work[name]
		tooMany := func(m *Measurement) bool { return m.Work[WorkErrors] > c.Tolerance*m.Work[WorkRequests] }
		switch {
		case !inNormal || !inOther:
			lacks = append(lacks, name)
		case name == WorkErrors: // of requests: without their number any error is too many
			if tooMany(h.two[0]) || tooMany(h.two[1]) {
				differ(name, a, b)
			}
		case math.Abs(a-b) > c.Tolerance*max(math.Abs(a), math.Abs(b)):
			differ(name, a, b)
		}
	}
	return found, lacks
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

// set are the values in order, each once.
func set[T cmp.Ordered](values []T) []T { return slices.Compact(slices.Sorted(slices.Values(values))) }

// checkComplete counts the pairs, or the blocks of launches, and those that drop out.
func (c *comparison) checkComplete() Check {
	var without []int // units with a block that drops out
	blocks, open := 0, 0
	for _, u := range c.all {
		for _, b := range u.blocks {
			if blocks++; b.Status != PairComplete {
				open, without = open+1, append(without, u.Pair)
			}
		}
	}
	name, status, why := CheckPairs, Pass, "all"
	if c.within() {
		name = CheckBlocks
	}
	if open > 0 {
		status, why = Warn, "open"
	}
	return NewCheck(name, status, why, "complete", blocks-open, "open", open, "blocks", blocks, "pairs", set(without))
}

// copied reports values that do not vary as printed: each arm has one in all launches, or in every launch
// that holds all arms. Copies, or a report of too few digits, know nothing of what launches differ.
func (c *comparison) copied() bool {
	var earlier [2]float64
	for i, u := range c.whole {
		if i == 0 || c.within() {
			earlier = [2]float64{}
		}
		for _, b := range u.blocks {
			for side, measured := range b.sides {
				for _, m := range measured {
					if earlier[side] != 0 && earlier[side] != m.Value {
						return false
					}
					earlier[side] = m.Value
				}
			}
		}
	}
	return len(c.whole) > 1
}

// checkSign flags a perfect router that is slower, which balance alone cannot
// explain.
func checkSign(g Gain) Check {
	switch {
	case !g.Estimate.Defined():
		return NewCheck(CheckSign, Unknown, "no_gain")
	case g.High < 0: // not by chance
		return NewCheck(CheckSign, Warn, "slower", "gain", g.Estimate)
	}
	return NewCheck(CheckSign, Pass, "faster")
}

// checkExplained compares the gain with the most that even ranks can give: a step takes as
// long as its busiest rank, so at most max/mean − 1 of their load, where all of the step is
// expert compute. A gain whose whole interval is above that has another cause.
func (c *Campaign) checkExplained(g Gain) Check {
	most := c.RankLoad - 1
	if g.Low > most {
		return NewCheck(CheckExplained, Warn, "more", "gain", g.Estimate, "most", most, "load", c.RankLoad)
	}
	return NewCheck(CheckExplained, Pass, "enough", "most", most, "load", c.RankLoad)
}
