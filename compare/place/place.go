// Package place learns placements of experts from some recorded loads, and judges them
// on others: a placement that is judged on the counts it was learned from looks better
// than it will be.
//
// It says how even the load over ranks becomes, and, by a cost that is fitted to a trace
// or a table of measured times, what that is worth in time. Without one time is undefined.
package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/router/quantity"
)

// SchemaVersion is the version of the JSON of Result.
const SchemaVersion = 2

// Options says what is placed.
type Options struct {
	Ranks       []int             // EP sizes
	Redundant   []int             // physical experts less logical ones; with each EP size a placement
	Nodes       int               // above 1, and where they divide the model's groups, EPLB is hierarchical
	Shape       *router.Shape     // of the model, nil where it is not named
	Threshold   float64           // the least reduction of the busiest rank's load that is worth a trial
	Cost        *Cost             // of expert work, nil for none
	NoTime      router.Warning    // why there is none
	Dose        *Dose             // nil for none
	ExpertBytes float64           // the weights of an expert, 0 where not known
	From        *counts.Placement // that runs; nil takes the records'
	MaxMoves    *Budget           // from the baseline; nil for any number
	Policy      string            // PlanEPLB, PlanRobust even of one window; "" for the default
	Goal        placement.Goal    // of a robust plan
	MoELayers   []int             // of the model, nil where it is not named
	Bandwidth   float64           // bytes per second at which a rank loads weights, 0 where not known
	Rebalance   bool              // compare ways of when to place anew
}

// Impossible is the first of some numbers of copies that, with the experts, does not leave
// ranks with equally many slots, as engines ask, on each of several numbers of ranks. The
// error names the nearest numbers of copies that do; it is nil where all do.
func Impossible(experts int, copies, ranks []int) (int, error) {
	for _, n := range copies {
		if err := possible(experts, n, ranks); err != nil {
			return n, err
		}
	}
	return 0, nil
}

func possible(experts, copies int, ranks []int) error {
	uneven := func(copies int) int {
		return slices.IndexFunc(ranks, func(n int) bool { return (experts+copies)%n != 0 })
	}
	most, at := experts*(slices.Min(ranks)-1), uneven(copies)
	switch largest := slices.Max(ranks); {
	case largest > experts:
		return fmt.Errorf("want at most %s, one for each expert, have %d", quantity.Count(experts, "rank"), largest)
	case copies > most:
		return fmt.Errorf("want at most %d, a copy of each expert on each rank", most)
	case at < 0:
		return nil
	}
	var near []string
	for _, step := range []int{-1, 1} {
		n := copies
		for 0 <= n && n <= most && uneven(n) >= 0 {
			n += step
		}
		if 0 <= n && n <= most {
			near = append(near, strconv.Itoa(n))
		}
	}
	try := cmp.Or(strings.Join(near, " or "), "other EP sizes")
	return fmt.Errorf("%s and %s do not divide over %s; try %s", quantity.Count(experts, "expert"),
		quantity.Count(copies, "copy"), quantity.Count(ranks[at], "rank"), try)
}

// Judge learns placements, robust ones unless EPLB's are asked for, from some windows and judges
// them on others, or, without any, on the learned kinds left out in turn: by what is learned from the
// rest. Errors about windows are of type *input.Error, those about sizes wrap router.ErrShape.
func Judge(learn, judge []Window, o Options) (*Result, error) {
	all := slices.Concat(learn, judge)
	experts, err := commonExperts(all, o.Shape)
	if err != nil {
		return nil, err
	}
	res := o.result(experts, learn)
	kinds := clusters(learn)
	res.split(learn, judge, kinds)
	if o.Nodes > 1 && (o.Shape == nil || o.Shape.Groups%o.Nodes != 0 || !o.Shape.Grouped()) {
		res.Warnings = append(res.Warnings, router.Warn("global", "EPLB", "nodes", o.Nodes))
	}
	for _, w := range all {
		res.Warnings = append(res.Warnings, w.record.Warnings...)
	}
	res.warnOf()
	if len(kinds) < 2 && o.Policy == "" {
		res.Warnings = append(res.Warnings, router.Warn("one_window", learn[0].Name))
	}
	for _, ranks := range o.Ranks {
		flat, warnings, err := o.baseline(all, experts, ranks)
		if err != nil {
			return nil, err
		}
		res.Warnings = append(res.Warnings, warnings...)
		null, err := res.nulls(ranks, o)
		if err != nil {
			return nil, err
		}
		for _, redundant := range o.Redundant {
			if err := res.add(Plan{ranks, redundant}, flat, null, o); err != nil {
				return nil, err
			}
		}
	}
	res.compareCopies()
	return res, nil
}

