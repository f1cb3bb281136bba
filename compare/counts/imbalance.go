package counts

import (
	"cmp"
	"errors"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/chance"
	"github.com/moebalance/moebalance/router/input"
	"github.com/moebalance/moebalance/router/placement"
)

// Options says how the imbalance of a record is computed. The zero value takes
// everything from the record, with a threshold of 0.
type Options struct {
	// EP size, in place of the record's; experts are contiguous unless Placement is given.
	Ranks     int            `flag:"ep"`
	Placement *placement.Map // where the experts are, in place of the record's
	// Shape supplies the model's top-k and groups, which change the null; nil takes
	// the record's top-k and no groups. Its experts must be the record's.
	Shape     *router.Shape
	MoELayers []int   // of the model, for a placement that numbers them alone; nil where it is not named
	Threshold float64 `flag:"threshold" in:"%" preset:"10%"` // of router.Flagged, as a fraction
}

// ErrOptions is wrapped by the errors about options that contradict the record.
var ErrOptions = errors.New("the options contradict the record")

// judging judges the record. A fault is an option that contradicts it.
func (r *Record) judging(judge func()) error {
	if err := attempt(judge); err != nil {
		return &input.Error{File: r.Source, Found: err.Error(), Err: ErrOptions}
	}
	return nil
}

// ExpertsOf is how many experts a record counts, or the model has where it is named (else nil). A record
// without slots per expert is an error, of type *input.Error.
func (r *Record) ExpertsOf(model *router.Shape) (experts int, err error) {
	if r.oneRank {
		return 0, &input.Error{File: r.Source, Expected: "counts of all ranks", Found: "counts of one"}
	}
	if r.Experts == 0 {
		return 0, &input.Error{File: r.Source, Expected: "slots per expert", Found: r.Format + " without any"}
	}
	err = r.judging(func() { experts = r.shape(model).Experts })
	return experts, err
}

// shape is the model's, or else what the record says.
func (r *Record) shape(model *router.Shape) router.Shape {
	switch {
	case model == nil:
		return router.Shape{Experts: r.Experts, TopK: r.TopK}
	case r.Experts > model.Experts || r.KnownExperts > 0 && r.KnownExperts < model.Experts:
		fail("the model has %d experts, the record %d", model.Experts, r.Experts)
	case r.TopK > 0 && model.TopK != r.TopK:
		fail("the model routes to top-%d, the record to top-%d", model.TopK, r.TopK)
	}
	return *model
}

// Imbalance computes the imbalance of the load of every layer at the levels that
// the record allows, by layer, rank before expert. The error wraps ErrOptions where
// the options contradict the record; warnings say what could not be compared.
func (r *Record) Imbalance(o Options) (rows []imbalance.Row, warnings []router.Warning, err error) {
	err = r.judging(func() { rows, warnings = r.imbalance(o) })
	return rows, warnings, err
}

func (r *Record) imbalance(o Options) (rows []imbalance.Row, warnings []router.Warning) {
	shape := r.shape(o.Shape)
	place := r.place(o, &shape)
	shape.TopK = max(1, shape.TopK) // chance is most uneven where each slot is a token of its own
	random := chance.NullsOf(shape)
	steps, nulls := map[imbalance.Row][]router.Balance{}, map[imbalance.Row][]*chance.Distribution{}
	add := func(layer int, level string, parts []int64, null *chance.Distribution) {
		b := router.BalanceOf(parts)
		row := imbalance.Row{Layer: router.OptInt(layer), Level: level, Quantity: imbalance.Load, Basis: imbalance.Recorded}
		if steps[row] = append(steps[row], b); b.Total > 0 {
			nulls[row] = append(nulls[row], null)
		}
	}
	for _, s := range r.steps {
		layout, shared := must(place.Layout(s.Layer)), s.Layer
		if place.Uniform() {
			shared = placement.AllLayers
		}
		null := must(random.Of(layout, shared, s.counted().Total()))
		perRank, perExpert := s.Received, filled(s.Load.PerExpert, shape.Experts)
		if perExpert != nil {
			if perRank == nil || o.Ranks > 0 || o.Placement != nil {
				perRank = layout.RankLoad(perExpert)
			}
			add(s.Layer, router.LevelExpert, perExpert, null.Expert)
		}
		if len(perRank) > 1 { // one rank holds all the load, which says nothing
			add(s.Layer, router.LevelRank, perRank, null.Rank)
		}
	}
	for row, steps := range steps {
		null := chance.MeanOf(nulls[row])
		rows = append(rows, row.Over(steps, nil, o.Threshold).Judge(null.Median(), null.P95(), o.Threshold))
	}
	slices.SortFunc(rows, func(a, b imbalance.Row) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(b.Level, a.Level))
	})
	warn := func(is bool, code string, args ...any) {
		if is && len(r.steps) > 0 {
			warnings = append(warnings, router.Warn(code, r.Source, args...))
		}
	}
	assumed, ranks := place != nil && place.Source == "", cmp.Or(o.Ranks, r.Ranks) // contiguous experts
	warn(assumed && ranks == 0, "no_ranks")
	warn(assumed && ranks > 0 && r.KnownExperts == 0 && o.Shape == nil, "experts_seen", "experts", r.Experts)
	warn(o.Shape == nil && r.TopK == 0, "no_top_k")
	warn(r.Window, "window")
	return rows, warnings
}

// place finds where the experts are asked or else recorded to be: on one rank where ranks are not known; nil where
// experts are not. The shape gets the experts that are placed.
func (r *Record) place(o Options, shape *router.Shape) (p *placement.Map) {
	switch p = r.Placement; {
	case (o.Ranks > 0 || o.Placement != nil) && r.Experts == 0:
		fail("%s without slots per expert: leave out --ep and --placement", r.Format)
	case o.Placement != nil && !r.layered && len(o.Placement.Placed(nil)) > 1:
		fail("the counts do not say of which layer they are, and the placement is of several")
	case o.Placement != nil:
		p = must(o.Placement.For(r.Layers(), o.MoELayers))
	case o.Ranks == 0 && p != nil:
	case r.Experts > 0:
		p = must(placement.Contiguous(shape.Experts, cmp.Or(o.Ranks, r.Ranks, 1)))
	default:
		return nil
	}
	if p.Experts != shape.Experts && (r.KnownExperts > 0 || p.Experts < shape.Experts) {
		fail("the placement is of %d experts, the record of %d", p.Experts, shape.Experts)
	}
	shape.Experts = p.Experts
	return p
}
