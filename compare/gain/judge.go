package gain

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router"
)

// Judge turns a campaign into its result: pairs, gain, checks and verdict.
// Validity comes first: a failed check makes the verdict Invalid whatever the
// gain, and the gain is still shown, but not of arms that did different work. The same
// campaign gives the same result, whatever the order of its launches, proofs and differences.
func Judge(c Campaign) Result {
	c = c.sorted()
	c.Design = cmp.Or(c.Design, LaunchPerArm)
	if len(c.Points) > 0 {
		return c.judgeCurve()
	}
	return c.judge(1)
}

// simultaneous is the confidence of each of so many intervals that hold together at the
// given one, by Bonferroni.
func simultaneous(confidence float64, family int) float64 {
	return 1 - (1-confidence)/float64(family)
}

// judge judges a campaign at one load, which is one of so many that are judged together.
func (c Campaign) judge(family int) Result {
	if len(c.More) > 0 {
		return c.judgeArms(family)
	}
	units, pairs, launches := c.units()
	complete := slices.DeleteFunc(slices.Clone(units), func(s pairResult) bool { return s.pair.Status != PairComplete })
	rows := make([]Pair, len(units))
	for i, s := range units {
		rows[i] = s.pair
	}
	each := simultaneous(c.Confidence, family)
	outlying, outliers := c.outliers(complete)
	kept := c.leaveOut(complete, outliers)
	logs := logsOf(kept, pairResult.logGain)
	logs.fit = c.fit
	g := logs.gain(each)
	r := Result{
		SchemaVersion: SchemaVersion, Kind: "bench",
		Command: c.Command, Design: c.Design, Metric: c.Metric, Threshold: c.Threshold,
		Launches: launches, Pairs: rows, Gain: g.adjusted(family).atLeast(c.least()), Precision: precisionOf(logs, g, each),
		Outliers: outliers, Secondary: c.secondaryGains(complete, pairs, family),
		PairsNeeded: router.Undefined(), PairsNeededLow: router.Undefined(), PairsNeededHigh: router.Undefined(),
		Proof: c.Proof, Balance: c.balance(), Chance: c.Chance, Differences: c.Differences,
	}
	r.Precision.BlockShare = blockShare(complete, g.LogSD.Float64())
	r.Checks = append(slices.Clone(c.Checks), c.checks(pairs, complete, logsOf(complete, pairResult.logGain), r, outlying)...)
	if c.Builds.Named() {
		r.Arms = []ArmGain{{Name: c.Builds[0], Gain: logGains{}.gain(each)}, {Name: c.Builds[1], Gain: r.Gain}}
	}
	if r.fails() {
		return r
	}
	r.Verdict = r.decide(c.leastUnits())
	if r.decided() && (slices.ContainsFunc(c.Checks, Check.selects) || len(complete)-len(kept) > len(complete)/4) {
		r.Verdict = Inconclusive // what fails or falls out so often may choose the result
	}
	if r.Verdict == Inconclusive && (len(outliers) == 0 || c.Design == WithinLaunch) {
		r.PairsNeeded, r.PairsNeededLow, r.PairsNeededHigh = c.pairsNeeded(logs, each)
	}
	return r
}

// sorted is the campaign with copies of its lists in the order of results.
func (c Campaign) sorted() Campaign {
	c.Launches = append([]Launch{}, c.Launches...)
	slices.SortStableFunc(c.Launches, func(a, b Launch) int {
		return cmp.Or(cmp.Compare(a.Pair, b.Pair), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Position, b.Position),
			cmp.Compare(a.Arm, b.Arm))
	})
	c.Proof = append([]Proof{}, c.Proof...)
	slices.SortStableFunc(c.Proof, func(a, b Proof) int {
		return cmp.Or(cmp.Compare(a.Arm, b.Arm), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Evidence, b.Evidence))
	})
	c.Differences = append([]Difference{}, c.Differences...)
	slices.SortStableFunc(c.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return c
}

// fails reports failed checks, which make the verdict; arms that did different work have
// no gain, whatever else failed.
func (r *Result) fails() bool {
	if len(r.Failed()) == 0 {
		return false
	}
	r.Verdict = Invalid
	if slices.ContainsFunc(r.Checks, func(c Check) bool {
		return c.Name == CheckWork && c.Status == Fail
	}) {
		r.Verdict = NotComparable
		r.withoutGain()
	}
	return true
}

// withoutGain takes all gains from a result, and what was checked about them; the values of
// its launches stay.
func (r *Result) withoutGain() {
	none := logGains{}.gain(r.Gain.Confidence.Float64())
	none.N, none.Method = r.Gain.N, r.Gain.Method
	r.Gain, r.Secondary, r.Share, r.Dose, r.Crossover = none, []SecondaryGain{}, nil, nil, nil
	r.Precision = Precision{Margin: r.Precision.Margin, P: router.Undefined()}
	r.Checks = slices.DeleteFunc(slices.Clone(r.Checks), func(c Check) bool {
		return slices.Contains([]string{CheckRepeats, CheckSign, CheckExplained}, c.Name)
	})
	for i := range r.Pairs {
		r.Pairs[i].Gain = router.Undefined()
	}
	for i := range r.Launches {
		r.Launches[i].Gain = router.Undefined()
		for j := range r.Launches[i].Blocks {
			r.Launches[i].Blocks[j].Gain = router.Undefined()
		}
	}
	for i := range r.Arms {
		r.Arms[i].Gain, r.Arms[i].Verdict, r.Arms[i].Share = none, NotComparable, nil
	}
}

