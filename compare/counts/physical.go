package counts

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

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
