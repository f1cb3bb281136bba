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

// Budget is the most that may move from the placement that runs: one of its fields.
type Budget struct {
	Share float64       // of the copies of all ranks and layers
	Bytes float64       // of weights, all ranks together
	Time  time.Duration // of the rank that loads most
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

// Point is a placement on the way from the one that runs: what so many moves reach.
type Point struct {
	Plan
	Moved      int           `json:"moved_experts"`
	MovedShare router.Number `json:"moved_share"` // of all copies
	MovedBytes router.Number `json:"moved_bytes"`
	Learned    router.Number `json:"learned_max_over_mean"`
	Judged     router.Number `json:"judged_max_over_mean"`
	Knee       bool          `json:"knee"`      // from here on moves bring less than on average
	Afresh     bool          `json:"afresh"`    // learned without regard to what runs
	InBudget   bool          `json:"in_budget"` // the most that --max-moves allows
}

// shares at which the way is looked at.
var milestones = []float64{0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6,
	0.7, 0.8, 0.9}

// way is the placements from the running one on, each with a few more moves, to the one that
// no swap betters, or but to the last within the budget, which is that of the number. There
// are none where the running one has more copies on a rank than are asked for.
func (o Options) way(running plan, learn []Window, experts int, size placement.Size, stop bool) (
	plans []plan, inBudget int, err error) {
	g, ok := grow(running, lessonOf(learn, experts), size)
	if !ok {
		return nil, 0, nil
	}
	at := newPlan(running.from, PlanMoves)
	maps.Copy(at.slots, running.slots)
	maps.Copy(at.layouts, running.layouts)
	keep := func(slotsOf func(i int) []int32) error {
		p := at.clone()
		plans = append(plans, p)
		return p.replace(g.layers, experts, size, func(layer int) ([]int32, error) {
			return slotsOf(slices.Index(g.layers, layer)), nil
		})
	}
	if err := keep(func(i int) []int32 { return g.slots[i] }); err != nil {
		return nil, 0, err
	}
	_, done := loads(running, plans[0], size.Ranks)
	all := size.Slots * len(g.layers)
	most, onRank := o.budget(all)
	if done > most {
		return nil, 0, &input.Error{File: running.from, Expected: fmt.Sprintf("at most %s to move (--max-moves)",
			quantity.Count(most, "copy")), Found: fmt.Sprintf("%d that the redundant experts alone take", done),
			Try: "allow more, or name what runs with --from", Err: errOverBudget}
	}
	m, err := placement.NewMover(g.windows, g.runs, g.slots, size, onRank)
	if err != nil {
		return nil, 0, err
	}
	inBudget = -1
	for next, kept := 0, done; err == nil; {
		if inBudget < 0 && done+2 > most { // a swap moves two
			if inBudget, err, kept = len(plans), keep(m.Slots), done; stop {
				return plans, inBudget, err
			}
		}
		_, copies, ok := m.Next()
		if done += copies; !ok {
			err = keep(m.Slots)
			break
		}
		for next < len(milestones) && float64(done) >= milestones[next]*float64(all) {
			if next++; done > kept+2 && (next == len(milestones) || float64(done) < milestones[next]*float64(all)) {
				err, kept = keep(m.Slots), done
			}
		}
	}
	if inBudget < 0 {
		inBudget = len(plans) - 1
	}
	return plans, inBudget, err
}

// grown is the running placement of each layer, and with the redundant experts that are asked
// for; with the shares of its experts.
type grown struct {
	layers  []int
	windows [][][]float64 // by layer, and so on
	runs    []router.Layout
	slots   [][]int32
}

// grow is not ok where a rank has more copies than are asked for.
func grow(running plan, l lesson, size placement.Size) (g grown, ok bool) {
	for _, layer := range slices.Sorted(maps.Keys(l.shares)) {
		slots, ok := placement.Grown(running.layouts[layer], l.shares[layer], size)
		if !ok {
			return g, false
		}
		g.layers, g.windows = append(g.layers, layer), append(g.windows, l.shares[layer])
		g.runs, g.slots = append(g.runs, running.layouts[layer]), append(g.slots, slots)
	}
	return g, true
}

// follow finds the way, and what of it is within the budget. A budget of each rank's time takes
// swaps of its own: that of the ranks that have time left.
func (l *learnt) follow(running plan, learn []Window, experts int, size placement.Size, o Options) (err error) {
	free := o
	if o.MaxMoves != nil && o.MaxMoves.Time > 0 {
		free.MaxMoves = nil
	}
	l.way, l.inBudget, err = free.way(running, learn, experts, size, false)
	if err != nil || len(l.way) == 0 || o.MaxMoves == nil || free.MaxMoves != nil {
		return err
	}
	own, last, err := o.way(running, learn, experts, size, true)
	if err != nil {
		return err
	}
	_, moved := loads(running, own[last], size.Ranks)
	l.inBudget = slices.IndexFunc(l.way, func(p plan) bool { _, n := loads(running, p, size.Ranks); return n >= moved })
	if l.inBudget < 0 {
		l.inBudget = len(l.way)
	}
	l.way = slices.Insert(l.way, l.inBudget, own[last])
	return nil
}

// errOverBudget is wrapped where growth takes more than all moves.
var errOverBudget = fmt.Errorf("more than --max-moves allows: %w", counts.ErrOptions)

// budget is how many of all copies may move, and how many to one rank, 0 for any number.
func (o Options) budget(all int) (most, onRank int) {
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

// points are what the placements on the way reach, and the one learned afresh.
func (o Options) points(at Plan, running plan, l learnt, scores [][]score, learn int) (points []Point) {
	afresh := l.rivals[l.afresh]
	for i, p := range append(slices.Clone(l.way), afresh) {
		_, moved := loads(running, p, at.Ranks)
		q := Point{Plan: at, Moved: moved, MovedBytes: router.Undefined(), Afresh: i == len(l.way),
			InBudget: o.MaxMoves != nil && i == l.inBudget, Learned: mean(column(scores[:learn], i), score.overall),
			Judged: mean(column(scores[learn:], i), score.overall)}
		if q.MovedShare = movedShare(running, p, at.Ranks); o.ExpertBytes > 0 {
			q.MovedBytes = router.Number(o.ExpertBytes) * router.Number(q.Moved)
		}
		points = append(points, q)
	}
	if k := knee(points[:len(l.way)]); k > 0 {
		points[k].Knee = true
	}
	return points
}

// knee is the point furthest below the line from the first to the last, on what was learned;
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
