package gain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// comparison is one arm against the normal one at one point, with what its row in the result is computed from.
type comparison struct {
	*Recorded
	Comparison
	arm     Arm
	point   float64
	further bool    // the arm is neither perfect nor a build that stands in its place
	each    float64 // confidence of each of the comparisons that are judged together

	all    []Unit
	out    map[*Measurement]bool // measurements that fall out
	whole  []Unit                // complete units
	kept   []Unit                // whole without what falls out; they give the gain
	lean   float64               // by how much disturbed launches may have raised the log gain
	sd     float64               // of the log gain of a unit
	checks []Check               // of this comparison alone
	work   map[string][]string   // what the check of work tells, by its case
}

// compare compares an arm at a point; the verdict is for decide, which knows all comparisons.
func (c *Recorded) compare(arm Arm, point, confidence float64) *comparison {
	one := &comparison{Recorded: c, arm: arm, point: point, further: arm != Perfect, each: confidence,
		out: map[*Measurement]bool{}, work: map[string][]string{}}
	one.Arm, one.Name, one.Value = one.called(1), c.PointName, point
	one.all = one.units()
	one.whole = only(one.all, Unit.complete)
	one.leaveOut()
	one.estimate()
	one.compareWork()
	return one
}

// simultaneous is the confidence of each interval at each point, of so many at each, that hold together at
// DefaultConfidence, by Bonferroni.
func (c *Recorded) simultaneous(each int) float64 {
	return 1 - (1-DefaultConfidence)/float64(max(1, len(c.Points))*each)
}

// label tells a comparison from others: "tokens 64", "balancer", "tokens 64 (balancer)"; empty where there is one.
func (c *comparison) label() string {
	switch {
	case len(c.Points) > 0 && len(c.More) > 0:
		return fmt.Sprintf("%s %g (%s)", c.PointName, c.point, c.arm)
	case len(c.Points) > 0:
		return fmt.Sprintf("%s %g", c.PointName, c.point)
	case len(c.More) > 0:
		return string(c.arm)
	}
	return ""
}

// builds reports a comparison that does not ask about balance.
func (c *comparison) builds() bool { return c.Builds.Named() || c.further }

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

// estimate computes the gain of the kept units, and the standard deviation of its logarithm. The interval reaches
// further by what may have raised the gain, on the other side where that lowered it. Copies have none: how launches
// differ is not known.
func (c *comparison) estimate() {
	groups := c.groups()
	t, method := stats.Crossover(c.each, groups...), []string{PairedT, CrossoverT}[len(groups)-1]
	if c.within() {
		t, method = overLaunches(mapped(c.kept, func(u Unit) []float64 { return u.logs }), LaunchSD, c.each)
	}
	c.sd = t.SD
	c.Gain = Gain{method, Interval{fraction(t.Estimate), fraction(t.Low - max(0, c.lean)),
		fraction(t.High + max(0, -c.lean)), router.Number(t.Confidence)}, t.N}
	if !c.within() && t.N < MinPairs || c.copied() {
		u := router.Undefined()
		c.Gain.Low, c.Gain.High, c.Gain.Confidence = u, u, u
	}
}

// overLaunches is a number that each launch shows in each block: Student's t over launches; of a single
// one over its blocks, widened by the standard deviation by which launches differ.
func overLaunches(launches [][]float64, sd, confidence float64) (t stats.Interval, method string) {
	launches = slices.DeleteFunc(launches, func(blocks []float64) bool { return len(blocks) == 0 })
	if len(launches) == 1 {
		t = stats.Widened(launches[0], sd, confidence)
		t.N = 1
		return t, OneLaunch
	}
	return stats.PairedT(mapped(launches, stats.Center), confidence), LaunchT
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

// leastUnits is how many launches that hold all arms, or pairs, a verdict takes.
func (c *Recorded) leastUnits() int {
	return map[bool]int{false: MinPairs, true: MinLaunches}[c.within()]
}

// decide gives the verdict, unless failed checks made the campaign invalid. One whose result may have been chosen
// decides nothing. Where arms did different work at the point of a comparison, it loses its gain; the values of its
// launches stay.
func (c *comparison) decide(invalid Verdict, all []*comparison) {
	c.Verdict = cmp.Or(invalid, verdictOf(c.Gain, c.threshold(), c.builds(), c.leastUnits()))
	if slices.ContainsFunc(all, func(o *comparison) bool { return o.point == c.point && o.differs() }) {
		u := router.Undefined()
		c.Gain.Interval, c.Verdict = noInterval, NotComparable
		for i := range c.all {
			c.all[i].Gain = u
			for j := range c.all[i].Blocks {
				c.all[i].Blocks[j].Gain = u
			}
		}
	}
	c.check()
	undone := slices.ContainsFunc(slices.Concat(c.Checks, c.checks), Check.undoes)
	if !c.Verdict.Open() && !c.Verdict.Refused() && (undone || len(c.whole)-len(c.kept) > len(c.whole)/4) {
		c.Verdict = Inconclusive
	}
}

// threshold is 0 of further arms.
func (c *comparison) threshold() float64 { return map[bool]float64{false: c.Threshold}[c.further] }

// verdictOf decides by the interval of at least so many units. A bound that equals the threshold decides nothing.
func verdictOf(g Gain, threshold float64, builds bool, least int) Verdict {
	low, high := g.Low.Float64(), g.High.Float64()
	switch {
	case g.N < least:
		return NoVerdict
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
// spread is known yet, and when the estimate is so near the threshold that a million would not do.
func (c *comparison) pairsNeeded() router.Number {
	lost := map[bool]int{false: 2, true: 1}[c.within()]
	distance := math.Log1p(c.Gain.Estimate.Float64()) - math.Log1p(c.threshold())
	n, ok := stats.ToDecide(distance, c.sd, c.each, c.leastUnits(), lost)
	outliers := slices.ContainsFunc(c.checks, func(k Check) bool { return k.Name == CheckOutliers })
	if !ok || c.copied() || outliers && !c.within() {
		return router.Undefined()
	}
	return router.Number(max(n, c.Gain.N+1))
}

// secondary are the gains in further metrics that both arms of a unit reported, by name: the same comparison of
// other values. A metric counts over the units that have it.
func (c *comparison) secondary() []SecondaryGain {
	found := map[string]*comparison{} // by name, unit and definition
	for _, m := range c.Measurements {
		for metric := range m.Secondary {
			if found[fmt.Sprint(metric)] == nil && metric != c.Metric && c.Verdict != NotComparable {
				found[fmt.Sprint(metric)] = c.in(metric)
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, one *comparison) bool { return one.Gain.N == 0 })
	rows := []SecondaryGain{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		one := found[name]
		one.each = c.simultaneous(len(found))
		one.estimate()
		rows = append(rows, SecondaryGain{one.Metric, one.Gain})
	}
	return rows
}

// in is a comparison in another metric.
func (c *comparison) in(metric Metric) *comparison {
	other := *c.Recorded
	other.Metric, other.Measurements = metric, slices.Clone(c.Measurements)
	for i := range other.Measurements {
		other.Measurements[i].Value = other.Measurements[i].Secondary[metric]
	}
	return other.compare(c.arm, c.point, c.each)
}
