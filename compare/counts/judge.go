package counts

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/chance"
)

// judge knows where the experts are and what chance gives.
type judge struct {
	shape    router.Shape
	place    *Placement // nil when ranks cannot be told from experts
	received bool       // the record's own counts per rank are used
	null     chance.Options
	known    map[nullKey]chance.Null
	warnings []router.Warning
}

type nullKey struct {
	layer  int // 0 where all layers share a layout
	tokens int64
}

func newJudge(r *Record, o Options) (*judge, error) {
	asked := o.Ranks > 0 || o.Placement != nil
	if asked && r.Experts == 0 {
		return nil, fmt.Errorf("other ranks or placements: want slots per expert, have %s without any", r.Format)
	}
	shape, err := shapeOf(r, o.Shape)
	if err != nil {
		return nil, err
	}
	place, err := placementOf(r, o)
	if err != nil {
		return nil, err
	}
	j := &judge{shape: shape, place: place, received: !asked, null: o.Null, known: map[nullKey]chance.Null{}}
	j.warnAbout(r)
	return j, nil
}

// shapeOf is the model's shape, or else what the record says.
func shapeOf(r *Record, model *router.Shape) (router.Shape, error) {
	switch {
	case model == nil:
		return router.Shape{Experts: r.Experts, TopK: r.TopK}, nil
	case r.Experts > 0 && model.Experts != r.Experts:
		return *model, fmt.Errorf("the model has %d experts, the record %d", model.Experts, r.Experts)
	case r.TopK > 0 && model.TopK != r.TopK:
		return *model, fmt.Errorf("the model routes to top-%d, the record to top-%d", model.TopK, r.TopK)
	}
	return *model, nil
}

// placementOf is where the experts are asked or else recorded to be; nil where
// nobody says.
func placementOf(r *Record, o Options) (*Placement, error) {
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
		return Contiguous(r.Experts, ranks)
	case place.Experts != r.Experts:
		return nil, fmt.Errorf("the placement is of %d experts, the record of %d", place.Experts, r.Experts)
	}
	return place, nil
}

// warnAbout says what the judge cannot know of a record.
func (j *judge) warnAbout(r *Record) {
	if r.steps == 0 {
		return
	}
	received := j.received && r.received
	switch {
	case j.place == nil && r.Ranks == 0:
		j.warn(r, "no_ranks", "the number of ranks is not recorded, so only experts are judged: give the EP size")
	case j.place != nil && j.place.replicated() && !received:
		j.warn(r, "even_replicas", "slots of replicated experts are taken to be divided evenly among the copies")
	}
	if j.shape.TopK == 0 {
		j.warn(r, "no_top_k", "the experts per token are not recorded, so nothing is compared with chance: name the model")
	}
	if r.Window {
		j.warn(r, "window", "each step is a sum over many forward passes, in which busy ranks that alternate cancel: weighted by their slots, the passes are at least this uneven")
	}
}

func (j *judge) warn(r *Record, code, text string) {
	j.warnings = append(j.warnings, router.Warning{Code: code, Subject: r.Source, Text: text})
}

// step adds one step to the means of its layer.
func (j *judge) step(s Step, rank, expert *mean) error {
	var layout router.Layout
	perRank := s.Received
	if j.place != nil {
		var err error
		if layout, err = j.place.Layout(s.Layer); err != nil {
			return err
		}
		if s.Load.PerExpert != nil && (perRank == nil || !j.received) {
			perRank = layout.RankLoad(s.Load.PerExpert)
		}
	}
	null, err := j.chance(layout, s)
	if err != nil {
		return err
	}
	if perRank != nil {
		rank.add(router.BalanceOf(perRank), null.Rank, router.Undefined())
	}
	if s.Load.PerExpert != nil {
		expert.add(s.Load.Experts(), null.Expert, null.ActiveMean)
	}
	return nil
}

// chance is the null of a step, undefined where the shape is not known. Token
// counts above 128 are rounded to 7 significant bits, so that a long record does
// not need a simulation per step: at most 0.8 % of the tokens and half of that of
// the imbalance that chance gives, a seventh of what 200 draws leave uncertain.
func (j *judge) chance(layout router.Layout, s Step) (chance.Null, error) {
	none := chance.Null{ActiveMean: router.Undefined()}
	if j.shape.TopK == 0 || j.shape.Experts == 0 {
		return none, nil
	}
	tokens := s.total() / int64(j.shape.TopK)
	if shift := bits.Len64(uint64(tokens)) - 7; shift > 0 {
		tokens = (tokens + 1<<(shift-1)) >> shift << shift
	}
	key := nullKey{tokens: tokens}
	if j.place != nil && !j.place.uniform() {
		key.layer = s.Layer
	}
	if known, ok := j.known[key]; ok {
		return known, nil
	}
	rankless := layout.Ranks() == 0
	if rankless {
		var err error
		if layout, err = router.Contiguous(j.shape.Experts, 1); err != nil {
			return none, err
		}
	}
	null, err := chance.NullOf(j.shape, layout, tokens, j.null)
	if err != nil {
		return none, err
	}
	if rankless {
		null.Rank = nil
	}
	j.known[key] = null
	return null, nil
}
