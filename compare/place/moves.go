package place

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// fewMoves is the running placement, grown to the size, with the best swaps that MaxMoves allows.
func (o Options) fewMoves(running plan, learn []Window, experts int, size placement.Size) (p plan, err error) {
	shares := clusterShares(learn, experts)
	layers := slices.Sorted(maps.Keys(shares))
	windows, runs, slots := [][][]float64{}, []router.Layout{}, [][]int32{}
	for _, layer := range layers {
		grown, ok := placement.Grown(running.layouts[layer], shares[layer], size)
		if !ok {
			return p, contradicts(running.from, fmt.Sprintf("at most %s on a rank, as --redundant %d says",
				quantity.Count(size.Slots/size.Ranks, "copy"), size.Slots-experts), "more", "")
		}
		windows, runs, slots = append(windows, shares[layer]), append(runs, running.layouts[layer]), append(slots, grown)
	}
	p = running
	p.name, p.layouts = PlanMoves, maps.Clone(running.layouts)
	if err := p.replace(layers, experts, size, func(i int) ([]int32, error) { return slots[i], nil }); err != nil {
		return p, err
	}
	done := loaded(running, p)
	most := int(*o.MaxMoves*float64(size.Slots*len(layers)) + 1e-9)
	if done > most {
		return p, contradicts(running.from, fmt.Sprintf("at most %s to move (--max-moves)", quantity.Count(most, "copy")),
			fmt.Sprintf("%d that the redundant experts alone take", done), "allow more, or name what runs with --from")
	}
	m := placement.NewMover(windows, runs, slots, size)
	for done+2 <= most { // a swap moves two
		_, copies, ok := m.Next()
		if !ok {
			break
		}
		done += copies
	}
	return p, p.replace(layers, experts, size, func(i int) ([]int32, error) { return m.Slots(i), nil })
}
