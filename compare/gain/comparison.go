package gain

import (
	"cmp"
	"fmt"
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

	all      []Pair
	out      map[*Measurement]bool // measurements that fall out
	outliers []Outlier
	falls    []Check // about what falls out
	whole    []Pair  // complete units
	kept     []Pair  // whole without what falls out; they give the gain
	lean     float64 // by how much disturbed launches may have raised the log gain
	sd       float64 // of the log gain of a unit
	gain     Gain
	checks   []Check
	verdict  Verdict
}

// compare judges an arm at a point.
func (c *Campaign) compare(arm Arm, point float64) *comparison {
	one := &comparison{Campaign: c, arm: arm, point: point, further: arm != Perfect,
		each: simultaneous(max(1, len(c.Points))), out: map[*Measurement]bool{}}
	one.all = one.units()
	one.whole = complete(one.all)
	one.leaveOut()
	t := one.test(one.kept, primary, one.each).Leaning(one.lean)
	if one.gain, one.sd = one.gainOf(t, one.kept), t.SD; one.copied() {
		one.gain = one.gain.unbounded() // how launches differ is not known
	}
	one.check()
	one.decide()
	return one
}

// simultaneous is the confidence of each of so many intervals that hold together at DefaultConfidence, by
// Bonferroni.
func simultaneous(family int) float64 { return 1 - (1-DefaultConfidence)/float64(family) }

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

func (c *comparison) threshold() float64 {
	if c.further {
		return 0
	}
	return c.Threshold
}

// groups are the log gains of units in a metric. Both orders are apart if every unit has a known order and both
// were run, so that the effect of the order can be taken out; else all units are together.
//
//	AB 0.11, BA 0.05, AB 0.13, BA 0.07 → {0.11, 0.13}, {0.05, 0.07}
func (c *comparison) groups(units []Pair, read reading) [][]float64 {
	var by [3][]float64 // AB, BA, unknown
	for _, u := range units {
		if x := stats.Center(c.logs(u, read)); !math.IsNaN(x) {
			at, known := map[string]int{"AB": 0, "BA": 1}[u.Order]
			if !known {
				at = 2
			}
			by[at] = append(by[at], x)
		}
	}
	if len(by[0]) > 0 && len(by[1]) > 0 && len(by[2]) == 0 {
		return by[:2]
	}
	return [][]float64{slices.Concat(by[:]...)}
}

// test is the estimate of the units' log gain in a metric. The interval of one launch that holds all arms is
// widened by how much launches differ.
func (c *comparison) test(units []Pair, read reading, confidence float64) stats.TTest {
	groups := c.groups(units, read)
	if c.within() && len(groups[0]) == 1 {
		blocks := slices.Concat(mapped(units, func(u Pair) []float64 { return c.logs(u, read) })...)
		t := stats.Widened(blocks, LaunchSD, confidence)
		t.N = 1
		return t
	}
	return stats.Crossover(confidence, groups...)
}

// mapped are the values of a list.
func mapped[T, V any](list []T, value func(T) V) (values []V) {
	for _, t := range list {
		values = append(values, value(t))
	}
	return values
}

// gainOf is a gain as results show it.
func (c *comparison) gainOf(t stats.TTest, units []Pair) Gain {
	g := Gain{Method: PairedT, Estimate: fraction(t.Estimate), Low: fraction(t.Low), High: fraction(t.High),
		Confidence: router.Number(t.Confidence), N: t.N}
	switch {
	case c.within() && g.N == 1:
		g.Method = OneLaunch
	case c.within():
		g.Method = LaunchT
	case len(c.groups(units, primary)) == 2:
		g.Method = CrossoverT
	}
	if !c.within() && g.N < MinPairs {
		return g.unbounded()
	}
	return g
}

// undecided is the gain where so many units show none.
func undecided(n int, method string) Gain {
	return Gain{Method: method, Estimate: router.Undefined(), N: n}.unbounded()
}

func (g Gain) unbounded() Gain {
	u := router.Undefined()
	g.Low, g.High, g.Confidence = u, u, u
	return g
}

