package gain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Judge turns a campaign into its result: every arm against the normal one at every point, and what these
// comparisons say together. Validity comes first: a failed check makes the verdict Invalid whatever the
// gain. The gain is still shown, unless the arms did different work. The same
// campaign gives the same result, whatever the order of its measurements, proofs and differences.
func Judge(c Campaign) Result {
	c = c.sorted()
	c.Design = cmp.Or(c.Design, LaunchPerArm)
	at := c.Points
	if len(at) == 0 {
		at = []float64{0}
	}
	var points []judged
	for _, p := range at {
		points = append(points, c.judgeAt(p))
	}
	lead := leading(points)
	head := lead.all[0]
	r := Result{SchemaVersion: SchemaVersion, Kind: "bench", Command: c.Command, Design: c.Design, Metric: c.Metric,
		Threshold: c.Threshold, Balance: c.balance(), Chance: c.Chance, Pairs: []Pair{}, Gain: head.gain,
		Verdict: lead.verdict, PairsNeeded: pairsNeeded(points), Secondary: head.secondary(), Dose: lead.dose,
		Proof: c.Proof, Differences: c.Differences}
	r.Arms, r.Share = lead.arms()
	r.Checks = slices.Concat(c.Checks, c.merged(points))
	for _, p := range points {
		p.add(&r)
	}
	if slices.SortStableFunc(r.Outliers, byLaunch); len(c.Points) == 0 {
		return r
	}
	r.SimultaneousConfidence = c.Confidence
	for i, p := range points {
		_, share := p.arms()
		if share != nil && !share.Estimate.Defined() {
			share = nil
		}
		r.Points = append(r.Points, PointGain{c.PointName, c.Points[i], p.all[0].gain, p.verdict, share, p.dose})
	}
	r.Verdict = cmp.Or(refusedBy(r.Checks), overall(r.Points))
	return r
}

// judged are the comparisons of all arms at one point, the perfect one or a build first, and what they say
// together. The verdict is the first comparison's, unless a check in any of them has failed.
type judged struct {
	all     []*comparison
	verdict Verdict
	dose    *Dose
}

func (c *Campaign) judgeAt(point float64) (j judged) {
	checks := c.Checks
	for _, arm := range append([]Arm{Perfect}, c.More...) {
		one := c.compare(arm, point)
		j.all, checks = append(j.all, one), slices.Concat(checks, one.checks)
	}
	if j.verdict = cmp.Or(refusedBy(checks), j.all[0].verdict); j.verdict != NotComparable {
		j.dose = c.dose(j.launches(), j.all[0].each)
		return j
	}
	for _, one := range j.all {
		one.forget()
	}
	return j
}

// forget takes the gain from a comparison, and what was checked about it; the values of its launches stay.
func (c *comparison) forget() {
	c.gain, c.verdict, c.whole = undecided(c.gain.N, c.gain.Method), NotComparable, nil
	c.checks = slices.DeleteFunc(c.checks, func(k Check) bool { return k.Name == CheckSign || k.Name == CheckExplained })
	for i := range c.all {
		c.all[i].Gain = router.Undefined()
		for j := range c.all[i].blocks {
			c.all[i].blocks[j].Gain = router.Undefined()
		}
	}
}

// launches are the gains of all arms in each launch that holds them.
func (j judged) launches() (all []LaunchGain) {
	for _, c := range j.all {
		for _, u := range c.all {
			all = append(all, LaunchGain{u.Pair, u.Point, u.Arm, u.Gain, u.blocks})
		}
	}
	return all
}

// add adds the rows of a point to a result, which holds no measurements.
func (j judged) add(r *Result) {
	if r.Design == WithinLaunch {
		r.Launches = append(r.Launches, j.launches()...)
	}
	for _, c := range j.all {
		for _, u := range c.all {
			for i := range u.blocks {
				u.blocks[i].sides = [2][]*Measurement{}
			}
			u.blocks = nil
			r.Pairs = append(r.Pairs, u)
		}
		for _, o := range c.outliers {
			if !slices.ContainsFunc(r.Outliers, func(other Outlier) bool {
				return other.Launch == o.Launch && other.Pair == o.Pair && other.Point == o.Point
			}) {
				r.Outliers = append(r.Outliers, o)
			}
		}
	}
}

