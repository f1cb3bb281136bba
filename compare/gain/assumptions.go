package gain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router/quantity"
)

// The names of the checks of what no design covers: see the package comment.
const (
	CheckOutliers  = "outliers"
	CheckRepeats   = "independent_pairs"
	CheckCarryOver = "carry_over"
)

// outlierSDs is how many standard deviations, of normal values by their median absolute
// deviation, make an outlier.
const outlierSDs = 7

// checkOutliers asks whether a launch is far from the median of its arm, by the median
// absolute deviation of all launches from theirs.
func (c Campaign) checkOutliers(complete []session) Check {
	check, _ := c.outliers(complete)
	return check
}

// outliers is that check, with the launches found.
func (c Campaign) outliers(complete []session) (check Check, launches map[*Launch]bool) {
	launches = map[*Launch]bool{}
	if len(complete) == 0 {
		return Check{Name: CheckOutliers, Status: Unknown, Text: "no complete pair"}, launches
	}
	type deviation struct {
		launch *Launch
		log    float64
	}
	var all []deviation
	var sizes []float64
	for _, side := range []func(session) *Launch{func(s session) *Launch { return s.normal }, func(s session) *Launch { return s.perfect }} {
		var logs []float64
		for _, s := range complete {
			logs = append(logs, math.Log(side(s).Value))
		}
		center := stats.Median(logs)
		for i, s := range complete {
			d := deviation{side(s), logs[i] - center}
			all, sizes = append(all, d), append(sizes, math.Abs(d.log))
		}
	}
	limit := outlierSDs * 1.4826 * stats.Median(sizes)
	var found []string
	for _, d := range all {
		if limit > 0 && math.Abs(d.log) > limit {
			launches[d.launch] = true
			found = append(found, fmt.Sprintf("launch %d (%s, pair %d) is %s from the median of its arm", d.launch.Position, c.Builds.Called(d.launch.Arm), d.launch.Pair, quantity.Change(fraction(d.log))))
		}
	}
	if len(found) > 0 {
		return Check{Name: CheckOutliers, Status: Warn, Text: strings.Join(found, "; ") + ": look for what disturbed the machine then, and repeat the campaign; an outlier in one arm moves the estimate"}, launches
	}
	largest := slices.Max(append(sizes, 0))
	switch {
	case limit > math.Ln2:
		return Check{Name: CheckOutliers, Status: Unknown, Text: "launches of one arm differ so much that not even twice or half the median is an outlier"}, launches
	case limit == 0 && largest > 0:
		return Check{Name: CheckOutliers, Status: Unknown, Text: "most launches equal the median of their arm, so what is far from it is unknown"}, launches
	}
	return Check{Name: CheckOutliers, Status: Pass, Text: fmt.Sprintf("every launch is within %s of the median of its arm", quantity.Percent(math.Expm1(largest)))}, launches
}

// checkRepeats asks whether the gains of successive pairs are alike, by their lag-1
// autocorrelation about the mean of their order, which is −1/n ± 1/√n where they are
// independent.
func checkRepeats(complete []session) Check {
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
	if n < 6 || squares == 0 {
		return Check{Name: CheckRepeats, Status: Unknown, Text: "too few pairs, or no spread"}
	}
	r := products / squares
	text := "autocorrelation of successive gains " + quantity.Decimals(r, 2)
	if (r+1/n)*math.Sqrt(n) > 1.96 {
		return Check{Name: CheckRepeats, Status: Warn, Text: text + ": the interval is too narrow; use a longer --cool-down, or repeat the campaign another day"}
	}
	return Check{Name: CheckRepeats, Status: Pass, Text: text}
}

// checkCarryOver asks whether what a launch leaves behind differs by arm: then the two
// launches of a pair are together faster in one order than in the other.
func (c Campaign) checkCarryOver(complete []session) Check {
	var sums logGains
	for _, s := range complete {
		sums.add(math.Log(s.normal.Value*s.perfect.Value)/2, s.pair.Order)
	}
	e := stats.OrderEffect(sums.normalFirst, sums.perfectFirst, c.Confidence)
	if !e.Defined() {
		return Check{Name: CheckCarryOver, Status: Unknown, Text: "too few pairs in both orders"}
	}
	text := fmt.Sprintf("pairs with the %s arm first differ by %s from those with the %s arm first (p = %.2g)", c.Builds.Called(Normal), quantity.Change(fraction(2*e.Estimate)), c.Builds.Called(Perfect), e.P(0))
	if e.P(0) < driftLevel {
		return Check{Name: CheckCarryOver, Status: Warn, Text: text + ": a launch affects the next by its arm, and the gain contains that; use --cool-down, or restart what stays between launches"}
	}
	return Check{Name: CheckCarryOver, Status: Pass, Text: text}
}
