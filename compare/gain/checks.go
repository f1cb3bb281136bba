package gain

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router/quantity"
)

// The names of Judge's checks; stable, for programs.
const (
	CheckProof       = "treatment_proved"
	CheckDifference  = "only_one_difference"
	CheckWork        = "equal_work"
	CheckCompute     = "equal_compute" // of a profiled pair
	CheckPairs       = "complete_pairs"
	CheckOrder       = "balanced_order"
	CheckOrderEffect = "order_effect"
	CheckDrift       = "drift"
	CheckNoise       = "noise_floor"
	CheckSign        = "sign_of_gain"
	CheckExplained   = "explained_gain"
	CheckServer      = "one_server" // the caller's
)

// driftLevel is the level of the tests of order effect and drift.
const driftLevel = 0.05

func (c Campaign) checks(sessions, complete []session, logs logGains, r Result, outliers Check) []Check {
	var checks []Check
	if !c.Builds.Named() {
		checks = append(checks, c.checkProof())
	}
	checks = append(checks, c.checkDifferences(), c.checkWork(sessions))
	if c.Design == WithinLaunch {
		checks = append(checks, c.checksWithin(complete, r.Launches, outliers)...)
	} else {
		checks = append(checks,
			checkPairs(r.Pairs),
			c.checkOrder(logs),
			c.checkOrderEffect(logs),
			c.checkDrift(complete),
			outliers,
			checkRepeats(complete),
			c.checkCarryOver(complete),
		)
	}
	if noise, ok := c.checkNoise(r.Pairs, r.Gain); ok {
		checks = append(checks, noise)
	}
	if c.Builds.Named() {
		return checks
	}
	if explained, ok := c.checkExplained(r.Gain); ok {
		checks = append(checks, explained)
	}
	return append(checks, checkSign(r.Gain, r.Called(Perfect).Label()))
}

// checkProof wants every rank of both arms proved.
func (c Campaign) checkProof() Check {
	if missing := c.unproved(); len(missing) > 0 {
		return Check{Name: CheckProof, Status: Fail, Text: "balance is not proved: " + strings.Join(missing, "; ")}
	}
	switch {
	case c.balance() == Claimed:
		return Check{Name: CheckProof, Status: Warn,
			Text: "balance claimed for every rank, not measured: expert counts or traces measure it"}
	case c.Chance:
		return Check{Name: CheckProof, Status: Pass,
			Text: "measured: routing was even in the chance arm and not in the normal arm, on every rank"}
	}
	return Check{Name: CheckProof, Status: Pass,
		Text: "measured: routing was balanced in the perfect arm and not in the normal arm, on every rank"}
}

// chanceSentence is what a gain over random routing is not.
const chanceSentence = "the other arm routes at random: chance, not balance, so the gain is not that of perfect balance"

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
			missing = append(missing, fmt.Sprintf("%s arm: no evidence from any rank", arm))
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
	case len(other) == 0 && c.Design == WithinLaunch:
		return found(CheckDifference, Pass, "within")
	case len(other) > 0:
		return Check{Name: CheckDifference, Status: Fail, Text: "the arms also differ in " + strings.Join(other, "; ") +
			": make them equal, or accept the difference by --accept-difference and its name"}
	case !c.Compared:
		return Check{Name: CheckDifference, Status: Unknown,
			Text: "environment, arguments and files of the arms were not recorded"}
	case len(declared) == 0:
		if c.Builds.Named() {
			return Check{Name: CheckDifference, Status: Warn,
				Text: "nothing that was recorded differs between the arms"}
		}
		return Check{Name: CheckDifference, Status: Fail,
			Text: "nothing differs between the arms: the treatment was not applied"}
	}
	return Check{Name: CheckDifference, Status: Pass, Text: strings.Join(declared, "; ")}
}

// shownUnequal is how many differences of work are named.
const shownUnequal = 4

