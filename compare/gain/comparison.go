package gain

import (
	"cmp"
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
	family  int     // so many comparisons are judged together
	each    float64 // confidence of each comparison
	all     []Pair
	out     map[*Measurement]bool // measurements that fall out

	outliers []Outlier
	falls    []Check // about what falls out
	whole    []Pair  // complete units
	kept     []Pair  // whole without what falls out; they give the gain
	lean     float64 // by how much disturbed launches may have raised the log gain
	t        stats.TTest
	gain     Gain
	checks   []Check
	verdict  Verdict
}

// compare judges an arm at a point, one of so many comparisons that are judged together.
func (c *Campaign) compare(arm Arm, point float64) *comparison {
	family := max(1, len(c.Points))
	one := &comparison{Campaign: c, arm: arm, point: point, further: arm != Perfect, family: family,
		each: simultaneous(c.Confidence, family), out: map[*Measurement]bool{}}
	one.all = one.units()
	one.whole = complete(one.all)
	one.leaveOut()
	one.t = one.test(one.kept, primary, one.each).Leaning(one.lean)
	if one.gain = one.gainOf(one.t, one.kept, family); one.copied() {
		one.gain = one.gain.unbounded() // how launches differ is not known
	}
	one.checks = one.check()
	one.verdict = one.decide()
	return one
}

// simultaneous is the confidence of each of so many intervals that hold together at the
// given one, by Bonferroni.
func simultaneous(confidence float64, family int) float64 {
	return 1 - (1-confidence)/float64(family)
}

// complete are the units with a gain.
func complete(units []Pair) []Pair {
	return slices.DeleteFunc(slices.Clone(units), func(u Pair) bool { return u.Status != PairComplete })
}

func (c *Campaign) within() bool { return c.Design == WithinLaunch }

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
		for _, u := range units {
			if logs := c.logs(u, read); len(logs) > 0 {
				t := stats.Widened(logs, LaunchSD, confidence)
				t.N = 1
				return t
			}
		}
	}
	return stats.Crossover(confidence, groups...)
}

// gainOf is a gain as results show it, with the p-value of so many tests that are judged together.
func (c *comparison) gainOf(t stats.TTest, units []Pair, tests int) Gain {
	g := Gain{Method: PairedT, Estimate: fraction(t.Estimate), Low: fraction(t.Low), High: fraction(t.High),
		Confidence: router.Number(t.Confidence), N: t.N, LogSD: router.Number(t.SD),
		P: min(1, router.Number(t.P(0))*router.Number(tests))}
	switch {
	case c.within() && g.N == 1:
		g.Method = OneLaunch
	case c.within():
		g.Method = LaunchT
	case len(c.groups(units, primary)) == 2:
		g.Method = CrossoverT
	}
	if !c.within() && g.N < stats.MinPairs(c.Confidence) {
		return g.unbounded()
	}
	return g
}

// undecided is the gain where so many units show none.
func undecided(n int, method string) Gain {
	return Gain{Method: method, Estimate: router.Undefined(), LogSD: router.Undefined(), N: n}.unbounded()
}

func (g Gain) unbounded() Gain {
	u := router.Undefined()
	g.Low, g.High, g.Confidence, g.P = u, u, u, u
	return g
}

// leastUnits is how many launches that hold all arms, or pairs, a verdict takes.
func (c *Campaign) leastUnits() int {
	if c.within() {
		return decidingLaunches
	}
	return stats.MinPairs(c.Confidence)
}

// decide compares the interval with the threshold. A bound that equals the threshold decides nothing, and
// neither does a campaign whose result may have been chosen.
func (c *comparison) decide() Verdict {
	v := refusedBy(c.checks)
	if v != "" {
		return v
	}
	v = verdictOf(c.gain, c.threshold(), c.builds(), c.equivalent(), c.leastUnits())
	undone := func(check Check) bool { return check.Status == Warn && check.undoes() }
	if !v.Open() && (slices.ContainsFunc(slices.Concat(c.Checks, c.checks), undone) ||
		len(c.whole)-len(c.kept) > len(c.whole)/4) {
		return Inconclusive
	}
	return v
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

// equivalent reports whether two one-sided tests (TOST) show the gain to lie within the margin at the level
// of the campaign.
func (c *comparison) equivalent() bool {
	margin := math.Log1p(equivalenceMargin)
	return c.t.PWithin(-margin, margin) < 1-c.each && c.gain.Low.Defined()
}

// pairsNeeded is how many pairs in all would settle on which side of the
// threshold the gain lies, with probability 0.8, if the estimate and the spread
// stay what they are (see stats.ToDecide). It is at least one more than there are. It is undefined when no
// spread is known yet, and when the estimate is so near the threshold that a million pairs would not do.
func (c *comparison) pairsNeeded() router.Number {
	least, lost := 2, 1
	if !c.within() {
		least, lost = max(3, stats.MinPairs(c.each)), 2
	}
	n, ok := stats.ToDecide(c.t.Estimate-math.Log1p(c.threshold()), c.t.SD, c.each, decisionPower, least, lost)
	if c.verdict != Inconclusive || !ok || c.copied() || len(c.outliers) > 0 && !c.within() {
		return router.Undefined()
	}
	return router.Number(max(n, c.t.N+1))
}

// secondary are the gains in further metrics that both arms of a unit reported, by name. A metric counts over
// the units that have it.
func (c *comparison) secondary() []SecondaryGain {
	var found []Metric
	for _, u := range c.whole {
		for _, b := range u.blocks {
			for _, m := range b.sides[0] {
				for _, r := range m.Secondary {
					if r.Metric != c.Metric && !slices.Contains(found, r.Metric) {
						found = append(found, r.Metric)
					}
				}
			}
		}
	}
	found = slices.DeleteFunc(found, func(m Metric) bool {
		return !slices.ContainsFunc(c.whole, func(u Pair) bool { return len(c.logs(u, c.read(m))) > 0 })
	})
	slices.SortFunc(found,
		func(a, b Metric) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Unit, b.Unit)) })
	rows, n := make([]SecondaryGain, len(found)), c.family*len(found)
	for i, m := range found {
		t := c.test(c.whole, c.read(m), simultaneous(c.Confidence, n))
		rows[i] = SecondaryGain{m, c.gainOf(t, c.whole, n)}
	}
	return rows
}

// read reads a secondary metric, whose direction may be other than the primary one's.
func (c *comparison) read(metric Metric) reading {
	sign := 1.0
	if metric.HigherIsBetter != c.Metric.HigherIsBetter {
		sign = -1
	}
	return func(m *Measurement) float64 {
		at := slices.IndexFunc(m.Secondary, func(r Reported) bool { return r.Metric == metric })
		if at < 0 {
			return math.NaN()
		}
		return sign * logOf(m.Secondary[at].Value)
	}
}
