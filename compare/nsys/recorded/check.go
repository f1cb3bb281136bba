// Package recorded holds expert counts that were recorded beside a trace against what
// the trace shows, and divides the time of grouped kernels by them. It knows of the trace
// what Trace has, and of time nothing but numbers.
package recorded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// ErrMismatch is the error of recorded counts that cannot be of the captured run.
var ErrMismatch = errors.New("the recorded counts do not match the trace")

// Counts are slots per expert, and which rank owns which expert, by layer.
type Counts struct {
	Load   map[int]router.Load
	Layout map[int]router.Layout
}

// Trace is what a trace shows that counts can contradict.
type Trace struct {
	Ranks        []int         // ascending, at least one
	Export       string        // of the last rank
	World        int           // ranks of the whole run, 0 where not recorded
	Experts      []Expert      // with kernels of their own, each once, in order
	Layers       map[Pair]bool // rank and layer with time in the phase experts
	Kernels      []string      // names
	SingleLayers bool          // a benchmark of single layers of its model
}

// Expert is an expert of a layer that owned kernels on a rank.
type Expert struct{ Layer, Expert, Rank int }

// Pair is a rank and a layer.
type Pair struct{ Rank, Layer int }

// check is Counts against a Trace.
type check struct {
	Counts
	Trace
	warnings []router.Warning
}

func (c *check) warn(code string, args ...any) {
	c.warnings = append(c.warnings, router.Warn(code, "", args...))
}

// Check compares the counts with what the trace shows. It refuses, with an error that
// wraps ErrMismatch, counts that contradict it:
//
//   - a rank in the trace that they do not have;
//   - an expert that they do not have, or that ran on a rank that does not own it;
//   - a kernel of the gate that is made for another number of experts;
//   - layers numbered otherwise: none in common, or each side has some that the
//     other lacks;
//   - more layers than a whole trace has, see deeper.
//
// A trace says nothing of the model's top-k and, where one kernel serves all
// experts, nothing of its tokens: those are held against a model that is named, by
// who reads the counts. What only looks odd is a warning, because counts may be
// of more steps, and a trace of fewer ranks and layers.
func (c Counts) Check(t Trace) ([]router.Warning, error) {
	k := &check{Counts: c, Trace: t}
	for _, step := range []func() error{k.ranks, k.gate, k.layers, k.owners} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	k.idleExperts()
	return k.warnings, nil
}

// ranks compares the numbers of ranks.
func (c *check) ranks() error {
	for _, layer := range slices.Sorted(maps.Keys(c.Layout)) {
		ranks := c.Layout[layer].Ranks()
		if last := slices.Max(c.Ranks); last >= ranks {
			return fmt.Errorf("%w: counts of %s, the trace has rank %d (%q)", ErrMismatch,
				quantity.Count(ranks, "rank"), last, c.Export)
		}
		if c.World > 0 && c.World != ranks {
			c.warn("counts_ranks", "ranks", ranks, "world", c.World)
			return nil
		}
	}
	return nil
}

// gate compares the number of experts with what the gate's kernels are made
// for. Several models may run, one to draft for the other: one of them is enough.
func (c *check) gate() error {
	made := map[int]bool{}
	for _, name := range c.Kernels {
		if experts, ok := kernel.GateExperts(name); ok {
			made[experts] = true
		}
	}
	for _, layer := range slices.Sorted(maps.Keys(c.Load)) {
		if experts := len(c.Load[layer].PerExpert); len(made) > 0 && !made[experts] {
			return fmt.Errorf("%w: counts of %s, the top-k kernel in the trace is compiled for %s", ErrMismatch,
				quantity.Count(experts, "expert"), numberList(slices.Collect(maps.Keys(made))))
		}
	}
	return nil
}

// owners looks for experts that the counts do not have, and for experts that
// ran on a rank that does not own them.
func (c *check) owners() error {
	for _, s := range c.Experts {
		load, ok := c.Load[s.Layer]
		if !ok {
			continue
		}
		if experts := len(load.PerExpert); s.Expert >= experts {
			return fmt.Errorf("%w: counts of %s, expert %d of layer %d ran on rank %d", ErrMismatch,
				quantity.Count(experts, "expert"), s.Expert, s.Layer, s.Rank)
		}
		layout, placed := c.Layout[s.Layer]
		if !placed || s.Expert >= layout.Experts() {
			continue
		}
		var owners []int
		for _, p := range layout.Places(s.Expert) {
			owners = append(owners, p.Rank)
		}
		if !slices.Contains(owners, s.Rank) {
			return fmt.Errorf("%w: with %s on %s, expert %d of layer %d belongs to rank %s, in the trace it ran on rank %d",
				ErrMismatch, quantity.Count(layout.Experts(), "expert"), quantity.Count(layout.Ranks(), "rank"),
				s.Expert, s.Layer, numberList(owners), s.Rank)
		}
	}
	return nil
}

// idleShare is the share of recorded slots that experts which never ran may
// hold without a warning: counts may span more steps than a capture.
const idleShare = 0.05

