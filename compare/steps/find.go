// Package steps finds the steps and MoE layers of ranks whose recording has no ranges,
// from what a model does once a step. It sees kernel names as numbers, in order of
// launch, with what they are known to be, and knows nothing of files or GPUs; only
// JoinOf, which matches the steps of two ranks, knows when these ran. Together gives a rank
// without marks the steps of the others.
//
// An expert block is a run of expert GEMMs with no attention, router or collective
// between them. Blocks with no attention or other mixer between are pieces of one MoE
// layer: token chunks, or microbatches that run one behind the other. The launches between
// two layers are a segment. A mark is a kernel that models run once a step (Mark). Where a
// segment has more of one than both of its neighbors, a step may begin: two marks at least,
// one of them sure, or a transfer between stages of a pipeline alone. Steps are known where
// these segments lie at one distance.
//
//	found                               by
//	dense layers, anywhere              segments may be as long as they like
//	kinds of layers in turn, hybrids    marks, in whatever else segments differ
//	token chunks                        no mixer between blocks
//	microbatches side by side           the same
//	stages of a pipeline                transfers, where layers do not exchange tokens by the same kernel
//	layers that predict further tokens  of up to six segments in a row with equal marks the last begins a step
//	prefill and decode                  marks of all steps, or of each kind
//	drafts now and then, two models     marks of all ranks in all steps, if as many layers recur
//	microbatches on two streams         SideBySide, where both run as many layers in a step
//	shared experts by the same kernel   withoutShared, where they take equally long in all layers on all ranks
//	other streams, CUDA graphs          marks, wherever else kernels start
//
//	unknown                             why
//	one MoE layer a step, one step      nothing recurs, or it recurs everywhere
//	attention of unknown names          layers and pieces of layers look alike
//	nothing between steps               no marks, as in loops over layers and replays without sampling
//	marks at several distances          schedules of pipelines, lost kernels
//	microbatches that overlap           blocks differ in number within a step, or hold a part of others' GEMMs
//	shared experts behind the router    some GEMMs take equally long in all layers of a rank, and others do not
//	forward and backward                blocks are not the layers of a step
//
// Where layers are unknown they are 0, never 1, and blocks are only numbered; Unclear says
// that these may be parts of layers, or hold more than the routed experts of one.
//
// Three failures are not noticed here. Lost kernels leave a step with fewer blocks than it had. Every layer run twice,
// attention included, once for each microbatch, looks like twice the layers: Twins finds that over ranks whose loads
// differ from layer to layer, if the model has two MoE layers at least. Two models of equal layers and
// kernels look like one whose loads vary.
package steps

import "slices"

// Anchor is what a kernel is known to be before any structure is.
type Anchor uint8

// The anchors.
const (
	None Anchor = iota
	ExpertGEMM
	Attention // or another mixer of tokens: state space models, linear attention
	Router
	Collective
	Backward // of a training step, in which blocks are not layers
	Dense    // a GEMM that every token passes: projections, LM head, dense layers
	Norm     // what else every token passes
)

// Mark is how much it says that a kernel runs: 0 what models run in any layer, and else
// how surely they run it once a step.
type Mark uint8

// The marks.
const (
	Perhaps  Mark = 1 // gathers, ranges and scans, which layers use too
	Sure     Mark = 3 // embedding, positions, block tables, logits, sampling
	Transfer Mark = 4 // between stages of a pipeline
)

// enough is what the marks of a period must weigh more than.
const enough = int(Sure)

// Launch is one kernel of a rank.
type Launch struct {
	Name   int32  // of the kernel, as a number
	NS     uint32 // its duration, at most
	Stream uint16
	Anchor Anchor
	Mark   Mark
}

// Block is one MoE layer of one step: the positions of its first and last expert
// GEMM in the order of launch.
type Block struct{ First, Last int }

