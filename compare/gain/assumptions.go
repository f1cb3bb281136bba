package gain

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// The names of the checks of what no design covers: see the package comment.
const (
	CheckOutliers  = "outliers"
	CheckRepeats   = "independent_pairs"
	CheckCarryOver = "carry_over"
)

// An Outlier is a launch far from the others of its arm.
type Outlier struct {
	Launch router.OptInt `json:"launch"` // its position; null where that was not recorded
	Arm    Arm           `json:"arm"`
	Pair   int           `json:"pair"`
	Point  router.Number `json:"point,omitempty"` // value of the point, in campaigns with points
	Change router.Number `json:"change"`          // of its value against the median of its arm, a fraction
}

// outlierLimit is how many standard deviations, of normal values by their median absolute
// deviation, make an outlier of so many launches. Fewer know their deviation worse: with
// normal noise about 2 % of campaigns have one, whatever their size.
func outlierLimit(launches int) float64 { return 3 + 48/float64(launches) }

// outliers asks whether a launch is far from the median of its arm, by the median absolute
// deviation of all launches from theirs, and lists those that are by position.
func (c Campaign) outliers(complete []pairResult) (check Check, far []Outlier) {
	switch {
	case c.Design == WithinLaunch:
		return c.outlyingLaunches(complete)
	case len(complete) == 0:
		return NewCheck(CheckOutliers, Unknown, "no_pair"), nil
	}
	var launches []*Launch
	var groups [][]float64
	for arm := range Arms {
		var values []float64
		for _, s := range complete {
			launches, values = append(launches, s.launches()[arm]), append(values, math.Log(s.launches()[arm].Value))
		}
		groups = append(groups, values)
	}
	logs, sizes := fromMedians(groups)
	limit := outlierLimit(len(sizes)) * 1.4826 * stats.Median(sizes)
	for i, l := range launches {
		if limit > 0 && sizes[i] > limit {
			far = append(far, Outlier{router.OptInt(l.Position), c.Builds.Called(l.Arm), l.Pair,
				router.Number(c.point), fraction(logs[i])})
		}
	}
	far = sortOutliers(far)
	switch largest := slices.Max(sizes); {
	case len(far) > 0:
		return farOff(far), far
	case limit > math.Ln2:
		return NewCheck(CheckOutliers, Unknown, "noise"), nil // not even twice or half the median is an outlier
	case limit == 0 && largest > 0:
		return NewCheck(CheckOutliers, Unknown, "no_noise"), nil
	default:
		return NewCheck(CheckOutliers, Pass, "none", "most", math.Expm1(largest)), nil
	}
}

// fromMedians are the distances of values from the median of their group, and their sizes.
func fromMedians(groups [][]float64) (logs, sizes []float64) {
	for _, values := range groups {
		for _, v := range values {
			off := v - stats.Median(values)
			logs, sizes = append(logs, off), append(sizes, math.Abs(off))
		}
	}
	return logs, sizes
}

func sortOutliers(found []Outlier) []Outlier {
	slices.SortStableFunc(found, func(a, b Outlier) int { return cmp.Compare(a.Launch, b.Launch) })
	return found
}

// farOff names launches, or the pairs of those whose place was not recorded.
func farOff(outliers []Outlier) Check {
	launches, pairs, changes := columns(outliers)
	if slices.Contains(launches, UnknownPosition) {
		return NewCheck(CheckOutliers, Warn, "pairs", "pairs", pairs, "changes", changes)
	}
	return NewCheck(CheckOutliers, Warn, "launches", "launches", launches, "changes", changes)
}

func columns(outliers []Outlier) (launches, pairs []int, changes []float64) {
	for _, o := range outliers {
		launches, pairs = append(launches, int(o.Launch)), append(pairs, o.Pair)
		changes = append(changes, o.Change.Float64())
	}
	return launches, pairs, changes
}

// checkRepeats asks whether the gains of successive pairs are alike, by their lag-1
// autocorrelation about the mean of their order, which is −1/n ± 1/√n where they are
// independent.
func checkRepeats(complete []pairResult) Check {
	var residuals []float64
	byOrder := map[string][]float64{}
	for _, s := range complete {
		byOrder[s.pair.Order] = append(byOrder[s.pair.Order], s.log)
	}
	for _, s := range complete {
		residuals = append(residuals, s.log-stats.PairedT(byOrder[s.pair.Order], DefaultConfidence).Estimate)
	}
	products, squares := 0.0, 0.0
	for i, e := range residuals {
		squares += e * e
		if i > 0 {
			products += e * residuals[i-1]
		}
	}
	n := float64(len(residuals))
	r := products / squares
	switch {
	case n < 6 || squares == 0:
		return NewCheck(CheckRepeats, Unknown, "few")
	case (r+1/n)*math.Sqrt(n) > 1.96:
		return NewCheck(CheckRepeats, Warn, "alike", "r", r)
	}
	return NewCheck(CheckRepeats, Pass, "none", "r", r)
}

// checkCarryOver asks whether what a launch leaves behind differs by arm: then the two
// launches of a pair are together faster in one order than in the other.
func (c Campaign) checkCarryOver(complete []pairResult) Check {
	var sums logGains
	for _, s := range complete {
		sums.add(math.Log(s.normal.Value*s.perfect.Value)/2, s.pair.Order)
	}
	e := stats.OrderEffect(sums.normalFirst, sums.perfectFirst, c.Confidence)
	normal, perfect, change := c.Builds.Called(Normal), c.Builds.Called(Perfect), fraction(2*e.Estimate)
	switch {
	case !e.Defined():
		return NewCheck(CheckCarryOver, Unknown, "few")
	case e.P(0) < driftLevel:
		return NewCheck(CheckCarryOver, Warn, "shown", "one", normal, "other", perfect, "change", change, "p", e.P(0))
	}
	return NewCheck(CheckCarryOver, Pass, "none", "one", normal, "other", perfect, "change", change, "p", e.P(0))
}
