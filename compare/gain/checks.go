package gain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
)

// The names of the checks; stable, for programs.
const (
	CheckProof       = "treatment_proved"
	CheckDifference  = "only_one_difference"
	CheckWork        = "equal_work"
	CheckPairs       = "complete_pairs"
	CheckBlocks      = "complete_blocks"
	CheckOrder       = "balanced_order"
	CheckOrderEffect = "order_effect"
	CheckDrift       = "drift"
	CheckOutliers    = "outliers"
	CheckSegments    = "outlying_segments"
	CheckRepeats     = "independent_pairs"
	CheckCarryOver   = "carry_over"
	CheckCopies      = "copied_values"
	CheckSign        = "sign_of_gain"
	CheckExplained   = "explained_gain"
	CheckOneRank     = "one_rank"
	CheckLaunches    = "separate_launches" // the caller's
	CheckRate        = "fixed_rate"        // the caller's
	CheckAttempts    = "first_attempts"    // the caller's
)

// driftLevel is the level of the tests of order effect and drift.
const driftLevel = 0.05

// leading are the checks that a reader has to know of before the gain, where they warn.
var leading = []string{CheckExplained, CheckOutliers, CheckLaunches, CheckRate, CheckCopies}

func (c Check) leads() bool { return slices.Contains(leading, c.Name) || c.undoes() }

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
	orders := c.orders(c.whole, primary)
	if c.within() {
		checks = append(checks, c.checkReversed())
	} else {
		checks = append(checks, c.checkOrder(orders), c.tested(CheckOrderEffect, orders.effect(c.Confidence), 1))
	}
	checks = append(append(append(checks, c.checkDrift()), c.falls...), c.checkRepeats())
	if !c.within() {
		checks = append(checks, c.tested(CheckCarryOver, c.carried(), 2))
	}
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

