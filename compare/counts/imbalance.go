package counts

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/chance"
	"github.com/moebalance/moebalance/router/input"
)

// Options says how the imbalance of a record is computed. The zero value takes
// everything from the record, with a threshold of 0.
type Options struct {
	// EP size, in place of the record's; experts are contiguous unless Placement is given.
	Ranks     int        `flag:"ep"`
	Placement *Placement // where the experts are, in place of the record's
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
	if r.oneRank() {
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
	case r.Experts > model.Experts || r.Experts > 0 && r.Experts < model.Experts && !r.atLeast:
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
	j := r.judge(o)
	type key struct {
		layer int
		level string
	}
	steps, nulls := map[key][]router.Balance{}, map[key][]*chance.Distribution{}
	add := func(layer int, level string, parts []int64, null *chance.Distribution) {
		k, b := key{layer, level}, router.BalanceOf(parts)
		if steps[k] = append(steps[k], b); b.Total > 0 {
			nulls[k] = append(nulls[k], null)
		}
	}
	for _, s := range r.steps {
		layout := must(j.place.Layout(s.Layer))
		null, perRank, perExpert := j.chance(layout, s), s.Received, s.Load.PerExpert
		if perExpert != nil {
			perExpert = append(slices.Clone(perExpert), make([]int64, j.shape.Experts-len(perExpert))...) // without a slot
			if perRank == nil || o.elsewhere() {
				perRank = layout.RankLoad(perExpert)
			}
			add(s.Layer, router.LevelExpert, perExpert, null.Expert)
		}
		if len(perRank) > 1 { // one rank holds all the load, which says nothing
			add(s.Layer, router.LevelRank, perRank, null.Rank)
		}
	}
	for _, layer := range r.Layers() {
		for _, level := range []string{router.LevelRank, router.LevelExpert} {
			if k := (key{layer, level}); steps[k] != nil {
				null, row := chance.MeanOf(nulls[k]), imbalance.Row{Layer: router.OptInt(layer), Level: level,
					Quantity: imbalance.Load, Basis: imbalance.Recorded}
				rows = append(rows, row.Over(steps[k], nil, o.Threshold).Judge(null.Median(), null.P95(), o.Threshold))
			}
		}
	}
	return rows, j.warnings
}

// elsewhere reports options that ask for other places than the recorded ones.
func (o Options) elsewhere() bool { return o.Ranks > 0 || o.Placement != nil }

// judge knows where the experts are and what random routing gives.
type judge struct {
	shape    router.Shape             // with at least the experts that are recorded
	place    *Placement               // on one rank where ranks are not known; nil where experts are not
	known    map[[2]int64]chance.Null // by layer, or allLayers where they share a layout, and tokens
	warnings []router.Warning
}

// judge finds where the experts are asked or else recorded to be.
func (r *Record) judge(o Options) *judge {
	shape := r.shape(o.Shape)
	j := &judge{shape: shape, known: map[[2]int64]chance.Null{}}
	warn := func(is bool, code string, args ...any) {
		if is && len(r.steps) > 0 {
			j.warnings = append(j.warnings, router.Warn(code, r.Source, args...))
		}
	}
	ranks := cmp.Or(o.Ranks, r.Ranks)
	switch {
	case o.elsewhere() && r.Experts == 0:
		fail("want slots per expert for other ranks or a placement, have %s without any: leave out --ep and "+
			"--placement", r.Format)
	case o.Placement != nil && o.Ranks > 0 && o.Ranks != o.Placement.Ranks:
		fail("%d ranks asked for, but the placement has %d", o.Ranks, o.Placement.Ranks)
	case o.Placement != nil:
		j.place = must(o.Placement.For(r, o.MoELayers))
	case o.Ranks == 0 && r.Placement != nil:
		j.place = r.Placement
	case r.Experts > 0:
		warn(ranks == 0, "no_ranks")
		warn(ranks > 0 && r.atLeast && o.Shape == nil, "experts_seen", "experts", r.Experts)
		j.place = must(Contiguous(shape.Experts, max(1, ranks)))
	}
	if p := j.place; p != nil {
		if j.shape.Experts = p.Experts; p.Experts != shape.Experts && !(r.atLeast && p.Experts > shape.Experts) {
			fail("the placement is of %d experts, the record of %d", p.Experts, shape.Experts)
		}
	}
	warn(shape.TopK == 0, "no_top_k")
	warn(r.Window, "window")
	return j
}

// chance is the null of a step, undefined where the shape, or who owns the experts, is not known. Token
// counts above 128 are rounded to 7 significant bits, so that a long record does
// not need a simulation per step: at most 0.8 % of the tokens and 0.4 % of the
// imbalance that chance gives, a seventh of what 200 draws leave uncertain.
func (j *judge) chance(layout router.Layout, s Step) (null chance.Null) {
	if j.shape.TopK == 0 || j.shape.Experts == 0 || layout.Experts() == 0 {
		return null
	}
	tokens := s.total() / int64(j.shape.TopK)
	if shift := bits.Len64(uint64(tokens)) - 7; shift > 0 {
		tokens = (tokens + 1<<(shift-1)) >> shift << shift
	}
	key := [2]int64{int64(s.Layer), tokens}
	if _, uniform := j.place.uniform(); uniform {
		key[0] = allLayers
	}
	null, known := j.known[key]
	if !known {
		null = must(chance.NullOf(j.shape, layout, tokens, 0))
		j.known[key] = null
	}
	return null
}
