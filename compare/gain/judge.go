package gain

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Judge turns a campaign into its result: every arm against the normal one at every point, and what these
// comparisons say together. Validity comes first: a failed check makes the verdict Invalid whatever the
// gain, and the gain is still shown, but not of arms that did different work. The same
// campaign gives the same result, whatever the order of its measurements, proofs and differences.
func Judge(c Campaign) Result {
	c = c.sorted()
	c.Design = cmp.Or(c.Design, LaunchPerArm)
	at := c.Points
	if len(at) == 0 {
		at = []float64{0}
	}
	var parts []Result
	for _, p := range at {
		parts = append(parts, c.judgeAt(p))
	}
	if len(c.Points) == 0 {
		return parts[0]
	}
	return c.together(parts)
}

// judgeAt is the result of all arms at one point.
func (c *Campaign) judgeAt(point float64) Result {
	var all []*comparison
	for _, arm := range append([]Arm{Perfect}, c.More...) {
		all = append(all, c.compare(arm, point))
	}
	head := all[0]
	r := Result{SchemaVersion: SchemaVersion, Kind: "bench", Command: c.Command, Design: c.Design, Metric: c.Metric,
		Threshold: c.Threshold, Pairs: []Pair{}, Gain: head.gain, Secondary: head.secondary(),
		PairsNeeded: head.pairsNeeded(),
		Proof:       c.Proof, Balance: c.balance(), Chance: c.Chance, Differences: c.Differences}
	var labels []string
	var checks [][]Check
	for _, one := range all {
		r.add(one)
		labels, checks = append(labels, string(one.arm)), append(checks, one.checks)
	}
	r.Outliers = sortOutliers(r.Outliers)
	r.Checks = slices.Concat(c.Checks, mergeChecks(labels, checks))
	if len(all) == 1 {
		r.Checks = slices.Concat(c.Checks, head.checks)
	}
	r.arms(all)
	r.Dose = c.dose(r.Launches, head.each)
	if r.Verdict = head.verdict; r.fails() {
		r.PairsNeeded = router.Undefined()
		for i := range r.Arms {
			if r.Arms[i].Name == Perfect {
				r.Arms[i].Verdict = r.Verdict
			}
		}
	}
	return r
}

// add adds the units of a comparison.
func (r *Result) add(c *comparison) {
	for _, u := range c.all {
		if c.within() {
			for i := range u.blocks {
				u.blocks[i].sides = [2][]*Measurement{} // a result holds no measurements
			}
			r.Launches = append(r.Launches, LaunchGain{u.Pair, u.Point, u.Arm, u.Gain, u.blocks})
		}
		u.blocks = nil
		r.Pairs = append(r.Pairs, u)
	}
	for _, o := range c.outliers {
		same := func(other Outlier) bool { return other.Launch == o.Launch && other.Pair == o.Pair }
		if !slices.ContainsFunc(r.Outliers, same) {
			r.Outliers = append(r.Outliers, o)
		}
	}
}

// arms lists all arms of two builds, or of a campaign with further ones, with what share of the ceiling
// these recover.
func (r *Result) arms(all []*comparison) {
	head := all[0]
	none := undecided(0, PairedT)
	if head.Builds.Named() {
		r.Arms = []ArmGain{{Name: head.Builds[0], Gain: none}, {Name: head.Builds[1], Gain: r.Gain}}
	}
	if len(all) == 1 {
		return
	}
	r.Arms = []ArmGain{{Name: Normal, Gain: none}}
	for _, one := range all[1:] {
		r.Arms = append(r.Arms, ArmGain{Name: one.arm, Gain: one.gain, Verdict: one.verdict, Share: one.share(head)})
	}
	r.Share = r.Arms[1].Share
	r.Arms = append(r.Arms, ArmGain{Name: Perfect, Gain: r.Gain, Verdict: head.verdict})
}

// share is how much of the gain of another comparison this one recovers, over the units of both.
func (c *comparison) share(ceiling *comparison) *Share {
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

// fails reports failed checks, which make the verdict; arms that did different work have
// no gain, whatever else failed.
func (r *Result) fails() bool {
	refused := refusedBy(r.Checks)
	if refused == "" {
		return false
	}
	if r.Verdict = refused; refused == NotComparable {
		r.withoutGain()
	}
	return true
}

// withoutGain takes all gains from a result, and what was checked about them; the values of
// its launches stay.
func (r *Result) withoutGain() {
	none := undecided(r.Gain.N, r.Gain.Method)
	r.Gain, r.Secondary, r.Share, r.Dose = none, []SecondaryGain{}, nil, nil
	r.Checks = slices.DeleteFunc(slices.Clone(r.Checks), func(c Check) bool {
		return slices.Contains([]string{CheckSign, CheckExplained}, c.Name)
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

// together puts the results of all points together: the head is the point whose interval begins highest.
// The intervals hold simultaneously, by Bonferroni, however the points of one launch depend on each other.
func (c *Campaign) together(parts []Result) Result {
	needs := func(r Result) router.Number { // undefined, and so the least, where the verdict stands
		if r.Verdict == Inconclusive && !r.PairsNeeded.Defined() {
			return router.Number(math.Inf(1))
		}
		return r.PairsNeeded
	}
	out, most := parts[0], parts[0]
	var all Result
	var labels []string
	var checks [][]Check
	for i, r := range parts {
		p := c.Points[i]
		all.Pairs, all.Launches = append(all.Pairs, r.Pairs...), append(all.Launches, r.Launches...)
		all.Outliers = append(all.Outliers, r.Outliers...)
		labels = append(labels, fmt.Sprintf("%s %g", c.PointName, p))
		checks = append(checks, r.Checks)
		share := r.Share
		if share != nil && !share.Estimate.Defined() {
			share = nil
		}
		all.Points = append(all.Points,
			PointGain{c.PointName, p, r.Gain, r.Verdict, share, r.Dose})
		if surer(r.Gain, out.Gain) {
			out = r
		}
		if cmp.Compare(needs(r), needs(most)) > 0 {
			most = r
		}
	}
	out.PairsNeeded = most.PairsNeeded
	out.Checks, out.SimultaneousConfidence = mergeChecks(labels, checks), c.Confidence
	failed := out.fails()
	out.Pairs, out.Launches, out.Points = all.Pairs, all.Launches, all.Points // each as its own point judges it
	if out.Outliers = sortOutliers(all.Outliers); !failed {
		out.Verdict = overall(all.Points)
	}
	return out
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

// mergeChecks puts the checks of several parts together: each name once, with its worst
// status and the parts of it by their labels.
func mergeChecks(labels []string, parts [][]Check) (merged []Check) {
	severity := []CheckStatus{Unknown, Pass, Warn, Fail}
	for i, checks := range parts {
		for _, c := range checks {
			at := slices.IndexFunc(merged, func(m Check) bool { return m.Name == c.Name })
			if at < 0 {
				at = len(merged)
				merged = append(merged, Check{Name: c.Name, Status: c.Status})
			}
			m := &merged[at]
			if slices.Index(severity, c.Status) > slices.Index(severity, m.Status) {
				m.Status = c.Status
			}
			c.Name = labels[i]
			m.Parts = append(m.Parts, c)
		}
	}
	return merged
}
