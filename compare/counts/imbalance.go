package counts

import (
	"errors"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/chance"
	"github.com/moebalance/moebalance/router/input"
)

// Options says how the imbalance of a record is computed. The zero value takes
// everything from the record, with a threshold of 0.
type Options struct {
	Ranks     int        // EP size, in place of the record's; experts contiguous unless Placement is given
	Placement *Placement // where the experts are, in place of the record's
	// Shape supplies the model's top-k and groups, which change the null; nil takes
	// the record's top-k and no groups. Its experts must be the record's.
	Shape     *router.Shape
	MoELayers []int   // of the model, for a placement that numbers them alone; nil where it is not named
	Threshold float64 // of router.Flagged, as a fraction
	Seed      uint64
}

// ErrOptions is wrapped by the errors about options that contradict the record.
var ErrOptions = errors.New("the options contradict the record")

func (r *Record) contradicted(err error) error {
	return &input.Error{File: r.Source, Found: err.Error(), Err: ErrOptions}
}

// ExpertsOf is how many experts a record counts, or the model has where it is named (else nil). A record
// without slots per expert is an error, of type *input.Error.
func (r *Record) ExpertsOf(model *router.Shape) (int, error) {
	if r.oneRank() {
		return 0, &input.Error{File: r.Source, Expected: "counts of all ranks", Found: "counts of one"}
	}
	if r.Experts == 0 {
		return 0, &input.Error{File: r.Source, Expected: "slots per expert", Found: r.Format + " without any"}
	}
	shape, err := shapeOf(r, model)
	if err != nil {
		return 0, r.contradicted(err)
	}
	return shape.Experts, nil
}

// Imbalance computes the imbalance of the load of every layer at the levels that
// the record allows, by layer, rank before expert. The error wraps ErrOptions where
// the options contradict the record; warnings say what could not be compared.
func (r *Record) Imbalance(o Options) ([]imbalance.Row, []router.Warning, error) {
	j, err := newJudge(r, o)
	if err != nil {
		return nil, nil, r.contradicted(err)
	}
	type key struct {
		layer int
		level string
	}
	means, nulls := map[key]*imbalance.Mean{}, map[key][]*chance.Distribution{}
	add := func(layer int, level string, parts []int64, null *chance.Distribution) {
		k, b := key{layer, level}, router.BalanceOf(parts)
		if means[k] == nil {
			means[k] = &imbalance.Mean{Row: imbalance.Row{Layer: router.OptInt(layer), Level: level,
				Quantity: imbalance.Load, Basis: imbalance.Recorded}}
		}
		if means[k].Add(b); b.Total > 0 {
			nulls[k] = append(nulls[k], null)
		}
	}
	for _, s := range r.steps {
		perRank, perExpert, null, err := j.loads(s)
		if err != nil {
			return nil, nil, r.contradicted(err)
		}
		if len(perRank) > 1 { // one rank holds all the load, which says nothing
			add(s.Layer, router.LevelRank, perRank, null.Rank)
		}
		if perExpert != nil {
			add(s.Layer, router.LevelExpert, perExpert, null.Expert)
		}
	}
	var rows []imbalance.Row
	for _, layer := range r.Layers() {
		for _, level := range []string{router.LevelRank, router.LevelExpert} {
			if k := (key{layer, level}); means[k] != nil {
				null := chance.MeanOf(nulls[k])
				rows = append(rows, means[k].Over(nil, o.Threshold).Judge(null.Median(), null.P95(), o.Threshold))
			}
		}
	}
	return rows, j.warnings, nil
}
