// Package place learns placements of experts from some recorded loads, and judges them
// on others: a placement that is judged on the counts it was learned from looks better
// than it will be.
//
// It says how even the load over ranks becomes, and, by a replay of a trace or by a campaign's curve of time over
// load, what that is worth. Without one time is undefined.
package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// Options says what is placed, by flags and by what is found from them.
type Options struct {
	// EP sizes, and physical experts less logical ones: with each EP size a placement.
	Ranks     []int `flag:"ep"`
	Redundant []int `flag:"redundant"`
	// The share of all copies that may move from the baseline; nil for all.
	MaxMoves *float64 `flag:"max-moves" in:"%"`
	// PlanRobust, PlanEPLB; "" for the robust plan of two kinds of windows or more.
	Policy string `flag:"plan" preset:"robust"`
	// Above 1, and where they divide the model's groups, EPLB is hierarchical.
	Nodes int `flag:"nodes" preset:"1"`
	// The least reduction of the busiest rank's load that is worth a trial.
	Threshold float64 `flag:"threshold" in:"%" preset:"1%"`

	Shape     *router.Shape  // of the model, nil where it is not named
	Cost      *Cost          // what a trace tells of time, nil for none
	NoTime    router.Warning // why there is none, or Flat
	Dose      *Dose          // nil for none
	From      *placement.Map // that runs; nil takes the records'
	MoELayers []int          // of the model, nil where it is not named
}

// Impossible is the first number of redundant copies with which the experts do not fill the ranks with equally many
// slots, as engines ask, on each of several numbers of ranks; the error is nil where all do.
func Impossible(experts int, copies, ranks []int) (int, error) {
	for _, n := range copies {
		for _, ranks := range ranks {
			switch most := experts * (ranks - 1); {
			case ranks > experts:
				return n, fmt.Errorf("want at most %s, one for each expert, have %d", quantity.Count(experts, "rank"), ranks)
			case n > most:
				return n, fmt.Errorf("want at most %d, a copy of each expert on each rank", most)
			case (experts+n)%ranks != 0:
				return n, fmt.Errorf("%s and %s do not divide over %s; try %d", quantity.Count(experts, "expert"),
					quantity.Count(n, "copy"), quantity.Count(ranks, "rank"), n+ranks-(experts+n)%ranks)
			}
		}
	}
	return 0, nil
}

