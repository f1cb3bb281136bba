// Package place learns placements of experts from some recorded loads, and judges them
// on others: a placement that is judged on the counts it was learned from looks better
// than it will be.
//
// It says how even the load over ranks becomes. What that is worth in time it leaves
// undefined.
package place

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
)

// SchemaVersion is the version of the JSON of Result.
const SchemaVersion = 1

// Options says what is placed.
type Options struct {
	Ranks     int
	Redundant []int         // physical experts less logical ones, each a placement
	Nodes     int           // above 1, and where they divide the model's groups, EPLB is hierarchical
	Shape     *router.Shape // of the model, nil where it is not named
	Threshold float64       // the least reduction of the busiest rank's load that is worth a trial
}

// Result is the JSON of place. Its lists repeat what they are about, so that each row
// stands alone.
type Result struct {
	SchemaVersion int              `json:"schema_version"`
	Kind          string           `json:"kind"` // always "place"
	Policy        string           `json:"policy"`
	Experts       int              `json:"experts"`
	Ranks         int              `json:"ranks"`
	Nodes         int              `json:"nodes"`
	Threshold     float64          `json:"threshold"`
	Learned       []Window         `json:"learned"`
	Judged        []Window         `json:"judged"`
	Placements    []Placement      `json:"placements"`
	Workloads     []Workload       `json:"workloads"`
	Matrix        []Cell           `json:"matrix"`
	Layers        []Layer          `json:"layers"`
	Warnings      []router.Warning `json:"warnings"`
	// Slots are where the experts go, by redundant experts.
	Slots map[int]counts.Slots `json:"-"`
}

// Placement is one number of redundant experts. Every max/mean is of the load over
// ranks, computed per step and layer, then averaged over steps, layers and windows.
type Placement struct {
	Redundant  int           `json:"redundant"`
	Learned    router.Number `json:"learned_max_over_mean"`    // on the windows it was learned from
	Judged     router.Number `json:"judged_max_over_mean"`     // on the others; undefined without any, as are the next two
	Contiguous router.Number `json:"contiguous_max_over_mean"` // on the same windows
	Change     router.Number `json:"judged_load_change"`       // of the busiest rank's load: judged over contiguous, less 1
	Time       router.Number `json:"predicted_time_change"`    // undefined: no cost is given
	Verdict    Verdict       `json:"verdict"`
	Reason     string        `json:"reason"`
}

// Workload is what a placement does to one judged window.
type Workload struct {
	Redundant  int           `json:"redundant"`
	Window     string        `json:"window"`
	Judged     router.Number `json:"judged_max_over_mean"`
	Contiguous router.Number `json:"contiguous_max_over_mean"`
	Change     router.Number `json:"judged_load_change"`
	Repeats    bool          `json:"repeats_learned"` // the counts are those of a learned window again
	NullP95    router.Number `json:"null_p95"`        // of contiguous: what random routing exceeds once in twenty times, mean over layers
}

// Cell is a placement learned from one window alone, judged on one.
type Cell struct {
	Redundant   int           `json:"redundant"`
	Learned     string        `json:"learned"`
	Judged      string        `json:"judged"`
	MaxOverMean router.Number `json:"max_over_mean"`
}

// Layer is one layer of a placement; see Placement.
type Layer struct {
	Redundant  int           `json:"redundant"`
	Layer      int           `json:"layer"`
	Learned    router.Number `json:"learned_max_over_mean"`
	Judged     router.Number `json:"judged_max_over_mean"`
	Contiguous router.Number `json:"contiguous_max_over_mean"`
}

