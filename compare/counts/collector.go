package counts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// collector gathers the slots of a record by step, layer and kind of work, in any order. How many
// experts and ranks there are is known once all are gathered.
type collector struct {
	*Record
	axes  Axes              // that are asked for
	cells map[stepKey]*Step // −1 in a list is where nothing was recorded
	size  int               // of all cells
	most  int               // that there may be
}

// at is the step of a key, a new one at first.
func (c *collector) at(key stepKey) *Step {
	into := c.cells[key]
	if into == nil {
		into = &Step{Iteration: key.iteration, Layer: key.layer, Phase: key.phase}
		c.cells[key] = into
	}
	return into
}

// from is the step of a key, as one more of several sources recorded it, which come one after another from 0 on.
func (c *collector) from(source int, key stepKey) *Step {
	into := c.at(key)
	if into.sources++; into.sources != source+1 {
		into.sources = -1
	}
	return into
}

// mostCells bounds what few rows may claim, each of another step and of a late expert: 64 cells a byte of
// text, as of sparse steps of 512 experts, in folders 2 GiB.
func mostCells(text int) int {
	const most = 1 << 28
	if text == 0 {
		return most
	}
	return min(most, 1<<22+64*text)
}

// add adds slots to the cell of one expert or rank, which with once must not have any yet.
func (c *collector) add(into *Step, level string, number int, slots int64, once bool) error {
	if slots < 0 || slots > maxCount {
		return fmt.Errorf("%s %d: want a count between 0 and %d, have %d", level, number, int64(maxCount), slots)
	}
	list := into.cells(level)
	if more := number + 1 - len(*list); more > 0 {
		if c.size += more; c.size > c.most {
			return fmt.Errorf("want at most %d counts, of all experts and steps, have more", c.most)
		}
		*list = append(slices.Grow(*list, more), slices.Repeat([]int64{-1}, more)...)
	}
	cell := &(*list)[number]
	if once && *cell >= 0 {
		return fmt.Errorf("%s %d is recorded twice", level, number)
	}
	*cell = max(*cell, 0) + slots
	return nil
}

// cells are the slots of the experts or the ranks.
func (s *Step) cells(level string) *[]int64 {
	if level == router.LevelRank {
		return &s.Received
	}
	return &s.Load.PerExpert
}

// list adds slots to the cells of experts or ranks from 0 on, as add does. With once it keeps them.
func (c *collector) list(into *Step, level string, slots []int64, once bool) error {
	if cells := into.cells(level); once && *cells == nil && c.size+len(slots) <= c.most {
		c.size += len(slots)
		if *cells = slots; checkCounts(slots) == nil {
			return nil
		}
		*cells = nil // add says what is wrong
	}
	for number, n := range slices.Backward(slots) { // the last makes room for all
		if err := c.add(into, level, number, n, once); err != nil {
			return fmt.Errorf("%v: %w", into.key(), err)
		}
	}
	return nil
}

// rows adds the slots per expert of layers of one step, from the layer of the key on, equally many in all that are
// added.
func (c *collector) rows(key stepKey, rows [][]int64) error {
	for _, row := range rows {
		if c.Experts == 0 {
			c.Experts = len(row)
		}
		if len(row) == 0 {
			return fmt.Errorf("%v: want counts of experts, have no experts", key)
		}
		if len(row) != c.Experts {
			return fmt.Errorf("%v: want counts of %d experts, have %d", key, c.Experts, len(row))
		}
		if err := c.list(c.at(key), router.LevelExpert, row, true); err != nil {
			return err
		}
		key.layer++
	}
	return nil
}

// copies adds the slots of one layer per physical copy of an expert, as one of several sources
// recorded them; logical maps each copy to its expert. Where the number of ranks is known, the
// copies stand on them in equal contiguous runs, so that the load per rank is exact: on 2 ranks,
// copies [5 1 2 4] of experts [0 1 1 0] → experts [9 3], ranks [6 6].
func (c *collector) copies(key stepKey, source int, slots, logical []int64) error {
	experts, err := expertsOf(logical)
	ranks := max(1, c.Ranks)
	switch {
	case err != nil:
		return err
	case len(slots) != len(experts):
		return fmt.Errorf("%v: want as many copies as in their map, have %d and %d", key, len(slots), len(experts))
	case len(slots)%ranks != 0:
		return fmt.Errorf("%v: %d copies do not divide over %d ranks", key, len(slots), ranks)
	case source > 0 && c.placed[key.layer] != nil && !slices.Equal(c.placed[key.layer], experts):
		return fmt.Errorf("%v: the map of copies differs from the map of other ranks", key)
	}
	into := c.from(source, key)
	for i, n := range slots {
		err := c.add(into, router.LevelExpert, int(experts[i]), n, false)
		if c.Ranks > 0 && err == nil {
			err = c.add(into, router.LevelRank, i/(len(slots)/ranks), n, false)
		}
		if err != nil {
			return err
		}
	}
	c.keepMap(key.layer, logical)
	return nil
}

// complete leaves out the steps that not every source recorded: the load is the sum over them, and
// a part of it has another balance.
func (c *collector) complete(sources int) error {
	all := len(c.cells)
	maps.DeleteFunc(c.cells, func(_ stepKey, in *Step) bool { return in.sources != sources })
	switch dropped := all - len(c.cells); {
	case dropped > 0 && sources == 1:
		return errors.New("a step is recorded twice")
	case dropped == all && all > 0:
		return fmt.Errorf("holds no counts: no step was recorded by each of %d ranks", sources)
	case dropped > 0:
		c.warn(Incomplete, "excluded", dropped, "passes", all, "ranks", sources)
	}
	return nil
}

// Incomplete is the code of the warning that passes are left out that not every rank recorded.
const Incomplete = "incomplete_passes"

// keepMap keeps where the experts of a layer are; see Running.
func (c *collector) keepMap(layer int, row []int64) {
	if c.placed == nil {
		c.placed = map[int][]int32{}
	}
	experts := make([]int32, len(row))
	for i, e := range row {
		experts[i] = int32(min(max(e, -1), maxExperts))
	}
	c.placed[layer] = experts
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

// finish makes steps from what was gathered, equally many experts and ranks in each, and checks them.
func (c *collector) finish() error {
	for _, s := range c.cells {
		c.Experts, c.Ranks = max(c.Experts, len(s.Load.PerExpert)), max(c.Ranks, len(s.Received))
	}
	if err := bounded(c.Experts, c.Ranks); err != nil {
		return err
	}
	if len(c.cells)*(c.Experts+c.Ranks) > c.most {
		return fmt.Errorf("want at most %d counts, have %d steps and layers of %d experts", c.most, len(c.cells), c.Experts)
	}
	for _, s := range c.cells {
		s.Load.PerExpert, s.Received = filled(s.Load.PerExpert, c.Experts), filled(s.Received, c.Ranks)
		if err := cmp.Or(checkCounts(s.Load.PerExpert), checkCounts(s.Received)); err != nil {
			return fmt.Errorf("%v: %w", s.key(), err)
		}
		c.steps = append(c.steps, *s)
	}
	slices.SortFunc(c.steps, func(a, b Step) int { return a.key().compare(b.key()) })
	return c.Record.finish()
}

// filled has n cells, 0 where nothing was recorded; nil for nil.
func filled(list []int64, n int) []int64 {
	if list == nil || len(list) == n && !slices.Contains(list, -1) {
		return list
	}
	out := make([]int64, n)
	for i, v := range list {
		out[i] = max(v, 0)
	}
	return out
}