// tested warns of an effect, so many times an estimate, that a test shows.
func (c *comparison) tested(name string, e stats.TTest, times float64) Check {
	status, why := Pass, "none"
	switch {
	case !e.Defined():
		return NewCheck(name, Unknown, "few")
	case e.P(0) < driftLevel:
		status, why = Warn, "shown"
	}
	return NewCheck(name, status, why, "one", c.called(0), "other", c.called(1), "change", fraction(times*e.Estimate),
		"p", e.P(0))
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
func (c *Campaign) unproved() []string {
	var missing []string
	for _, arm := range Arms {
		seen := false
		var lacks []string // what unproved ranks have to show, each once
		ranks := map[string][]int{}
		for _, p := range c.Proof {
			if p.Arm != arm {
				continue
			}
			seen = true
			if Weaker(p.Grade, Claimed) != None {
				continue
			}
			if ranks[p.Evidence] == nil {
				lacks = append(lacks, p.Evidence)
			}
			ranks[p.Evidence] = append(ranks[p.Evidence], int(p.Rank))
		}
		if !seen {
			missing = append(missing, fmt.Sprintf("%s arm: no evidence", arm))
		}
		for _, evidence := range lacks {
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

// checkWork compares what the measurements of each half did.
func (c *comparison) checkWork() Check {
	names := c.workNames()
	var unequal, half []string // half: what not both measurements of a half reported
	var in []int               // these units
	for _, u := range c.all {
		for _, b := range u.blocks {
			for _, two := range b.halves() {
				found, lacks := c.unequal(c.name(u, b), two, names)
				unequal, half = append(unequal, found...), append(half, lacks...)
				if len(lacks) > 0 {
					in = append(in, u.number)
				}
			}
		}
	}
	var never []string // told of no launch
	for _, name := range []string{WorkErrors, WorkInputLength} {
		if !slices.Contains(names, name) {
			never = append(never, name)
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
	case len(half) > 0:
		return NewCheck(CheckWork, Warn, "half", "names", set(half), "pairs", set(in))
	case len(never) > 0:
		return NewCheck(CheckWork, Pass, "partly", "names", names, "tolerance", c.Tolerance, "never", never)
	}
	return NewCheck(CheckWork, Pass, "equal", "names", names, "tolerance", c.Tolerance)
}

// unequal says in what two measurements did different work, and what one of them does not tell.
func (c *comparison) unequal(where string, two [2]*Measurement, names []string) (found, lacks []string) {
	differ := func(name string, a, b any) {
		found = append(found, fmt.Sprintf("%s: %s: %s %v, %s %v", where, name, c.called(0), a, c.called(1), b))
	}
	for _, name := range slices.Sorted(maps.Keys(two[0].Setup)) {
		a, b := two[0].Setup[name], two[1].Setup[name]
		may := c.builds() && (name == "backend" || name == "quantization") // of one model, run otherwise
		if b != "" && a != b && !may {
			differ(name, a, b)
		}
	}
	for _, name := range names {
		a, inNormal := two[0].Work[name]
		b, inOther := two[1].Work[name]
		tooMany := func(m *Measurement) bool { return m.Work[WorkErrors] > c.Tolerance*m.Work[WorkRequests] }
		switch {
		case !inNormal || !inOther:
			lacks = append(lacks, name)
		case name == WorkErrors: // of requests: without their number any error is too many
			if tooMany(two[0]) || tooMany(two[1]) {
				differ(name, a, b)
			}
		case math.Abs(a-b) > c.Tolerance*max(math.Abs(a), math.Abs(b)):
			differ(name, a, b)
		}
	}
	return found, lacks
}

// workNames lists what any measurement that is compared reported, in order.
func (c *comparison) workNames() []string {
	names := map[string]bool{}
	for _, u := range c.all {
		for _, b := range u.blocks {
			for _, two := range b.halves() {
				for _, m := range two {
					for name := range m.Work {
						names[name] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
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
			if blocks++; !b.complete {
				open, without = open+1, append(without, u.number)
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
	return NewCheck(name, status, why, "complete", blocks-open, "open", open, "blocks", blocks, "pairs", set(without),
		"launches", set(without))
}

func (c *comparison) checkOrder(orders byOrder) Check {
	ab, ba := len(orders.normalFirst), len(orders.otherFirst)
	switch {
	case ab+ba == 0:
		return NewCheck(CheckOrder, Unknown, "unrecorded")
	case ab-ba < -1 || ab-ba > 1:
		return NewCheck(CheckOrder, Warn, "uneven", "one", c.called(0), "other", c.called(1), "first", ab, "second", ba)
	}
	return NewCheck(CheckOrder, Pass, "even", "one", c.called(0), "other", c.called(1), "first", ab, "second", ba)
}

// checkReversed wants each block to be an order and its reverse, in which drift cancels.
func (c *comparison) checkReversed() Check {
	var uneven []int // launches
	first := map[byte]int{}
	for _, u := range c.all {
		for _, b := range u.blocks {
			if !b.complete {
				continue
			}
			if first[b.order[0]]++; !even(b.order) {
				uneven = append(uneven, u.number)
			}
		}
	}
	switch {
	case len(first) == 0:
		return NewCheck(CheckOrder, Unknown, "no_block")
	case len(uneven) > 0:
		return NewCheck(CheckOrder, Warn, "not_reversed", "launches", set(uneven))
	}
	return NewCheck(CheckOrder, Pass, "reversed", "normal_first", first['A'], "perfect_first", first['B'])
}

// even reports whether both arms of an order have the same mean position: ABBA, and not AABB.
func even(order string) bool {
	sum := 0
	for i, arm := range order {
		if arm == 'A' {
			sum += 2*i - (len(order) - 1)
		}
	}
	return sum == 0
}

func (o byOrder) effect(confidence float64) stats.TTest {
	return stats.OrderEffect(o.normalFirst, o.otherFirst, confidence)
}

// checkDrift fits one slope to the course of all values, each arm about a level of its own: over the
// campaign, or where launches hold all arms within each of them. Drift is harmless in a balanced order;
// when one arm always ran first it cannot be told from the gain.
func (c *comparison) checkDrift() Check {
	var position, log []float64
	var group []int
	orders := map[string]bool{}
	for i, u := range c.whole {
		for _, b := range u.blocks {
			if !b.complete || b.order == "" {
				continue
			}
			orders[b.order] = true
			for side, measured := range b.sides {
				if c.within() {
					side += 2 * i
				}
				for _, m := range measured {
					if m.Position != UnknownPosition {
						position, log, group = append(position, float64(m.Position)), append(log, primary(m)), append(group, side)
					}
				}
			}
		}
	}
	slope := stats.CommonSlope(position, log, group, c.Confidence)
	if math.IsNaN(slope.P) {
		return NewCheck(CheckDrift, Unknown, "few")
	}
	change := fraction(slope.Estimate * (slices.Max(position) - slices.Min(position)))
	switch {
	case slope.P >= driftLevel:
		return NewCheck(CheckDrift, Pass, "none", "change", change, "p", slope.P)
	case len(orders) == 1 && !c.within():
		return NewCheck(CheckDrift, Fail, "confounded", "change", change, "p", slope.P)
	}
	return NewCheck(CheckDrift, Warn, "balanced", "change", change, "p", slope.P)
}

// checkRepeats asks whether the gains of successive units are alike, by their lag-1
// autocorrelation about the mean of their order, which is −1/n ± 1/√n where they are
// independent.
func (c *comparison) checkRepeats() Check {
	var residuals []float64
	byOrder := map[string][]float64{}
	for _, u := range c.whole {
		byOrder[c.order(u)] = append(byOrder[c.order(u)], u.log)
	}
	for _, u := range c.whole {
		residuals = append(residuals, u.log-mean(byOrder[c.order(u)]))
	}
	products, squares := 0.0, 0.0
	for i, e := range residuals {
		squares += e * e
		if i > 0 {
			products += e * residuals[i-1]
		}
	}
	n := float64(len(residuals))
	r := products / squares
	switch {
	case n < 6 || squares == 0:
		return NewCheck(CheckRepeats, Unknown, "few")
	case (r+1/n)*math.Sqrt(n) > 1.96:
		return NewCheck(CheckRepeats, Warn, "alike", "r", r)
	}
	return NewCheck(CheckRepeats, Pass, "none", "r", r)
}

// carried is half of what a launch leaves behind by its arm: then the two
// launches of a pair are together faster in one order than in the other.
func (c *comparison) carried() stats.TTest {
	var sums byOrder
	for _, u := range c.whole {
		two := u.blocks[0].halves()[0]
		sums.add((primary(two[0])+primary(two[1]))/2, c.order(u))
	}
	return sums.effect(c.Confidence)
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
	case g.Estimate < 0:
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
