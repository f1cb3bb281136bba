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

// alike are the measurements of complete blocks that would be equal without noise: of each arm in the campaign, or
// in each launch that holds all arms.
func (c *comparison) alike() map[[2]int][]*Measurement {
	groups := map[[2]int][]*Measurement{} // by launch and side
	for _, u := range c.whole {
		launch := 0
		if c.within() {
			launch = u.Pair
		}
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
func (c *comparison) far() (all []*Measurement) {
	for _, group := range c.alike() {
		median := stats.Median(mapped(group, (*Measurement).log))
		for _, m := range group {
			m.off = m.log() - median
		}
		all = append(all, group...)
	}
	if len(all) == 0 {
		return nil
	}
	limit := 3 + 48/float64(len(all))
	if c.within() {
		fewest := slices.Min(mapped(c.whole, func(u Unit) int { return len(u.logs) })) // blocks of a launch
		limit = 4 + 5/float64(fewest) + 24/float64(len(all))
	}
	limit *= 1.4826 * stats.Median(mapped(all, func(m *Measurement) float64 { return math.Abs(m.off) }))
	all = only(all, func(m *Measurement) bool { return limit > 0 && math.Abs(m.off) > limit })
	slices.SortFunc(all, func(a, b *Measurement) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Arm, b.Arm))
	})
	return all
}

// leastKept is how many pairs remain at least where others are left out: both orders still show their spread.
const leastKept = 4

// leaveOut names what is far off, and leaves it out of the gain: a pair of launches where enough remain, and a
// segment of a launch. Launches that hold all arms are named where their gains are far from the others', by Student's t
// of these: of launches that differ by chance alone, one or more are named in at most outlierLevel of campaigns.
func (c *comparison) leaveOut() {
	far := c.far()
	if !c.within() {
		named := "launches"
		if slices.ContainsFunc(far, func(m *Measurement) bool { return m.Position == UnknownPosition }) {
			named = "pairs"
		}
		c.fell(CheckOutliers, named, far)
		kept := only(c.whole, func(u Unit) bool {
			return !slices.ContainsFunc(far, func(m *Measurement) bool { return m.Unit == u.Pair })
		})
		if c.kept = c.whole; len(kept) >= leastKept {
			c.kept = kept
		}
		return
	}
	for _, m := range far {
		c.out[m] = true
	}
	for i := range c.all {
		c.settle(&c.all[i])
	}
	c.whole = only(c.all, Unit.complete)
	c.kept = c.whole
	logs := mapped(c.whole, func(u Unit) float64 { return u.log })
	var launches []*Measurement
	for i, u := range c.whole {
		n := float64(len(logs))
		others := stats.PairedT(slices.Delete(slices.Clone(logs), i, i+1), 1-outlierLevel/n)
		if off := u.log - others.Estimate; math.Abs(off) > (others.High-others.Estimate)*math.Sqrt(n) {
			launches = append(launches, &Measurement{Unit: u.Pair, off: off})
		}
	}
	c.fell(CheckOutliers, "gains", launches)
	c.fell(CheckSegments, "far", far)
}

// fell is the check that names what is far off, by its launches.
func (c *comparison) fell(name, why string, far []*Measurement) {
	pairs := mapped(far, func(m *Measurement) int { return m.Unit })
	launches := pairs
	if !c.within() {
		launches = mapped(far, func(m *Measurement) int { return m.Position })
	}
	if len(far) > 0 {
		c.warn(name, why, "segments", len(far), "launches", launches, "pairs", pairs,
			"changes", mapped(far, func(m *Measurement) float64 { return fraction(m.off).Float64() }))
	}
}

// leastDigits is how many digits a value has that launches do not repeat by chance; one more for each twelve values.
const leastDigits = 5

// copied reports values that do not vary as printed: each arm has one in all launches, or in every launch
// that holds all arms; or most values of an arm, of so many digits, come again in another launch. Copies, or a report
// of too few digits, know nothing of what launches differ.
func (c *comparison) copied() bool {
	constant, times, sides := len(c.whole) > 1, map[float64]int{}, [2][]*Measurement{}
	for of, group := range c.alike() {
		sides[of[1]] = append(sides[of[1]], group...)
		for i, m := range group {
			constant = constant && m.Value == group[0].Value
			if !c.within() || !slices.ContainsFunc(group[:i], func(o *Measurement) bool { return o.Value == m.Value }) {
				times[m.Value]++
			}
		}
	}
	for _, side := range sides {
		again := only(side, func(m *Measurement) bool {
			digits, _, _ := strings.Cut(strconv.FormatFloat(m.Value, 'e', -1, 64), "e") // 1150.5 → 1.1505
			return times[m.Value] > 1 && len(digits) > leastDigits+len(side)/12
		})
		constant = constant || 2*len(again) > len(side)
	}
	return constant
}
