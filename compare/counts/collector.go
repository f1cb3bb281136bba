package counts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router"
)

// collector gathers the slots of a record by step, layer and kind of work, in any order. How many
// experts and ranks there are is known once all are gathered.
type collector struct {
	*Record
	cells   map[stepKey]*Step // −1 in a list is where nothing was recorded
	size    int               // of all cells
	most    int               // that there may be
	asked   Axes              // nil where the file's are taken
	stepped bool              // it is known what was one step
	placing bool              // arrays that are alone in their file are placements
	moeOnly bool              // layers of a placement are numbered without dense ones
	chosen  bool              // choices were read
	known   int64             // experts that the model is said to have
	sources int               // each of which records all steps, one after another; 0 where steps come once
	source  int               // the one that is read
	differ  bool              // sources recorded other counts

	// the place that is read: a file of a folder, a line or record of it, and the keys there
	file, unit string
	number     int
	keys       []string
}

// newCollector bounds what few rows may claim, each of another step and of a late expert: 64 cells a byte of
// text, as of sparse steps of 512 experts, in folders 2 GiB.
func newCollector(d *document) *collector {
	most := 1 << 28
	if len(d.text) > 0 {
		most = min(most, 1<<22+64*len(d.text))
	}
	return &collector{Record: &Record{Source: d.path, placed: Slots{}}, cells: map[stepKey]*Step{},
		most: most}
}

// locate reads, and adds the place to a fault: rank1.safetensors: iteration 0, layer 3: expert 7 is recorded twice.
func (c *collector) locate(read func()) {
	if err := attempt(read); err != nil {
		place := ""
		if c.unit == "line" || c.number > 1 { // many a document is one record
			place = fmt.Sprintf("%s %d", c.unit, c.number)
		}
		for _, key := range slices.Backward(slices.Concat([]string{c.file, place}, c.keys)) {
			if key != "" {
				err = fmt.Errorf("%s: %w", key, err)
			}
		}
		fail("%w", err)
	}
}

// key is the step that a context names.
func (of context) key() stepKey {
	layer, step := max(0, of.numbers[isLayer]), max(0, of.numbers[isStep])
	if layer >= maxLayers {
		fail("want a layer below %d, have %d", maxLayers, layer)
	}
	return stepKey{step, int(layer), of.phase, of.model}
}

// array adds an array of named axes, whatever it counts: its rows are the experts, copies or ranks of a layer in a
// step, or what a token chose there. The context says the step and the layer of an array without such an axis.
func (c *collector) array(a tensor.Array, axes Axes, of context) {
	c.asked.agree(axes)
	a = axes.formed(a)
	steps, layers, ranks, width := a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3]
	if len(a.Values) == 0 {
		fail("want steps, layers and experts, have %v (%s)", a.Shape, strings.Join(axes, ","))
	}
	if axes.has("ranks") && axes.has("experts") {
		c.Ranks = int(ranks)
	}
	c.stepped = c.stepped || of.has(isStep) || axes.has("steps")
	first, size, empty := max(0, of.numbers[isLayer]), int(layers*ranks*width), 0
	for n := range steps {
		values := a.Values[int(n)*size : int(n+1)*size]
		switch {
		case axes.has("steps") && !holdsAny(values):
			empty++ // SGLang's recorder is a ring buffer, which may not be full
			continue
		case axes.has("steps"):
			of.numbers[isStep] = n
		case axes.has("tokens") && max(0, of.numbers[isStart])+n < of.numbers[isPrompt]:
			of.phase = Prefill
		case axes.has("tokens") && of.numbers[isPrompt] > 0:
			of.phase = Decode
		}
		of.numbers[isLayer] = first
		for row := range slices.Chunk(values, size/int(layers)) {
			c.row(row, axes, of)
			of.numbers[isLayer]++
		}
	}
	if empty > 0 {
		c.warn("empty_steps", "empty", empty, "steps", steps)
	}
}

