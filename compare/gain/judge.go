package gain

import (
	"cmp"
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
	if !c.Builds.Named() {
		c.Checks = append(slices.Clone(c.Checks), c.checkProof())
	}
	var points []judged
	for _, p := range c.Points {
		points = append(points, c.judgeAt(p))
	}
	if len(points) == 0 {
		points = []judged{c.judgeAt(0)}
	}
	lead := leading(points)
	r := Result{SchemaVersion: SchemaVersion, Kind: "bench", Command: c.Command, Design: c.Design, Metric: c.Metric,
		Threshold: c.Threshold, Balance: c.balance(), Chance: c.Chance, Pairs: []Pair{}, Gain: lead.all[0].gain,
		Verdict: lead.verdict, PairsNeeded: pairsNeeded(points), Secondary: lead.all[0].secondary(), Dose: lead.dose,
		Proof: c.Proof, Differences: c.Differences}
	r.Arms, r.Share = lead.arms()
	var checks []Check
	for _, p := range points {
		p.add(&r)
		for _, one := range p.all {
			for _, check := range one.checks {
				check.Subjects = []string{one.label()}
				checks = append(checks, check)
			}
		}
	}
	r.Checks = append(append([]Check{}, c.Checks...), merged(checks, len(points)*len(lead.all))...)
	if slices.SortStableFunc(r.Outliers, byLaunch); len(c.Points) == 0 {
		return r
	}
	r.SimultaneousConfidence = DefaultConfidence
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
		j.dose = c.dose(point, j.launches())
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
	c.checks = slices.DeleteFunc(c.checks, func(k Check) bool { return k.Name == CheckExplained })
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

// add adds the rows of a point to a result, which names an outlying launch once.
func (j judged) add(r *Result) {
	if r.Design == WithinLaunch {
		r.Launches = append(r.Launches, j.launches()...)
	}
	for _, c := range j.all {
		r.Pairs = append(r.Pairs, c.all...)
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
	var parts, wholes []float64
	for _, part := range c.whole {
		for _, whole := range ceiling.whole {
			if whole.Pair == part.Pair {
				parts, wholes = append(parts, part.log), append(wholes, whole.log)
			}
		}
	}
	ratio, u := stats.Ratio(parts, wholes, c.each), router.Undefined()
	if !ratio.Defined() || !(ceiling.gain.Low > 0) || !c.gain.Low.Defined() {
		return &Share{c.arm, u, u, u, u}
	}
	return &Share{c.arm, router.Number(ratio.Estimate), router.Number(ratio.Low), router.Number(ratio.High),
		router.Number(ratio.Confidence)}
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

// surer reports whether a gain leads another: by its interval's lower end, without intervals by its estimate.
func surer(a, b Gain) bool {
	if a.Low.Defined() || b.Low.Defined() {
		return a.Low > b.Low || !b.Low.Defined()
	}
	return a.Estimate > b.Estimate || a.Estimate.Defined() && !b.Estimate.Defined()
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
