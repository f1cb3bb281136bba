package place

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// Budget is the most that may move from the running placement, in one of its fields.
type Budget struct {
	Share float64       // of the copies on all ranks and layers
	Bytes float64       // of weights, all ranks together
	Time  time.Duration // that any rank may load
}

// ParseBudget reads 10%, 2GB or 50ms.
func ParseBudget(text string) (*Budget, error) {
	refused := fmt.Errorf("want a share such as 10%%, bytes such as 2GB, or a time such as 50ms, have %q", text)
	for _, unit := range []struct {
		suffix string
		scale  float64
	}{{"%", 0}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"GiB", 1 << 30}, {"MiB", 1 << 20}} {
		number, ok := strings.CutSuffix(text, unit.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch {
		case err != nil || !(v >= 0) || unit.scale == 0 && v > 100:
			return nil, refused
		case unit.scale == 0:
			return &Budget{Share: v / 100}, nil
		}
		return &Budget{Bytes: v * unit.scale}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return &Budget{Time: d}, nil
	}
	return nil, refused
}

// limit is how many of all copies may move, and how many to one rank, 0 for any number.
func (o Options) limit(all int) (most, onRank int) {
	switch b := o.MaxMoves; {
	case b.Time > 0:
		return all, max(1, int(b.Time.Seconds()*o.Bandwidth/o.ExpertBytes))
	case b.Bytes > 0:
		return int(b.Bytes / o.ExpertBytes), 0
	default:
		return int(b.Share*float64(all) + 1e-9), 0
	}
}

// errOverBudget is wrapped where redundant experts alone take more than all moves.
var errOverBudget = fmt.Errorf("more than --max-moves allows: %w", counts.ErrOptions)

// fewMoves is the running placement, grown to the size, with the best swaps that MaxMoves allows.
func (o Options) fewMoves(running plan, learn []Window, experts int, size placement.Size) (p plan, err error) {
	var (
		shares  = clusterShares(learn, experts)
		layers  = slices.Sorted(maps.Keys(shares))
		windows [][][]float64
		runs    []router.Layout
		slots   [][]int32
	)
	for _, layer := range layers {
		grown, ok := placement.Grown(running.layouts[layer], shares[layer], size)
		if !ok {
			return p, &input.Error{File: running.from, Expected: fmt.Sprintf("at most %s on a rank, as --redundant %d says",
				quantity.Count(size.Slots/size.Ranks, "copy"), size.Slots-experts), Found: "more", Err: counts.ErrOptions}
		}
		windows, runs, slots = append(windows, shares[layer]), append(runs, running.layouts[layer]), append(slots, grown)
	}
	p = running
	p.name, p.layouts = PlanMoves, maps.Clone(running.layouts)
	set := func(slotsOf func(i int) []int32) error {
		return p.replace(layers, experts, size, func(layer int) ([]int32, error) {
			return slotsOf(slices.Index(layers, layer)), nil
		})
	}
	if err := set(func(i int) []int32 { return slots[i] }); err != nil {
		return p, err
	}
	_, done := loads(running, p, size.Ranks)
	most, onRank := o.limit(size.Slots * len(layers))
	if done > most {
		return p, &input.Error{File: running.from, Expected: fmt.Sprintf("at most %s to move (--max-moves)",
			quantity.Count(most, "copy")), Found: fmt.Sprintf("%d that the redundant experts alone take", done),
			Try: "allow more, or name what runs with --from", Err: errOverBudget}
	}
	m, err := placement.NewMover(windows, runs, slots, size, onRank)
	if err != nil {
		return p, err
	}
	for done+2 <= most { // a swap moves two
		_, copies, ok := m.Next()
		if !ok {
			break
		}
		done += copies
	}
	return p, set(m.Slots)
}
