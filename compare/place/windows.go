package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/floats"

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
	shares     map[int][]float64 // of each expert, by layer with load
}

// Whole takes each record as a window, or each phase of one that tells them apart.
func Whole(records []*counts.Record) []Window {
	list := []Window{}
	for _, r := range records {
		phases, err := r.Phases()
		if err != nil {
			phases = []*counts.Record{r} // whose steps will say so
		}
		for _, part := range phases {
			name := r.Source
			if part.Phase != "" {
				name += fmt.Sprintf(" (%s)", part.Phase)
			}
			list = append(list, windowOf(name, part))
		}
	}
	return list
}

func windowOf(name string, r *counts.Record) Window {
	return Window{Name: name, Iterations: len(r.Iterations()), Slots: r.Slots(), record: r, shares: sharesOf(r)}
}

// maxParts is the most windows of either half of a single record: enough to see a gain
// decay, each of two iterations or more.
const maxParts = 4

// Halves divides the iterations of a single record into windows to learn from and to judge on,
// the first half against the rest, each in up to maxParts windows. One iteration leaves none to judge
// on, nor do several records: Judge leaves them out in turn.
func Halves(records []*counts.Record) (learn, judge []Window, err error) {
	if len(records) > 1 {
		return Whole(records), nil, nil
	}
	iterations := records[0].Iterations()
	half := (len(iterations) + 1) / 2
	if half == len(iterations) {
		return Whole(records), nil, nil
	}
	if learn, err = parts(records[0], iterations[:half], maxParts); err == nil {
		judge, err = parts(records[0], iterations[half:], maxParts)
	}
	return learn, judge, err
}

// parts divides some iterations of a record into at most so many windows, each of two or more.
func parts(record *counts.Record, iterations []int64, most int) (windows []Window, err error) {
	n := max(1, min(most, len(iterations)/2))
	for i := range n {
		part := iterations[i*len(iterations)/n : (i+1)*len(iterations)/n]
		r, err := record.Between(part[0], part[len(part)-1])
		if err != nil {
			return nil, err
		}
		w := windowOf(r.Source, r)
		if w.Name += fmt.Sprintf(" (iteration %d)", part[0]); len(part) > 1 {
			w.Name = fmt.Sprintf("%s (iterations %d to %d)", r.Source, part[0], part[len(part)-1])
		}
		windows = append(windows, w)
	}
	return windows, nil
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
	from    string // a window that it was learned from, or the file of what runs
	name    string
	slots   counts.Slots
	beyond  counts.Slots // of what runs: layers that no window may have
	layouts map[int]router.Layout
}

// learned places the experts by the slots of all windows together.
func learned(windows []Window, experts int, size placement.Size) (plan, error) {
	p := newPlan(windows[0].Name, PlanEPLB)
	sums := map[int]router.Load{}
	for _, w := range windows {
		for layer, load := range w.record.ByLayer() {
			if _, ok := sums[layer]; !ok {
				sums[layer] = router.NewLoad(experts)
			}
			sums[layer].Merge(load)
		}
	}
	err := p.replace(slices.Sorted(maps.Keys(sums)), experts, size, func(layer int) ([]int32, error) {
		return placement.EPLB(sums[layer].PerExpert, size)
	})
	return p, err
}

// rename calls the ranks of plans so that they load the fewest copies coming from what runs.
// Where that is not known, EPLB's plan stays what others make of it.
func (o Options) rename(plans []plan, running plan, experts int, size placement.Size) error {
	for _, p := range plans {
		if running.from == Contiguous && p.name != PlanRobust {
			continue
		}
		if err := p.rename(running, experts, size); err != nil {
			return err
		}
	}
	return nil
}

// rename calls the ranks of a plan so that they load the fewest copies coming from another.
func (p *plan) rename(from plan, experts int, size placement.Size) error {
	slots := maps.Clone(p.slots)
	return p.replace(slices.Sorted(maps.Keys(slots)), experts, size, func(layer int) ([]int32, error) {
		if from, ok := from.layouts[layer]; ok {
			return placement.Renamed(slots[layer], from, size), nil
		}
		return slots[layer], nil
	})
}

