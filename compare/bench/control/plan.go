package control

import (
	"math/rand/v2"
	"slices"
)

// Arm is a router that a launch switches to.
type Arm struct {
	Name   string `json:"name"`
	Router string `json:"router"`
}

// Plan is what one launch measures: an untimed segment of each arm in the order of the
// first block, then the blocks. A block is an order of the arms and its reverse.
type Plan struct {
	Blocks [][]Arm
	Points [][]string // of a segment of each block, in order; nil where there is one load
}

// Orders plans the blocks of a launch: of two arms ABBA and BAAB in turn, beginning with the
// other one in every second launch; of more, orders drawn for each block.
func Orders(arms []Arm, blocks, launch int, seed uint64) (orders [][]Arm) {
	draw := rand.New(rand.NewPCG(seed, 0x626c6f636b<<20+uint64(launch))) // a stream of its own for each launch
	for b := range blocks {
		order := slices.Clone(arms)
		switch {
		case len(order) > 2:
			draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		case (b+launch)%2 == 1:
			slices.Reverse(order)
		}
		reverse := slices.Clone(order)
		slices.Reverse(reverse)
		orders = append(orders, slices.Concat(order, reverse))
	}
	return orders
}

// Runs is how many runs of the client the plan takes at least, with one after each change.
func (p Plan) Runs() (n int) {
	for b, order := range p.Blocks {
		n += max(1, len(p.pointsOf(b))) * len(order)
		for i := range order {
			if i == 0 && (b == 0 || order[0] != p.Blocks[b-1][len(order)-1]) || i > 0 && order[i] != order[i-1] {
				n++
			}
		}
	}
	return n + len(p.first())*max(1, len(p.pointsOf(0)))
}

// first are the arms in the order of the untimed segments, so that the first block begins
// with a change.
func (p Plan) first() []Arm {
	if len(p.Blocks) == 0 {
		return nil
	}
	return p.Blocks[0][:len(p.Blocks[0])/2]
}

func (p Plan) pointsOf(block int) []string {
	if block < len(p.Points) && len(p.Points[block]) > 0 {
		return p.Points[block]
	}
	return []string{""}
}
