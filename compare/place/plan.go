package place

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// The ways of learning a placement, by name.
const (
	PlanRobust = "robust"
	PlanEPLB   = "eplb"
	PlanMoves  = "moves"
)

// Contiguous names the baseline where no running placement is known.
const Contiguous = "contiguous"

// plan is where the experts are in every layer.
type plan struct {
	from    string // a window that it was learned from, or the file of the running placement
	name    string
	layouts map[int]router.Layout
	beyond  map[int]router.Layout // of a running placement: layers that no window may have
}

// each does something for each of n things, side by side.
func each(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// replace sets the slots of some layers.
func (p *plan) replace(layers []int, experts int, size placement.Size, slotsOf func(i int) ([]int32, error)) error {
	layouts := make([]router.Layout, len(layers))
	err := each(len(layers), func(i int) error {
		slots, err := slotsOf(i)
		if err == nil {
			layouts[i], err = placement.Layout(experts, slots, size.Ranks)
		}
		return err
	})
	for i, layer := range layers {
		p.layouts[layer] = layouts[i]
	}
	return err
}

// learn takes a placement from windows by each way, the default first: few moves where they are
// limited, the robust plan where Policy says so, and EPLB of the summed windows.
func (o Options) learn(running plan, windows []Window, experts int, size placement.Size) (plans []plan, err error) {
	if o.MaxMoves != nil {
		p, err := o.fewMoves(running, windows, experts, size)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	by := func(name string, layers []int, slotsOf func(layer int) ([]int32, error)) {
		p := plan{from: windows[0].Name, name: name, layouts: map[int]router.Layout{}}
		// without a known running placement, EPLB's plan stays what other programs make of it
		renamed := name == PlanRobust || running.from != Contiguous
		err = cmp.Or(err, p.replace(layers, experts, size, func(i int) ([]int32, error) {
			slots, err := slotsOf(layers[i])
			if from, ok := running.layouts[layers[i]]; ok && renamed && err == nil {
				slots = placement.Renamed(slots, from, size)
			}
			return slots, err
		}))
		plans = append(plans, p)
	}
	if o.Policy == PlanRobust {
		shares := clusterShares(windows, experts)
		by(PlanRobust, slices.Sorted(maps.Keys(shares)), func(layer int) ([]int32, error) {
			return placement.Robust(shares[layer], size)
		})
	}
	sums := map[int]router.Load{}
	for _, w := range windows {
		for layer, load := range w.loads {
			if _, ok := sums[layer]; !ok {
				sums[layer] = router.NewLoad(experts)
			}
			sums[layer].Merge(load)
		}
	}
	by(PlanEPLB, slices.Sorted(maps.Keys(sums)), func(layer int) ([]int32, error) {
		return placement.EPLB(sums[layer].PerExpert, size)
	})
	return plans, err
}

// loaded is how many copies all ranks load that come from one plan to another.
func loaded(from, to plan) (all int) {
	for layer, l := range to.layouts {
		all += placement.Loaded(from.layouts[layer], l)
	}
	return all
}

// running is the placement that runs on so many ranks: the one given, or the last that is recorded; nil where none is
// known.
func (o Options) running(records []*counts.Record, ranks int) (p *placement.Map, warnings []router.Warning) {
	if o.From != nil {
		return o.From, nil
	}
	for _, r := range records {
		own, err := r.Running(ranks)
		if err != nil {
			warnings = append(warnings, router.Warn("no_placement", r.Source, "error", err.Error()))
		}
		p = cmp.Or(own, p)
	}
	return p, warnings
}

// baseline is the placement that runs on so many ranks, with its name, contiguous experts where none is known.
func (o Options) baseline(windows []Window, experts, ranks int) (p plan, warnings []router.Warning, err error) {
	var records []*counts.Record
	for _, w := range windows {
		records = append(records, w.record)
	}
	running, warnings := o.running(records, ranks)
	if running == nil || running.Ranks != ranks {
		if running, err = placement.Contiguous(experts, ranks); err != nil {
			return p, nil, err
		}
	}
	if running.Experts != experts {
		return p, nil, contradicts(running.Source, quantity.Count(experts, "expert"), strconv.Itoa(running.Experts), "")
	}
	p = plan{from: cmp.Or(running.Source, Contiguous), name: "baseline", layouts: map[int]router.Layout{}}
	for _, r := range records {
		placed, err := running.For(r.Layers(), o.MoELayers)
		for _, layer := range r.Layers() {
			if err == nil {
				p.layouts[layer], err = placed.Layout(layer)
			}
			for rank := range p.layouts[layer].Ranks() {
				if len(p.layouts[layer].Held(rank)) == 0 {
					return p, nil, contradicts(running.Source, "experts on each rank", fmt.Sprintf("none on rank %d, as where "+
						"vLLM has masked it", rank), "give what runs once all ranks serve")
				}
			}
		}
		if err != nil {
			return p, nil, contradicts(r.Source, "", err.Error(), "")
		}
		p.beyond = placed.Placed(o.MoELayers)
	}
	return p, warnings, nil
}

// Running is how many redundant experts run: in the placement given, or in the last recorded
// one on the last number of ranks; 0 where none is known.
func (o Options) Running(records []*counts.Record) (redundant int) {
	if p, _ := o.running(records, o.Ranks[len(o.Ranks)-1]); p != nil {
		redundant = p.Slots - p.Experts
	}
	return redundant
}
