package gain

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// An Outlier is a launch far from the others of its arm, or by its gain from other launches.
type Outlier struct {
	Launch router.OptInt `json:"launch"` // its position; null where that was not recorded
	Arm    Arm           `json:"arm"`
	Pair   int           `json:"pair"`
	Point  router.Number `json:"point,omitempty"` // value of the point, in campaigns with points
	Change router.Number `json:"change"`          // of its value against the median of its arm, a fraction
}

// outlierLevel is how often a campaign without an outlier is said to have one.
const outlierLevel = 0.02

// distance is how far the logarithm of a measurement is from the median of its arm: in the campaign, or in
// its launch where that holds all arms.
type distance struct {
	m    *Measurement
	unit int
	side int
	log  float64
}

// distances are how far the measurements of complete blocks are from their median.
func (c *comparison) distances() (all []distance) {
	groups := [][]Pair{c.whole}
	if c.within() {
		groups = slices.Collect(slices.Chunk(c.whole, 1))
	}
	for _, units := range groups {
		for side := range Arms {
			first, values := len(all), []float64(nil)
			for _, u := range units {
				for _, b := range u.blocks {
					for _, m := range b.sides[side] {
						if b.Status == PairComplete {
							all, values = append(all, distance{m, u.Pair, side, primary(m)}), append(values, primary(m))
						}
					}
				}
			}
			for i := first; i < len(all); i++ {
				all[i].log -= stats.Median(values)
			}
		}
	}
	return all
}

// far are the measurements that are beyond a limit from their median. How many standard deviations that is
// depends on how many measurements there are: the fewer, the more their own median takes of their spread.
// Simulated, so that about 2 % of campaigns without any have one.
func (c *comparison) far() (far []distance, limit float64) {
	all := c.distances()
	if len(all) == 0 {
		return nil, 0
	}
	limit = 3 + 48/float64(len(all))
	if c.within() {
		fewest := slices.Min(mapped(c.whole, func(u Pair) int { return len(c.logs(u, primary)) })) // blocks of a launch
		limit = 4 + 5/float64(fewest) + 24/float64(len(all))
	}
	limit *= 1.4826 * stats.Median(mapped(all, func(d distance) float64 { return math.Abs(d.log) }))
	return slices.DeleteFunc(all, func(d distance) bool { return !(limit > 0 && math.Abs(d.log) > limit) }), limit
}

// leaveOut names what is far off, and leaves it out of the gain: a pair of launches where as many as a
// verdict takes remain, and a segment of a launch.
func (c *comparison) leaveOut() {
	far, limit := c.far()
	if c.within() {
		c.leaveSegments(far)
		return
	}
	for _, d := range far {
		c.outliers = append(c.outliers, Outlier{router.OptInt(d.m.Position), c.called(d.side), d.unit,
			router.Number(c.point), fraction(d.log)})
	}
	slices.SortStableFunc(c.outliers, byLaunch)
	c.named("launches")
	kept := slices.DeleteFunc(slices.Clone(c.whole), func(u Pair) bool {
		return slices.ContainsFunc(far, func(d distance) bool { return d.unit == u.Pair })
	})
	if c.kept = c.whole; len(kept) >= c.leastUnits() {
		c.kept = kept
	}
	if len(c.kept) > 0 {
		c.lean = c.skew() + c.hidden(far, limit)/float64(len(c.kept))
	}
}

func byLaunch(a, b Outlier) int { return cmp.Compare(a.Launch, b.Launch) }

// named is the check that names outliers, by their pairs where their places were not recorded.
func (c *comparison) named(why string) {
	var launches, pairs []int
	var changes []float64
	for _, o := range c.outliers {
		launches, pairs = append(launches, int(o.Launch)), append(pairs, o.Pair)
		changes = append(changes, o.Change.Float64())
	}
	if slices.Contains(launches, UnknownPosition) {
		why = "pairs"
	}
	if len(launches) > 0 {
		c.falls = append(c.falls, NewCheck(CheckOutliers, Warn, why, "launches", launches, "pairs", pairs, "changes", changes))
	}
}

// hidden is by how much launches that no limit shows may have raised the sum of the log gains, less what may
// have lowered it: where sizes up to that of an outlier are as likely, limit/size of one for each, half the
// limit off on average. A slow normal launch raises the gain, a slow one of the other arm lowers it.
//
//	two normal launches slower by 0.4 and 0.2, limit 0.1 → (0.25 + 0.5) · 0.05
func (c *comparison) hidden(far []distance, limit float64) (sum float64) {
	for _, d := range far {
		likely := limit / math.Abs(d.log) * limit / 2
		if faster := (d.log > 0) == c.Metric.HigherIsBetter; faster != (d.side == 1) {
			likely = -likely
		}
		sum += likely
	}
	return sum
}

// skew is how far the mean log gain of the kept pairs is above their median, both about the mean of their
// order: what single disturbed launches that no limit shows may add to it.
//
//	gains of 0.10, 0.10, 0.10, 0.10, 0.10, 0.16 in one order → 0.11 − 0.10 = 0.01
func (c *comparison) skew() float64 {
	var residuals []float64
	for _, group := range c.groups(c.kept, primary) {
		for _, log := range group {
			residuals = append(residuals, log-mean(group))
		}
	}
	return -stats.Median(residuals)
}

// leaveSegments takes far segments out of their blocks, and names the launches whose gains are far from
// the others'.
func (c *comparison) leaveSegments(far []distance) {
	var launches []int
	var changes []float64
	for _, d := range far {
		c.out[d.m] = true
		launches, changes = append(launches, d.unit), append(changes, fraction(d.log).Float64())
	}
	for i := range c.all {
		c.settle(&c.all[i])
	}
	c.whole = complete(c.all)
	c.kept = c.whole
	logs := mapped(c.whole, func(u Pair) float64 { return u.log })
	for i, far := range stats.Outlying(logs, outlierLevel) {
		if others := slices.Delete(slices.Clone(logs), i, i+1); far {
			c.outliers = append(c.outliers, Outlier{Launch: router.OptInt(c.whole[i].Pair), Pair: c.whole[i].Pair,
				Point: router.Number(c.point), Change: fraction(logs[i] - mean(others))})
		}
	}
	c.named("gains")
	if len(far) > 0 {
		slices.Sort(launches)
		c.falls = append(c.falls, NewCheck(CheckSegments, Warn, "far", "segments", len(far), "launches",
			slices.Compact(launches), "changes", changes))
	}
}