// leastUnits is how many launches that hold all arms, or pairs, a verdict takes.
func (c *Campaign) leastUnits() int {
	if c.within() {
		return decidingLaunches
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
	c.verdict = verdictOf(c.gain, c.threshold(), c.builds(), c.equivalent(), c.leastUnits())
	if !c.verdict.Open() && (slices.ContainsFunc(slices.Concat(c.Checks, c.checks), undone) ||
		len(c.whole)-len(c.kept) > len(c.whole)/4) {
		c.verdict = Inconclusive
	}
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
func verdictOf(g Gain, threshold float64, builds, equivalent bool, least int) Verdict {
	low, high := g.Low.Float64(), g.High.Float64()
	switch {
	case g.N < least:
		return NoVerdict
	case builds && low > threshold:
		return Faster
	case builds && high < 1/(1+threshold)-1:
		return Slower
	case builds && equivalent:
		return Equal
	case builds:
	case low > threshold:
		return Significant
	case high < threshold:
		return NotSignificant
	}
	return Inconclusive
}

// equivalent reports whether two one-sided tests (TOST) at the level of the campaign show the gain to lie within
// the margin: the interval of twice the level does.
//
// Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987.
func (c *comparison) equivalent() bool {
	margin, t := math.Log1p(equivalenceMargin), c.test(c.kept, primary, 2*c.each-1).Leaning(c.lean)
	return -margin < t.Low && t.High < margin && c.gain.Low.Defined()
}

// pairsNeeded is how many pairs in all would settle on which side of the
// threshold the gain lies, with probability 0.8, if the estimate and the spread
// stay what they are (see stats.ToDecide). It is at least one more than there are. It is undefined when no
// spread is known yet, and when the estimate is so near the threshold that a million pairs would not do.
func (c *comparison) pairsNeeded() router.Number {
	least, lost := 2, 1
	if !c.within() {
		least, lost = MinPairs, 2
	}
	n, ok := stats.ToDecide(math.Log1p(c.gain.Estimate.Float64())-math.Log1p(c.threshold()), c.sd, c.each, least, lost)
	if c.verdict != Inconclusive || !ok || c.copied() || len(c.outliers) > 0 && !c.within() {
		return router.Undefined()
	}
	return router.Number(max(n, c.gain.N+1))
}

// secondary are the gains in further metrics that both arms of a unit reported, by name. A metric counts over
// the units that have it.
func (c *comparison) secondary() (rows []SecondaryGain) {
	found := map[Metric]bool{}
	for i := range c.Measurements {
		for _, r := range c.Measurements[i].Secondary {
			if read := c.read(r.Metric); r.Metric != c.Metric && !found[r.Metric] &&
				slices.ContainsFunc(c.whole, func(u Pair) bool { return len(c.logs(u, read)) > 0 }) {
				found[r.Metric] = true
				rows = append(rows, SecondaryGain{Metric: r.Metric})
			}
		}
	}
	for i, row := range rows {
		t := c.test(c.whole, c.read(row.Metric), simultaneous(max(1, len(c.Points))*len(rows)))
		rows[i].Gain = c.gainOf(t, c.whole)
	}
	slices.SortFunc(rows, func(a, b SecondaryGain) int {
		return cmp.Or(cmp.Compare(a.Metric.Name, b.Metric.Name), cmp.Compare(a.Metric.Unit, b.Metric.Unit))
	})
	return append([]SecondaryGain{}, rows...)
}

// read reads a secondary metric, whose direction may be other than the primary one's.
func (c *comparison) read(metric Metric) reading {
	return func(m *Measurement) float64 {
		at := slices.IndexFunc(m.Secondary, func(r Reported) bool { return r.Metric == metric })
		switch {
		case at < 0:
			return math.NaN()
		case metric.HigherIsBetter != c.Metric.HigherIsBetter:
			return -logOf(m.Secondary[at].Value)
		}
		return logOf(m.Secondary[at].Value)
	}
}
