package gain

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// comparison is one arm against the normal one at one point, with what its row in the result is computed from.
type comparison struct {
	*Recorded
	Comparison
	arm  Arm
	each float64 // confidence of each of the comparisons that are judged together

	all    []Unit
	out    map[*Measurement]bool // measurements that fall out
	whole  []Unit                // complete units
	kept   []Unit                // whole without what falls out; they give the gain
	sd     float64               // of the log gain of a unit
	checks []Check               // of this comparison alone
	work   map[string][]string   // what the check of work tells, by its case
}

// compare compares an arm at a point; the verdict is for decide, which knows all comparisons.
func (r *Recorded) compare(arm Arm, point, confidence float64) *comparison {
	one := &comparison{Recorded: r, Comparison: Comparison{Arm: r.Builds.Called(arm), Name: r.PointName, Value: point},
		arm: arm, each: confidence, out: map[*Measurement]bool{}, work: map[string][]string{}}
	one.all = one.measuredUnits()
	one.whole = only(one.all, Unit.complete)
	one.leaveOut()
	one.estimate()
	one.compareWork()
	return one
}

// simultaneous is the confidence of each interval at each point, of so many at each, that hold together at
// DefaultConfidence, by Bonferroni.
func (r *Recorded) simultaneous(each int) float64 {
	return 1 - (1-DefaultConfidence)/float64(max(1, len(r.Points))*each)
}

// label tells a comparison from others: "tokens 64", "balancer", "tokens 64 (balancer)"; empty where there is one.
func (c *comparison) label() (label string) {
	if len(c.More) > 0 {
		label = string(c.arm)
	}
	if point := fmt.Sprintf("%s %g", c.PointName, c.Value); len(c.Points) > 0 {
		label = strings.TrimSuffix(fmt.Sprintf("%s (%s)", point, label), " ()")
	}
	return label
}

// further reports an arm that is neither perfect nor a build that stands in its place.
func (c *comparison) further() bool { return c.arm != Perfect }

// builds reports a comparison that does not ask about balance.
func (c *comparison) builds() bool { return c.Builds.Named() || c.further() }

// called is the name of a side for people.
func (c *comparison) called(side int) Arm { return c.Builds.Called([]Arm{Normal, c.arm}[side]) }

// groups are the log gains of the kept units. Both orders are apart if every unit has a known order and both
// were run, so that the effect of the order can be taken out; else all units are together.
//
//	AB 0.11, BA 0.05, AB 0.13, BA 0.07 → {0.11, 0.13}, {0.05, 0.07}
func (c *comparison) groups() [][]float64 {
	by := map[string][]float64{}
	for _, u := range c.kept {
		by[u.Order] = append(by[u.Order], u.log)
	}
	if ab, ba := by["AB"], by["BA"]; len(ab) > 0 && len(ba) > 0 && len(by) == 2 {
		return [][]float64{ab, ba}
	}
	return [][]float64{mapped(c.kept, func(u Unit) float64 { return u.log })}
}

// skewed is how far an interval of pairs reaches beyond what noise makes it, in skews of their gains.
const skewed = 1.5

// skew is how far the mean log gain of pairs is above their median, both about the mean of their order: what single
// disturbed launches that no limit shows may add to it.
//
//	gains of 0.10, 0.10, 0.10, 0.10, 0.10, 0.16 in one order → 0.11 − 0.10 = 0.01
func skew(groups [][]float64) float64 {
	var residuals []float64
	for _, group := range groups {
		residuals = append(residuals, mapped(group, func(log float64) float64 { return log - mean(group) })...)
	}
	return -stats.Median(residuals)
}

// estimate computes the gain of the kept units, and the standard deviation of its logarithm. The interval of pairs
// reaches further down by what disturbed ones may have raised the gain, and up where they lowered it. Copies have none:
// how launches differ is not known.
func (c *comparison) estimate() {
	groups := c.groups()
	t, method := stats.Crossover(c.each, groups...), []string{PairedT, CrossoverT}[len(groups)-1]
	if c.within() {
		t = overLaunches(mapped(c.kept, func(u Unit) []float64 { return u.logs }), LaunchSD, c.each)
		if method = LaunchT; len(c.kept) == 1 {
			method = OneLaunch
		}
	} else if len(c.kept) > 0 {
		lean := skewed * skew(groups)
		t.Low, t.High = t.Low-max(0, lean), t.High+max(0, -lean)
	}
	c.sd, c.Gain = t.SD, Gain{method, fractions(t), t.N}
	// of two blocks that are apart, one launch may span −99.7 to +35,738 %
	if !c.within() && len(c.whole) < MinPairs || c.copied() || method == OneLaunch && t.High-t.Low > math.Ln2 {
		c.Gain.Interval = Interval{c.Gain.Estimate, router.Undefined(), router.Undefined(), router.Undefined()}
	}
}

