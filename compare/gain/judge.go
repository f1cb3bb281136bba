package gain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Judge turns a campaign into its result: pairs, gain, checks and verdict.
// Validity comes first: a failed check makes the verdict Invalid whatever the
// gain, and the gain is still shown. The same campaign gives the same result,
// whatever the order of its launches, proofs and differences.
func Judge(c Campaign) Result {
	c = c.sorted()
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
	sessions := pairUp(c.Launches)
	pairs := make([]Pair, len(sessions))
	for i, s := range sessions {
		pairs[i] = s.pair(c)
	}
	logs := logsOf(pairs)
	logs.fit = c.fit
	each := simultaneous(c.Confidence, family)
	r := Result{
		SchemaVersion: SchemaVersion, Kind: "bench",
		Command: c.Command, Metric: c.Metric, Threshold: c.Threshold,
		Pairs: pairs, Gain: logs.gain(each).adjusted(family).atLeast(stats.MinPairs(c.Confidence)), Secondary: c.secondaryGains(sessions, family),
		PairsNeeded: router.Undefined(), PairsNeededLow: router.Undefined(), PairsNeededHigh: router.Undefined(),
		Proof: c.Proof, Balance: c.balance(), Chance: c.Chance, Differences: c.Differences, Builds: c.Builds,
	}
	r.Precision = precisionOf(logs, r.Gain, each)
	r.Checks = append(slices.Clone(c.Checks), c.checks(sessions, pairs, r.Gain)...)
	if c.builds() {
		r.Arms = []ArmGain{{Name: c.Builds[0], Gain: logGains{}.gain(each)}, {Name: c.Builds[1], Gain: r.Gain}}
	}
	if r.Reasons = failures(r.Checks); len(r.Reasons) > 0 {
		r.Verdict = Invalid
		return r
	}
	r.Verdict = r.decide()
	if r.Verdict == Inconclusive {
		r.PairsNeeded, r.PairsNeededLow, r.PairsNeededHigh = pairsNeeded(logs, c.Threshold, each)
	}
	r.Reasons = append(r.explain(c.Confidence), r.Precision.sentence()...)
	if r.Balance == Claimed {
		r.Reasons = append(r.Reasons, "balance claimed for every rank, not measured")
	}
	if c.Chance {
		r.Reasons = append(r.Reasons, chanceSentence)
	}
	return r
}

// sorted is the campaign with copies of its lists in the order of results.
func (c Campaign) sorted() Campaign {
	c.Launches = append([]Launch{}, c.Launches...)
	slices.SortStableFunc(c.Launches, func(a, b Launch) int {
		return cmp.Or(cmp.Compare(a.Pair, b.Pair), cmp.Compare(a.Position, b.Position), cmp.Compare(a.Arm, b.Arm))
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

// failures are what failed checks found. A check's name says what it wants, so its
// text stands alone.
func failures(checks []Check) []string {
	var reasons []string
	for _, c := range checks {
		if c.Status == Fail {
			reasons = append(reasons, c.Text)
		}
	}
	return reasons
}

// session is the launches of one pair, sorted out.
type session struct {
	number          int
	control         bool
	normal, perfect *Launch // the launches that count; of a control pair the first and second
	notes           []string
}

// pairUp groups launches, sorted by pair and position, into sessions.
func pairUp(launches []Launch) []session {
	var out []session
	for from := 0; from < len(launches); {
		to := from
		for to < len(launches) && launches[to].Pair == launches[from].Pair {
			to++
		}
		out = append(out, newSession(launches[from:to]))
		from = to
	}
	return out
}

func newSession(launches []Launch) session {
	s := session{number: launches[0].Pair, control: launches[0].Control}
	for i := range launches {
		l := &launches[i]
		note := l.Note
		if l.Status != StatusOK {
			note = strings.TrimSuffix(string(l.Arm)+" launch "+l.Status+": "+l.Note, ": ")
		} else {
			s.take(l)
		}
		if note != "" {
			s.notes = append(s.notes, note)
		}
	}
	return s
}

// take keeps the first ok launch of each side.
func (s *session) take(l *Launch) {
	var side **Launch
	switch {
	case l.Arm == Perfect, l.Arm == Normal && s.control && s.normal != nil:
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

func (s session) pair(c Campaign) Pair {
	p := Pair{
		Pair: s.number, Point: router.Number(c.point), Status: PairIncomplete, Note: strings.Join(s.notes, "; "),
		Normal: router.Undefined(), Perfect: router.Undefined(), Gain: router.Undefined(),
	}
	if s.normal != nil {
		p.Normal = router.Number(s.normal.Value)
	}
	if s.perfect != nil {
		p.Perfect = router.Number(s.perfect.Value)
	}
	if s.normal == nil || s.perfect == nil {
		return p
	}
	switch {
	case s.control:
		p.Order = "AA"
	case s.normal.Position == UnknownPosition || s.perfect.Position == UnknownPosition:
	case s.normal.Position <= s.perfect.Position:
		p.Order = "AB"
	default:
		p.Order = "BA"
	}
	p.Gain = fraction(logGain(s.normal.Value, s.perfect.Value, c.Metric.HigherIsBetter))
	switch {
	case !p.Gain.Defined():
		p.Note = strings.TrimPrefix(p.Note+"; no gain: want two positive values", "; ")
	case s.control:
		p.Status = PairControl
	default:
		p.Status = PairComplete
	}
	return p
}
