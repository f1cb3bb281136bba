package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/compare/steps"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// StepKind is a kind of whole steps (see imbalance.Kinds): those in which the ranks
// together ran exactly these MoE kernels, on numbers of tokens at most twofold apart, of one
// model (steps.Models), and which ranges call prefill or decode alike. A kernel that a CUDA graph replayed has
// InGraph behind its name.
type StepKind struct {
	Kind    int      `json:"step_kind"`
	Name    string   `json:"name"` // such as "prefill, 7217 to 8192 tokens"
	Steps   []int    `json:"steps"`
	Kernels []string `json:"kernels"`
	// Time is the imbalance of expert time over ranks in the steps of this kind alone;
	// without layers where it is not known.
	Time imbalance.Summary `json:"time"`

	Engine  string         `json:"-"` // see ranges.EngineOf
	batches []ranges.Batch // of the steps
	busyNS  []float64      // GPU time of each step, mean over ranks
}

// Tokens is how many tokens all ranks have in the first step; 0 where ranges do not say.
func (k StepKind) Tokens() int { return append(k.batches, ranges.Batch{})[0].Tokens }

// InGraph is behind the name of a kernel that a CUDA graph replayed.
const InGraph = " (CUDA graph)"

// batch is what the ranges of all ranks say of a step: prefill where any rank has a prompt, the tokens of all
// ranks, and the arm that all of them name.
func (r *reduction) batch(step int32) (all ranges.Batch) {
	all.Dummy = true
	for i, p := range r.ranks {
		b := ranges.BatchOf(p.of.StepNames[step])
		if i > 0 && b.Arm != all.Arm {
			b.Arm = ""
		}
		tokens := max(all.Tokens, b.Tokens) // the same tokens on all ranks
		if r.ownTokens {
			tokens = all.Tokens + b.Tokens
		}
		all = ranges.Batch{Named: all.Named || b.Named, Prefill: all.Prefill || b.Prefill,
			Tokens: tokens, Dummy: all.Dummy && b.Dummy, Arm: b.Arm}
	}
	return all
}

// haveOwnTokens reports whether each rank attends to tokens of its own, as ranges show it: some step is a dummy, or
// holds 6144 tokens on one rank and 2048 on another.
func (r *reduction) haveOwnTokens() bool {
	first := r.ranks[0].of.StepNames
	for _, p := range r.ranks {
		for step, name := range p.of.StepNames {
			b, other := ranges.BatchOf(name), ranges.BatchOf(first[step])
			if b.Dummy || b.Tokens > 0 && other.Tokens > 0 && b.Prefill == other.Prefill && b.Tokens != other.Tokens {
				return true
			}
		}
	}
	return false
}

// kinds gives the whole steps their kinds, in cells and StepKinds, and each kind a name: what ranges say, else what its
// steps take.
func (r *reduction) kinds() {
	kernels, layers := r.expertKernels(), map[router.OptInt]int{}
	for _, c := range r.trace.Cells {
		layers[c.Step] = max(layers[c.Step], int(c.Layer)+1)
	}
	model := steps.Models(layers)
	classify := func(turns map[router.OptInt]string) {
		r.trace.times = r.trace.Times().Classify(func(step router.OptInt) (string, int) {
			b, of := r.batch(int32(step)), fmt.Sprint(model[layers[step]], turns[step])
			return strings.Join(append(slices.Clone(kernels[int32(step)]), b.String(), of), "\n"), b.Tokens
		})
	}
	classify(nil)
	if turns := r.trace.times.Turns(); turns != nil { // the steps that count are of two models
		classify(turns)
	}
	r.counted = imbalance.Places(r.trace.times.StepsOf(imbalance.Counts))
	kindOf, kinds := map[router.OptInt]router.OptInt{NoID: NoID}, r.trace.StepKinds
	for _, s := range r.trace.times.Steps {
		if kindOf[s.Number] = s.Kind; int(s.Kind) == len(kinds) {
			kinds = append(kinds, StepKind{Kind: len(kinds), Kernels: kernels[int32(s.Number)]})
		}
		if s.Kind.Defined() {
			k := &kinds[s.Kind]
			k.Steps, k.batches = append(k.Steps, int(s.Number)), append(k.batches, r.batch(int32(s.Number)))
			k.busyNS = append(k.busyNS, float64(s.BusyNS))
			k.Engine = cmp.Or(k.Engine, ranges.EngineOf(r.ranks[0].of.StepNames[int32(s.Number)]))
		}
	}
	for i := range r.trace.Cells {
		r.trace.Cells[i].Kind = kindOf[r.trace.Cells[i].Step]
	}
	for i := range kinds {
		k := &kinds[i]
		k.Name = ranges.BatchesName(k.batches)
		if slices.ContainsFunc(k.batches, func(b ranges.Batch) bool { return b.Tokens == 0 }) {
			each := quantity.Duration(stats.Median(k.busyNS)) // one may be a warm-up
			k.Name = strings.TrimPrefix(k.Name+", "+each+" of GPU time each", ", ")
		}
	}
	r.trace.StepKinds = kinds
}

// expertKernels lists by step the kernels that did the work of experts on any rank: a
// rank that lacks one lost it.
func (r *reduction) expertKernels() map[int32][]string {
	type use struct {
		step int32
		name string
	}
	ran := map[int32][]string{}
	for u := range sums(r, func(g group) (use, bool) {
		name := g.rank.of.Names[g.name]
		if g.at.Graph {
			name += InGraph
		}
		return use{g.at.Step, name}, g.at.Step != NoID && (g.class.GEMM || slices.Contains(kernel.Routed, g.class.Phase))
	}) {
		ran[u.step] = append(ran[u.step], u.name)
	}
	for _, list := range ran {
		slices.Sort(list)
	}
	return ran
}

// OtherKinds gives the kind of the steps that count, nil where none do, and all other kinds.
func (t *Trace) OtherKinds() (counted *StepKind, others []StepKind) {
	steps := t.Times().StepsOf(imbalance.Counts)
	for i := range t.StepKinds {
		if k := &t.StepKinds[i]; len(steps) > 0 && slices.Contains(k.Steps, steps[0]) {
			counted = k
		} else {
			others = append(others, *k)
		}
	}
	return counted, others
}
