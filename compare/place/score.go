package place

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// seen is a window and the plans that it is scored by: the baseline, then one for each way of
// learning.
type seen struct {
	Window
	plans  []plan
	scores []score
	fold   int // that the window is held in, where it is judged
	null   router.Number
}

// score is the max/mean of a plan on a window by layer, mean over its steps.
type score map[int]router.Number

// at is the max/mean of a layer, undefined where the window has none.
func (s score) at(layer int) router.Number {
	if v, ok := s[layer]; ok {
		return v
	}
	return router.Undefined()
}

// overall is the mean over layers.
func (s score) overall() router.Number {
	return mean(slices.Sorted(maps.Keys(s)), s.at) // in order: the last digits depend on it
}

// scoreAll scores the windows.
func scoreAll(views []seen, experts int) error {
	return each(len(views), func(i int) (err error) {
		views[i].scores, err = views[i].score(views[i].plans, experts)
		return err
	})
}

// score judges plans on the window, in one walk over its steps.
func (w Window) score(plans []plan, experts int) ([]score, error) {
	out := make([]score, len(plans))
	for i := range out {
		out[i] = score{}
	}
	steps := map[int]router.Number{}
	load := router.NewLoad(experts)
	for _, s := range w.record.Steps() {
		if s.Load.Total() == 0 {
			continue
		}
		clear(load.PerExpert)
		load.Merge(s.Load)
		steps[s.Layer]++
		for i, p := range plans {
			layout, ok := p.layouts[s.Layer]
			if !ok {
				return nil, contradicts(w.Name, fmt.Sprintf("layers %s, as in %s",
					quantity.Ranges(slices.Sorted(maps.Keys(p.layouts))), p.from), fmt.Sprintf("layer %d", s.Layer),
					"give counts of one model")
			}
			out[i][s.Layer] += placement.MaxOverMean(layout, load.PerExpert)
		}
	}
	for _, s := range out {
		for layer, n := range steps {
			s[layer] /= n
		}
	}
	return out, nil
}

// nulls are what random routing exceeds on each judged window once in twenty times, with
// contiguous experts, mean over layers. Where the top-k is not known, every slot counts as a
// token of its own, which varies more than distinct choices do.
func nulls(views []seen, experts, ranks int, o Options) ([]router.Warning, error) {
	warnings := make([][]router.Warning, len(views))
	err := each(len(views), func(i int) error {
		shape, record := o.Shape, views[i].record
		if shape == nil && record.TopK == 0 {
			shape = &router.Shape{Experts: experts, TopK: 1}
		}
		rows, more, err := record.Imbalance(counts.Options{Ranks: ranks, Shape: shape, Threshold: o.Threshold})
		ofRanks := slices.DeleteFunc(rows, func(r imbalance.Row) bool {
			return r.Level != router.LevelRank || r.Steps == 0
		})
		views[i].null, warnings[i] = mean(ofRanks, func(r imbalance.Row) router.Number { return r.NullP95 }), more
		return err
	})
	return slices.Concat(warnings...), err
}

// mean is the mean over the items for which the number is defined, undefined where it is
// for none.
func mean[T any](items []T, of func(T) router.Number) router.Number {
	var sum, n router.Number
	for _, item := range items {
		if v := of(item); v.Defined() {
			sum, n = sum+v, n+1
		}
	}
	return sum / n // 0/0 is NaN: undefined
}

// overFolds is the mean of a number over the windows of each fold, and its mean over folds, so that no
// kind of traffic counts for more because it has more windows.
func overFolds(views []seen, of func(seen) router.Number) router.Number {
	byFold := map[int][]seen{}
	for _, v := range views {
		byFold[v.fold] = append(byFold[v.fold], v)
	}
	return mean(slices.Sorted(maps.Keys(byFold)), func(f int) router.Number { return mean(byFold[f], of) })
}
