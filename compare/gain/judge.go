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
	points := c.Points
	if len(points) == 0 {
		points = []float64{0}
	}
	all := mapped(points, c.judgeAt)
	lead := leading(all)
	r := Result{SchemaVersion: SchemaVersion, Kind: "bench", Command: c.Command, Design: c.Design, Metric: c.Metric,
		Threshold: c.Threshold, Balance: c.balance(), Chance: c.Chance, Builds: c.Builds, Pairs: []Unit{},
		Gain: lead[0].gain, PairsNeeded: pairsNeeded(all), Secondary: lead[0].secondary(),
		Proof: c.Proof, Differences: c.Differences}
	var checks []Check
	for _, at := range all {
		for _, one := range at {
			checks = append(checks, one.checks...)
		}
		at.add(&r, at[0] == lead[0])
	}
	r.Checks = append(append([]Check{}, c.Checks...), merged(checks, len(r.Comparisons))...)
	r.Verdict = cmp.Or(refusedBy(r.Checks), overall(r.Main()))
	if len(c.Points) > 0 {
		r.Points, r.SimultaneousConfidence = r.Main(), DefaultConfidence
	}
	return r
}

// judged are the comparisons of all arms at one point, first the one of the perfect arm or the build.
type judged []*comparison

// judgeAt compares all arms at a point. A check that fails in any of the comparisons refuses the first one's verdict.
func (c *Campaign) judgeAt(point float64) judged {
	all := mapped(append([]Arm{Perfect}, c.More...), func(a Arm) *comparison { return c.compare(a, point) })
	checks := c.Checks
	for _, one := range all {
		checks = slices.Concat(checks, one.checks)
	}
	all[0].verdict = cmp.Or(refusedBy(checks), all[0].verdict)
	for _, one := range all {
		if all[0].verdict == NotComparable {
			one.forget()
		}
		for i := range one.checks {
			one.checks[i].Subjects = []string{one.label()}
		}
	}
	return all
}

// forget takes the gain from a comparison, and what was checked about it; the values of its launches stay.
func (c *comparison) forget() {
	u := router.Undefined()
	c.gain, c.verdict, c.whole = Gain{Method: c.gain.Method, Estimate: u, N: c.gain.N}.unbounded(), NotComparable, nil
	c.checks = slices.DeleteFunc(c.checks, func(k Check) bool { return k.Name == CheckExplained })
	for i := range c.all {
		c.all[i].Gain = u
		for j := range c.all[i].blocks {
			c.all[i].blocks[j].Gain = u
		}
	}
}

// add adds the rows of a point to a result.
func (j judged) add(r *Result, leads bool) {
	var units []Unit
	for _, c := range j {
		row := Comparison{Arm: c.called(1), Name: c.PointName, Value: c.point, Leads: leads, Gain: c.gain,
			Verdict: c.verdict}
		if c.further {
			row.Share = c.share(j[0])
		}
		r.Comparisons, units = append(r.Comparisons, row), append(units, c.all...)
	}
	if r.Design != WithinLaunch {
		r.Pairs = append(r.Pairs, units...)
		return
	}
	r.Launches = append(r.Launches, units...)
	if head := &r.Comparisons[len(r.Comparisons)-len(j)]; head.Verdict != NotComparable {
		head.Dose = j[0].dose(j[0].point, units)
	}
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
		return &Share{u, u, u, u}
	}
	return &Share{router.Number(ratio.Estimate), router.Number(ratio.Low), router.Number(ratio.High),
		router.Number(ratio.Confidence)}
}

// leading is the point whose interval begins highest, or the first one without a gain, where arms did different work.
// The intervals hold simultaneously, by Bonferroni, however the points of one launch depend on each other.
func leading(points []judged) judged {
	lead := points[0]
	for _, p := range points {
		if p[0].verdict == NotComparable {
			return p
		}
		if surer(p[0].gain, lead[0].gain) {
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
		switch n := p[0].pairsNeeded(); {
		case p[0].verdict.Refused() || p[0].verdict == Inconclusive && !n.Defined():
			return router.Undefined()
		case !most.Defined() || n > most:
			most = n
		}
	}
	return most
}

// overall is the verdict of several points: the one that all share, or significant where one is.
func overall(points []Comparison) Verdict {
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
