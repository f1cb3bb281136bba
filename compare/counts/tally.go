package counts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// tally collects slots by step, layer and kind of work, in any order. How many experts and ranks
// there are is known once all are collected.
type tally map[stepKey]*cells

// cells are the slots of each expert and of each rank, −1 where nothing was recorded.
type cells struct{ experts, ranks []int64 }

// at are the cells of a key, new ones at first.
func (t tally) at(key stepKey) *cells {
	c := t[key]
	if c == nil {
		c = &cells{}
		t[key] = c
	}
	return c
}

// part is the cell of one expert or rank: expert 2 of [5] → the last of [5 −1 −1].
func (c *cells) part(level string, number int) *int64 {
	list := &c.experts
	if level == router.LevelRank {
		list = &c.ranks
	}
	for number >= len(*list) {
		*list = append(*list, -1)
	}
	return &(*list)[number]
}

func (c *cells) add(level string, number int, slots int64) {
	cell := c.part(level, number)
	*cell = max(*cell, 0) + slots
}

// hold makes steps from what was collected, equally many experts and ranks in each.
func (r *Record) hold(t tally) {
	for _, c := range t {
		r.Experts, r.Ranks = max(r.Experts, len(c.experts)), max(r.Ranks, len(c.ranks))
	}
	for key, c := range t {
		s := key.step()
		s.Load.PerExpert, s.Received = filled(c.experts, r.Experts), filled(c.ranks, r.Ranks)
		r.held = append(r.held, s)
	}
}

// filled has n cells, 0 where nothing was recorded; nil for nil.
func filled(list []int64, n int) []int64 {
	if list == nil {
		return nil
	}
	out := make([]int64, n)
	for i, v := range list {
		out[i] = max(v, 0)
	}
	return out
}

// addLayers adds one step per row, a row being the slots per logical expert of
// one layer. The rows set the number of experts when it is not known yet.
func (r *Record) addLayers(key stepKey, rows [][]int64) error {
	for layer, row := range rows {
		if r.Experts == 0 {
			r.Experts = len(row)
		}
		if len(row) == 0 || len(row) != r.Experts {
			return fmt.Errorf("iteration %d, layer %d: want counts of %d experts, have %d", key.iteration, layer, r.Experts,
				len(row))
		}
		key.layer = layer
		s := key.step()
		s.Load.PerExpert = row
		r.held = append(r.held, s)
	}
	return nil
}

// addCopies adds a step that counts slots per physical copy of an expert; logical maps each copy
// to its expert, below Record.Experts. Where the number of ranks is known, the copies stand on
// them in equal contiguous runs, so that the load per rank is exact: on 2 ranks, copies
// [5 1 2 4] of experts [0 1 1 0] → experts [9 3], ranks [6 6].
func (r *Record) addCopies(key stepKey, copies []int64, logical []int32) error {
	s := key.step()
	s.Load = router.NewLoad(r.Experts)
	for i, n := range copies {
		s.Load.PerExpert[logical[i]] += n
	}
	if r.Ranks > 0 {
		if len(copies)%r.Ranks != 0 {
			return fmt.Errorf("%v: %d copies do not divide over %d ranks", key, len(copies), r.Ranks)
		}
		s.Received = make([]int64, r.Ranks)
		for i, n := range copies {
			s.Received[i/(len(copies)/r.Ranks)] += n
		}
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

// bounded refuses sizes that no model has, before anything of that size is
// allocated.
func bounded(experts, ranks int) error {
	if experts < 0 || experts > maxExperts || ranks < 0 || ranks > maxRanks {
		return fmt.Errorf("want at most %d experts and %d ranks, have %d and %d", maxExperts, maxRanks, experts, ranks)
	}
	return nil
}

// mapped is the number of experts that a map of copies names: [0 2 1] → 3.
func mapped(logical []int32) int {
	n := 0
	for _, e := range logical {
		n = max(n, int(e)+1)
	}
	return n
}

// expertsOf are numbers as expert ids; an id that no model has is an error.
func expertsOf(ids []int64) ([]int32, error) {
	out := make([]int32, len(ids))
	for i, e := range ids {
		if e < 0 || e >= maxExperts {
			return nil, fmt.Errorf("the map names expert %d", e)
		}
		out[i] = int32(e)
	}
	return out, nil
}