// Failed are the failed checks.
func (r Result) Failed() []Check { return r.with(Fail) }

// Leading are the checks that a reader has to know of before the gain.
func (r Result) Leading() []Check {
	return slices.DeleteFunc(r.with(Warn), func(c Check) bool {
		return !slices.Contains(leading, c.Name) && !c.selects()
	})
}

var leading = []string{CheckExplained, CheckOutliers, CheckLaunches, CheckRate}

// selects reports whether so many attempts failed that what fails may choose the result.
func (c Check) selects() bool { return c.Name == CheckAttempts && c.Args["why"] == "selected" }

func (r Result) with(status CheckStatus) (checks []Check) {
	for _, c := range r.Checks {
		if c.Status == status {
			checks = append(checks, c)
		}
	}
	return checks
}

// pairResult is one pair with the launches that count.
type pairResult struct {
	pair            Pair
	log             float64 // of the gain, where the pair is complete
	normal, perfect *Launch
	half            bool           // it is of segments of one launch
	blocks          [][]pairResult // halves of the complete ones of a launch that holds all arms, which is no pair itself
}

// halves are those of all blocks.
func (s pairResult) halves() iter.Seq[pairResult] { return slices.Values(slices.Concat(s.blocks...)) }

func (s pairResult) logGain() float64 { return s.log }

func (s pairResult) launches() [2]*Launch { return [2]*Launch{s.normal, s.perfect} }

// units are what is repeated, pairs or launches that hold all arms; the pairs of measurements
// that they consist of; and the launches that hold all arms.
func (c Campaign) units() (units, pairs []pairResult, launches []LaunchGain) {
	if c.Design == WithinLaunch {
		return c.launches()
	}
	for pair := range chunks(c.Launches, func(l Launch) int { return l.Pair }) {
		units = append(units, c.pairResult(pair))
	}
	return units, units, nil
}

// chunks are the runs of launches of one key.
func chunks(launches []Launch, key func(Launch) int) iter.Seq[[]Launch] {
	return func(yield func([]Launch) bool) {
		for rest := launches; len(rest) > 0; {
			n := 1
			for n < len(rest) && key(rest[n]) == key(rest[0]) {
				n++
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

func (c Campaign) pairResult(launches []Launch) (s pairResult) {
	var notes []string
	for i := range launches {
		l := &launches[i]
		if l.Status == StatusOK {
			s.record(l)
		}
		if note := l.said("launch"); note != "" {
			notes = append(notes, note)
		}
	}
	s.pair = Pair{
		Pair: launches[0].Pair, Point: router.Number(c.point), Status: PairIncomplete, Note: strings.Join(notes, "; "),
		Normal: router.Undefined(), Perfect: router.Undefined(), Gain: router.Undefined(),
	}
	s.compare(c.Metric.HigherIsBetter)
	return s
}

// said is what a launch's pair, or a segment's block, is noted with.
func (l Launch) said(what string) string {
	if l.Status == StatusOK {
		return l.Note
	}
	return strings.TrimSuffix(string(l.Arm)+" "+what+" "+l.Status+": "+l.Note, ": ")
}

// record keeps the first ok launch of each side.
func (s *pairResult) record(l *Launch) {
	var side **Launch
	switch {
	case l.Arm == Perfect:
		side = &s.perfect
	case l.Arm == Normal:
		side = &s.normal
	default:
		return // of no arm that is compared
	}
	if *side == nil {
		*side = l
	}
}

// compare fills in what the launches say of the pair.
func (s *pairResult) compare(higherIsBetter bool) {
	p := &s.pair
	if s.normal != nil {
		p.Normal = router.Number(s.normal.Value)
	}
	if s.perfect != nil {
		p.Perfect = router.Number(s.perfect.Value)
	}
	if s.normal == nil || s.perfect == nil {
		return
	}
	switch {
	case s.normal.Position == UnknownPosition || s.perfect.Position == UnknownPosition:
	case s.normal.Position <= s.perfect.Position:
		p.Order = "AB"
	default:
		p.Order = "BA"
	}
	s.log = logGain(s.normal.Value, s.perfect.Value, higherIsBetter)
	p.Gain = fraction(s.log)
	if p.Status = PairComplete; !p.Gain.Defined() {
		p.Status, p.Note = PairIncomplete, strings.TrimPrefix(p.Note+"; no gain: want two positive values", "; ")
	}
}

// leaveOut are the pairs without those that hold an outlying launch: one that something disturbed would
// decide otherwise. Where too few for a verdict would remain, and where launches hold all arms, they are all.
func (c Campaign) leaveOut(complete []pairResult, outliers []Outlier) (kept []pairResult) {
	kept = slices.DeleteFunc(slices.Clone(complete), func(s pairResult) bool {
		return slices.ContainsFunc(outliers, func(o Outlier) bool { return o.Pair == s.pair.Pair })
	})
	if c.Design == WithinLaunch || len(kept) < c.leastUnits() {
		return complete
	}
	return kept
}