// Judge learns placements from some windows and judges them on others, or, without any, on the
// learned kinds left out in turn, by what is learned from the rest. Errors about windows are of
// type *input.Error, errors about sizes wrap router.ErrShape.
func Judge(learn, judge []Window, o Options) (*Result, error) {
	all := slices.Concat(learn, judge)
	experts, err := learn[0].record.ExpertsOf(o.Shape)
	if err != nil {
		return nil, err
	}
	kinds := clusters(learn)
	res := o.result(experts, learn)
	res.split(learn, judge, kinds)
	if c := o.Cost; c != nil && len(res.Judged) > 0 && !slices.ContainsFunc(res.Judged, c.like) {
		o.Cost, res.Cost, res.NoTime = nil, nil, noTime("phase", "kind", c.kind.Name)
	}
	if o.Nodes > 1 && (o.Shape == nil || o.Shape.Groups%o.Nodes != 0 || !o.Shape.Grouped()) {
		res.Warnings = append(res.Warnings, router.Warn("global", "EPLB", "nodes", o.Nodes))
	}
	for _, w := range all {
		res.Warnings = append(res.Warnings, w.record.Warnings...)
	}
	res.warnOf()
	if len(kinds) < 2 && o.Policy == "" {
		res.Warnings = append(res.Warnings, router.Warn("one_window", learn[0].Name))
		o.Policy = PlanEPLB
	}
	o.Policy = cmp.Or(o.Policy, PlanRobust)
	for _, ranks := range o.Ranks {
		if err := res.onRanks(all, ranks, o); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// onRanks judges the running placement and each number of copies on so many ranks.
func (r *Result) onRanks(all []Window, ranks int, o Options) error {
	if o.Cost != nil && o.Cost.Ranks != ranks {
		o.Cost = nil
	}
	running, warnings, err := o.baseline(all, r.Experts, ranks)
	if err != nil {
		return err
	}
	var judged, windows []seen
	for i, f := range r.folds {
		for _, w := range f.held {
			judged = append(judged, seen{Window: w, fold: i})
		}
	}
	for _, w := range all {
		windows = append(windows, seen{Window: w, plans: []plan{running}})
	}
	more, err := nulls(judged, r.Experts, ranks, o)
	if err = cmp.Or(err, scoreAll(windows, r.Experts)); err != nil {
		return err
	}
	r.Warnings = slices.Concat(r.Warnings, warnings, more)
	r.drift(windows, ranks)
	for _, redundant := range o.Redundant {
		if err := r.add(Plan{ranks, redundant}, running, judged, o); err != nil {
			return err
		}
	}
	return nil
}

// result is one without any placement yet.
func (o Options) result(experts int, learn []Window) *Result {
	res := &Result{
		SchemaVersion: SchemaVersion, Kind: "place", Experts: experts, MoELayers: o.MoELayers, Ranks: router.NoID,
		Engine: learn[0].record.Engine, Nodes: o.Nodes, Threshold: o.Threshold,
		Learned: learn, Judged: []Window{}, Cost: o.Cost, NoTime: o.NoTime,
		Placements: []Placement{}, Workloads: []Workload{}, Layers: []Layer{},
		Drift: []Drift{}, Warnings: []router.Warning{}, Slots: map[Plan]placement.Slots{},
	}
	if o.Cost != nil {
		res.Engine = cmp.Or(res.Engine, o.Cost.kind.Engine)
	}
	if len(o.Ranks) == 1 {
		res.Ranks = router.OptInt(o.Ranks[0])
	}
	return res
}

// split says what is judged by what: the windows to judge by the learned ones, or else each
// learned kind by the others.
func (r *Result) split(learn, judge []Window, kinds [][]Window) {
	r.folds = []fold{{judge, learn}}
	if len(judge) == 0 && len(learn) > 1 {
		if r.folds = folds(kinds); len(kinds) < 2 {
			r.folds = folds(slices.Collect(slices.Chunk(learn, 1)))
		}
		r.LeftOut = len(r.folds)
	}
	for _, f := range r.folds {
		for i, w := range f.held {
			f.held[i].alike, f.held[i].again = slices.ContainsFunc(f.rest, w.resembles), slices.ContainsFunc(f.rest, w.repeats)
		}
		r.Judged = append(r.Judged, f.held...)
	}
}

// warnOf says of which windows no number can be trusted to hold.
func (r *Result) warnOf() {
	first := r.Learned[0]
	if slices.ContainsFunc(r.Learned, func(w Window) bool { return w.record.Phase != first.record.Phase }) {
		r.Warnings = append(r.Warnings, router.Warn("two_phases", first.Name))
	}
	if alike := slices.DeleteFunc(slices.Clone(r.Judged), func(w Window) bool { return !w.alike }); len(alike) > 0 {
		r.Warnings = append(r.Warnings, router.Warn("judged_learned", alike[0].Name, "alike", len(alike), "windows",
			len(r.Judged)))
	}
}

// drift is how even the running placement is on each window.
func (r *Result) drift(windows []seen, ranks int) {
	for _, w := range windows {
		s := w.scores[0]
		r.Drift = append(r.Drift, Drift{Ranks: ranks, Window: w.Name, MaxOverMean: s.overall(),
			Balancedness: mean(slices.Sorted(maps.Keys(s)), func(layer int) router.Number { return 1 / s.at(layer) })})
	}
}

// add learns placements from all learned windows, the first of them the default, and for each
// fold from the rest, and judges each by the windows that it was not learned from.
func (r *Result) add(at Plan, running plan, judged []seen, o Options) error {
	size := placement.Size{Slots: r.Experts + at.Redundant, Ranks: at.Ranks, Nodes: o.Nodes}
	if o.Shape != nil {
		size.Groups = o.Shape.Groups
	}
	plans, err := o.learn(running, r.Learned, r.Experts, size)
	if err != nil {
		return err
	}
	byFold := make([][]plan, len(r.folds))
	for i, f := range r.folds {
		without := plans
		if r.LeftOut > 0 {
			if without, err = o.learn(running, f.rest, r.Experts, size); err != nil {
				return err
			}
		}
		byFold[i] = append([]plan{running}, without...)
	}
	judged = slices.Clone(judged)
	for i := range judged {
		judged[i].plans = byFold[judged[i].fold]
	}
	var learned []seen
	for _, w := range r.Learned {
		learned = append(learned, seen{Window: w, plans: append([]plan{running}, plans...)})
	}
	if err := cmp.Or(scoreAll(learned, r.Experts), scoreAll(judged, r.Experts)); err != nil {
		return err
	}
	for i := range plans {
		r.judge(at, i+1, learned, judged, o)
	}
	r.layers(at, plans[0], learned, judged)
	r.Slots[at] = placement.Slots{}
	for layer, l := range running.beyond { // a layer without counts keeps its places
		slots, ok := placement.Grown(l, [][]float64{make([]float64, r.Experts)}, size)
		if !ok { // there are fewer
			slots = placement.Trivial(size.Slots, r.Experts)
		}
		r.Slots[at][layer] = slots
	}
	for layer, l := range plans[0].layouts {
		r.Slots[at][layer] = placement.SlotsOf(l)
	}
	return nil
}

// judge compares one plan of the windows, by its index, with the baseline, which is the first.
func (r *Result) judge(at Plan, index int, learned, judged []seen, o Options) {
	running, placed := learned[0].plans[0], learned[0].plans[index]
	placedLoad := func(w seen) router.Number { return w.scores[index].overall() }
	base := func(w seen) router.Number { return w.scores[0].overall() }
	p := Placement{Plan: at, Name: placed.name, Default: index == 1, Before: running.from,
		Learned: mean(learned, placedLoad), Judged: overFolds(judged, placedLoad),
		Baseline: overFolds(judged, base),
		NullP95:  overFolds(judged, func(w seen) router.Number { return w.null }),
		Moved:    loaded(running, placed)}
	p.Change = p.Judged/p.Baseline - 1
	p.MovedShare = router.Number(p.Moved) / router.Number(max(1, (r.Experts+at.Redundant)*len(placed.layouts)))
	var of []Workload
	var times []*TimeChange
	for _, w := range judged {
		row := Workload{Plan: at, Window: w.Name, Judged: placedLoad(w), Baseline: base(w), NullP95: w.null,
			Change: placedLoad(w)/base(w) - 1, Repeats: w.again, alike: w.alike}
		p.Worst = max(p.Worst, row.Judged)
		if p.Default {
			row.Time = o.Cost.change(w)
			times = append(times, row.Time)
		}
		switch {
		case row.Change < 0:
			p.Helped++
		case row.Change > 0:
			p.Hurt++
		}
		of = append(of, row)
	}
	if p.Default {
		p.Time, p.Others = overall(times), o.Cost.changes(judged)
		p.Gains = o.Dose.predict(p)
	}
	p.Verdict, p.Reason = verdict(p, of, r.Threshold, r.NoTime)
	r.Placements = append(r.Placements, p)
	if p.Default {
		r.Workloads = append(r.Workloads, of...)
	}
}

// layers says what the default placement does to each layer.
func (r *Result) layers(at Plan, placed plan, learned, judged []seen) {
	for _, layer := range slices.Sorted(maps.Keys(placed.layouts)) {
		by := func(index int) func(seen) router.Number {
			return func(w seen) router.Number { return w.scores[index].at(layer) }
		}
		r.Layers = append(r.Layers, Layer{Plan: at, Layer: layer, Learned: mean(learned, by(1)),
			Judged: overFolds(judged, by(1)), Baseline: overFolds(judged, by(0))})
	}
}

// Alike are the experts of counts of one model. It refuses counts of other experts, or with load in other layers: a
// layer with load in one must be recorded in each, where it may have no load.
func Alike(records []*counts.Record, model *router.Shape) (experts int, err error) {
	first, name := records[0].LayerSlots(), records[0].Source
	for i, r := range records {
		n, err := r.ExpertsOf(model)
		if err != nil {
			return 0, err
		}
		if i > 0 && n != experts {
			return 0, contradicts(r.Source, fmt.Sprintf("%d experts, as in %s", experts, name), fmt.Sprint(n),
				"give counts of one model")
		}
		experts = n
		own, lacking := r.LayerSlots(), []int(nil)
		for _, pair := range [][2]map[int]int64{{first, own}, {own, first}} {
			for layer, n := range pair[0] {
				if _, recorded := pair[1][layer]; n > 0 && !recorded {
					lacking = append(lacking, layer)
				}
			}
		}
		if slices.Sort(lacking); len(lacking) > 0 {
			return 0, contradicts(r.Source, "load in the layers of "+name,
				fmt.Sprintf("layers %s of one of them alone", quantity.Ranges(lacking)), "give counts of one model")
		}
	}
	return experts, nil
}

// contradicts is the error about counts, placements and options that do not fit together.
func contradicts(file, expected, found, try string) error {
	return &input.Error{File: file, Expected: expected, Found: found, Try: try, Err: counts.ErrOptions}
}
