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

// The names of Judge's checks; stable, for programs.
const (
	CheckProof       = "treatment_proved"
	CheckDifference  = "only_one_difference"
	CheckWork        = "equal_work"
	CheckPairs       = "complete_pairs"
	CheckOrder       = "balanced_order"
	CheckOrderEffect = "order_effect"
	CheckDrift       = "drift"
	CheckSign        = "sign_of_gain"
	CheckExplained   = "explained_gain"
	CheckOneRank     = "one_rank"
	CheckLaunches    = "separate_launches" // the caller's
	CheckRate        = "fixed_rate"        // the caller's
	CheckAttempts    = "first_attempts"    // the caller's
)

// driftLevel is the level of the tests of order effect and drift.
const driftLevel = 0.05

func (c Campaign) checks(pairs, complete []pairResult, logs logGains, r Result, outliers Check) []Check {
	var checks []Check
	if !c.Builds.Named() {
		checks = append(checks, c.checkProof())
	}
	checks = append(checks, c.checkDifferences(), c.checkWork(pairs))
	if c.Design == WithinLaunch {
		checks = append(checks, c.checksWithin(complete, r.Launches, outliers)...)
	} else {
		checks = append(checks,
			checkPairs(r.Pairs),
			c.checkOrder(logs),
			orderEffect(stats.OrderEffect(logs.normalFirst, logs.perfectFirst, c.Confidence)),
			c.checkDrift(complete),
			outliers,
			checkRepeats(complete),
			c.checkCarryOver(complete),
		)
	}
	if c.Builds.Named() {
		return checks
	}
	if c.Ranks == 1 {
		checks = append(checks, NewCheck(CheckOneRank, Warn, "experts"))
	}
	if explained, ok := c.checkExplained(r.Gain); ok {
		checks = append(checks, explained)
	}
	return append(checks, checkSign(r.Gain))
}

