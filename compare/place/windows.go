package place

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// Window is recorded counts of which one placement is learned, or on which it is judged.
type Window struct {
	Name       string `json:"window"` // the source, with its iterations where it was divided
	Iterations int    `json:"iterations"`
	Slots      int64  `json:"slots"`
	record     *counts.Record
}

// Whole takes each record as a window.
func Whole(records []*counts.Record) []Window {
	list := []Window{}
	for _, r := range records {
		list = append(list, Window{Name: r.Source, Iterations: len(r.Iterations()), Slots: r.Slots(), record: r})
	}
	return list
}

// Halves divides what was recorded into windows to learn from and to judge on: several
// records, or the iterations of a single one, the first half against the rest. One
// iteration leaves none to judge on.
func Halves(records []*counts.Record) (learn, judge []Window, err error) {
	if len(records) > 1 {
		half := (len(records) + 1) / 2
		return Whole(records[:half]), Whole(records[half:]), nil
	}
	iterations := records[0].Iterations()
	half := (len(iterations) + 1) / 2
	if half == len(iterations) {
		return Whole(records), nil, nil
	}
	var parts []Window
	for _, part := range [][]int64{iterations[:half], iterations[half:]} {
		r, err := records[0].Between(part[0], part[len(part)-1])
		if err != nil {
			return nil, nil, err
		}
		w := Whole([]*counts.Record{r})[0]
		if w.Name += fmt.Sprintf(" (iteration %d)", part[0]); len(part) > 1 {
			w.Name = fmt.Sprintf("%s (iterations %d to %d)", r.Source, part[0], part[len(part)-1])
		}
		parts = append(parts, w)
	}
	return parts[:1], parts[1:], nil
}

// repeats reports whether a window has the counts of another again, as where a benchmark
// sends the same tokens in every step: to judge on it is to judge on the other. The shares
// of the experts are equal, or so near that chance does not bring other tokens there:
//
//	χ² = Σ (a·n − b·m)² / (m·n·(a + b)) < experts/10, over at least 30 experts of all layers
//
// for counts a and b of an expert, m and n of all; other tokens make it about 1 per expert.
func (w Window) repeats(other Window) bool {
	loads, others := w.record.ByLayer(), other.record.ByLayer()
	var chi2, experts float64
	for _, layer := range slices.Sorted(maps.Keys(loads)) {
		if len(others[layer].PerExpert) != len(loads[layer].PerExpert) {
			return false
		}
		m, n := float64(loads[layer].Total()), float64(others[layer].Total())
		for e, b := range others[layer].PerExpert {
			if a := loads[layer].PerExpert[e]; a+b > 0 {
				d := float64(a)*n - float64(b)*m
				chi2 += d * d / (m * n * float64(a+b))
				experts++
			}
		}
	}
	return len(loads) == len(others) && (chi2 == 0 || experts >= 30 && chi2 < experts/10)
}

// plan is where the experts are in every layer.
type plan struct {
	slots   counts.Slots
	layouts map[int]router.Layout
}

// learned places the experts by the slots of all windows together.
func learned(windows []Window, experts int, size placement.Size) (plan, error) {
	p := plan{counts.Slots{}, map[int]router.Layout{}}
	sums := map[int]router.Load{}
	for _, w := range windows {
		for layer, load := range w.record.ByLayer() {
			if _, ok := sums[layer]; !ok {
				sums[layer] = router.NewLoad(experts)
			}
			sums[layer].Merge(load)
		}
	}
	for layer, load := range sums {
		slots, err := placement.EPLB(load.PerExpert, size)
		if err != nil {
			return p, err
		}
		p.slots[layer] = slots
		if p.layouts[layer], err = placement.Layout(experts, slots, size.Ranks); err != nil {
			return p, err
		}
	}
	return p, nil
}

// score is a max/mean by layer, mean over the steps of a window.
type score map[int]router.Number

// at is that of a layer, undefined where the window has none.
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

// scores judges plans on the window, in one walk over its steps.
func (w Window) scores(plans []plan, experts int) ([]score, error) {
	out := make([]score, len(plans))
	for i := range out {
		out[i] = score{}
	}
	steps := map[int]router.Number{}
	load := router.NewLoad(experts)
	for s, err := range w.record.Steps() {
		if err != nil {
			return nil, err
		}
		if s.Load.Total() == 0 {
			continue
		}
		clear(load.PerExpert)
		load.Merge(s.Load)
		steps[s.Layer]++
		for i, p := range plans {
			layout, ok := p.layouts[s.Layer]
			if !ok {
				return nil, &input.Error{File: w.Name, Expected: "the layers that were learned from, " + quantity.Ranges(slices.Sorted(maps.Keys(p.layouts))), Found: fmt.Sprintf("layer %d", s.Layer), Try: "give counts of one model", Err: counts.ErrOptions}
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

// contiguous is the load of a window with contiguous experts.
type contiguous struct {
	score
	nullP95 router.Number // mean over layers
}

// contiguous judges contiguous experts. Where the top-k is not known, the null takes
// every slot for a token of its own, which varies more than distinct choices do.
func (res *Result) contiguous(w Window, o Options) (contiguous, error) {
	c := contiguous{score: score{}}
	shape := o.Shape
	if shape == nil && w.record.TopK == 0 {
		shape = &router.Shape{Experts: res.Experts, TopK: 1}
	}
	rows, warnings, err := w.record.Imbalance(counts.Options{Ranks: o.Ranks, Shape: shape, Threshold: o.Threshold})
	res.Warnings = append(res.Warnings, warnings...)
	var judged []imbalance.Row
	for _, r := range rows {
		if r.Level == router.LevelRank && r.Steps > 0 {
			c.score[int(r.Layer)] = r.MaxOverMean
			judged = append(judged, r)
		}
	}
	c.nullP95 = mean(judged, func(r imbalance.Row) router.Number { return r.NullP95 })
	return c, err
}
