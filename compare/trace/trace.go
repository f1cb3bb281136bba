// Package trace attributes the GPU time of captures to ranks, steps, layers, phases and
// experts.
//
// Package capture reads a file into a recording; what this package sees is the
// recording alone. Each kernel gets a location by the ranges around its launch and by
// its name, and becomes one event of its rank in an export summary. Export summaries
// are small, can be written to a file, and reduce to a Trace whatever their order and
// whether they come from files or from captures. What a capture did not record stays
// "unknown"; it never becomes zero.
//
// Every kernel is placed in a phase by the strongest evidence there is: a rule of the
// user, a range, the operator of the framework that launched it, its name, and its
// position between the anchors of an expert block (see evidence). Where no range
// names the layers of expert GEMMs, steps and MoE layers are inferred from the repetition of
// kernels, by package steps, which says when that fails: blocks are then only numbered. Where
// ranges name the layers of some steps, the layers of other steps, such as replays of graphs, are
// inferred if their number agrees. Steps that run different MoE kernels (prefill and decode) are of
// different kinds; imbalance is over one of them, see imbalance.Times.OfKind. A reason to rely on none of
// this is a Doubt.
//
// What each piece of structure rests on, the strongest first:
//
//	steps   ranges of the hook, of engines or of the profiler; the order of layers; package steps
//	layers  ranges around the launch, or around the capture of its graph; PyTorch's annotations
//	        of graph nodes; modules on the stack; package steps
//	kinds   the batch that ranges name; MoE kernels; tokens; time outside the experts
//	ranks   see numberRanks
//
// Not found: the time of single experts in grouped kernels, and how much of a kernel that
// exchanges tokens and runs experts in one is work (see FusedExperts).
//
// Inference takes these passes over events. Each keeps what the one before found, or says why
// layers are unknown.
//
//   - By rank: launches are put in order and expert GEMMs into blocks; the steps of ranges
//     are taken if all but the outermost have equally many blocks, else those that marks show.
//   - Over ranks: a rank whose marks show no steps takes the steps of the others.
//   - By rank: steps that are not whole are dropped, and all of them where the rest holds
//     too little of the GPU time.
//   - Over ranks: steps are joined by when collectives end, else by clocks, and those that
//     all ranks recorded whole are kept.
//   - Over ranks: unless all now have the same numbers of layers and steps, and layers do
//     not carry the same load in pairs, nothing that is inferred is kept.
//
// A kernel's time takes seven forms on its way from a file to the max/mean of a layer, and two more to a sentence:
//
//	rows.Row or torchEvent  compare/capture: a row of SQLite, or an event of JSON
//	capture.Kernel          compare/capture: with its launch and its name
//	event                   exportsummary.go: with its location; a summary file holds it
//	imbalance.Sum           table.go: added up by location and name; in a Cell by rank, step, layer and phase
//	imbalance.Layer         the table Experts: expert time by step that counts and rank
//	router.Balance          max/mean over the ranks in a step
//	imbalance.Row           over the steps; tables print it
//	imbalance.Summary       over the layers
//	answer.Number           in words, with a unit and an interval; its Line is the sentence
//
// A gain goes another way from the event on: replay.Kernel, the segments of a replay, replay.Gain. Every gain is a
// replay.Gain: of even ranks and even tokens in Replay, and again in Bound, beside the loss of time that it answers.
//
// What a step takes has three numbers, which are not one:
//
//	wall time    StepTime.WallNS: from the beginning of a step to the beginning of the next
//	work         Cell, RankStep.WorkNS: kernel time outside collectives; streams side by side may add up to more
//	wait         Waiting.WaitNS: in collectives, last arrival − mean arrival: as a loss, a mean over all ranks
//
// Nothing is decided about two arms here; package diff does.
package trace

import (
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/router"
)

// Phase is a part of a step; package kernel owns the phases.
type Phase = kernel.Phase

// Cell is the kernel time of one rank, step, layer and phase, see package imbalance.
type Cell = imbalance.Cell

// location is where in the model a piece of work belongs.
type location = ranges.Location

// The phases, see package kernel.
const (
	PhaseRouter        = kernel.PhaseRouter
	PhaseDispatch      = kernel.PhaseDispatch
	PhaseExperts       = kernel.PhaseExperts
	PhaseCombine       = kernel.PhaseCombine
	PhaseAttention     = kernel.PhaseAttention
	PhaseOther         = kernel.PhaseOther
	PhaseCommunication = kernel.PhaseCommunication
	PhaseUnknown       = kernel.PhaseUnknown
)

