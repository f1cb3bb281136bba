package logits

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// census counts a row's experts group by group. A shape without groups is one
// group.
type census struct {
	shape   router.Shape
	inGroup []int
}

func newCensus(s router.Shape) census {
	return census{shape: s, inGroup: make([]int, max(1, s.Groups))}
}

// count fills inGroup for a row.
func (c census) count(row []int32) {
	clear(c.inGroup)
	size := int32(c.shape.GroupSize())
	for _, e := range row {
		c.inGroup[e/size]++
	}
}

// tooMany reports whether a row enters more groups than a token may use.
func (c census) tooMany(row []int32) bool {
	if !c.shape.Grouped() {
		return false
	}
	c.count(row)
	entered := 0
	for _, n := range c.inGroup {
		if n > 0 {
			entered++
		}
	}
	return entered > c.shape.TopKGroups
}

// fewest is the least number of experts that any row has in a group it enters;
// k for no rows.
func (c census) fewest(ids []int32) int {
	least := c.shape.TopK
	if !c.shape.Grouped() {
		return least
	}
	for row := range slices.Chunk(ids, c.shape.TopK) {
		c.count(row)
		for _, n := range c.inGroup {
			if n > 0 {
				least = min(least, n)
			}
		}
	}
	return least
}
