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

// distances are how far complete blocks are from their median, and the standard deviation of that median.
func (c *comparison) distances() (all []distance, sd float64) {
	groups := [][]Pair{c.whole}
	if c.within() {
		groups = slices.Collect(slices.Chunk(c.whole, 1))
	}
	var sizes []float64
	for _, units := range groups {
		for side := range Arms {
			var group []distance
			var values []float64
			for _, u := range units {
				for _, b := range u.blocks {
					if b.Status != PairComplete {
						continue
					}
					for _, m := range b.sides[side] {
						group, values = append(group, distance{m, u.Pair, side, primary(m)}), append(values, primary(m))
					}
				}
			}
			for _, d := range group {
				d.log -= stats.Median(values)
				all, sizes = append(all, d), append(sizes, math.Abs(d.log))
			}
		}
	}
	if len(sizes) == 0 {
		return nil, math.NaN()
	}
	return all, 1.4826 * stats.Median(sizes)
}

// limit is how many standard deviations make an outlier of so many measurements: the fewer there are, the
// more their own median takes of their spread. Simulated, so that about 2 % of campaigns without any have one.
func (c *comparison) limit(n int) float64 {
	if !c.within() {
		return 3 + 48/float64(n)
	}
	fewest := math.MaxInt // blocks of a launch
	for _, u := range c.whole {
		fewest = min(fewest, len(c.logs(u, primary)))
	}
	return 4 + 5/float64(fewest) + 24/float64(n)
}

// leaveOut names what is far off, and leaves it out of the gain: a pair of launches where as many as a
// verdict takes remain, and a segment of a launch.
func (c *comparison) leaveOut() {
	c.kept = c.whole
	all, sd := c.distances()
	limit := sd * c.limit(len(all))
	var far []distance
	for _, d := range all {
		if limit > 0 && math.Abs(d.log) > limit {
			far = append(far, d)
		}
	}
	if c.within() {
		c.leaveSegments(all, far)
		return
	}
	for _, d := range far {
		c.outliers = append(c.outliers, Outlier{router.OptInt(d.m.Position), c.called(d.side), d.unit,
			router.Number(c.point), fraction(d.log)})
	}
	slices.SortStableFunc(c.outliers, byLaunch)
	c.falls = []Check{farLaunches(c.outliers, largest(all), limit)}
	kept := slices.DeleteFunc(slices.Clone(c.whole), func(u Pair) bool {
		return slices.ContainsFunc(far, func(d distance) bool { return d.unit == u.Pair })
	})
	if len(kept) >= c.leastUnits() {
		c.kept = kept
	}
	if len(c.kept) == 0 {
		return
	}
	c.lean = c.skew() + c.hidden(far, limit)/float64(len(c.kept))
}

// hidden is by how much launches that no limit shows may have raised the sum of the log gains, less what may
// have lowered it: where sizes up to that of an outlier are as likely, limit/size of one for each, half the
// limit off on average. A slow normal launch raises the gain, a slow one of the other arm lowers it.
//
//	two normal launches slower by 0.4 and 0.2, limit 0.1 → (0.25 + 0.5) · 0.05
func (c *comparison) hidden(far []distance, limit float64) (sum float64) {
	for _, d := range far {
		likely := limit / math.Abs(d.log) * limit / 2
		if faster := (d.log > 0) == c.Metric.HigherIsBetter; faster == (d.side == 1) {
			sum += likely
		} else {
			sum -= likely
		}
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

func byLaunch(a, b Outlier) int { return cmp.Compare(a.Launch, b.Launch) }

// largest is the size of the distance furthest off, 0 of none.
func largest(all []distance) (most float64) {
	for _, d := range all {
		most = max(most, math.Abs(d.log))
	}
	return most
}

// farLaunches names launches, or the pairs of those whose place was not recorded.
func farLaunches(outliers []Outlier, most, limit float64) Check {
	launches, pairs, changes := columns(outliers)
	switch {
	case slices.Contains(launches, UnknownPosition):
		return NewCheck(CheckOutliers, Warn, "pairs", "pairs", pairs, "changes", changes)
	case len(outliers) > 0:
		return NewCheck(CheckOutliers, Warn, "launches", "launches", launches, "changes", changes)
	case math.IsNaN(limit):
		return NewCheck(CheckOutliers, Unknown, "no_pair")
	case limit > math.Ln2:
		return NewCheck(CheckOutliers, Unknown, "noise") // not even twice or half the median is an outlier
	case limit == 0 && most > 0:
		return NewCheck(CheckOutliers, Unknown, "no_noise")
	}
	return NewCheck(CheckOutliers, Pass, "none", "most", math.Expm1(most))
}

func columns(outliers []Outlier) (launches, pairs []int, changes []float64) {
	for _, o := range outliers {
		launches, pairs = append(launches, int(o.Launch)), append(pairs, o.Pair)
		changes = append(changes, o.Change.Float64())
	}
	return launches, pairs, changes
}

// leaveSegments takes far segments out of their blocks, and names the launches whose gains are far from
// the others'.
func (c *comparison) leaveSegments(all, far []distance) {
	segments := NewCheck(CheckSegments, Unknown, "few")
	if len(all) > 0 {
		segments = NewCheck(CheckSegments, Pass, "none", "most", math.Expm1(largest(all)))
	}
	var launches []int
	var changes []float64
	for _, d := range far {
		c.out[d.m] = true
		launches, changes = append(launches, d.unit), append(changes, fraction(d.log).Float64())
	}
	if len(far) > 0 {
		segments = NewCheck(CheckSegments, Warn, "far", "segments", len(far), "launches", set(launches), "changes", changes)
		for i := range c.all {
			c.settle(&c.all[i])
		}
		c.whole = complete(c.all)
		c.kept = c.whole
	}
	c.falls = []Check{c.farGains(), segments}
}

// farGains asks whether the gain of a launch is far from the other launches' gains.
func (c *comparison) farGains() Check {
	var logs []float64
	for _, u := range c.whole {
		logs = append(logs, u.log)
	}
	if len(logs) < 3 {
		return NewCheck(CheckOutliers, Unknown, "few_launches")
	}
	for i, far := range stats.Outlying(logs, outlierLevel) {
		if far {
			others := slices.Delete(slices.Clone(logs), i, i+1)
			c.outliers = append(c.outliers, Outlier{Launch: router.OptInt(c.whole[i].Pair), Pair: c.whole[i].Pair,
				Point: router.Number(c.point), Change: fraction(logs[i] - mean(others))})
		}
	}
	if len(c.outliers) > 0 {
		launches, _, changes := columns(c.outliers)
		return NewCheck(CheckOutliers, Warn, "gains", "launches", launches, "changes", changes)
	}
	return NewCheck(CheckOutliers, Pass, "no_launch")
}
