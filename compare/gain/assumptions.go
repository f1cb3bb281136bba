package gain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// The names of the checks of what no design covers: see the package comment.
const (
	CheckOutliers  = "outliers"
	CheckRepeats   = "independent_pairs"
	CheckCarryOver = "carry_over"
)

// An Outlier is a launch far from the others of its arm.
type Outlier struct {
	Launch router.Whole  `json:"launch"` // its position; null where that was not recorded
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
func (c Campaign) outliers(complete []session) (check Check, far []Outlier) {
	check = Check{Name: CheckOutliers, Status: Unknown, Text: "no complete pair"}
	switch {
	case c.Design == WithinLaunch:
		return c.outlyingLaunches(complete)
	case len(complete) == 0:
		return check, nil
	}
	var launches []*Launch
	var logs, sizes []float64 // distances from the median of the arm
	for arm := range Arms {
		var values []float64
		for _, s := range complete {
			launches, values = append(launches, s.launches()[arm]), append(values, math.Log(s.launches()[arm].Value))
		}
		center := stats.Median(values)
		for _, v := range values {
			logs, sizes = append(logs, v-center), append(sizes, math.Abs(v-center))
		}
	}
	limit := outlierLimit(len(sizes)) * 1.4826 * stats.Median(sizes)
	for i, l := range launches {
		if limit > 0 && sizes[i] > limit {
			far = append(far, Outlier{router.Whole(l.Position), c.Builds.Called(l.Arm), l.Pair,
				router.Number(c.point), fraction(logs[i])})
		}
	}
	far = sortOutliers(far)
	largest := slices.Max(sizes)
	switch {
	case len(far) > 0:
		check.Status, check.Text = Warn, outlierText(far)
	case limit > math.Ln2:
		check.Text = "launches of one arm differ so much that not even twice or half the median is an outlier"
	case limit == 0 && largest > 0:
		check.Text = "most launches equal the median of their arm, so what is far from it is unknown"
	default:
		check.Status, check.Text = Pass, fmt.Sprintf("every launch is within %s of the median of its arm",
			quantity.Percent(math.Expm1(largest)))
	}
	return check, far
}

func sortOutliers(found []Outlier) []Outlier {
	slices.SortStableFunc(found, func(a, b Outlier) int { return cmp.Compare(a.Launch, b.Launch) })
	return found
}

func outlierText(found []Outlier) string {
	var parts []string
	for _, o := range found {
		name := fmt.Sprintf("launch %d (%s, pair %d)", o.Launch, o.Arm, o.Pair)
		if o.Launch == UnknownPosition {
			name = fmt.Sprintf("the %s launch of pair %d", o.Arm, o.Pair)
		}
		parts = append(parts, fmt.Sprintf("%s is %s from the median of its arm", name, quantity.Change(o.Change)))
	}
	return strings.Join(parts, "; ") +
		": look for what disturbed the machine then, and repeat the campaign; an outlier in one arm moves the estimate"
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
		return Check{Name: CheckRepeats, Status: Warn, Text: text +
			": the interval is too narrow; use a longer --cool-down, or repeat the campaign another day"}
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
	text := fmt.Sprintf("pairs with the %s arm first differ by %s from those with the %s arm first (p = %.2g)",
		c.Builds.Called(Normal), quantity.Change(fraction(2*e.Estimate)), c.Builds.Called(Perfect), e.P(0))
	if e.P(0) < driftLevel {
		return Check{Name: CheckCarryOver, Status: Warn, Text: text +
			": a launch affects the next by its arm, and the gain contains that; use --cool-down, or restart what stays between launches"}
	}
	return Check{Name: CheckCarryOver, Status: Pass, Text: text}
}