// result is one without any placement yet.
func (o Options) result(experts int, learn []Window) *Result {
	res := &Result{
		SchemaVersion: SchemaVersion, Kind: "place", Experts: experts, MoELayers: o.MoELayers, Ranks: router.NoID,
		Nodes: o.Nodes, Threshold: o.Threshold,
		Learned: learn, Judged: []Window{}, Cost: o.Cost, NoTime: o.NoTime,
		Placements: []Placement{}, Workloads: []Workload{}, Layers: []Layer{},
		Plans: []LeftOut{}, Curve: []Point{}, Copies: []Copies{}, Phases: []Phase{}, Warnings: []router.Warning{},
		Slots: map[Plan]counts.Slots{},
	}
	if len(o.Ranks) == 1 {
		res.Ranks = router.OptInt(o.Ranks[0])
	}
	return res
}

// split says what is judged by what: the windows to judge by the learned ones, or else each
// learned kind by the others.
func (res *Result) split(learn, judge []Window, kinds [][]Window) {
	res.folds = []fold{{judge, learn}}
	if len(judge) == 0 && len(learn) > 1 {
		if res.folds = folds(kinds); len(kinds) < 2 {
			res.folds = folds(slices.Collect(slices.Chunk(learn, 1)))
		}
		res.LeftOut = len(res.folds)
	}
	for _, f := range res.folds {
		res.Judged = append(res.Judged, f.held...)
	}
}

// warnOf says of which windows no number can be trusted to hold.
func (res *Result) warnOf() {
	phases := map[counts.Phase]bool{}
	for _, w := range res.Learned {
		phases[w.record.Phase] = true
	}
	if phases[counts.Prefill] && phases[counts.Decode] {
		res.Warnings = append(res.Warnings, router.Warn("two_phases", res.Learned[0].Name))
	}
	var alike []Window
	for _, f := range res.folds {
		for _, w := range f.held {
			if slices.ContainsFunc(f.rest, func(l Window) bool { return distance(l.shares, w.shares) <= nearlySame }) {
				alike = append(alike, w)
			}
		}
	}
	if len(alike) > 0 {
		res.Warnings = append(res.Warnings, router.Warn("judged_learned", alike[0].Name, "alike", len(alike), "windows",
			len(res.Judged)))
	}
}