// Judge learns EPLB's placements from some windows and judges them on others. Errors
// about windows are of type *input.Error, those about sizes wrap router.ErrShape.
func Judge(learn, judge []Window, o Options) (*Result, error) {
	all := slices.Concat(learn, judge)
	experts, err := commonExperts(all, o.Shape)
	if err != nil {
		return nil, err
	}
	res := &Result{
		SchemaVersion: SchemaVersion, Kind: "place", Policy: "eplb", Experts: experts, Ranks: o.Ranks, Nodes: o.Nodes, Threshold: o.Threshold,
		Learned: learn, Judged: append([]Window{}, judge...), Placements: []Placement{}, Workloads: []Workload{}, Matrix: []Cell{}, Layers: []Layer{}, Warnings: []router.Warning{},
		Slots: map[int]counts.Slots{},
	}
	if o.Nodes > 1 && (o.Shape == nil || o.Shape.Groups%o.Nodes != 0 || !o.Shape.Grouped()) {
		res.Warnings = append(res.Warnings, router.Warning{Code: "global", Subject: "EPLB", Text: fmt.Sprintf("the model named, if any, has no expert groups that divide over %d nodes, so experts are placed on any node", o.Nodes)})
	}
	for _, w := range all {
		res.Warnings = append(res.Warnings, w.record.Warnings...)
	}
	base := make([]contiguous, len(judge))
	for i, w := range judge {
		if base[i], err = res.contiguous(w, o); err != nil {
			return nil, err
		}
	}
	for _, redundant := range o.Redundant {
		if err := res.add(redundant, base, o); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// add learns one placement from all learned windows, and one from each window alone.
func (res *Result) add(redundant int, base []contiguous, o Options) error {
	size := placement.Size{Slots: res.Experts + redundant, Ranks: o.Ranks, Nodes: o.Nodes}
	if o.Shape != nil {
		size.Groups = o.Shape.Groups
	}
	all := slices.Concat(res.Learned, res.Judged)
	sets := [][]Window{res.Learned}
	for i := range all {
		sets = append(sets, all[i:i+1])
	}
	plans := make([]plan, len(sets))
	for i, set := range sets {
		var err error
		if plans[i], err = learned(set, res.Experts, size); err != nil {
			return err
		}
	}
	res.Slots[redundant] = plans[0].slots
	scores := make([][]score, len(all)) // by window and plan
	for i, w := range all {
		var err error
		if scores[i], err = w.scores(plans, res.Experts); err != nil {
			return err
		}
		for j, s := range scores[i][1:] {
			if len(all) > 1 {
				res.Matrix = append(res.Matrix, Cell{Redundant: redundant, Learned: all[j].Name, Judged: w.Name, MaxOverMean: s.overall()})
			}
		}
	}
	own, held := column(scores[:len(res.Learned)]), column(scores[len(res.Learned):])
	res.judge(redundant, own, held, base)
	for _, layer := range slices.Sorted(maps.Keys(plans[0].slots)) {
		res.Layers = append(res.Layers, Layer{
			Redundant: redundant, Layer: layer, Learned: mean(own, func(s score) router.Number { return s.at(layer) }),
			Judged:     mean(held, func(s score) router.Number { return s.at(layer) }),
			Contiguous: mean(base, func(c contiguous) router.Number { return c.at(layer) }),
		})
	}
	return nil
}

// judge compares the placement learned from all learned windows with contiguous.
func (res *Result) judge(redundant int, own, held []score, base []contiguous) {
	p := Placement{Redundant: redundant, Time: router.Undefined(), Learned: mean(own, score.overall), Judged: mean(held, score.overall),
		Contiguous: mean(base, contiguous.overall)}
	p.Change = p.Judged/p.Contiguous - 1
	var of []Workload
	for i, s := range held {
		w := Workload{Redundant: redundant, Window: res.Judged[i].Name, Judged: s.overall(), Contiguous: base[i].overall(), NullP95: base[i].nullP95}
		w.Change = w.Judged/w.Contiguous - 1
		w.Repeats = slices.ContainsFunc(res.Learned, res.Judged[i].repeats)
		of = append(of, w)
	}
	p.Verdict, p.Reason = verdict(p, of, mean(base, func(c contiguous) router.Number { return c.nullP95 }), res.Threshold)
	res.Placements, res.Workloads = append(res.Placements, p), append(res.Workloads, of...)
}

// column takes the first plan's score of each window.
func column(scores [][]score) (out []score) {
	for _, s := range scores {
		out = append(out, s[0])
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
			return 0, &input.Error{File: w.Name, Expected: fmt.Sprintf("%d experts, as in %s", experts, windows[0].Name), Found: fmt.Sprint(n), Try: "give counts of one model", Err: counts.ErrOptions}
		}
		experts = n
	}
	return experts, nil
}
