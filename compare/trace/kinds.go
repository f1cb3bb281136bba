package trace

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// StepKind is a kind of whole steps (see imbalance.Kinds): those in which the ranks
// together ran exactly these MoE kernels, on numbers of tokens at most twofold apart, and
// which ranges call prefill or decode alike. A kernel that a CUDA graph replayed has
// " (CUDA graph)" behind its name.
type StepKind struct {
	Kind    int      `json:"step_kind"`
	Name    string   `json:"name"` // such as "prefill, 7217 to 8192 tokens"
	Steps   []int    `json:"steps"`
	Kernels []string `json:"kernels"`
	// Time is the imbalance of expert time over ranks in the steps of this kind alone;
	// without layers where it is not known.
	Time imbalance.Summary `json:"time"`
}

// batch is what the ranges of all ranks say of a step: prefill where any rank has a
// prompt, and the tokens of the rank with most.
func (r *reduction) batch(step int32) (all ranges.Batch) {
	all.Dummy = true
	for _, p := range r.ranks {
		b := ranges.BatchOf(p.of.StepNames[step])
		all = ranges.Batch{Named: all.Named || b.Named, Prefill: all.Prefill || b.Prefill,
			Tokens: max(all.Tokens, b.Tokens), Dummy: all.Dummy && b.Dummy}
	}
	return all
}

// kinds gives the whole steps their kinds, in cells and StepKinds.
func (r *reduction) kinds() {
	kernels := r.expertKernels()
	var steps []int
	for _, s := range r.times.Steps {
		if s.Number.Defined() && s.Excluded != imbalance.Incomplete && s.Excluded != imbalance.Lost {
			steps = append(steps, int(s.Number))
		}
	}
	outside := map[router.OptInt]float64{}
	for i := range r.trace.Cells {
		if c := &r.trace.Cells[i]; c.Phase != PhaseExperts {
			outside[c.Step] += float64(c.ComputeNS())
		}
	}
	work, batches := make([]imbalance.StepWork, len(steps)), make([]ranges.Batch, len(steps))
	for i, step := range steps {
		batches[i] = r.batch(int32(step))
		name := strings.Join(append(slices.Clone(kernels[int32(step)]), batches[i].String()), "\n")
		work[i] = imbalance.StepWork{Kernels: name, Tokens: batches[i].Tokens, OutsideNS: outside[router.OptInt(step)]}
	}
	kindOf := map[router.OptInt]int{}
	for i, kind := range imbalance.Kinds(work) {
		if kind == len(r.trace.StepKinds) {
			r.trace.StepKinds = append(r.trace.StepKinds, StepKind{Kind: kind, Kernels: kernels[int32(steps[i])]})
		}
		k := &r.trace.StepKinds[kind]
		k.Steps, kindOf[router.OptInt(steps[i])] = append(k.Steps, steps[i]), kind
	}
	for i := range r.trace.Cells {
		if kind, whole := kindOf[r.trace.Cells[i].Step]; whole {
			r.trace.Cells[i].Kind = router.OptInt(kind)
		}
	}
	r.nameKinds(steps, batches, work)
}

// expertKernels lists by step the kernels that did the work of experts on any rank: a
// rank that lacks one lost it.
func (r *reduction) expertKernels() map[int32][]string {
	type use struct {
		step  int32
		name  string
		graph bool
	}
	ran := map[int32][]string{}
	for u := range sums(r, func(g group) (use, bool) {
		return use{g.at.Step, g.rank.of.Names[g.name], g.at.Graph},
			g.at.Step != NoID && (g.class.GEMM || slices.Contains(kernel.Routed, g.class.Phase))
	}) {
		if u.graph {
			u.name += " (CUDA graph)"
		}
		ran[u.step] = append(ran[u.step], u.name)
	}
	for _, list := range ran {
		slices.Sort(list)
	}
	return ran
}

// nameKinds names each kind of steps by what ranges say, else by what its steps take.
func (r *reduction) nameKinds(steps []int, batches []ranges.Batch, work []imbalance.StepWork) {
	for i := range r.trace.StepKinds {
		k := &r.trace.StepKinds[i]
		var of []ranges.Batch
		outside := 0.0
		for _, step := range k.Steps {
			at, _ := slices.BinarySearch(steps, step)
			of, outside = append(of, batches[at]), max(outside, work[at].OutsideNS/float64(len(r.ranks)))
		}
		if k.Name = ranges.BatchesName(of); slices.ContainsFunc(of,
			func(b ranges.Batch) bool { return b.Tokens == 0 }) {
			k.Name = strings.TrimPrefix(k.Name+", "+quantity.Duration(outside)+" outside the experts", ", ")
		}
	}
}

// judgeKinds judges each kind of steps by itself.
func (r *reduction) judgeKinds() {
	for i := range r.trace.StepKinds {
		k := &r.trace.StepKinds[i]
		own := r.trace.Times(func(c *Cell) bool { return c.Kind == router.OptInt(k.Kind) })
		k.Time = imbalance.Summarize(r.rows(own), router.LevelRank, imbalance.Time)
	}
}

// OtherKinds are the kinds of steps that the imbalance is not of.
func (t *Trace) OtherKinds() (counted *StepKind, others []StepKind) {
	steps := t.Times(nil).StepsOf(imbalance.Counts)
	for i := range t.StepKinds {
		if k := &t.StepKinds[i]; len(steps) > 0 && slices.Contains(k.Steps, steps[0]) {
			counted = k
		} else {
			others = append(others, *k)
		}
	}
	return counted, others
}
