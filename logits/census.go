package logits

import "github.com/moebalance/moebalance/router"

// census counts a row's experts group by group. A shape without groups is one
// group.
type census struct {
	groupOf []int32 // by expert
	inGroup []int
}

func newCensus(s router.Shape) census {
	c := census{groupOf: make([]int32, s.Experts), inGroup: make([]int, max(1, s.Groups))}
	for e := range c.groupOf {
		c.groupOf[e] = int32(e / s.GroupSize())
	}
	return c
}

// of is the number of groups that a row enters, and the least number of experts
// that it has in one of them.
func (c census) of(row []int32) (entered, fewest int) {
	clear(c.inGroup)
	for _, e := range row {
		c.inGroup[c.groupOf[e]]++
	}
	fewest = len(row)
	for _, n := range c.inGroup {
		if n > 0 {
			entered++
			fewest = min(fewest, n)
		}
	}
	return entered, fewest
}
