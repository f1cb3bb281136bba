package gain

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moebalance/moebalance/compare/stats"
)

// outlierLevel is how often a campaign without an outlier is said to have one.
const outlierLevel = 0.02

// distance is how far the logarithm of a measurement is from the median of its arm: in the campaign, or in
// its launch where that holds all arms.
type distance struct {
	*Measurement
	log float64
}

// alike are the measurements of complete blocks that would be equal without noise: of each arm in the campaign, or
// in each launch that holds all arms.
func (c *comparison) alike() map[[2]int][]*Measurement {
	groups := map[[2]int][]*Measurement{} // by launch and side
	for _, u := range c.whole {
		launch := map[bool]int{true: u.Pair}[c.within()]
		for _, b := range only(u.blocks, Block.complete) {
			for side, all := range b.sides {
				groups[[2]int{launch, side}] = append(groups[[2]int{launch, side}], all...)
			}
		}
	}
	return groups
}

// far are the measurements that are beyond a limit from their median, in order. How many standard deviations that is
// depends on how many measurements there are: the fewer, the more their own median takes of their spread.
// Simulated, so that about 2 % of campaigns without any have one.
func (c *comparison) far() (all []distance, limit float64) {
	for _, group := range c.alike() {
		median := stats.Median(mapped(group, (*Measurement).log))
		all = append(all, mapped(group, func(m *Measurement) distance { return distance{m, m.log() - median} })...)
	}
	if len(all) == 0 {
		return nil, 0
	}
	limit = 3 + 48/float64(len(all))
	if c.within() {
		fewest := slices.Min(mapped(c.whole, func(u Unit) int { return len(u.logs) })) // blocks of a launch
		limit = 4 + 5/float64(fewest) + 24/float64(len(all))
	}
	limit *= 1.4826 * stats.Median(mapped(all, func(d distance) float64 { return math.Abs(d.log) }))
	all = only(all, func(d distance) bool { return limit > 0 && math.Abs(d.log) > limit })
	slices.SortFunc(all, func(a, b distance) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Arm, b.Arm))
	})
	return all, limit
}

// leaveOut names what is far off, and leaves it out of the gain: a pair of launches where as many as a
// verdict takes remain, and a segment of a launch. Launches that hold all arms are named where their gains are far from
// the others'.
func (c *comparison) leaveOut() {
	far, limit := c.far()
	if !c.within() {
		why := "launches"
		if slices.ContainsFunc(far, func(d distance) bool { return d.Position == UnknownPosition }) {
			why = "pairs" // by which they are then named
		}
		c.fell(CheckOutliers, why, far)
		kept := only(c.whole, func(u Unit) bool {
			return !slices.ContainsFunc(far, func(d distance) bool { return d.Unit == u.Pair })
		})
		if c.kept = c.whole; len(kept) >= MinPairs {
			c.kept = kept
		}
		if len(c.kept) > 0 {
			c.lean = c.skew() + c.hidden(far, limit)/float64(len(c.kept))
		}
		return
	}
	for _, d := range far {
		c.out[d.Measurement] = true
	}
	for i := range c.all {
		c.settle(&c.all[i])
	}
	c.whole = only(c.all, Unit.complete)
	c.kept = c.whole
	logs := mapped(c.whole, func(u Unit) float64 { return u.log })
	var launches []distance
	for i, far := range stats.Outlying(logs, outlierLevel) {
		if others := slices.Delete(slices.Clone(logs), i, i+1); far {
			launches = append(launches, distance{&Measurement{Unit: c.whole[i].Pair}, logs[i] - mean(others)})
		}
	}
	c.fell(CheckOutliers, "gains", launches)
	c.fell(CheckSegments, "far", far)
}

// fell is the check that names what is far off, by its launches.
func (c *comparison) fell(name, why string, far []distance) {
	pairs := mapped(far, func(d distance) int { return d.Unit })
	launches := pairs
	if !c.within() {
		launches = mapped(far, func(d distance) int { return d.Position })
	}
	if len(far) > 0 {
		c.warn(name, why, "segments", len(far), "launches", launches, "pairs", pairs,
			"changes", mapped(far, func(d distance) float64 { return fraction(d.log).Float64() }))
	}
}

// hidden is by how much launches that no limit shows may have raised the sum of the log gains, less what may
// have lowered it: where sizes up to an outlier's are as likely, limit/size of one for each, half the
// limit off on average. A slow normal launch raises the gain, a slow one of the other arm lowers it.
//
//	two normal launches slower by 0.4 and 0.2, limit 0.1 → (0.25 + 0.5) · 0.05
func (c *comparison) hidden(far []distance, limit float64) (sum float64) {
	for _, d := range far {
		likely := limit / math.Abs(d.log) * limit / 2
		if faster := (d.log > 0) == c.Metric.HigherIsBetter; faster != (d.side() == 1) {
			likely = -likely
		}
		sum += likely
	}
	return sum
}

// skew is how far the mean log gain of the kept pairs is above their median, both about the mean of
// their order: what single disturbed launches that no limit shows may add to it.
//
//	gains of 0.10, 0.10, 0.10, 0.10, 0.10, 0.16 in one order → 0.11 − 0.10 = 0.01
func (c *comparison) skew() float64 {
	var residuals []float64
	for _, group := range c.groups() {
		residuals = append(residuals, mapped(group, func(log float64) float64 { return log - mean(group) })...)
	}
	return -stats.Median(residuals)
}

// leastDigits is how many digits a value has that launches do not repeat by chance.
const leastDigits = 5

// copied reports values that do not vary as printed: each arm has one in all launches, or in every launch
// that holds all arms; or most values of an arm, of so many digits, come again in another launch. Copies, or a report
// of too few digits, know nothing of what launches differ.
func (c *comparison) copied() bool {
	constant, times := len(c.whole) > 1, map[float64]int{}
	for _, group := range c.alike() {
		for _, m := range group {
			constant = constant && m.Value == group[0].Value
			times[m.Value]++
		}
	}
	for _, group := range c.alike() {
		again := only(group, func(m *Measurement) bool {
			digits, _, _ := strings.Cut(strconv.FormatFloat(m.Value, 'e', -1, 64), "e") // 1150.5 → 1.1505
			return times[m.Value] > 1 && len(digits) > leastDigits
		})
		constant = constant || !c.within() && 2*len(again) > len(group)
	}
	return constant
}