// overLaunches is a number that each launch shows in each block: Student's t over launches, which may be of two kinds;
// of a single one over its blocks, widened by the standard deviation by which launches differ.
func overLaunches(launches [][]float64, sd, confidence float64) stats.Interval {
	if len(launches) == 1 {
		return stats.Widened(launches[0], sd, confidence)
	}
	return stats.OverGroups(mapped(launches, mean), confidence)
}

// only are the items of a list that fit.
func only[T any](list []T, fits func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return !fits(t) })
}

// mapped are the values of a list.
func mapped[T, V any](list []T, value func(T) V) (values []V) {
	for _, t := range list {
		values = append(values, value(t))
	}
	return values
}

// decide gives the verdict, unless failed checks made the campaign invalid. One whose result may have been chosen
// decides nothing. Where arms did different work at the point of a comparison, it loses its gain; the values of its
// launches stay.
func (c *comparison) decide(invalid bool, all []*comparison) {
	switch c.Verdict = verdictOf(c.Gain, c.threshold(), c.builds()); {
	case invalid:
		c.Verdict = Invalid
	case len(c.whole) < c.needs().units:
		c.Verdict = NoVerdict
	}
	if slices.ContainsFunc(all, func(o *comparison) bool { return o.Value == c.Value && o.differs() }) {
		c.Gain.Interval, c.Verdict = noInterval, NotComparable
		for i := range c.all {
			c.all[i].Gain = router.Undefined()
			for j := range c.all[i].Blocks {
				c.all[i].Blocks[j].Gain = router.Undefined()
			}
		}
	}
	c.check()
	undone := undone(slices.Concat(c.Checks, c.checks), len(c.whole), len(c.kept))
	if undone && !c.Verdict.Open() && !c.Verdict.Refused() {
		c.Verdict = Inconclusive
	}
}

// undone reports an interval that decides nothing: a check undoes it, or more than a quarter of the units fall out.
func undone(checks []Check, whole, kept int) bool {
	return whole-kept > whole/4 || slices.ContainsFunc(checks, Check.undoes)
}

// threshold is 0 of further arms.
func (c *comparison) threshold() float64 {
	if c.further() {
		return 0
	}
	return c.Threshold
}

// verdictOf decides by an interval. A bound that equals the threshold decides nothing.
func verdictOf(g Gain, threshold float64, builds bool) Verdict {
	low, high := g.Low.Float64(), g.High.Float64()
	switch {
	case builds && low > threshold:
		return Faster
	case builds && high < 1/(1+threshold)-1:
		return Slower
	case builds && low > -equivalenceMargin && high < equivalenceMargin:
		return Equal
	case builds:
	case low > threshold:
		return Significant
	case high < threshold:
		return NotSignificant
	}
	return Inconclusive
}

// pairsNeeded is how many units in all would settle on which side of the
// threshold the gain lies, with probability 0.8, if the estimate and the spread
// stay what they are (see stats.ToDecide). It is at least one more than there are. It is undefined when no
// spread is known yet, when the interval would decide but its launches may not, and when the estimate is so near the
// threshold that a million would not do.
func (c *comparison) pairsNeeded() router.Number {
	needs := c.needs()
	distance := math.Log1p(c.Gain.Estimate.Float64()) - math.Log1p(c.threshold())
	n, ok := stats.ToDecide(distance, c.sd, c.each, needs.units, needs.lost)
	outliers := slices.ContainsFunc(c.checks, func(k Check) bool { return k.Name == CheckOutliers })
	if !ok || c.copied() || outliers && !c.within() || verdictOf(c.Gain, c.threshold(), c.builds()) != Inconclusive {
		return router.Undefined()
	}
	return router.Number(max(n, c.Gain.N+1))
}

// secondary are the gains in further metrics that both arms of a unit reported, by name: the same comparison of
// other values. A metric counts over the units that have it.
func (c *comparison) secondary() []SecondaryGain {
	found := map[Metric]*comparison{}
	for _, m := range c.Measurements {
		for metric := range m.Secondary {
			if found[metric] == nil && metric != c.Metric && c.Verdict != NotComparable {
				other := *c.Recorded
				other.Metric, other.Measurements = metric, slices.Clone(c.Measurements)
				for i, m := range c.Measurements {
					other.Measurements[i].Value = m.Secondary[metric]
				}
				found[metric] = other.compare(c.arm, c.Value, c.each)
			}
		}
	}
	maps.DeleteFunc(found, func(_ Metric, one *comparison) bool { return one.Gain.N == 0 })
	rows := []SecondaryGain{}
	for _, metric := range slices.SortedFunc(maps.Keys(found), byText[Metric]) {
		one := found[metric]
		one.each = c.simultaneous(len(found))
		one.estimate()
		rows = append(rows, SecondaryGain{one.Metric, one.Gain})
	}
	return rows
}
