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
//	other streams, CUDA graphs          marks, wherever else kernels start
//
//	unknown                             why
//	one MoE layer a step, one step      nothing recurs, or it recurs everywhere
//	attention of unknown names          layers and pieces of layers look alike
//	nothing between steps               no marks, as in loops over layers and replays without sampling
//	marks at several distances          drafts with experts in varying number, schedules of pipelines, lost kernels
//	microbatches that overlap           blocks differ in number within a step, or hold a part of others' GEMMs
//	shared experts behind the router    some GEMMs take equally long in all layers, and others do not
//	forward and backward                blocks are not the layers of a step
//	lost kernels                        more routers or attention between some blocks than between others
//
// Where layers are unknown they are 0, never 1, and blocks are only numbered; Unclear says
// that these may be parts of layers, or hold more than the routed experts of one.
//
// One failure is not noticed here: every layer run twice, attention included, once for each
// microbatch, looks like twice the layers. Twins finds that over ranks whose loads differ
// from layer to layer, if the model has two MoE layers at least.
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
	Anchor Anchor
	Mark   Mark
}

// Block is one MoE layer of one step: the positions of its first and last expert
// GEMM in the order of launch.
type Block struct{ First, Last int }

// Structure is what the repetition of launches shows. Block b belongs to MoE layer
// (FirstLayer + b) mod Layers; dense layers are not counted.
type Structure struct {
	Blocks     []Block
	Layers     int    // MoE layers per step, 0 where unknown
	FirstLayer int    // the layer of the first block, above 0 where a recording begins within a step
	CutFirst   bool   // the recording begins within the first block, or after its attention
	CutLast    bool   // it ends before the last block is combined
	Backward   bool   // training, of which blocks are not the layers of a step
	Unknown    string // why Layers is 0: a code
	Unclear    bool   // for a reason for which blocks may be parts of layers, or hold more than routed experts
	Stage      string // of a pipeline, "first", "middle" or "last"; empty where no transfer between stages is seen
	of         *recording
}

// Reasons for which layers are unknown.
const (
	noGEMM         = "no_expert_gemm"
	fewBlocks      = "few_blocks"
	fewLayers      = "few_layers"
	nothingOnce    = "nothing_once_a_step"
	severalPeriods = "several_periods"
	fewSteps       = "few_whole_steps"

	// for which blocks may be no layers
	backwardToo  = "backward_kernels"
	noAttention  = "no_attention"
	denseBetween = "dense_between"
	overlapping  = "overlapping_microbatches"
	sharedToo    = "shared_experts"
	kernelsLost  = "uneven_gaps"
)

var unclear = []string{backwardToo, noAttention, denseBetween, overlapping, sharedToo, kernelsLost}

// Place is the step and layer of a block, counted from 0; a step that the recording
// begins within is step 0. Both are −1 where layers are unknown.
func (s Structure) Place(block int) (step, layer int) {
	if s.Layers == 0 {
		return -1, -1
	}
	at := s.FirstLayer + block
	return at / s.Layers, at % s.Layers
}

// Complete reports whether all blocks of a step were recorded whole.
func (s Structure) Complete(step int) bool {
	from, to := s.FirstLayer, s.FirstLayer+len(s.Blocks)
	if s.CutFirst {
		from++
	}
	if s.CutLast {
		to--
	}
	return s.Layers > 0 && step*s.Layers >= from && (step+1)*s.Layers <= to
}

// Find infers the structure of one rank's launches, given in the order in which its
// threads launched them, or for replayed graphs in the order of graph launch and
// start. It takes time in proportion to the launches.
func Find(launches []Launch) Structure {
	r := &recording{launches: launches, runs: runsOf(launches)}
	why := r.join()
	s := Structure{Blocks: r.layers, Backward: r.backward(), Unknown: why, Unclear: slices.Contains(unclear, why), of: r}
	if why != "" {
		return s
	}
	p, why := r.period(marksOf([]*recording{r}))
	switch {
	case why != "":
		s.Unknown, s.Unclear = why, slices.Contains(unclear, why)
	case r.overlap(p):
		s.Blocks, s.of = r.runs, nil // what was joined may be of several layers
		s.Unknown, s.Unclear = overlapping, true
	default:
		s.settle(p)
	}
	return s
}

// settle takes a period unless something speaks against it.
func (s *Structure) settle(p period) {
	r := s.of
	if s.Unknown = r.contradiction(p); s.Unknown == "" {
		s.Layers, s.FirstLayer = p.layers, (p.layers-p.first)%p.layers
		s.CutFirst, s.CutLast = r.cut()
		s.Stage = r.stage(p)
	}
	s.Unclear = slices.Contains(unclear, s.Unknown)
}

// Tail is how many launches behind the layer of a block end its step, as the LM head
// does: those that also end the recording, where they follow the block. The others
// begin the next step. ends is what Ends returns.
func (s Structure) Tail(launches []Launch, ends []int, block int) int {
	from, rest := ends[block]+1, launches[ends[len(ends)-1]+1:]
	if block+1 == len(s.Blocks) || from+len(rest) >= s.Blocks[block+1].First {
		return 0
	}
	named := func(a, b Launch) bool { return a.Name == b.Name }
	if slices.EqualFunc(rest, launches[from:from+len(rest)], named) {
		return len(rest)
	}
	return 0
}
