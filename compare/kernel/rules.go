package kernel

import (
	_ "embed" // of the rules
	"strings"

	"github.com/moebalance/moebalance/compare/steps"
)

// Quantizing is the library of activations and quantizations, which prepare what the GEMM
// behind them reads.
const Quantizing = "activation and quantization"

// classes are what rules call the classes of kernels; the last ones fuse several phases.
var classes = map[string]Class{
	"routing":      {Phase: PhaseRouter},
	"topK":         {Phase: PhaseUnknown, Launch: steps.Launch{Anchor: steps.Router}}, // of experts or of anything else
	"dispatch":     {Phase: PhaseDispatch},
	"sends":        {Phase: PhaseDispatch, Collective: true},
	"experts":      {Phase: PhaseExperts},
	"gemm":         {Phase: PhaseExperts, GEMM: true},
	"combine":      {Phase: PhaseCombine},
	"returns":      {Phase: PhaseCombine, Collective: true},
	"attention":    {Phase: PhaseAttention},
	"other":        {Phase: PhaseOther},
	"collective":   {Phase: PhaseCommunication, Collective: true},
	"unknown":      {Phase: PhaseUnknown},
	"mayBeExperts": {Phase: PhaseUnknown, MayBeExperts: true},

	"allOfMoE":        {Phase: PhaseExperts, Collective: true, Fused: []Phase{PhaseDispatch, PhaseExperts, PhaseCombine}},
	"routingAndMoE":   {Phase: PhaseExperts, Collective: true, Fused: []Phase{PhaseRouter, PhaseExperts}},
	"combineAndShare": {Phase: PhaseCombine, Collective: true, Fused: []Phase{PhaseCombine, PhaseCommunication}},
}

// rulesText is the classifier, as its head explains.
//
//go:embed rules.txt
var rulesText string

// kernelRules are the rules of rulesText, in order.
var kernelRules = func() (rules []kernelRule) {
	for line := range strings.Lines(rulesText) {
		if fields := strings.Split(strings.TrimSpace(line)+"\t", "\t"); line[0] != '#' && line[0] != '\t' && len(fields) > 3 {
			rules = append(rules, kernelRule{classes[fields[0]], fields[1], fields[2], fields[3]})
		}
	}
	return rules
}()