// arms lists the two builds, or all arms of a campaign that has further ones. Each further arm has the share
// of the ceiling that it recovers; the first one's share is returned, too.
func (j judged) arms() (arms []ArmGain, share *Share) {
	head, none := j.all[0], undecided(0, PairedT)
	switch {
	case len(j.all) > 1:
		arms = []ArmGain{{Name: Normal, Gain: none}}
		for _, one := range j.all[1:] {
			arms = append(arms, ArmGain{one.arm, one.gain, one.verdict, one.share(head)})
		}
		share = arms[1].Share
		arms = append(arms, ArmGain{Name: Perfect, Gain: head.gain, Verdict: j.verdict})
	case head.Builds.Named():
		arms = []ArmGain{{Name: head.Builds[0], Gain: none}, {Name: head.Builds[1], Gain: head.gain}}
	}
	return arms, share
}

// share is the part of another comparison's gain, the ceiling, that this one recovers, over the units of both;
// nil where the arms did different work.
func (c *comparison) share(ceiling *comparison) *Share {
	if c.verdict == NotComparable {
		return nil
	}
	u := router.Undefined()
	s := &Share{c.arm, u, u, u, u}
	var parts, wholes []float64
	for _, part := range c.whole {
		for _, whole := range ceiling.whole {
			if whole.Pair == part.Pair {
				parts, wholes = append(parts, part.log), append(wholes, whole.log)
			}
		}
	}
	ratio := stats.Ratio(parts, wholes, c.each)
	if ratio.Defined() && ceiling.gain.Low > 0 && c.gain.Low.Defined() {
		*s = Share{c.arm, router.Number(ratio.Estimate), router.Number(ratio.Low), router.Number(ratio.High),
			router.Number(ratio.Confidence)}
	}
	return s
}

// leading is the point whose interval begins highest, or the first one without a gain, where arms did different work.
// The intervals hold simultaneously, by Bonferroni, however the points of one launch depend on each other.
func leading(points []judged) judged {
	lead := points[0]
	for _, p := range points {
		if p.verdict == NotComparable {
			return p
		}
		if surer(p.all[0].gain, lead.all[0].gain) {
			lead = p
		}
	}
	return lead
}

// pairsNeeded is the number of the point that needs most; undefined where one is inconclusive and no number is known
// that would decide it, or where nothing is to be decided.
func pairsNeeded(points []judged) router.Number {
	most := router.Undefined()
	for _, p := range points {
		switch n := p.all[0].pairsNeeded(); {
		case p.verdict.Refused() || p.verdict == Inconclusive && !n.Defined():
			return router.Undefined()
		case !most.Defined() || n > most:
			most = n
		}
	}
	return most
}

// surer reports whether a gain leads another: by its interval's lower end, without intervals by its estimate.
func surer(a, b Gain) bool {
	if a.Low.Defined() || b.Low.Defined() {
		return a.Low > b.Low || !b.Low.Defined()
	}
	return a.Estimate > b.Estimate || a.Estimate.Defined() && !b.Estimate.Defined()
}

// overall is the verdict of several points: the one that all share, or significant where one is.
func overall(points []PointGain) Verdict {
	verdict := points[0].Verdict
	for _, p := range points {
		switch {
		case p.Verdict == Significant:
			return Significant
		case p.Verdict != verdict:
			verdict = Inconclusive
		}
	}
	return verdict
}

// merged are the checks of all comparisons. Of several comparisons each check is one, with the worst status
// and its parts by point and arm.
func (c *Campaign) merged(points []judged) (merged []Check) {
	severity := []CheckStatus{Unknown, Pass, Warn, Fail}
	for _, p := range points {
		if len(points) == 1 && len(p.all) == 1 {
			return p.all[0].checks
		}
		for _, one := range p.all {
			for _, check := range one.checks {
				at := slices.IndexFunc(merged, func(m Check) bool { return m.Name == check.Name })
				if at < 0 {
					at = len(merged)
					merged = append(merged, Check{Name: check.Name, Status: check.Status})
				}
				m := &merged[at]
				if slices.Index(severity, check.Status) > slices.Index(severity, m.Status) {
					m.Status = check.Status
				}
				check.Name = one.label(len(p.all) > 1)
				m.Parts = append(m.Parts, check)
			}
		}
	}
	return merged
}

// label tells a comparison from others: "tokens 64", "balancer", "tokens 64 (balancer)".
func (c *comparison) label(arms bool) string {
	switch at := fmt.Sprintf("%s %g", c.PointName, c.point); {
	case len(c.Points) == 0:
		return string(c.arm)
	case arms:
		return at + fmt.Sprintf(" (%s)", c.arm)
	default:
		return at
	}
}
