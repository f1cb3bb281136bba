package place

import (
	"errors"
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// LeftOut is what a way of learning placements does on windows that it has not seen: each
// cluster of nearly equal windows is left out in turn, the rest is learned from, and what was
// left out is judged, by the sums of its windows.
type LeftOut struct {
	Plan
	Name       string        `json:"plan"`
	Default    bool          `json:"default"`
	Folds      int           `json:"left_out"`                 // how often something was left out
	Judged     router.Number `json:"judged_max_over_mean"`     // mean over layers, then over what was left out
	P95        router.Number `json:"judged_p95_over_layers"`   // likewise of the layers' 95th percentile
	Worst      router.Number `json:"judged_worst_of_left_out"` // of the means over layers
	MovedShare router.Number `json:"moved_share"`              // from the baseline
	folds      []float64     // of each, mean over layers
}

// fewMoves is the share of the copies that may move where no budget is given.
const fewMoves = 0.1

// mostFolds bounds how often something is left out; of more clusters, several are at once.
const mostFolds = 6

// leaveOut judges each way of learning on the learned windows, whose kinds are left out in turn,
// and returns the rivals as they are without each: nothing judged is learned from.
func (res *Result) leaveOut(at Plan, flat plan, rivals []plan, size placement.Size, o Options) (
	without [][]plan, err error) {
	list, kinds := res.folds, clusters(res.Learned)
	if res.LeftOut == 0 {
		list = folds(kinds)
	}
	if len(list) < 2 {
		return nil, nil
	}
	if o.Policy == "" && len(kinds) > 1 {
		o.Policy = PlanRobust // of whatever is left
	}
	var names []string
	rows := map[string]*LeftOut{}
	for _, f := range list {
		plans, err := res.ways(flat, f.rest, f.held, size, o)
		if err != nil {
			return nil, err
		}
		for _, p := range plans {
			if rows[p.name] == nil {
				names = append(names, p.name)
				rows[p.name] = &LeftOut{Plan: at, Name: p.name, Default: p.name == rivals[0].name}
			}
			if rows[p.name].judge(p, f.held) {
				rows[p.name].MovedShare += movedShare(flat, p, at.Ranks)
			}
		}
		var kept []plan
		for _, r := range rivals {
			kept = append(kept, plans[slices.IndexFunc(plans, func(p plan) bool { return p.name == r.name })])
		}
		without = append(without, kept)
	}
	if len(kinds) < 2 { // files alone flatter every way
		return without, nil
	}
	for _, name := range names {
		r := rows[name]
		n := router.Number(r.Folds)
		r.Judged, r.P95, r.MovedShare = r.Judged/n, r.P95/n, r.MovedShare/n
		res.Plans = append(res.Plans, *r)
	}
	return without, nil
}

// fold is windows that are left out, and those that are learned from.
type fold struct{ held, rest []Window }

// folds leave each cluster out, or several of many.
func folds(clusters [][]Window) (list []fold) {
	list = make([]fold, min(len(clusters), mostFolds))
	for i := range list {
		for j, c := range clusters {
			if j%len(list) == i {
				list[i].held = append(list[i].held, c...)
			} else {
				list[i].rest = append(list[i].rest, c...)
			}
		}
	}
	return list
}

// ways are the placements that each way of learning takes from the rest.
func (res *Result) ways(flat plan, rest, held []Window, size placement.Size, o Options) ([]plan, error) {
	rivals, err := o.rivals(rest, res.Experts, size)
	if err != nil {
		return nil, err
	}
	near, target := 0, shareOf(held, res.Experts)
	for i := range rest {
		if distance(rest[i].shares, target) < distance(rest[near].shares, target) {
			near = i
		}
	}
	nearest, err := learned(rest[near:near+1], res.Experts, size)
	if err != nil {
		return nil, err
	}
	nearest.name = PlanNearest
	plans := slices.Concat([]plan{flat}, rivals, []plan{nearest})
	if err := o.rename(plans[1:], flat, res.Experts, size); err != nil {
		return nil, err
	}
	if flat.from != Contiguous || o.MaxMoves != nil {
		few := o
		if o.MaxMoves == nil {
			few.MaxMoves = &Budget{Share: fewMoves}
		}
		way, inBudget, err := few.way(flat, rest, res.Experts, size, true)
		if err != nil && (o.MaxMoves != nil || !errors.Is(err, errOverBudget)) {
			return nil, err
		}
		if len(way) > 0 {
			plans = append(plans, way[inBudget])
		}
	}
	return plans, nil
}

// judge adds what a plan does to the windows that were left out; false where they share no layer with load.
func (r *LeftOut) judge(p plan, held []Window) bool {
	var layers []float64
	for _, layer := range slices.Sorted(maps.Keys(p.layouts)) {
		of := mean(held, func(w Window) router.Number {
			if w.shares[layer] == nil {
				return router.Undefined()
			}
			return placement.MaxOverMean(p.layouts[layer], w.shares[layer])
		})
		if of.Defined() {
			layers = append(layers, of.Float64())
		}
	}
	if len(layers) == 0 {
		return false
	}
	r.Folds++
	slices.Sort(layers)
	of := router.Number(stat.Mean(layers, nil))
	r.Judged += of
	r.Worst, r.folds = max(r.Worst, of), append(r.folds, of.Float64())
	r.P95 += router.Number(stat.Quantile(0.95, stat.Empirical, layers, nil))
	return true
}