// idleExperts warns where experts with much of the recorded load never ran on the
// ranks that are there, and where experts ran that have none.
func (c *check) idleExperts() {
	ran := map[[2]int]bool{}
	layers := map[int]bool{}
	for _, s := range c.Experts {
		ran[[2]int{s.Layer, s.Expert}] = true
		layers[s.Layer] = true
	}
	for _, layer := range slices.Sorted(maps.Keys(layers)) {
		load, layout := c.Load[layer], c.Layout[layer]
		var total, idle int64
		unused, unloaded := 0, 0
		for e, slots := range load.PerExpert {
			if e < layout.Experts() && !slices.ContainsFunc(layout.Places(e),
				func(p router.Place) bool { return slices.Contains(c.Ranks, p.Rank) }) {
				continue
			}
			total += slots
			switch {
			case slots > 0 && !ran[[2]int{layer, e}]:
				idle += slots
				unused++
			case slots == 0 && ran[[2]int{layer, e}]:
				unloaded++
			}
		}
		if float64(idle) > idleShare*float64(total) {
			c.warn("counts_idle", "why", "unused", "layer", layer, "experts", unused, "share",
				float64(idle)/float64(total))
		}
		if unloaded > 0 {
			c.warn("counts_idle", "why", "unloaded", "layer", layer, "experts", unloaded)
		}
	}
}

// numberList writes 0, 1, 2 and cuts long lists.
func numberList(numbers []int) string {
	slices.Sort(numbers)
	const most = 8
	var words []string
	for i, n := range numbers {
		if i == most {
			return fmt.Sprintf("%s and %d more", strings.Join(words, ", "), len(numbers)-most)
		}
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ", ")
}

// InOrder renumbers the layers with load from 0, and returns their numbers; nil where
// there are not so many layers, or where they have these numbers.
func (c Counts) InOrder(layers int) (renumbered Counts, numbers []int) {
	numbers = c.loaded()
	if layers == 0 || len(numbers) != layers || numbers[layers-1] == layers-1 {
		return c, nil
	}
	renumbered = Counts{Load: map[int]router.Load{}, Layout: map[int]router.Layout{}}
	for i, number := range numbers {
		renumbered.Load[i] = c.Load[number]
		if layout, ok := c.Layout[number]; ok {
			renumbered.Layout[i] = layout
		}
	}
	return renumbered, numbers
}

// loaded are the layers with any load, ascending.
func (c Counts) loaded() (layers []int) {
	for _, layer := range slices.Sorted(maps.Keys(c.Load)) {
		if load := c.Load[layer]; load.Total() > 0 {
			layers = append(layers, layer)
		}
	}
	return layers
}

// layers compares the layers in which experts work. Recorded layers without any
// load are no evidence: some recorders list the dense ones too.
func (c *check) layers() error {
	worked, recorded := map[int]bool{}, map[int]bool{}
	for _, layer := range c.loaded() {
		recorded[layer] = true
	}
	for at := range c.Trace.Layers {
		worked[at.Layer] = true
	}
	switch {
	case len(worked) == 0:
		c.warn("counts_layers", "why", "no_time")
		return nil
	case len(recorded) == 0:
		c.warn("counts_layers", "why", "zero")
		return nil
	}
	without, idle := missingFrom(worked, recorded), missingFrom(recorded, worked)
	switch {
	case len(without) == len(worked), len(without) > 0 && len(idle) > 0:
		return fmt.Errorf("%w: counts of layers %s, experts run in layers %s; number both the same way", ErrMismatch,
			numberList(slices.Collect(maps.Keys(recorded))), numberList(slices.Collect(maps.Keys(worked))))
	case c.deeper(worked, idle):
		return fmt.Errorf("%w: counts up to layer %d, and the last layer with experts is %d on every rank of the trace",
			ErrMismatch, slices.Max(idle), slices.Max(slices.Collect(maps.Keys(worked))))
	}
	if len(without) > 0 {
		c.warn("counts_layers", "why", "without", "layers", without)
	}
	if len(idle) > 0 {
		c.warn("counts_layers", "why", "idle", "layers", idle)
	}
	return nil
}

// missingFrom lists what is in one set and not in the other.
func missingFrom(have, other map[int]bool) (layers []int) {
	for layer := range have {
		if !other[layer] {
			layers = append(layers, layer)
		}
	}
	return layers
}

// depthMargin is the share of a model's layers that counts may have beyond those of
// a trace: layers that predict further tokens come last, and their ranges often go
// by another name.
const depthMargin = 0.1

// deeper reports whether counts are of a deeper model than that of the trace. Every
// step goes through all layers, so that a trace lacks some only where other ranks have
// them (pipelines) or where the program runs single layers: all ranks must be there,
// each with the same layers, and the counts go on behind the last of them.
func (c *check) deeper(worked map[int]bool, idle []int) bool {
	if float64(len(idle)) <= depthMargin*float64(len(worked)+len(idle)) ||
		slices.Min(idle) < slices.Max(slices.Collect(maps.Keys(worked))) {
		return false
	}
	for _, layout := range c.Layout {
		if len(c.Ranks) != layout.Ranks() {
			return false
		}
	}
	return len(c.Trace.Layers) == len(worked)*len(c.Ranks) && len(c.Layout) > 0 && !c.SingleLayers
}

