// Package kernel says what a kernel's name means: its phase in a MoE layer, the
// library it comes from, and whether it is a collective or a GEMM of experts. Rules
// stand in one table (rules.go), each with its source; the first that matches decides.
//
// A name is one kind of evidence. Package ranges below reads two others, the ranges and the operators around a launch,
// and package steps a third, the order of launches; package trace weighs them. A kernel is a name here and a Class:
// its times are in capture.Kernel, and statistics of durations (Stats, Busy) know no kernel.
package kernel

import "strings"

// Phase is a part of a step. Reports, flags and JSON use these names.
type Phase string

// The phases. Unknown is kernel time that neither a range nor a kernel name
// places; it is reported, never hidden.
const (
	PhaseRouter        Phase = "router"
	PhaseDispatch      Phase = "dispatch"
	PhaseExperts       Phase = "experts"
	PhaseCombine       Phase = "combine"
	PhaseAttention     Phase = "attention"
	PhaseOther         Phase = "other compute"
	PhaseCommunication Phase = "communication"
	PhaseUnknown       Phase = "unknown"
)

// Phases are all phases in the order of a layer's work, in which tables list them.
var Phases = []Phase{PhaseAttention, PhaseRouter, PhaseDispatch, PhaseExperts, PhaseCombine, PhaseOther,
	PhaseCommunication, PhaseUnknown}

// Routed are the phases of routed tokens.
var Routed = []Phase{PhaseRouter, PhaseDispatch, PhaseExperts, PhaseCombine}

// phaseWords are the words for phases, letter case aside.
var phaseWords = map[string]Phase{
	"router": PhaseRouter, "gate": PhaseRouter, "routing": PhaseRouter, "topk": PhaseRouter,
	"dispatch": PhaseDispatch, "permute": PhaseDispatch,
	"experts": PhaseExperts, "expert": PhaseExperts, "moe": PhaseExperts,
	"combine": PhaseCombine, "finalize": PhaseCombine, "unpermute": PhaseCombine,
	"attention": PhaseAttention, "attn": PhaseAttention, "mla": PhaseAttention,
	"other": PhaseOther, "communication": PhaseCommunication,
}

// PhaseOf reads a word; an unknown one gives no phase.
func PhaseOf(word string) Phase { return phaseWords[strings.ToLower(word)] }
