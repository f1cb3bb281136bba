package place

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// nearlySame is the most total variation of expert shares, mean over layers, between windows
// that count as one: steps of one run differ by less, other traffic by more.
const nearlySame = 0.03

// lesson is windows to learn from, by layer: the share of each expert in each cluster of
// windows that are nearly the same, so that none counts for more because it came often.
type lesson struct {
	clusters [][]Window
	shares   map[int][][]float64 // of the clusters with load in the layer
}

func lessonOf(windows []Window, experts int) lesson {
	l := lesson{clusters: clusters(windows), shares: map[int][][]float64{}}
	for _, cluster := range l.clusters {
		for layer, share := range shareOf(cluster, experts) {
			l.shares[layer] = append(l.shares[layer], share)
		}
	}
	return l
}

// shareOf is the mean share of each expert in the windows, by layer.
func shareOf(windows []Window, experts int) map[int][]float64 {
	shares, n := map[int][]float64{}, map[int]float64{}
	for _, w := range windows {
		for layer, share := range w.shares {
			if shares[layer] == nil {
				shares[layer] = make([]float64, experts)
			}
			n[layer]++
			for e, v := range share {
				shares[layer][e] += v
			}
		}
	}
	for layer, share := range shares {
		for e := range share {
			share[e] /= n[layer]
		}
	}
	return shares
}

// sharesOf are those of one record.
func sharesOf(r *counts.Record) map[int][]float64 {
	shares := map[int][]float64{}
	for layer, load := range r.ByLayer() {
		if total := float64(load.Total()); total > 0 {
			shares[layer] = make([]float64, len(load.PerExpert))
			for e, slots := range load.PerExpert {
				shares[layer][e] = float64(slots) / total
			}
		}
	}
	return shares
}

// clusters joins windows that are nearly the same as one of the cluster. Those without load say nothing.
func clusters(windows []Window) (list [][]Window) {
	for _, w := range windows {
		if len(w.shares) == 0 {
			continue
		}
		near := func(c []Window) bool {
			return slices.ContainsFunc(c, func(o Window) bool { return distance(w.shares, o.shares) <= nearlySame })
		}
		at := slices.IndexFunc(list, near)
		if at < 0 {
			list = append(list, []Window{w})
			continue
		}
		for i := len(list) - 1; i > at; i-- {
			if near(list[i]) {
				list[at], list = append(list[at], list[i]...), slices.Delete(list, i, i+1)
			}
		}
		list[at] = append(list[at], w)
	}
	return list
}

// distance is the total variation, mean over the layers of both.
func distance(a, b map[int][]float64) float64 {
	sum, n := 0.0, 0.0
	for _, layer := range slices.Sorted(maps.Keys(a)) {
		long, short := a[layer], b[layer]
		if len(long) < len(short) {
			long, short = short, long
		}
		if len(short) == 0 {
			continue
		}
		n++
		for e, share := range long {
			if e < len(short) {
				share -= short[e]
			}
			sum += math.Abs(share) / 2
		}
	}
	return sum / n // of none: undefined, which is no small distance
}

// The plans by name.
const (
	PlanRobust  = "robust"
	PlanEPLB    = "eplb"
	PlanNearest = "eplb of the nearest window"
	PlanMoves   = "moves"
)

// rivals place the experts for all clusters of windows, and by EPLB; with a single cluster, and
// where it is asked for, by EPLB alone.
func (o Options) rivals(windows []Window, experts int, size placement.Size) ([]plan, error) {
	eplb, err := learned(windows, experts, size)
	if err != nil || o.Policy == PlanEPLB {
		return []plan{eplb}, err
	}
	l, p := lessonOf(windows, experts), eplb.clone()
	if len(l.clusters) < 2 && o.Policy != PlanRobust {
		return []plan{eplb}, nil
	}
	p.name = PlanRobust
	err = p.replace(slices.Sorted(maps.Keys(l.shares)), experts, size, func(layer int) ([]int32, error) {
		return placement.Robust(l.shares[layer], size, o.Goal)
	})
	return []plan{p, eplb}, err
}

// best is the first of the rivals.
func (o Options) best(windows []Window, experts int, size placement.Size) (plan, error) {
	plans, err := o.rivals(windows, experts, size)
	return plans[0], err
}

// replace sets the slots of some layers, which are found side by side.
func (p *plan) replace(layers []int, experts int, size placement.Size, slotsOf func(layer int) ([]int32, error)) error {
	var group errgroup.Group
	var mutex sync.Mutex
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, layer := range layers {
		group.Go(func() error {
			slots, err := slotsOf(layer)
			if err != nil {
				return err
			}
			layout, err := placement.Layout(experts, slots, size.Ranks)
			mutex.Lock()
			defer mutex.Unlock()
			p.slots[layer], p.layouts[layer] = slots, layout
			return err
		})
	}
	return group.Wait()
}

// loads is how many copies each rank loads that come from one plan to another, and all.
func loads(from, to plan, ranks int) (perRank []int, all int) {
	perRank = make([]int, ranks)
	for layer, l := range to.layouts {
		for rank, n := range placement.Loaded(from.layouts[layer], l) {
			perRank[rank] += n
			all += n
		}
	}
	return perRank, all
}

// movedShare is the share of the copies of the second plan that ranks load.
func movedShare(from, to plan, ranks int) router.Number {
	_, moved := loads(from, to, ranks)
	return router.Number(moved) / router.Number(max(1, to.copies()))
}

func (p plan) copies() (n int) {
	for _, slots := range p.slots {
		n += len(slots)
	}
	return n
}

func (p plan) clone() plan {
	p.slots, p.layouts = maps.Clone(p.slots), maps.Clone(p.layouts)
	return p
}

// newPlan is one without layers.
func newPlan(from, name string) plan {
	return plan{from: from, name: name, slots: counts.Slots{}, layouts: map[int]router.Layout{}}
}