// checkWork compares what the two launches of each pair did.
func (c Campaign) checkWork(sessions []session) Check {
	sessions = slices.DeleteFunc(slices.Clone(sessions), func(s session) bool {
		return s.normal == nil ||
			s.perfect == nil
	})
	names := workNames(sessions)
	var unequal, half []string
	unknown := map[string][]int{} // pairs, by what not both launches reported
	for _, s := range sessions {
		unequal = append(unequal, c.otherSetup(s)...)
		for _, name := range names {
			a, inNormal := s.normal.Work[name]
			b, inPerfect := s.perfect.Work[name]
			switch {
			case !inNormal || !inPerfect:
				unknown[name] = append(unknown[name], s.pair.Pair)
			case name == WorkErrors:
				unequal = append(unequal, c.tooManyErrors(s, a, b)...)
			case math.Abs(a-b) > c.Tolerance*max(math.Abs(a), math.Abs(b)):
				unequal = append(unequal, fmt.Sprintf("pair %d: %s: %s %g, %s %g", s.pair.Pair, name,
					c.Builds.Called(Normal), a, c.Builds.Called(Perfect), b))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		half = append(half, fmt.Sprintf("%s not reported by both launches of %s", name,
			quantity.Numbered("pair", unknown[name])))
	}
	switch {
	case len(unequal) > 0:
		if more := len(unequal) - shownUnequal; more > 0 {
			unequal = append(unequal[:shownUnequal], fmt.Sprintf("%d more", more))
		}
		return Check{Name: CheckWork, Status: Fail, Text: fmt.Sprintf("the arms did different work: %s (tolerance %s)",
			strings.Join(unequal, "; "), quantity.Percent(c.Tolerance))}
	case len(names) == 0:
		return Check{Name: CheckWork, Status: Unknown, Text: "no launch reported requests or tokens"}
	case len(half) > 0:
		return Check{Name: CheckWork, Status: Warn, Text: strings.Join(half, "; ")}
	}
	text := fmt.Sprintf("%s within %s in every pair", strings.Join(names, ", "), quantity.Percent(c.Tolerance))
	if !slices.Contains(names, WorkErrors) {
		text += "; failed requests not reported"
	}
	if !slices.Contains(names, WorkInputLength) {
		text += "; lengths of single requests not reported"
	}
	return Check{Name: CheckWork, Status: Pass, Text: text}
}

// otherSetup lists what the reports of a pair say differently. Builds are of one model, and
// may run it otherwise.
func (c Campaign) otherSetup(s session) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(s.normal.Setup)) {
		a, b := s.normal.Setup[name], s.perfect.Setup[name]
		if may := c.Builds.Named() && (name == "backend" || name == "quantization"); b != "" && a != b && !may {
			out = append(out, fmt.Sprintf("pair %d: %s: %s %s, %s %s", s.pair.Pair, name, c.Builds.Called(Normal), a,
				c.Builds.Called(Perfect), b))
		}
	}
	return out
}