// checkProof wants every rank of both arms proved.
func (c Campaign) checkProof() Check {
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
func (c Campaign) balance() Grade {
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
func (c Campaign) unproved() []string {
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

func (c Campaign) checkDifferences() Check {
	var declared, other []string
	for _, d := range c.Differences {
		text := fmt.Sprintf("%s %s: %s %q, %s %q", d.Kind, d.Name, c.Builds.Called(Normal), d.Normal,
			c.Builds.Called(Perfect), d.Perfect)
		if d.Declared {
			declared = append(declared, text)
		} else {
			other = append(other, text)
		}
	}
	switch {
	case len(other) > 0:
		return NewCheck(CheckDifference, Fail, "other", "differences", other)
	case c.Design == WithinLaunch:
		return NewCheck(CheckDifference, Pass, "within")
	case !c.Compared:
		return NewCheck(CheckDifference, Unknown, "unrecorded")
	case len(declared) > 0:
		return NewCheck(CheckDifference, Pass, "declared", "differences", declared)
	case c.Builds.Named():
		return NewCheck(CheckDifference, Warn, "same")
	}
	return NewCheck(CheckDifference, Fail, "untreated")
}

// checkWork compares what the two launches of each pair did.
func (c Campaign) checkWork(pairs []pairResult) Check {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(s pairResult) bool {
		return s.normal == nil || s.perfect == nil
	})
	names := workNames(pairs)
	var unequal, half []string // half: what not both launches of a pair reported
	var in []int               // these pairs
	for _, s := range pairs {
		unequal = append(unequal, c.otherSetup(s)...)
		for _, name := range names {
			a, inNormal := s.normal.Work[name]
			b, inPerfect := s.perfect.Work[name]
			switch {
			case !inNormal || !inPerfect:
				half, in = append(half, name), append(in, s.pair.Pair)
			case name == WorkErrors:
				unequal = append(unequal, c.tooManyErrors(s, a, b)...)
			case math.Abs(a-b) > c.Tolerance*max(math.Abs(a), math.Abs(b)):
				unequal = append(unequal, c.differ(s, name, fmt.Sprint(a), fmt.Sprint(b)))
			}
		}
	}
	var never []string // told of no launch
	for _, name := range []string{WorkErrors, WorkInputLength} {
		if !slices.Contains(names, name) {
			never = append(never, name)
		}
	}
	switch {
	case c.Design == WithinLaunch &&
		slices.ContainsFunc(unequal, func(s string) bool { return strings.Contains(s, WorkOutputTokens) }):
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

// differ names a pair, and what of its launches differs.
func (c Campaign) differ(s pairResult, name, normal, perfect string) string {
	return fmt.Sprintf("%s: %s: %s %s, %s %s", s.name(), name, c.Builds.Called(Normal), normal,
		c.Builds.Called(Perfect), perfect)
}

// name is that of the pair, or of the launch and block that the segments are of.
func (s pairResult) name() string {
	if s.half {
		return fmt.Sprintf("launch %d, block %d", s.pair.Pair, s.normal.Block+1)
	}
	return fmt.Sprintf("pair %d", s.pair.Pair)
}

// otherSetup lists what the reports of a pair say differently. Builds are of one model, and
// may run it otherwise.
func (c Campaign) otherSetup(s pairResult) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(s.normal.Setup)) {
		a, b := s.normal.Setup[name], s.perfect.Setup[name]
		if may := c.Builds.Named() && (name == "backend" || name == "quantization"); b != "" && a != b && !may {
			out = append(out, c.differ(s, name, a, b))
		}
	}
	return out
}

// workNames lists what any launch of the pairs reported, in order.
func workNames(pairs []pairResult) []string {
	names := map[string]bool{}
	for _, s := range pairs {
		for _, l := range s.launches() {
			for name := range l.Work {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// tooManyErrors lists the launches whose failed requests exceed the tolerance
// of their requests; without a count of requests any error is too many.
func (c Campaign) tooManyErrors(s pairResult, normal, perfect float64) []string {
	for i, errors := range []float64{normal, perfect} {
		if errors > c.Tolerance*s.launches()[i].Work[WorkRequests] {
			return []string{c.differ(s, WorkErrors, fmt.Sprint(normal), fmt.Sprint(perfect))}
		}
	}
	return nil
}

func checkPairs(pairs []Pair) Check {
	var open []int
	complete := 0
	for _, p := range pairs {
		switch p.Status {
		case PairComplete:
			complete++
		case PairIncomplete:
			open = append(open, p.Pair)
		}
	}
	if len(open) > 0 {
		return NewCheck(CheckPairs, Warn, "open", "complete", complete, "pairs", open)
	}
	return NewCheck(CheckPairs, Pass, "all", "complete", complete)
}

func (c Campaign) checkOrder(logs logGains) Check {
	ab, ba := len(logs.normalFirst), len(logs.perfectFirst)
	normal, perfect := c.Builds.Called(Normal), c.Builds.Called(Perfect)
	switch {
	case ab+ba == 0:
		return NewCheck(CheckOrder, Unknown, "unrecorded")
	case ab-ba < -1 || ab-ba > 1:
		return NewCheck(CheckOrder, Warn, "uneven", "one", normal, "other", perfect, "first", ab, "second", ba)
	}
	return NewCheck(CheckOrder, Pass, "even", "one", normal, "other", perfect, "first", ab, "second", ba)
}

// orderEffect asks whether running second changes the value.
func orderEffect(e stats.TTest) Check {
	switch change := fraction(e.Estimate); {
	case !e.Defined():
		return NewCheck(CheckOrderEffect, Unknown, "few")
	case e.P(0) < driftLevel:
		return NewCheck(CheckOrderEffect, Warn, "shown", "change", change, "p", e.P(0))
	default:
		return NewCheck(CheckOrderEffect, Pass, "none", "change", change, "p", e.P(0))
	}
}

// A course is the values of launches, or of segments, in groups that have a level of their own.
type course struct {
	position, log []float64
	group         []int
}

func (c *course) add(l *Launch, group int) {
	if l.Position != UnknownPosition {
		c.position, c.log = append(c.position, float64(l.Position)), append(c.log, math.Log(l.Value))
		c.group = append(c.group, group)
	}
}

// drift fits one slope to the course. Drift is harmless in a balanced order; when one arm
// always ran first it cannot be told from the gain.
func (c course) drift(confidence float64, oneOrder bool) Check {
	slope := stats.CommonSlope(c.position, c.log, c.group, confidence)
	if math.IsNaN(slope.P) {
		return NewCheck(CheckDrift, Unknown, "few")
	}
	change := fraction(slope.Estimate * (slices.Max(c.position) - slices.Min(c.position)))
	switch {
	case slope.P >= driftLevel:
		return NewCheck(CheckDrift, Pass, "none", "change", change, "p", slope.P)
	case oneOrder:
		return NewCheck(CheckDrift, Fail, "confounded", "change", change, "p", slope.P)
	}
	return NewCheck(CheckDrift, Warn, "balanced", "change", change, "p", slope.P)
}

// checkDrift is over the campaign, or where launches hold all arms within each of them.
func (c Campaign) checkDrift(complete []pairResult) Check {
	var course course
	orders := map[string]bool{}
	for i, s := range complete {
		if s.blocks == nil && s.pair.Order != "" {
			orders[s.pair.Order] = true
			for arm, l := range s.launches() {
				course.add(l, arm)
			}
		}
		for half := range s.halves() {
			for arm, l := range half.launches() {
				course.add(l, 2*i+arm)
			}
		}
	}
	return course.drift(c.Confidence, len(orders) == 1)
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
// expert compute. False where that is not known, or there is one rank.
func (c Campaign) checkExplained(g Gain) (Check, bool) {
	most := c.RankLoad - 1
	switch {
	case c.Ranks < 2 || !(c.RankLoad >= 1) || !g.Estimate.Defined():
		return Check{}, false
	case g.Estimate > most && !(g.Low <= 0):
		return NewCheck(CheckExplained, Warn, "more", "gain", g.Estimate, "most", most, "load", c.RankLoad), true
	}
	return NewCheck(CheckExplained, Pass, "enough", "most", most, "load", c.RankLoad), true
}
