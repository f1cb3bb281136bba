package gain

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// comparison is one arm against the normal one at one point: results are a list of these.
type comparison struct {
	*Campaign
	arm     Arm
	point   float64
	further bool    // the arm is neither perfect nor a build that stands in its place
	each    float64 // confidence of each of the comparisons that are judged together

	all     []Unit
	out     map[*Measurement]bool // measurements that fall out
	falls   []Check               // about what falls out
	whole   []Unit                // complete units
	kept    []Unit                // whole without what falls out; they give the gain
	lean    float64               // by how much disturbed launches may have raised the log gain
	sd      float64               // of the log gain of a unit
	gain    Gain
	checks  []Check
	verdict Verdict
}

// compare judges an arm at a point.
func (c *Campaign) compare(arm Arm, point float64) *comparison {
	one := &comparison{Campaign: c, arm: arm, point: point, further: arm != Perfect, each: c.simultaneous(1),
		out: map[*Measurement]bool{}}
	one.all = one.units()
	one.whole = complete(one.all)
	one.leaveOut()
	one.gain, one.sd = one.test(one.kept, primary, one.each, one.lean)
	if one.copied() {
		one.gain = one.gain.unbounded() // how launches differ is not known
	}
	one.check()
	one.decide()
	return one
}

// simultaneous is the confidence of each interval at each point, of so many at each, that hold together at
// DefaultConfidence, by Bonferroni.
func (c *Campaign) simultaneous(each int) float64 {
	return 1 - (1-DefaultConfidence)/float64(max(1, len(c.Points))*each)
}

// label tells a comparison from others: "tokens 64", "balancer", "tokens 64 (balancer)".
func (c *comparison) label() string {
	switch at := fmt.Sprintf("%s %g", c.PointName, c.point); {
	case len(c.Points) == 0:
		return string(c.arm)
	case len(c.More) > 0:
		return at + fmt.Sprintf(" (%s)", c.arm)
	default:
		return at
	}
}

// builds reports a comparison that does not ask about balance.
func (c *comparison) builds() bool { return c.Builds.Named() || c.further }

// called is the name of a side for people.
func (c *comparison) called(side int) Arm {
	if side == 1 && c.further {
		return c.arm
	}
	return c.Builds.Called(Arms[side])
}

// groups are the log gains of units in a metric. Both orders are apart if every unit has a known order and both
// were run, so that the effect of the order can be taken out; else all units are together.
//
//	AB 0.11, BA 0.05, AB 0.13, BA 0.07 → {0.11, 0.13}, {0.05, 0.07}
func (c *comparison) groups(units []Unit, read reading) [][]float64 {
	by := map[string][]float64{}
	var all []float64
	for _, u := range units {
		if x := stats.Center(c.logs(u, read)); !math.IsNaN(x) {
			by[u.Order], all = append(by[u.Order], x), append(all, x)
		}
	}
	if ab, ba := by["AB"], by["BA"]; len(ab) > 0 && len(ba) > 0 && len(by) == 2 {
		return [][]float64{ab, ba}
	}
	return [][]float64{all}
}

// test is the gain of units in a metric, leaning by a bias, and the standard deviation of their log gain.
func (c *comparison) test(units []Unit, read reading, confidence, bias float64) (Gain, float64) {
	groups := c.groups(units, read)
	t, method := stats.Crossover(confidence, groups...), PairedT
	switch {
	case c.within():
		t, method = overLaunches(mapped(units, func(u Unit) []float64 { return c.logs(u, read) }), LaunchSD, confidence)
	case len(groups) == 2:
		method = CrossoverT
	}
	t = t.Leaning(bias)
	g := Gain{Method: method, Estimate: fraction(t.Estimate), Low: fraction(t.Low), High: fraction(t.High),
		Confidence: router.Number(t.Confidence), N: t.N}
	if !c.within() && g.N < MinPairs {
		g = g.unbounded()
	}
	return g, t.SD
}

// overLaunches is a number of which each launch has a value in each block: Student's t over launches; of a single
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

// mapped are the values of a list.
func mapped[T, V any](list []T, value func(T) V) (values []V) {
	for _, t := range list {
		values = append(values, value(t))
	}
	return values
}

func (g Gain) unbounded() Gain {
	u := router.Undefined()
	g.Low, g.High, g.Confidence = u, u, u
	return g
}

// leastUnits is how many launches that hold all arms, or pairs, a verdict takes.
func (c *Campaign) leastUnits() int {
	if c.within() {
		return MinLaunches
	}
	return MinPairs
}

// decide compares the interval with the threshold. A bound that equals the threshold decides nothing, and
// neither does a campaign whose result may have been chosen.
func (c *comparison) decide() {
	if c.verdict = refusedBy(c.checks); c.verdict != "" {
		return
	}
	undone := func(check Check) bool { return check.Status == Warn && check.undoes() }
	c.verdict = verdictOf(c.gain, c.threshold(), c.builds(), c.leastUnits())
	if !c.verdict.Open() && (slices.ContainsFunc(slices.Concat(c.Checks, c.checks), undone) ||
		len(c.whole)-len(c.kept) > len(c.whole)/4) {
		c.verdict = Inconclusive
	}
}

func (c *comparison) threshold() float64 {
	if c.further {
		return 0
	}
	return c.Threshold
}

// refusedBy is the verdict of failed checks, empty where none failed.
func refusedBy(checks []Check) (v Verdict) {
	for _, check := range checks {
		switch {
		case check.Status != Fail:
		case check.Name == CheckWork:
			return NotComparable
		default:
			v = Invalid
		}
	}
	return v
}

// verdictOf decides by the interval of at least so many units.
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
	least, lost := 2, 1
	if !c.within() {
		least, lost = MinPairs, 2
	}
	n, ok := stats.ToDecide(math.Log1p(c.gain.Estimate.Float64())-math.Log1p(c.threshold()), c.sd, c.each, least, lost)
	if c.verdict != Inconclusive || !ok || c.copied() || len(c.falls) > 0 && !c.within() {
		return router.Undefined()
	}
	return router.Number(max(n, c.gain.N+1))
}

// secondary are the gains in further metrics that both arms of a unit reported, by name. A metric counts over
// the units that have it.
func (c *comparison) secondary() []SecondaryGain {
	found := map[string]Metric{} // by name, unit and definition
	for _, m := range c.Measurements {
		for metric := range m.Secondary {
			has := func(u Unit) bool { return len(c.logs(u, c.read(metric))) > 0 }
			if metric != c.Metric && slices.ContainsFunc(c.whole, has) {
				found[fmt.Sprint(metric)] = metric
			}
		}
	}
	rows := []SecondaryGain{}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		gained, _ := c.test(c.whole, c.read(found[key]), c.simultaneous(len(found)), 0)
		rows = append(rows, SecondaryGain{found[key], gained})
	}
	return rows
}

// read reads a secondary metric, whose direction may be other than the primary one's.
func (c *comparison) read(metric Metric) reading {
	return func(m *Measurement) float64 {
		log := logOf(m.Secondary[metric])
		if metric.HigherIsBetter != c.Metric.HigherIsBetter {
			return -log
		}
		return log
	}
}
