package gain

import (
	"cmp"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Judge turns what a campaign recorded into its result: every arm against the normal one at every point, and what
// these comparisons say together. Validity comes first: a failed check makes all verdicts Invalid whatever the
// gain. The gain is still shown, unless the arms did different work at its point. The same
// campaign gives the same result, whatever the order of its measurements, proofs and differences.
func Judge(c Recorded) Result {
	c = c.sorted()
	all := c.compareAll()
	balance, proof := c.checkProof()
	r := Result{SchemaVersion: SchemaVersion, Kind: "bench", Head: c.Head, Balance: balance, Pairs: []Unit{}}
	if r.Checks = slices.Clone(c.Checks); !c.Builds.Named() {
		r.Checks = append(r.Checks, proof)
	}
	r.Checks = append(r.Checks, c.checkDifferences())
	work := c.checkWork(all)
	invalid := len(r.Failed()) > 0
	r.Checks = append(r.Checks, work)
	units := &r.Pairs
	if c.within() {
		units = &r.Launches
	}
	var heads []*comparison // of the perfect arm or the build, by point
	for _, one := range all {
		if one.decide(invalid, all); one.further() {
			one.Share = one.share(heads[len(heads)-1])
		} else {
			heads = append(heads, one)
		}
		r.Checks = append(r.Checks, one.checks...)
		*units = append(*units, one.all...)
	}
	lead := leading(heads)
	for _, one := range all {
		if one.Leads = one.Value == lead.Value; c.within() && !one.further() && one.Verdict != NotComparable {
			one.Dose = c.dose(one.Value, r.Launches)
		}
		r.Comparisons = append(r.Comparisons, one.Comparison)
	}
	r.Gain, r.Secondary = lead.Gain, lead.secondary()
	open := only(heads, func(p *comparison) bool { return p.Verdict == Inconclusive })
	if r.PairsNeeded = router.Undefined(); len(open) > 0 { // of several the most, unknown where one is
		r.PairsNeeded = slices.Max(mapped(open, (*comparison).pairsNeeded))
	}
	switch r.Verdict = overall(heads); {
	case work.Status == Fail:
		r.Verdict = NotComparable
	case invalid:
		r.Verdict = Invalid
	}
	if len(c.Points) > 0 {
		r.Points, r.SimultaneousConfidence = r.Main(), DefaultConfidence
	}
	return r
}

// compareAll compares every arm at every point: by point, first the perfect arm or the build, then the further ones.
func (r *Recorded) compareAll() (all []*comparison) {
	for _, point := range slices.Concat(r.Points, []float64{0})[:max(1, len(r.Points))] { // 0 where there are none
		for _, arm := range append([]Arm{Perfect}, r.More...) {
			all = append(all, r.compare(arm, point, r.simultaneous(1)))
		}
	}
	return all
}

// share is the part of another comparison's gain, the ceiling, that this one recovers, over the units of both: the
// ratio of their mean log gains, with the t interval of what each unit is off it. Nil where the arms did different
// work.
func (c *comparison) share(ceiling *comparison) *Interval {
	if c.Verdict == NotComparable {
		return nil
	}
	var parts, wholes []float64
	for _, part := range c.whole {
		for _, whole := range only(ceiling.whole, func(u Unit) bool { return u.Pair == part.Pair }) {
			parts, wholes = append(parts, part.log), append(wholes, whole.log)
		}
	}
	share, all := noInterval, mean(wholes)
	if ceiling.Gain.Low > 0 && c.Gain.Low.Defined() {
		ratio := mean(parts) / all
		for i, whole := range wholes {
			parts[i] = ratio + (parts[i]-ratio*whole)/all
		}
		t := stats.PairedT(parts, c.each)
		share = Interval{router.Number(t.Estimate), router.Number(t.Low), router.Number(t.High), router.Number(t.Confidence)}
	}
	return &share
}

// leading is the point whose interval begins highest, of the points with the verdict over all where there are any, or
// the first one without a gain, where arms did different work.
// The intervals hold simultaneously, by Bonferroni, however the points of one launch depend on each other.
func leading(points []*comparison) *comparison {
	rank := func(c *comparison) int { return slices.Index([]Verdict{overall(points), NotComparable}, c.Verdict) }
	return slices.MaxFunc(points, func(a, b *comparison) int {
		// what is undefined is the least
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Gain.Low, b.Gain.Low), cmp.Compare(a.Gain.Estimate, b.Gain.Estimate))
	})
}

// overall is the verdict of several points: the one that all share, or significant where one is.
func overall(points []*comparison) Verdict {
	verdicts := mapped(points, func(p *comparison) Verdict { return p.Verdict })
	switch slices.Sort(verdicts); {
	case slices.Contains(verdicts, Significant):
		return Significant
	case verdicts[0] == verdicts[len(verdicts)-1]:
		return verdicts[0]
	}
	return Inconclusive
}