// workNames lists what any launch of the pairs reported, in order.
func workNames(sessions []session) []string {
	names := map[string]bool{}
	for _, s := range sessions {
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
func (c Campaign) tooManyErrors(s session, normal, perfect float64) []string {
	var out []string
	for i, errors := range []float64{normal, perfect} {
		launch := s.launches()[i]
		if errors > c.Tolerance*launch.Work[WorkRequests] {
			out = append(out, fmt.Sprintf("pair %d: failed requests of the %s launch: %g", s.pair.Pair,
				c.Builds.Called(launch.Arm), errors))
		}
	}
	return out
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
		return Check{Name: CheckPairs, Status: Warn, Text: fmt.Sprintf("%d complete; excluded as incomplete: %s",
			complete, quantity.Numbered("pair", open))}
	}
	return Check{Name: CheckPairs, Status: Pass, Text: fmt.Sprintf("%d complete, none excluded", complete)}
}

func (c Campaign) checkOrder(logs logGains) Check {
	ab, ba := logs.normalFirst, logs.perfectFirst
	if len(ab)+len(ba) == 0 {
		return Check{Name: CheckOrder, Status: Unknown, Text: "no complete pair has a recorded order"}
	}
	text := fmt.Sprintf("%s first in %s, %s first in %d", c.Builds.Called(Normal), quantity.Count(len(ab), "pair"),
		c.Builds.Called(Perfect), len(ba))
	if d := len(ab) - len(ba); d < -1 || d > 1 {
		return Check{Name: CheckOrder, Status: Warn, Text: text + ": drift does not cancel"}
	}
	return Check{Name: CheckOrder, Status: Pass, Text: text}
}

// checkOrderEffect asks whether running second changes the value.
func (c Campaign) checkOrderEffect(logs logGains) Check {
	e := stats.OrderEffect(logs.normalFirst, logs.perfectFirst, c.Confidence)
	if !e.Defined() {
		return Check{Name: CheckOrderEffect, Status: Unknown, Text: "too few pairs in both orders"}
	}
	text := fmt.Sprintf("running second changes a launch by %s (p = %.2g)", quantity.Change(fraction(e.Estimate)),
		e.P(0))
	if e.P(0) < driftLevel {
		return Check{Name: CheckOrderEffect, Status: Warn, Text: text + "; the estimate takes it out"}
	}
	return Check{Name: CheckOrderEffect, Status: Pass, Text: text}
}

// checkDrift fits one slope to the log values of both arms over the launches'
// positions. Drift is harmless in a balanced order; when one arm always ran
// first it cannot be told from the gain.
func (c Campaign) checkDrift(complete []session) Check {
	var x, y []float64
	var group []int
	orders := map[string]bool{}
	for _, s := range complete {
		if s.pair.Order == "" {
			continue
		}
		for arm, l := range s.launches() {
			x = append(x, float64(l.Position))
			y = append(y, math.Log(l.Value))
			group = append(group, arm)
		}
		orders[s.pair.Order] = true
	}
	slope := stats.CommonSlope(x, y, group, c.Confidence)
	if math.IsNaN(slope.P) {
		return Check{Name: CheckDrift, Status: Unknown, Text: "too few launches"}
	}
	span := slices.Max(x) - slices.Min(x)
	text := fmt.Sprintf("the values change by %s from first to last launch (p = %.2g)",
		quantity.Change(fraction(slope.Estimate*span)), slope.P)
	switch {
	case slope.P >= driftLevel:
		return Check{Name: CheckDrift, Status: Pass, Text: text}
	case len(orders) == 1:
		return Check{Name: CheckDrift, Status: Fail, Text: text +
			", and one arm always ran first, so drift and gain cannot be separated; alternate the order"}
	}
	return Check{Name: CheckDrift, Status: Warn, Text: text + "; a balanced order cancels it"}
}

// checkNoise compares the gain with what A/A pairs show between equal arms;
// false when there are none.
func (c Campaign) checkNoise(pairs []Pair, g Gain) (Check, bool) {
	n, most := 0, 0.0
	for _, p := range pairs {
		if p.Status == PairControl {
			n++
			most = max(most, math.Abs(math.Log1p(float64(p.Gain))))
		}
	}
	if n == 0 {
		return Check{}, false
	}
	text := fmt.Sprintf("control launches (%[1]s against %[1]s) differ by up to %[2]s in %[3]s",
		c.Builds.Called(Normal), quantity.Percent(math.Expm1(most)), quantity.Count(n, "pair"))
	switch {
	case !g.Estimate.Defined():
		return Check{Name: CheckNoise, Status: Unknown, Text: text + "; no complete pair to compare with"}, true
	case math.Abs(math.Log1p(float64(g.Estimate))) <= most:
		return Check{Name: CheckNoise, Status: Warn, Text: text + ", at least the gain"}, true
	}
	return Check{Name: CheckNoise, Status: Pass, Text: text}, true
}

// checkSign flags a perfect router that is slower, which balance alone cannot
// explain.
func checkSign(g Gain, routing string) Check {
	switch {
	case !g.Estimate.Defined():
		return Check{Name: CheckSign, Status: Unknown, Text: "no complete pair"}
	case g.Estimate < 0:
		return Check{Name: CheckSign, Status: Warn,
			Text: fmt.Sprintf("%s is slower (%s): at small batches it activates more experts than real traffic; see the active experts", routing, quantity.Change(g.Estimate))}
	}
	return Check{Name: CheckSign, Status: Pass, Text: routing + " is not slower"}
}

// checkExplained compares the gain with the most that even ranks can give: a step takes as
// long as its busiest rank, so at most max/mean − 1 of their load, where all of the step is
// expert compute. False where that is not known, or there is one rank.
func (c Campaign) checkExplained(g Gain) (Check, bool) {
	if c.Ranks < 2 || !(c.RankLoad >= 1) || !g.Estimate.Defined() {
		return Check{}, false
	}
	most := c.RankLoad - 1
	if g.Estimate > most && !(g.Low <= 0) {
		return Check{Name: CheckExplained, Status: Warn, Text: fmt.Sprintf(
			"the gain of %s is more than even ranks can give (at most %s: rank load max/mean %s in the normal arm); the rest is of the experts' GEMMs or of something other than balance: compare traces of both arms",
			quantity.Change(g.Estimate), quantity.Change(most), quantity.Ratio(c.RankLoad))}, true
	}
	return Check{Name: CheckExplained, Status: Pass,
		Text: fmt.Sprintf("even ranks can give up to %s (rank load max/mean %s in the normal arm)",
			quantity.Change(most), quantity.Ratio(c.RankLoad))}, true
}