// row adds one row of an array.
func (c *collector) row(row []int64, axes Axes, of context) {
	into := c.at(of.key())
	if axes.areChoices() {
		c.choose(into, row)
		return
	}
	if into.sources++; into.sources != c.source+1 { // one before did not record the step, or this one did twice
		into.sources = -1
	}
	if c.ofAll && into.first == nil {
		into.first = row
	}
	c.differ = c.differ || !slices.Equal(row, into.first)
	switch {
	case axes.has("copies"):
		c.copied(into, row, of)
	case !axes.has("experts"):
		c.add(into, router.LevelRank, 0, row, true)
	default:
		if c.Experts = cmp.Or(c.Experts, len(row)); len(row) != c.Experts {
			fail("%v: want counts of %d experts, have %d", into, c.Experts, len(row))
		}
		c.add(into, router.LevelExpert, 0, row, c.sources == 0)
	}
}

func holdsAny(row []int64) bool {
	return slices.ContainsFunc(row, func(n int64) bool { return n != 0 })
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

// add adds slots to the cells of experts or ranks from a first one on, which with once must not have any yet.
func (c *collector) add(into *Step, level string, first int, slots []int64, once bool) {
	list := &into.Load.PerExpert
	if level == router.LevelRank {
		list = &into.Received
	}
	if first < 0 || first+len(slots) > maxExperts {
		fail("%v: want a number of the %s from 0 to %d, have %d", into, level, maxExperts-1, first+len(slots)-1)
	}
	if more := first + len(slots) - len(*list); more > 0 {
		if c.size += more; c.size > c.most {
			fail("want at most %d counts, of all experts and steps, have more", c.most)
		}
		*list = append(slices.Grow(*list, more), slices.Repeat([]int64{-1}, more)...)
	}
	for i, n := range slots {
		cell := &(*list)[first+i]
		switch {
		case n < 0 || n > maxCount-max(*cell, 0):
			fail("%v: %s %d: want a count between 0 and %d, have %d", into, level, first+i, int64(maxCount), n)
		case once && *cell >= 0:
			fail("%v: %s %d is recorded twice", into, level, first+i)
		}
		*cell = max(*cell, 0) + n
	}
}

// forwardModes are SGLang's, in dumps per token. An idle rank (4) has no tokens.
var forwardModes = map[int64]Phase{1: Prefill, 2: Decode, 3: Mixed}

// copied adds the slots of one layer per physical copy of an expert. Where the number of ranks is known, the copies
// stand on them in equal contiguous runs, so that the load per rank is exact: on 2 ranks, copies [5 1 2 4] of experts
// [0 1 1 0] → experts [9 3], ranks [6 6]. A step in which sources worked in unlike modes is mixed.
func (c *collector) copied(into *Step, slots []int64, of context) {
	experts, phase, ranks := of.copies[into.Layer], forwardModes[of.numbers[isMode]], max(1, c.Ranks)
	if len(slots) != len(experts) || len(slots)%ranks != 0 {
		fail("%v: want as many copies as in their map (physical_to_logical_map), equally many on %d ranks, have %d and %d",
			into, ranks, len(slots), len(experts))
	}
	if into.Phase = cmp.Or(into.Phase, phase); phase != "" && phase != into.Phase {
		into.Phase = Mixed
	}
	for i := range slots {
		c.add(into, router.LevelExpert, int(experts[i]), slots[i:i+1], false)
		if c.Ranks > 0 {
			c.add(into, router.LevelRank, i/(len(slots)/ranks), slots[i:i+1], false)
		}
	}
}

// maxTopK is far above any model's.
const maxTopK = 64

// oneSlot is what a choice adds.
var oneSlot = []int64{1}

// choose adds what one token chose at one layer. Engines leave a row at 0 or −1 for a dense layer or a padded token.
func (c *collector) choose(into *Step, ids []int64) {
	if c.TopK = cmp.Or(c.TopK, len(ids)); len(ids) != c.TopK || len(ids) > maxTopK {
		fail("%v: want %d experts a token, %d at most, have %d", into, c.TopK, maxTopK, len(ids))
	}
	if c.chosen = true; into.Load.PerExpert == nil {
		into.Load.PerExpert = []int64{} // a dense layer has counts too, of 0
	}
	if ids[0] <= 0 && (len(ids) > 1 || ids[0] < 0) && slices.Min(ids) == slices.Max(ids) {
		into.padding++
		return
	}
	for _, id := range ids {
		if id == -1 {
			into.padding++
			continue
		}
		c.add(into, router.LevelExpert, int(id), oneSlot, false)
	}
}

// Incomplete is the code of the warning that passes are left out that not every rank recorded.
const Incomplete = "incomplete_passes"

// finish makes steps from what was gathered, equally many experts and ranks in each, and checks them. Steps that
// not every source recorded are left out: the load is the sum over them, and a part of it has another balance.
func (c *collector) finish() {
	if all := len(c.cells); c.sources > 0 {
		maps.DeleteFunc(c.cells, func(_ stepKey, s *Step) bool { return s.sources != c.sources })
		switch dropped := all - len(c.cells); {
		case dropped > 0 && c.sources == 1:
			fail("a step is recorded twice")
		case dropped == all && all > 0:
			fail("holds no counts: no step was recorded by each of %d ranks", c.sources)
		case dropped > 0:
			c.warn(Incomplete, "excluded", dropped, "passes", all, "ranks", c.sources)
		}
	}
	models := map[Phase]bool{} // one tells nothing apart
	for key, s := range c.cells {
		c.Experts, c.Ranks = max(c.Experts, len(s.Load.PerExpert)), max(c.Ranks, len(s.Received))
		models[key.model] = true
	}
	if c.chosen {
		c.finishChoices()
	}
	if len(c.cells) == 0 {
		c.asked.agree(nil)
	}
	if len(c.cells)*(c.Experts+c.Ranks) > c.most {
		fail("want at most %d counts, have %d steps and layers of %d experts", c.most, len(c.cells), c.Experts)
	}
	var partial []*Step // which do not list all experts
	begun := false      // the last of them lists the first ones
	for key, s := range c.cells {
		if list := s.Load.PerExpert; len(list) < c.Experts || slices.Contains(list, -1) {
			partial, begun = append(partial, s), !slices.Contains(list, -1)
		}
		s.Load.PerExpert, s.Received, s.first = filled(s.Load.PerExpert, c.Experts), filled(s.Received, c.Ranks), nil
		if len(models) > 1 {
			s.Phase = Phase(strings.Trim(string(s.Phase+", "+key.model), ", "))
		}
		c.steps = append(c.steps, *s)
	}
	if len(partial) == 1 && begun && len(c.cells) > 2 && !c.chosen {
		c.warn("cut_layer", "layer", partial[0].Layer)
	}
	c.Window = !c.stepped
	slices.SortFunc(c.steps, Step.compare)
	c.Record.finish()
}

// finishChoices checks what tokens chose: that it is experts, and how many there may be.
func (c *collector) finishChoices() {
	padded := 0
	for _, s := range c.cells {
		if len(s.Load.PerExpert) > 0 { // else a dense layer
			padded += s.padding
		}
	}
	switch c.atLeast = c.known == 0; {
	case c.Experts == 0:
		fail("want expert ids, have only 0 or −1: the engine recorded no routing")
	case c.known > maxExperts:
		fail("want at most %d experts, have %d", maxExperts, c.known)
	case c.known > 0 && int64(c.Experts) > c.known:
		fail("want experts below num_experts, %d, have %d", c.known, c.Experts-1)
	}
	c.Experts = max(c.Experts, int(c.known))
	if padded > 0 {
		c.warn("padded_tokens", "choices", padded)
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