// Phases lists all phases in the order of a layer's work, in which tables show
// them.
func Phases() []Phase { return slices.Clone(kernel.Phases) }

// NoID is the layer, step or expert of time that belongs to none; as an OptInt it is
// undefined.
const NoID = router.NoID

// Trace is what one or several exports say, reduced. Others rely on its JSON keys.
type Trace struct {
	SchemaVersion int                 `json:"schema_version"`
	Kind          string              `json:"kind"` // always "trace"
	Arm           string              `json:"arm"`  // normal, perfect, or empty where not all captures say
	ArmEvidence   string              `json:"arm_evidence"`
	World         router.OptInt       `json:"world_size"` // ranks of the whole run; undefined where not recorded
	Ranks         []Rank              `json:"ranks"`
	Exports       []Export            `json:"exports"`
	Coverage      Coverage            `json:"coverage"`
	Speeds        []Speed             `json:"speeds"`    // by rank; empty where not known
	Structure     *Structure          `json:"structure"` // where layers are inferred in any step, else null
	Kernels       []KernelStat        `json:"kernels"`
	Phases        []Cell              `json:"phases"` // by rank, layer and phase, over all steps
	Cells         []Cell              `json:"cells"`
	Experts       []ExpertStat        `json:"experts"`
	Hidden        Hidden              `json:"hidden"` // of all ranks
	Imbalance     []imbalance.Row     `json:"imbalance"`
	Overall       []imbalance.Summary `json:"overall"`
	StepTimes     []StepTime          `json:"step_times"`
	StepKinds     []StepKind          `json:"step_kinds"` // by number, see Cell.Kind
	Attention     *Attention          `json:"attention"`  // where ranks hold unequal tokens, else null
	RankSteps     []RankStep          `json:"rank_steps"` // without steps that count empty
	Replays       []Replay            `json:"replays"`    // of kinds with a tenth of the expert time
	Bound         Bound               `json:"bound"`
	Waiting       Waiting             `json:"waiting"` // at all collectives
	Warnings      []router.Warning    `json:"warnings"`

	times *imbalance.Times // of all cells, once they are whole
}

// WithCells copies the trace with these cells alone; what was computed from the others stays.
func (t *Trace) WithCells(cells []Cell) *Trace {
	part := *t
	part.Cells, part.times = cells, nil
	return &part
}

// SchemaVersion is the version of Trace's JSON.
const SchemaVersion = 5

// Coverage says how much of the GPU time the attribution reached. The shares
// are of GPUNS, in [0, 1], and undefined without GPU time.
type Coverage struct {
	GPUNS       int64         `json:"gpu_ns"`       // Σ of kernel durations
	LaunchShare router.Number `json:"launch_share"` // kernels whose launch row exists
	LayerShare  router.Number `json:"layer_share"`  // kernels placed in a layer
	ExpertShare router.Number `json:"expert_share"` // kernels placed in one expert, observed only
}

// Stats are statistics of kernels' durations, see package kernel.
type Stats = kernel.Stats

// KernelStat groups kernels by name over all ranks.
type KernelStat struct {
	Name    string `json:"name"`
	Phase   Phase  `json:"phase"`   // by the kernel's own name
	Library string `json:"library"` // likewise; empty where the name tells none
	// UnknownNS is the part of TotalNS that nothing places in a phase: no range, name, operator or position.
	UnknownNS int64 `json:"unknown_ns"`
	Placed    Phase `json:"placed"` // the phase that most of TotalNS is placed in
	Stats
}

// ExpertStat is the kernel time of one expert on one rank over all steps.
type ExpertStat struct {
	Rank   int             `json:"rank"`
	Layer  router.OptInt   `json:"layer"`
	Expert int             `json:"expert"`
	Basis  imbalance.Basis `json:"basis"`
	Slots  router.OptInt   `json:"slots"` // recorded load
	Stats
}

// ByPyTorch reports that PyTorch's profiler recorded any of it.
func (t *Trace) ByPyTorch() bool {
	return slices.ContainsFunc(t.Exports, func(e Export) bool { return strings.HasPrefix(e.SchemaVersion, "PyTorch") })
}

// Hidden are the launches of CUDA graphs in captures that recorded graphs whole
// (--cuda-graph-trace=graph). Their kernels, and with them their phases, are hidden: their time is in
// no other number of the trace.
type Hidden struct {
	Launches int64 `json:"launches"`
	NS       int64 `json:"total_ns"`
}
