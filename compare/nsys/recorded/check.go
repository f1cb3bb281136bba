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

	"github.com/moebalance/moebalance/compare/kernel"
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
