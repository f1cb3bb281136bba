package counts

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/counts/tensor"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
)

// collector gathers the slots of a record by step, layer and kind of work, in any order. How many
// experts and ranks there are is known once all are gathered.
type collector struct {
	*Record
	cells   map[stepKey]*Step // −1 in a list is where nothing was recorded
	size    int               // of all cells
	most    int               // that there may be
	binary  string            // the container of the file
	asked   Axes              // of an array that is alone in its file
	stepped bool              // it is known what was one step
	placing bool              // arrays that are alone in their file are placements
	moeOnly bool              // layers of a placement are numbered without dense ones
	chosen  bool              // choices were read
	known   int64             // experts that the model is said to have
	sources int               // each of which records all steps, one after another; 0 where steps come once
	source  int               // the one that is read
	unlike  bool              // a source counted other slots than the ones before
	copies  int               // of a layer
	loaded  int               // the last of them with load in any step, counted from 1

	idle int                     // lines that report a step without slots
	last map[Phase]router.OptInt // step that vLLM reported, by model
}

// newCollector bounds what few rows may claim, each of another step and of a late expert: 64 cells a byte of
// text, as of sparse steps of 512 experts, in folders 2 GiB.
func newCollector(d *document) *collector {
	most := 1 << 28
	if len(d.text) > 0 {
		most = min(most, 1<<22+64*len(d.text))
	}
	return &collector{Record: &Record{Source: d.path, placed: placement.Slots{}}, cells: map[stepKey]*Step{},
		most: most, binary: d.binary, last: map[Phase]router.OptInt{}}
}

// key is the step that a context names.
func (c context) key() stepKey {
	layer, step := max(0, c.numbers[isLayer]), max(0, c.numbers[isStep])
	if layer >= maxLayers {
		fail("want a layer below %d, have %d", maxLayers, layer)
	}
	return stepKey{step, int(layer), c.phase, Phase(strings.Trim(string(c.model+", "+c.data), ", "))}
}

