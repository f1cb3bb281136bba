package plan

import "github.com/moebalance/moebalance/router"

// cell is a set of experts that share a rank and a group. An expert with replicas
// is a cell of its own, whose slots go to its copies in turn.
type cell struct {
	experts []int32
	group   int
	ranks   []int // of the copies, in the order of their turns; one but for replicas
	slots   int   // so far
}

// rank gets the cell's next slot.
func (c *cell) rank() int { return c.ranks[c.slots%len(c.ranks)] }

// copies is how many copies of experts the cell has.
func (c *cell) copies() int { return len(c.experts) * len(c.ranks) }

// idle is 0 if some expert of the cell has no slot, otherwise 1.
func (c *cell) idle() int { return min(1, c.slots/len(c.experts)) }

// cellsOf are the cells of a layout, in the order of their first experts; where
// groups do not matter, a rank is one cell.
func cellsOf(s router.Shape, l router.Layout, groups bool) (cells []cell) {
	known := map[[2]int]int{} // by group and rank
	for e := range s.Experts {
		group, places := 0, l.Places(e)
		if groups {
			group = e / s.GroupSize()
		}
		at := [2]int{group, places[0]}
		if i, ok := known[at]; ok && len(places) == 1 {
			cells[i].experts = append(cells[i].experts, int32(e))
			continue
		}
		if len(places) == 1 {
			known[at] = len(cells)
		}
		cells = append(cells, cell{experts: []int32{int32(e)}, group: group, ranks: places})
	}
	return cells
}