// add learns placements from all learned windows, the first of them the default.
func (res *Result) add(at Plan, flat plan, null []router.Number, o Options) error {
	size := placement.Size{Slots: res.Experts + at.Redundant, Ranks: at.Ranks, Nodes: o.Nodes}
	if o.Shape != nil {
		size.Groups = o.Shape.Groups
	}
	l, err := res.learn(flat, size, o)
	if err != nil {
		return err
	}
	without, err := res.leaveOut(at, flat, l.rivals, size, o)
	if err != nil {
		return err
	}
	plans := slices.Concat([]plan{flat}, l.rivals, l.way)
	by := slices.Repeat([][]plan{plans}, len(res.Learned)) // the plans that each window is judged by
	for i, f := range res.folds {
		of := plans
		if res.LeftOut > 0 {
			of = append([]plan{flat}, without[i]...)
		}
		by = append(by, slices.Repeat([][]plan{of}, len(f.held))...)
	}
	scores := make([][]score, len(by)) // likewise
	var group errgroup.Group
	for i, w := range slices.Concat(res.Learned, res.Judged) {
		group.Go(func() (err error) {
			scores[i], err = w.scores(by[i], res.Experts, o.costOn(at.Ranks))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	res.rank(at, by, len(l.rivals), scores, null, o)
	if len(l.way) > 0 {
		if res.LeftOut > 0 { // the rest has a way of its own
			scores = scores[:len(res.Learned)]
		}
		for i, s := range scores {
			scores[i] = append(slices.Clone(s[1+len(l.rivals):]), s[1+l.afresh])
		}
		res.Curve = append(res.Curve, o.points(at, flat, l, scores, len(res.Learned))...)
	}
	if err := res.phases(at, size, o); err != nil {
		return err
	}
	return res.rebalance(at, flat, size, o)
}

// learnt is the plans that are compared, the default first, and the way from what runs.
type learnt struct {
	rivals   []plan
	afresh   int // which of them is the default but for --max-moves
	way      []plan
	inBudget int // which of the way
}

func (res *Result) learn(flat plan, size placement.Size, o Options) (l learnt, err error) {
	if l.rivals, err = o.rivals(res.Learned, res.Experts, size); err != nil {
		return l, err
	}
	if err := o.rename(l.rivals, flat, res.Experts, size); err != nil || flat.from == Contiguous && o.MaxMoves == nil {
		return l, err
	}
	if err := l.follow(flat, res.Learned, res.Experts, size, o); err != nil || o.MaxMoves == nil {
		return l, err
	}
	if len(l.way) == 0 {
		return l, &input.Error{File: flat.from, Expected: fmt.Sprintf("at most %s on a rank, as --redundant %d says",
			quantity.Count(size.Slots/size.Ranks, "copy"), size.Slots-res.Experts), Found: "more", Err: counts.ErrOptions}
	}
	l.rivals, l.afresh = append([]plan{l.way[l.inBudget]}, l.rivals...), 1
	return l, nil
}

// rank judges so many rivals, of which the first is the default, whose layers and slots are shown.
// Each window is judged by plans of its own: the baseline, then the rivals.
func (res *Result) rank(at Plan, by [][]plan, rivals int, scores [][]score, null []router.Number, o Options) {
	n := len(res.Learned)
	flat, placed := by[0][0], by[0][1]
	base, own, held := column(scores[n:], 0), column(scores[:n], 1), column(scores[n:], 1)
	for i := range rivals {
		p := by[0][1+i]
		res.judge(at, i == 0, p, base, column(scores[:n], 1+i), column(scores[n:], 1+i), null,
			o.price(at, flat, p, res.Judged, column(by[n:], 1+i)), flat.from, o.costOn(at.Ranks))
		added := &res.Placements[len(res.Placements)-1]
		added.Gains = o.Dose.predict(*added)
	}
	if n := placed.doubles(); n > 0 && placed.name == PlanMoves {
		res.Warnings = append(res.Warnings, router.Warn("doubles", flat.from, "doubles", n))
	}
	res.Slots[at] = maps.Clone(placed.slots)
	for layer, slots := range flat.beyond { // what is not learned stays
		if _, ok := placed.slots[layer]; !ok && len(slots) == res.Experts+at.Redundant {
			res.Slots[at][layer] = slots
		}
	}
	for _, layer := range slices.Sorted(maps.Keys(placed.slots)) {
		res.Layers = append(res.Layers, Layer{
			Plan: at, Layer: layer, Learned: mean(own, func(s score) router.Number { return s.at(layer) }),
			Judged:        mean(held, func(s score) router.Number { return s.at(layer) }),
			Baseline:      mean(base, func(s score) router.Number { return s.at(layer) }),
			BaselineRanks: rankLoad(res.Judged, column(by[n:], 0), layer),
			LearnedRanks:  rankLoad(res.Learned, column(by[:n], 1), layer),
			JudgedRanks:   rankLoad(res.Judged, column(by[n:], 1), layer),
		})
	}
}

// rankLoad is that of Layer, each window by a plan of its own.
func rankLoad(windows []Window, by []plan, layer int) []router.Number {
	out := []router.Number{}
	for i, w := range windows {
		if w.shares[layer] == nil {
			return nil
		}
		layout := by[i].layouts[layer]
		for rank, share := range placement.RankLoad(layout, w.shares[layer]) {
			if rank == len(out) {
				out = append(out, 0)
			}
			out[rank] += router.Number(share * float64(layout.Ranks()) / float64(len(windows)))
		}
	}
	return out
}

// judge compares the placement learned from all learned windows with the baseline.
func (res *Result) judge(at Plan, best bool, placed plan, base, own, held []score, null []router.Number,
	price Price, from string, cost *Cost) {
	p := Placement{Plan: at, Name: placed.name, Default: best, Before: from, Learned: mean(own, score.overall),
		Judged: mean(held, score.overall), Price: price,
		Baseline: mean(base, score.overall), NullP95: mean(null, func(v router.Number) router.Number { return v })}
	p.Change = p.Judged/p.Baseline - 1
	p.MovedShare = router.Number(price.Moved) / router.Number(max(1, placed.copies()))
	var of []Workload
	var rest [][]Window
	for _, f := range res.folds {
		rest = append(rest, slices.Repeat([][]Window{f.rest}, len(f.held))...)
	}
	for i, s := range held {
		w := Workload{Plan: at, Window: res.Judged[i].Name, Judged: s.overall(), Baseline: base[i].overall(),
			NullP95: null[i]}
		w.Change = w.Judged/w.Baseline - 1
		w.Repeats = slices.ContainsFunc(rest[i], res.Judged[i].repeats)
		w.Time = cost.change(base[i:i+1], held[i:i+1])
		switch {
		case w.Change < 0:
			p.Helped++
		case w.Change > 0:
			p.Hurt++
		}
		of = append(of, w)
	}
	if p.Time = cost.change(base, held); p.Time != nil && p.Time.High < 0 {
		p.PaidBackAfter = p.MoveNS / p.Time.SavedNS
	}
	p.Verdict, p.Reason = verdict(p, of, res.Threshold)
	res.Placements = append(res.Placements, p)
	if best {
		res.Workloads = append(res.Workloads, of...)
	}
}

// column takes one plan, or its score, of each window.
func column[T any](windows [][]T, plan int) (out []T) {
	for _, w := range windows {
		out = append(out, w[plan])
	}
	return out
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

func commonExperts(windows []Window, model *router.Shape) (experts int, err error) {
	for i, w := range windows {
		n, err := w.record.ExpertsOf(model)
		if err != nil {
			return 0, err
		}
		if i > 0 && n != experts {
			return 0, &input.Error{File: w.Name, Expected: fmt.Sprintf("%d experts, as in %s", experts,
				windows[0].Name), Found: fmt.Sprint(n), Try: "give counts of one model", Err: counts.ErrOptions}
		}
		experts = n
	}
	return experts, nil
}
