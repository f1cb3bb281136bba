// Package placement puts experts and their copies on ranks, so that the busiest rank
// gets few slots, and says how even a load is then. Loads go in, slots come out, which
// engines take as files (Slots.Write); it reads and measures nothing. A Map holds the slots of all layers.
package placement

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Size says how many copies of experts are placed where.
type Size struct {
	Slots  int // physical experts: logical ones and redundant copies
	Ranks  int // each holds Slots/Ranks consecutive slots
	Groups int // equal contiguous groups of experts that stay on one node; 0 means 1
	Nodes  int // equal contiguous runs of ranks; 0 means 1
}

// EPLB is the expert-parallel load balancer of DeepSeek (github.com/deepseek-ai/EPLB)
// for one layer: the logical expert of each physical slot. load counts slots per logical
// expert. Of equal loads the expert of the lower number goes first, which the sort of the
// reference leaves open.
//
// Where the nodes divide the groups it is hierarchical: groups are packed onto nodes,
// then each node copies its own experts, and packs the copies onto its ranks.
// Otherwise it is global, which is the same with one group on one node. To copy is to
// give one copy more to the expert with the largest load per copy, again and again.
// To pack is to go through the items by falling load, and to put each into the
// lightest pack that has room, where all packs hold equally many. It may put two
// copies of an expert on one rank.
//
// Arithmetic is in single precision, as in the reference. Errors wrap router.ErrShape.
func EPLB(load []int64, s Size) ([]int32, error) {
	weights := make([]float32, len(load))
	for e, n := range load {
		weights[e] = float32(n)
	}
	return eplb(weights, s, s.Slots)
}

// eplb is EPLB of the weights, with at most so many copies of an expert.
func eplb(weights []float32, s Size, most int) ([]int32, error) {
	s = s.hierarchy()
	if err := s.check(len(weights), most); err != nil {
		return nil, err
	}
	order := grouped(weights, s.Groups, s.Nodes)
	perNode := len(weights) / s.Nodes
	var slots []int32
	for node := range s.Nodes {
		slots = append(slots, spread(weights, order[node*perNode:(node+1)*perNode], s.Slots/s.Nodes,
			s.Ranks/s.Nodes, most)...)
	}
	return slots, nil
}

// hierarchy has the nodes that groups stay on, or one where they do not divide the groups.
func (s Size) hierarchy() Size {
	s.Groups, s.Nodes = max(s.Groups, 1), max(s.Nodes, 1)
	if s.Groups%s.Nodes != 0 {
		s.Groups, s.Nodes = 1, 1
	}
	return s
}

func (s Size) check(experts, most int) error {
	switch {
	case s.Ranks < 1 || s.Slots < experts || experts < 1:
		return fmt.Errorf("%w: want at least 1 rank and a slot for each of %d experts, have %d ranks and %d slots",
			router.ErrShape, experts, s.Ranks, s.Slots)
	case s.Slots%s.Ranks != 0:
		return fmt.Errorf("%w: %d physical experts do not divide over %d ranks", router.ErrShape, s.Slots, s.Ranks)
	case s.Slots > experts*most:
		return fmt.Errorf("%w: %d slots of %d experts on %d ranks take two copies on a rank", router.ErrShape, s.Slots,
			experts, s.Ranks)
	case s.Ranks%s.Nodes != 0:
		return fmt.Errorf("%w: %d ranks do not divide over %d nodes", router.ErrShape, s.Ranks, s.Nodes)
	}
	return nil
}

// grouped lists the experts node after node.
func grouped(weights []float32, groups, nodes int) []int32 {
	size := len(weights) / groups
	sums := make([]float32, groups)
	for e, w := range weights {
		sums[e/size] += w
	}
	order := make([]int32, 0, len(weights))
	for _, group := range slices.Concat(pack(sums, nodes)...) {
		for i := range size {
			order = append(order, int32(group*size+i))
		}
	}
	return order
}

// spread copies the experts, each at most so often, until they fill the slots, and packs them
// onto the ranks.
func spread(weights []float32, experts []int32, slots, ranks, limit int) []int32 {
	copies, share := make([]int, len(experts)), make([]float32, len(experts)) // load per copy
	of := make([]int, 0, slots)                                               // by physical copy: the index of its expert
	for i, e := range experts {
		copies[i], share[i] = 1, weights[e]
		of = append(of, i)
	}
	for len(of) < slots {
		most := -1
		for i, w := range share {
			if copies[i] < limit && (most < 0 || w > share[most]) {
				most = i
			}
		}
		of = append(of, most)
		copies[most]++
		share[most] = weights[experts[most]] / float32(copies[most])
	}
	each := make([]float32, slots)
	for i, expert := range of {
		each[i] = share[expert]
	}
	out := make([]int32, 0, slots)
	for _, i := range slices.Concat(pack(each, ranks)...) {
		out = append(out, experts[of[i]])
	}
	return out
}

// pack divides the items into packs of equally many, by falling weight into the
// lightest pack that has room; of equal ones the first. Packs of one item each take
// them in order.
func pack(weights []float32, packs int) [][]int {
	room, out, items := len(weights)/packs, make([][]int, packs), make([]int, len(weights))
	for i := range items {
		items[i] = i
	}
	if room == 1 {
		for i := range out {
			out[i] = items[i : i+1]
		}
		return out
	}
	slices.SortStableFunc(items, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	sums := make([]float32, packs)
	for _, item := range items {
		lightest := -1
		for p, sum := range sums {
			if len(out[p]) < room && (lightest < 0 || sum < sums[lightest]) {
				lightest = p
			}
		}
		out[lightest] = append(out[lightest], item)
		sums[lightest] += weights[item]
	}
	return out
}

// Layout puts physical slots on ranks, equally many consecutive ones on each: slots 0 2 1 3 on
// 2 ranks are experts 0 and 2 on rank 0. Errors wrap router.ErrShape.
func Layout(experts int, slots []int32, ranks int) (router.Layout, error) {
	held := slices.Collect(slices.Chunk(slices.Clone(slots), len(slots)/ranks))
	for r, local := range held {
		held[r] = slices.DeleteFunc(local, func(e int32) bool { return e == NoExpert })
	}
	return router.Placed(experts, held)
}

// RankLoad is the slots that each rank gets of a load per expert, the copies of an
// expert sharing its slots evenly as EPLB assumes: fractions of slots, which add up to
// the load. len(load) must be the layout's experts.
func RankLoad[N int64 | float64](l router.Layout, load []N) []float64 {
	slots := make([]float64, l.Ranks())
	for e, total := range load {
		places := l.Places(e)
		n := float64(total) / float64(len(places))
		for _, rank := range places {
			slots[rank] += n
		}
	}
	return slots
}

// MaxOverMean is the max/mean of RankLoad, in [1, ranks]; undefined without load.
func MaxOverMean[N int64 | float64](l router.Layout, load []N) router.Number {
	return router.BalanceOf(RankLoad(l, load)).MaxOverMean
}
