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
	case b == nil:
		return all, 0
	case b.Time > 0:
		return all, max(1, int(b.Time.Seconds()*o.Bandwidth/o.ExpertBytes))
	case b.Bytes > 0:
		return int(b.Bytes / o.ExpertBytes), 0
	default:
		return int(b.Share*float64(all) + 1e-9), 0
	}
}

// milestones are the shares of moved copies at which the way is looked at.
var milestones = []float64{0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6,
	0.7, 0.8, 0.9}

// way is the placements from the running one on, grown to the size, each with a few more swaps,
// the best first. It ends where no swap betters anything, or at the budget.
func (o Options) way(running plan, learn []Window, experts int, size placement.Size) (plans []plan, err error) {
	shares := clusterShares(learn, experts)
	layers := slices.Sorted(maps.Keys(shares))
	var (
		windows [][][]float64
		runs    []router.Layout
		slots   [][]int32
	)
	for _, layer := range layers {
		grown, ok := placement.Grown(running.layouts[layer], shares[layer], size)
		if !ok {
			return nil, &input.Error{File: running.from, Expected: fmt.Sprintf("at most %s on a rank, as --redundant %d says",
				quantity.Count(size.Slots/size.Ranks, "copy"), size.Slots-experts), Found: "more", Err: errTooLarge}
		}
		windows, runs, slots = append(windows, shares[layer]), append(runs, running.layouts[layer]), append(slots, grown)
	}
	at := newPlan(running.from, PlanMoves)
	maps.Copy(at.slots, running.slots)
	maps.Copy(at.layouts, running.layouts)
	keep := func(slotsOf func(i int) []int32) error {
		p := at.clone()
		plans = append(plans, p)
		return p.replace(layers, experts, size, func(layer int) ([]int32, error) {
			return slotsOf(slices.Index(layers, layer)), nil
		})
	}
	if err := keep(func(i int) []int32 { return slots[i] }); err != nil {
		return nil, err
	}
	_, done := loads(running, plans[0], size.Ranks)
	all := size.Slots * len(layers)
	most, onRank := o.limit(all)
	if done > most {
		return nil, &input.Error{File: running.from, Expected: fmt.Sprintf("at most %s to move (--max-moves)",
			quantity.Count(most, "copy")), Found: fmt.Sprintf("%d that the redundant experts alone take", done),
			Try: "allow more, or name what runs with --from", Err: errOverBudget}
	}
	m, err := placement.NewMover(windows, runs, slots, size, onRank)
	if err != nil {
		return nil, err
	}
	for next, kept := 0, done; done+2 <= most; { // a swap moves two
		_, copies, ok := m.Next()
		if !ok {
			break
		}
		for done += copies; next < len(milestones) && float64(done) >= milestones[next]*float64(all); {
			if next++; done > kept+2 && (next == len(milestones) || float64(done) < milestones[next]*float64(all)) {
				if err := keep(m.Slots); err != nil {
					return nil, err
				}
				kept = done
			}
		}
	}
	return plans, keep(m.Slots)
}

var (
	errOverBudget = fmt.Errorf("more than --max-moves allows: %w", counts.ErrOptions)
	errTooLarge   = fmt.Errorf("more copies run than are asked for: %w", counts.ErrOptions)
)

// Point is a placement on the way from the running one: what so many moves reach.
type Point struct {
	Plan
	Moved      int           `json:"moved_experts"`
	MovedShare router.Number `json:"moved_share"` // of all copies
	MovedBytes router.Number `json:"moved_bytes"`
	Learned    router.Number `json:"learned_max_over_mean"`
	Judged     router.Number `json:"judged_max_over_mean"` // undefined where windows are left out in turn
	Knee       bool          `json:"knee"`                 // from here on moves bring less than on average
	Afresh     bool          `json:"afresh"`               // learned without regard to the running placement
	InBudget   bool          `json:"in_budget"`            // the default placement, as far as --max-moves allows
}

// knee is the point furthest below the line from the first to the last, on learned windows;
// 0 for none.
func knee(points []Point) (at int) {
	first, last := points[0], points[len(points)-1]
	depth := router.Number(0)
	for i, p := range points {
		along := (p.MovedShare - first.MovedShare) / (last.MovedShare - first.MovedShare)
		if d := first.Learned + along*(last.Learned-first.Learned) - p.Learned; d > depth {
			at, depth = i, d
		}
	}
	return at
}