// Uneven reports whether the expert time of ranks or their recorded load in a layer is
// clearly uneven, and a code of why they cannot be of one run; empty where nothing says so, or
// where the counts lack the layer or a rank. Time is by rank, over all steps; steps is
// how many were recorded.
func (c Counts) Uneven(layer, steps int, ranks []int, time []float64) (uneven bool, contradiction string) {
	recorded, known := c.Load[layer]
	layout := c.Layout[layer]
	if !known || layout.Experts() != len(recorded.PerExpert) || slices.Max(ranks) >= layout.Ranks() {
		return false, ""
	}
	all := layout.RankLoad(recorded.PerExpert)
	load := make([]float64, len(ranks))
	for i, rank := range ranks {
		load[i] = float64(all[rank])
	}
	if sum(time) == 0 || sum(load) == 0 {
		return false, ""
	}
	slots := float64(recorded.Total()) / float64(len(recorded.PerExpert)) / float64(max(1, steps))
	return max(excess(time), excess(load)) >= clearlyUneven, contradicts(time, load, slots)
}

// excess is max/mean − 1.
func excess(v []float64) float64 { return slices.Max(v)*float64(len(v))/sum(v) - 1 }

// contradicts is a code of why the recorded load of a layer cannot be that of its measured expert
// time; empty where nothing says so. Both are by rank, over the same ranks; slots is
// the mean number of slots of an expert and step.
func contradicts(time, load []float64, slots float64) string {
	t, l := excess(time), excess(load)
	busiest, loaded := slices.Index(time, slices.Max(time)), slices.Index(load, slices.Max(load))
	switch {
	case max(t, l) < clearlyUneven:
	case t < follows*l && slots >= computeBound:
		return "even_time"
	case l < follows*t:
		return "even_load"
	case min(t, l) > clearlyUneven && load[busiest] < sum(load)/float64(len(load)) &&
		time[loaded] < sum(time)/float64(len(time)):
		return "other_rank"
	}
	return ""
}

const (
	// clearlyUneven is the imbalance from which load and time must go together.
	clearlyUneven = 0.1
	// follows is the least imbalance of one over that of the other. Of the captures in
	// testdata the time of the right counts has 0.29 to 0.86 of the load's imbalance, and that
	// of the other arm's at most 0.06.
	follows = 0.15
	// computeBound is the number of slots per expert and step from which the time of its GEMM
	// follows them; below, it mostly reads weights.
	computeBound = 128
)

func sum(v []float64) (total float64) {
	for _, x := range v {
		total += x
	}
	return total
}

// Part is what an expert of a rank gets of the rank's time.
type Part struct {
	Expert int
	Slots  int64   // recorded on the rank
	NS     []int64 // by step
}

// Allocate divides the times of a rank's steps in a layer over the experts that it holds,
// in proportion to their recorded slots; copies on one rank are one. Nothing where the
// counts lack the layer, or load on the rank.
func (c Counts) Allocate(rank, layer int, steps []int64) (parts []Part) {
	load, ok := c.Load[layer]
	layout, placed := c.Layout[layer]
	if !ok || !placed || rank >= layout.Ranks() || layout.Experts() != len(load.PerExpert) {
		return nil
	}
	held := slices.Compact(slices.Sorted(slices.Values(layout.Held(rank))))
	slots := make([]int64, len(held))
	var total int64
	for i, e := range held {
		places := layout.Places(int(e))
		for _, at := range places {
			if at.Rank == rank {
				slots[i] += load.PerExpert[e] / int64(len(places))
			}
		}
		total += slots[i]
		parts = append(parts, Part{Expert: int(e), Slots: slots[i]})
	}
	if total == 0 {
		return nil
	}
	for _, ns := range steps {
		for i, part := range apportion(ns, slots, total) {
			parts[i].NS = append(parts[i].NS, part)
		}
	}
	return parts
}

// Held are the experts that any layout puts on one of the ranks.
func (c Counts) Held(ranks []int) map[int]bool {
	held := map[int]bool{}
	for _, layout := range c.Layout {
		for _, rank := range ranks {
			if rank < layout.Ranks() {
				for _, e := range layout.Held(rank) {
					held[int(e)] = true
				}
			}
		}
	}
	return held
}

// apportion divides ns in proportion to the weights, whole nanoseconds that add up
// to ns: each part's end is rounded down, so that rounding never accumulates.
func apportion(ns int64, weights []int64, total int64) []int64 {
	out := make([]int64, len(weights))
	var sum, given int64
	for i, w := range weights {
		sum += w
		upTo := int64(float64(ns) * (float64(sum) / float64(total)))
		if sum == total {
			upTo = ns
		}
		out[i] = upTo - given
		given = upTo
	}
	return out
}