// baseline is the placement that runs on so many ranks, with its name: the one given, or
// the last that a window records, or contiguous experts where none is known.
func (o Options) baseline(windows []Window, experts, ranks int) (p plan, warnings []router.Warning, err error) {
	running := o.From
	for _, w := range windows {
		own, err := w.record.Running(ranks)
		if o.From == nil && err != nil {
			warnings = append(warnings, router.Warn("no_placement", w.Name, "error", err.Error()))
		}
		if o.From == nil && own != nil {
			if running != nil && !running.Same(own) {
				warnings = append(warnings, router.Warn("placements_differ", w.Name))
			}
			running = own
		}
	}
	if running == nil || running.Ranks != ranks {
		if running, err = counts.Contiguous(experts, ranks); err != nil {
			return plan{}, nil, err
		}
	}
	if running.Experts != experts {
		return plan{}, nil, &input.Error{File: running.Source, Expected: quantity.Count(experts, "expert"),
			Found: strconv.Itoa(running.Experts), Err: counts.ErrOptions}
	}
	p = newPlan(cmp.Or(running.Source, Contiguous), "baseline")
	for _, w := range windows {
		placed, err := running.For(w.record, o.MoELayers)
		for _, layer := range w.record.Layers() {
			if err == nil {
				p.layouts[layer], err = placed.Layout(layer)
			}
		}
		if err != nil {
			return plan{}, nil, &input.Error{File: w.Name, Found: err.Error(), Err: counts.ErrOptions}
		}
		p.beyond = placed.Placed(o.MoELayers)
	}
	for layer, l := range p.layouts {
		for rank := range ranks {
			p.slots[layer] = append(p.slots[layer], l.Held(rank)...)
		}
	}
	return p, warnings, nil
}

// Running is how many redundant experts run: of the placement given, or of the last recorded
// one on the first number of ranks; 0 where none is known.
func (o Options) Running(records []*counts.Record) int {
	running := o.From
	for _, r := range records {
		for _, ranks := range o.Ranks {
			if own, err := r.Running(ranks); o.From == nil && err == nil && own != nil {
				running = own
			}
		}
	}
	if running == nil {
		return 0
	}
	return running.Slots() - running.Experts
}

// Contiguous names the baseline where no other is known.
const Contiguous = "contiguous"

// score is what a plan does to a window, mean over its steps.
type score struct {
	ratio map[int]router.Number // max/mean by layer
	// predicted time of the slowest ranks, over all layers, by fit of the cost; nil without one
	ns []float64
}

// at is the max/mean of a layer, undefined where the window has none.
func (s score) at(layer int) router.Number {
	if v, ok := s.ratio[layer]; ok {
		return v
	}
	return router.Undefined()
}

// overall is the mean over layers.
func (s score) overall() router.Number {
	return mean(slices.Sorted(maps.Keys(s.ratio)), s.at) // in order: the last digits depend on it
}

// timed is how many of the plans have their time predicted: the baseline and the default.
const timed = 2

// scores judges plans on the window, in one walk over its steps.
func (w Window) scores(plans []plan, experts int, cost *Cost) ([]score, error) {
	out := make([]score, len(plans))
	for i := range out {
		out[i].ratio = map[int]router.Number{}
	}
	steps, all := map[int]router.Number{}, float64(len(w.record.Iterations()))
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
				return nil, &input.Error{File: w.Name, Expected: fmt.Sprintf("layers %s, as in %s",
					quantity.Ranges(slices.Sorted(maps.Keys(p.layouts))), p.from),
					Found: fmt.Sprintf("layer %d", s.Layer), Try: "give counts of one model",
					Err: counts.ErrOptions}
			}
			out[i].ratio[s.Layer] += placement.MaxOverMean(layout, load.PerExpert)
			if cost != nil && i < timed {
				scale := cost.slots / SlotsPerStep(w.record) // to steps as large as those of the cost
				ns := cost.slowest(layout, load.PerExpert, scale, w.record.Window && scale != 1)
				if out[i].ns == nil {
					out[i].ns = make([]float64, len(ns))
				}
				floats.AddScaled(out[i].ns, 1/all, ns)
			}
		}
	}
	for _, s := range out {
		for layer, n := range steps {
			s.ratio[layer] /= n
		}
	}
	return out, nil
}

// nulls are what random routing exceeds on each judged window once in twenty times, with
// contiguous experts, mean over layers. Where the top-k is not known, it takes every slot for
// a token of its own, which varies more than distinct choices do.
func (res *Result) nulls(ranks int, o Options) ([]router.Number, error) {
	null, warnings := make([]router.Number, len(res.Judged)), make([][]router.Warning, len(res.Judged))
	var group errgroup.Group
	for i, w := range res.Judged {
		group.Go(func() (err error) {
			shape := o.Shape
			if shape == nil && w.record.TopK == 0 {
				shape = &router.Shape{Experts: res.Experts, TopK: 1}
			}
			var rows []imbalance.Row
			rows, warnings[i], err = w.record.Imbalance(counts.Options{Ranks: ranks, Shape: shape,
				Threshold: o.Threshold})
			ofRanks := slices.DeleteFunc(rows, func(r imbalance.Row) bool {
				return r.Level != router.LevelRank || r.Steps == 0
			})
			null[i] = mean(ofRanks, func(r imbalance.Row) router.Number { return r.NullP95 })
			return err
		})
	}
	err := group.Wait()
	res.Warnings = append(res.Warnings, slices.Concat(warnings...)...)
	return null, err
}