// array adds an array of named axes, whatever it counts: its rows are the experts, copies or ranks of a layer in a
// step, or what a token chose there. The context says the step and the layer of an array without such an axis.
func (c *collector) array(a tensor.Array, axes Axes, of context) {
	c.agree(axes)
	a = axes.formed(a)
	if len(a.Values) == 0 {
		fail("want steps, layers and experts, have %v (%s)", a.Shape, strings.Join(axes, ","))
	}
	steps, layers := a.Shape[0], int(a.Shape[1])
	switch {
	case !axes.has("experts"):
	case axes.has("ranks"):
		c.onRanks(a.Shape[2])
	case axes.has("layers") && c.asked == nil && isTransposed(a.Values, layers, int(a.Shape[3])):
		fail("the columns have one sum, as layers have: give the array alone in its file, and say which they are, by " +
			"--axes experts,layers or layers,experts")
	}
	c.stepped = c.stepped || of.has(isStep) || axes.has("steps")
	c.layered = c.layered || of.has(isLayer) || axes.has("layers")
	first, size, empty := max(0, of.numbers[isLayer]), len(a.Values)/int(steps), 0
	for n := range steps {
		values := a.Values[int(n)*size : int(n+1)*size]
		switch {
		case axes.has("steps") && slices.Min(values) == 0 && slices.Max(values) == 0:
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
		for row := range slices.Chunk(values, size/layers) {
			c.row(row, axes, of)
			of.numbers[isLayer]++
		}
	}
	if empty > 0 {
		c.warn("empty_steps", "empty", empty, "steps", steps)
	}
}

// agree refuses axes that are not what --axes says. Outer ones may be told beside an array: steps,layers,experts of a
// list of experts, by layer.
func (c *collector) agree(axes Axes) {
	outer := Axes{"steps", "layers", "tokens"}
	told := slices.DeleteFunc(slices.Clone(c.asked), func(name string) bool { return outer.has(name) && !axes.has(name) })
	names := strings.ReplaceAll(strings.Join(axes, ","), "copies", "experts")
	if c.asked != nil && strings.Join(told, ",") != names {
		fail("--axes says %s, but the file holds %s: leave it out", strings.Join(c.asked, ","), names)
	}
}

// forwardModes are SGLang's, in dumps per token. An idle rank (4) has no tokens.
var forwardModes = map[int64]Phase{1: Prefill, 2: Decode, 3: Mixed}

// maxTopK is far above any model's.
const maxTopK = 64

// row adds one row of an array. Where the number of ranks is known, copies stand on them in equal contiguous runs, so
// that the load per rank is exact: on 2 ranks, copies [5 1 2 4] of experts [0 1 1 0] → experts [9 3], ranks [6 6].
// Engines leave a row of choices at 0 or −1 for a dense layer or a padded token. A step in which sources worked in
// unlike modes is mixed.
func (c *collector) row(row []int64, axes Axes, of context) {
	into, level, inner := c.at(of.key()), router.LevelExpert, axes.inner()
	copies, mode := of.copies[into.Layer], forwardModes[of.numbers[isMode]]
	onRank, width := len(copies)/max(1, c.Ranks), len(row)
	if inner != "ranks" && into.Load.PerExpert == nil {
		into.Load.PerExpert = make([]int64, 0, c.Experts) // choices of a dense layer are counts, too, of 0
	}
	switch inner {
	case "choices":
		c.chosen, c.TopK = true, cmp.Or(c.TopK, min(width, maxTopK))
		width = c.TopK
	case "experts":
		c.Experts = cmp.Or(c.Experts, width)
		width = c.Experts
	case "copies":
		if width = len(copies); width%max(1, c.Ranks) != 0 {
			fail("%v: %d copies do not divide over %d ranks", into, width, c.Ranks)
		}
	case "ranks":
		level, c.Ranks = router.LevelRank, cmp.Or(c.Ranks, width)
		width = c.Ranks
	}
	if len(row) != width {
		fail("%v: want %d %s, as before or in their map, have %d", into, width, inner, len(row))
	}
	if into.Phase = cmp.Or(into.Phase, mode); mode != "" && mode != into.Phase {
		into.Phase = Mixed
	}
	if into.sources++; into.sources != c.source+1 { // one before did not record the step, or this one did twice
		into.sources = -1
	}
	padded := width > 1 && slices.Min(row) == 0 && slices.Max(row) == 0
	for i, n := range row {
		at := i
		switch inner {
		case "choices":
			if at, n = int(n), 1; padded || at == -1 {
				into.padding++
				continue
			}
		case "copies":
			if at = int(copies[i]); at == placement.NoExpert && n == 0 {
				continue
			} else if c.Ranks > 0 {
				c.add(into, router.LevelRank, i/onRank, n, false)
			}
			if c.copies = width; n > 0 {
				c.loaded = max(c.loaded, i+1)
			}
		}
		c.add(into, level, at, n, inner != "choices" && c.sources == 0)
	}
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

var errTwice = errors.New("is recorded twice")

// add adds slots to the cell of an expert or a rank, which with once must not have any yet.
func (c *collector) add(into *Step, level string, at int, slots int64, once bool) {
	list := &into.Load.PerExpert
	if level == router.LevelRank {
		list = &into.Received
	}
	if most := cmp.Or(int(c.known), maxExperts); at < 0 || at >= most {
		fail("%v: want a number of the %s from 0 to %d, have %d", into, level, most-1, at)
	}
	if c.size += max(0, at+1-len(*list)); c.size > c.most {
		fail("want at most %d counts, of all experts and steps, have more", c.most)
	}
	for len(*list) <= at {
		*list = append(*list, -1)
	}
	cell := &(*list)[at]
	switch {
	case slots < 0 || slots > maxCount-max(*cell, 0):
		fail("%v: %s %d: want a count between 0 and %d, have %d", into, level, at, int64(maxCount), slots)
	case once && *cell >= 0:
		fail("%v: %s %d %w", into, level, at, errTwice)
	}
	c.unlike = c.unlike || max(*cell, 0) != slots*int64(c.source)
	*cell = max(*cell, 0) + slots
}

// incomplete is the code of the warning that passes are left out that not every rank recorded.
const incomplete = "incomplete_passes"

// finish makes steps from what was gathered, equally many experts and ranks in each, and checks them. Steps that
// not every source recorded are left out: the load is the sum over them, and a part of it has another balance. Under
// DeepEP a rank of SGLang counts its own copies alone, so that the last ones have no load where its file is missing.
func (c *collector) finish() {
	if all := len(c.cells); c.sources > 0 {
		maps.DeleteFunc(c.cells, func(_ stepKey, s *Step) bool { return s.sources != c.sources })
		switch dropped := all - len(c.cells); {
		case dropped > 0 && c.sources == 1:
			fail("a step is recorded twice")
		case dropped == all && all > 0:
			fail("holds no counts: no step was recorded by each of %d ranks", c.sources)
		case c.sources > 1 && c.loaded > 0 && (c.copies-c.loaded)*(c.sources+1) >= c.copies:
			fail("copies %d to %d have no load in any step: there are files of ranks 0 to %d, is one of rank %d missing?",
				c.loaded, c.copies-1, c.sources-1, c.sources)
		case dropped > 0:
			c.warn(incomplete, "excluded", dropped, "passes", all, "ranks", c.sources)
		}
	}
	models, padded := map[Phase]bool{}, 0
	for key, s := range c.cells {
		c.Experts, c.Ranks = max(c.Experts, len(s.Load.PerExpert)), max(c.Ranks, len(s.Received))
		if models[key.model] = true; len(s.Load.PerExpert) > 0 { // else a dense layer
			padded += s.padding
		}
	}
	switch c.atLeast = c.atLeast || c.chosen && c.known == 0; {
	case c.chosen && c.Experts == 0:
		fail("want expert ids, have only 0 or −1: the engine recorded no routing")
	case padded > 0:
		c.warn("padded_tokens", "choices", padded)
	}
	c.Experts = max(c.Experts, int(c.known))
	if len(c.cells)*(c.Experts+c.Ranks) > c.most {
		fail("want at most %d counts, have %d steps and layers of %d experts", c.most, len(c.cells), c.Experts)
	}
	for key, s := range c.cells {
		s.Load.PerExpert, s.Received = filled(s.Load.PerExpert, c.Experts), filled(s.Received, c.Ranks)
		if len(models) > 1 { // one tells nothing apart
			s.Phase = Phase(strings.Trim(string(s.Phase+", "+key.model), ", "))
		}
		c.steps = append(c.steps, *s)
	}
	c.Window = !c.stepped
	slices.SortFunc(c.steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Iteration, b.Iteration), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Phase, b.Phase))
	})
	c.Record.finish()
}

// filled has n cells, 0 where nothing was recorded; nil for nil.
func filled(list []int64, n int) []int64 {
	if list == nil {
		return nil
	}
	list = append(list, make([]int64, n-len(list))...)
	for i, v := range list {
		list[i] = max(v, 0)
	}
	return list
}
