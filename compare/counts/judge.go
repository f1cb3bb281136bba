package counts

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/chance"
)

// judge knows where the experts are and what random routing gives.
type judge struct {
	shape    router.Shape
	place    *Placement // on one rank where ranks are not known; nil where experts are not
	received bool       // the record's own counts per rank are used
	seed     uint64
	known    map[nullKey]chance.Null
	warnings []router.Warning
}

type nullKey struct {
	layer  int // allLayers where they share a layout
	tokens int64
}

func newJudge(r *Record, o Options) (*judge, error) {
	asked := o.Ranks > 0 || o.Placement != nil
	if asked && r.Experts == 0 {
		return nil, fmt.Errorf(
			"want slots per expert for other ranks or a placement, have %s without any: leave out --ep and --placement",
			r.Format)
	}
	shape, err := shapeOf(r, o.Shape)
	if err != nil {
		return nil, err
	}
	j := &judge{received: !asked, seed: o.Seed, known: map[nullKey]chance.Null{}}
	warn := func(code string, args ...any) {
		if len(r.steps) > 0 {
			j.warnings = append(j.warnings, router.Warn(code, r.Source, args...))
		}
	}
	switch j.place, err = placementOf(r, o, shape.Experts); {
	case err != nil:
		return nil, err
	case j.place == nil && r.Experts > 0:
		warn("no_ranks")
		if j.place, err = Contiguous(shape.Experts, 1); err != nil {
			return nil, err
		}
	case j.place != nil && r.atLeast && o.Shape == nil && o.Placement == nil:
		warn("experts_seen", "experts", r.Experts)
	}
	if j.place != nil {
		shape.Experts = j.place.Experts // a record may have fewer
	}
	if j.shape = shape; shape.TopK == 0 {
		warn("no_top_k")
	}
	if r.Window {
		warn("window")
	}
	return j, nil
}

// shapeOf is the model's shape, or else what the record says.
func shapeOf(r *Record, model *router.Shape) (router.Shape, error) {
	switch {
	case model == nil:
		return router.Shape{Experts: r.Experts, TopK: r.TopK}, nil
	case r.Experts > model.Experts || r.Experts > 0 && r.Experts < model.Experts && !r.atLeast:
		return *model, fmt.Errorf("the model has %d experts, the record %d", model.Experts, r.Experts)
	case r.TopK > 0 && model.TopK != r.TopK:
		return *model, fmt.Errorf("the model routes to top-%d, the record to top-%d", model.TopK, r.TopK)
	}
	return *model, nil
}

// placementOf is where the experts are asked or else recorded to be; nil where
// neither is known.
func placementOf(r *Record, o Options, experts int) (*Placement, error) {
	place, ranks := cmp.Or(o.Placement, r.Placement), r.Ranks
	switch {
	case o.Placement != nil && o.Ranks > 0 && o.Ranks != o.Placement.Ranks:
		return nil, fmt.Errorf("%d ranks asked for, but the placement has %d", o.Ranks, o.Placement.Ranks)
	case o.Placement == nil && o.Ranks > 0:
		place, ranks = nil, o.Ranks
	}
	switch {
	case place == nil && (ranks == 0 || r.Experts == 0):
		return nil, nil
	case place == nil:
		return Contiguous(experts, ranks)
	case place.Experts != experts && !(r.atLeast && place.Experts > experts):
		return nil, fmt.Errorf("the placement is of %d experts, the record of %d", place.Experts, experts)
	case o.Placement != nil:
		return place.For(r, o.MoELayers)
	}
	return place, nil
}

// loads are the slots of a step per rank and per expert, nil where they are not
// known, and what random routing gives.
func (j *judge) loads(s Step) (perRank, perExpert []int64, null chance.Null, err error) {
	var layout router.Layout
	perRank, perExpert = s.Received, s.Load.PerExpert
	if j.place != nil {
		if layout, err = j.place.Layout(s.Layer); err != nil {
			return nil, nil, null, fmt.Errorf("layer %d: %w", s.Layer, err)
		}
	}
	// without any slot
	if more := max(j.shape.Experts, layout.Experts()) - len(perExpert); perExpert != nil && more > 0 {
		perExpert = append(perExpert[:len(perExpert):len(perExpert)], make([]int64, more)...)
	}
	if j.place != nil && perExpert != nil && (perRank == nil || !j.received) {
		perRank = layout.RankLoad(perExpert)
	}
	if null, err = j.chance(layout, s); err != nil {
		return nil, nil, null, fmt.Errorf("layer %d: %w", s.Layer, err)
	}
	return perRank, perExpert, null, nil
}

// chance is the null of a step, undefined where the shape is not known. Token
// counts above 128 are rounded to 7 significant bits, so that a long record does
// not need a simulation per step: at most 0.8 % of the tokens and 0.4 % of the
// imbalance that chance gives, a seventh of what 200 draws leave uncertain.
func (j *judge) chance(layout router.Layout, s Step) (chance.Null, error) {
	none := chance.Null{ActiveMean: router.Undefined()}
	if j.shape.TopK == 0 || j.shape.Experts == 0 {
		return none, nil
	}
	tokens := s.total() / int64(j.shape.TopK)
	if shift := bits.Len64(uint64(tokens)) - 7; shift > 0 {
		tokens = (tokens + 1<<(shift-1)) >> shift << shift
	}
	key := nullKey{s.Layer, tokens}
	if _, uniform := j.place.uniform(); uniform {
		key.layer = allLayers
	}
	if known, ok := j.known[key]; ok {
		return known, nil
	}
	null, err := chance.NullOf(j.shape, layout, tokens, j.seed)
	if err != nil {
		return none, err
	}
	j.known[key] = null
	return null, nil
}