// Structure is what the repetition of launches shows.
type Structure struct {
	Blocks  []Block
	Layers  int    // MoE layers per step, of the longest where steps differ, 0 where unknown; dense ones are not counted
	Unknown string // why Layers is 0: a code
	Unclear bool   // for a reason for which blocks may be parts of layers, or hold more than routed experts
	Stage   string // differs between stages of a pipeline; empty where no transfer between stages is seen
	steps   []stretch
	unlike  []int     // steps whose layers are not known, see recording.unlike
	tried   []stretch // steps, though something speaks against them
	of      *recording
}

// stretch is the layers of a step: from 4 to 8 are four.
type stretch struct{ from, to int }

// Reasons for which layers are unknown.
const (
	fewSteps       = "few_whole_steps"
	nothingOnce    = "nothing_once_a_step"
	severalPeriods = "several_periods"

	// for which blocks may be no layers
	backwardToo  = "backward_kernels"
	noAttention  = "no_attention"
	denseBetween = "dense_between"
	overlapping  = "overlapping_microbatches"
	sharedToo    = "shared_experts"
)

var unclear = []string{severalPeriods, backwardToo, noAttention, denseBetween, overlapping, sharedToo}

// Place is the step and layer of a block, counted from 0, where the step was recorded whole; else both are −1. A
// step that the recording begins within is step 0. Blocks of a step that is unlike the others have no layer.
func (s Structure) Place(block int) (step, layer int) {
	step, _ = slices.BinarySearchFunc(s.steps, block, func(w stretch, b int) int { return w.to - b - 1 })
	if step == len(s.steps) || block < s.steps[step].from {
		return -1, -1
	}
	if layer = block - s.steps[step].from; slices.Contains(s.unlike, step) {
		layer = -1
	}
	return step + min(s.steps[0].from, 1), layer
}

// Find infers the structure of one rank's launches, given in the order in which its
// threads launched them, or for replayed graphs in the order of graph launch and
// start. It takes time in proportion to the launches.
func Find(launches []Launch) Structure {
	r := &recording{launches: launches, runs: runsOf(launches)}
	why, steps := r.join(), []stretch(nil)
	s := Structure{Blocks: r.layers, of: r}
	if why == "" {
		steps, why = r.steps(marksOf([]*recording{r}))
	}
	s.settle(steps, why)
	return s
}

// settle takes steps unless something speaks against them.
func (s *Structure) settle(steps []stretch, why string) {
	r, shared := s.of, false
	unlike := r.unlike(steps)
	if !r.chunks {
		s.tried = steps
		_, shared = sharedIn(s)
	}
	switch {
	case why != "":
	case len(unlike) > min(max(1, len(steps)/8), len(steps)/3): // not by tuning, which ends
		s.Blocks, why = r.runs, overlapping // what was joined may be of several layers
	case len(steps) < 2:
		why = fewSteps
	case shared:
		why = sharedToo
	default:
		s.steps, s.unlike, s.Stage = steps, unlike, r.stage(steps)
		for _, w := range steps {
			s.Layers = max(s.Layers, w.to-w.from)
		}
	}
	s.Unknown, s.Unclear = why, slices.Contains(unclear, why)
}

// Tail is how many launches behind the layer of a block end its step, as the LM head
// does: those that also end the recording, where they follow the block. The others
// begin the next step, as all do where the recording ends in a dense layer of it. ends is what Ends returns.
func (s Structure) Tail(launches []Launch, ends []int, block int) int {
	from, rest := ends[block]+1, launches[ends[len(ends)-1]+1:]
	if block+1 == len(s.Blocks) || from+len(rest) >= s.Blocks[block+1].First ||
		slices.ContainsFunc(rest, func(l Launch) bool { return l.Anchor == Attention }) ||
		!slices.EqualFunc(rest, launches[from:from+len(rest)], func(a, b Launch) bool { return a.Name == b.Name }) {
		return 0
	}
	return len(rest)
}
