package counts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
	Ranks     int        // EP size, in place of the record's; experts contiguous unless Placement is given
	Placement *Placement // where the experts are, in place of the record's
	// Shape supplies the model's top-k and groups, which change the null; nil takes
	// the record's top-k and no groups. Its experts must be the record's.
	Shape     *router.Shape
	MoELayers []int   // of the model, for a placement that numbers them alone; nil where it is not named
	Threshold float64 // of router.Flagged, as a fraction
	Null      chance.Options
}

// ErrOptions is wrapped by the errors about options that contradict the record.
var ErrOptions = errors.New("the options contradict the record")

func (r *Record) contradicted(err error) error {
	return &input.Error{File: r.Source, Found: err.Error(), Err: ErrOptions}
}

// ExpertsOf is the number of experts, those of the model where it is named (nil where it
// is not), of a record that counts slots per expert. Errors are of type *input.Error.
func (r *Record) ExpertsOf(model *router.Shape) (int, error) {
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
	means, nulls := map[key]*imbalance.LayerMean{}, map[key][]*chance.Distribution{}
	add := func(layer int, level string, b router.Balance, null *chance.Distribution, active router.Number) {
		k := key{layer, level}
		if means[k] == nil {
			means[k] = imbalance.NewLayerMean(router.OptInt(layer), level, imbalance.Load, imbalance.Recorded)
		}
		if means[k].AddLoad(b, active); b.Total > 0 {
			nulls[k] = append(nulls[k], null)
		}
	}
	for s, err := range r.Steps() {
		if err != nil {
			return nil, nil, err
		}
		perRank, perExpert, null, err := j.loads(s)
		if err != nil {
			return nil, nil, r.contradicted(err)
		}
		if len(perRank) > 1 { // one rank holds all the load, which says nothing
			add(s.Layer, router.LevelRank, router.BalanceOf(perRank), null.Rank, router.Undefined())
		}
		if perExpert != nil {
			add(s.Layer, router.LevelExpert, router.BalanceOf(perExpert), null.Expert, null.ActiveMean)
		}
	}
	var rows []imbalance.Row
	for _, layer := range r.Layers() {
		for _, level := range []string{router.LevelRank, router.LevelExpert} {
			if m := means[key{layer, level}]; m != nil {
				null := chance.MeanOf(nulls[key{layer, level}])
				rows = append(rows, m.Row(o.Threshold, imbalance.Null{Median: null.Median(), P95: null.P95()}, nil))
			}
		}
	}
	return rows, j.warnings, nil
}

// judge knows where the experts are and what random routing gives.
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
		return nil, fmt.Errorf(
			"want slots per expert for other ranks or a placement, have %s without any: leave out --ep and --placement",
			r.Format)
	}
	shape, err := shapeOf(r, o.Shape)
	if err != nil {
		return nil, err
	}
	place, err := placementOf(r, o, shape.Experts)
	if err != nil {
		return nil, err
	}
	if place != nil {
		shape.Experts = place.Experts // those of a record may be fewer
	}
	j := &judge{shape: shape, place: place, received: !asked, null: o.Null, known: map[nullKey]chance.Null{}}
	j.warnAbout(r, o)
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

// warnAbout says what is not known of a record.
func (j *judge) warnAbout(r *Record, o Options) {
	if r.steps == 0 {
		return
	}
	received := j.received && r.received
	switch {
	case j.place == nil && r.Ranks == 0:
		j.warn(r, "no_ranks")
	case j.place != nil && j.place.replicated() && !received:
		j.warn(r, "even_replicas")
	case r.atLeast && r.Experts > 0 && j.place != nil && o.Shape == nil && o.Placement == nil:
		j.warn(r, "experts_seen", "experts", r.Experts)
	}
	if j.shape.TopK == 0 {
		j.warn(r, "no_top_k")
	}
	if r.Window {
		j.warn(r, "window")
	}
}

func (j *judge) warn(r *Record, code string, args ...any) {
	j.warnings = append(j.warnings, router.Warn(code, r.Source, args...))
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
	if j.place != nil && j.place.layers != nil {
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

// addPhysical adds a step that counts slots per physical copy of an expert. The
// copies stand on the ranks in equal contiguous runs, so the load per rank is
// known exactly; logical maps each copy to its expert, below Record.Experts.
func (r *Record) addPhysical(key stepKey, copies []int64, logical []int32) error {
	if len(copies)%r.Ranks != 0 {
		return fmt.Errorf("%v: %d copies do not divide over %d ranks", key, len(copies), r.Ranks)
	}
	s := key.step()
	s.Load, s.Received = router.NewLoad(r.Experts), make([]int64, r.Ranks)
	for i, n := range copies {
		s.Load.PerExpert[logical[i]] += n
		s.Received[i/(len(copies)/r.Ranks)] += n
	}
	if r.copies == nil {
		r.copies = map[int][]int32{}
	}
	r.copies[key.layer] = logical
	r.held = append(r.held, s)
	return nil
}

// placeCopies turns the recorded maps of copies into the record's placement.
// The loads per rank do not depend on it: a map that is none is only a warning.
func (r *Record) placeCopies() {
	if len(r.copies) == 0 || r.Ranks == 0 {
		return
	}
	var err error
	if r.Placement, err = r.placeOn(r.Ranks); err != nil {
		r.warn("no_placement", "error", err.Error())
	}
}

func (r *Record) placeOn(ranks int) (*Placement, error) {
	p := &Placement{Source: r.Source, Experts: r.Experts, Ranks: ranks}
	for _, layer := range slices.Sorted(maps.Keys(r.copies)) {
		if err := p.placeSlots(layer, r.copies[layer]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Running is the placement that a record was made with, on so many ranks where it does not
// say how many there were; nil where it does not say, or had other ranks. The error is about a
// recorded map that places no experts on so many.
func (r *Record) Running(ranks int) (*Placement, error) {
	switch p := r.Placement; {
	case p == nil && len(r.copies) > 0 && r.Ranks == 0 && ranks > 0:
		return r.placeOn(ranks)
	case p == nil || p.Ranks != ranks:
		return nil, nil
	default:
		return p, nil
	}
}

// addLayers adds one step per row, a row being the slots per logical expert of
// one layer. The rows set the number of experts when it is not known yet.
func (r *Record) addLayers(iteration int64, rows [][]int64) error {
	for layer, row := range rows {
		if r.Experts == 0 {
			r.Experts = len(row)
		}
		if len(row) == 0 || len(row) != r.Experts {
			return fmt.Errorf("iteration %d, layer %d: want counts of %d experts, have %d", iteration, layer, r.Experts,
				len(row))
		}
		r.held = append(r.held, Step{Iteration: iteration, Layer: layer, Load: router.Load{PerExpert: row}})
	}
	return nil
}

// bounded refuses sizes that no model has, before anything of that size is
// allocated.
func bounded(experts, ranks int) error {
	if experts < 0 || experts > maxExperts || ranks < 0 || ranks > maxRanks {
		return fmt.Errorf("want at most %d experts and %d ranks, have %d and %d", maxExperts, maxRanks, experts, ranks)
	}
	return nil
}

// mapped is the number of experts that a map of copies names: the largest one
// and 1.
func mapped(logical []int32) int {
	n := 0
	for _, e := range logical {
		n = max(n, int(e)+1)
	}
	return n
}
