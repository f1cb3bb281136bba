package nsys

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/capture"
)

// switchedOn reports whether a value switches a variable on. TensorRT-LLM takes
// "1" and nothing else; "true" leaves its router as it is.
func switchedOn(variable, value string) bool {
	if variable == capture.ArmVariables[0] {
		return value == "1"
	}
	return slices.Contains([]string{"1", "true", "True", "uniform_random"}, value)
}

// armOf says which arm a capture is of, and why.
func armOf(p *capture.Metadata) (arm, evidence string) {
	for _, name := range capture.ArmVariables {
		value, ok := p.Environment[name]
		switch {
		case ok && switchedOn(name, value):
			return "perfect", name + "=" + value
		case ok && evidence == "":
			arm, evidence = "normal", name+"="+value
		}
	}
	switch {
	case evidence != "":
		return arm, evidence
	case p.Variables > 0: // absence proves nothing: other engines have other switches
		return "", fmt.Sprintf("no router switch is among the %d recorded environment variables", p.Variables)
	}
	return "", "no environment recorded"
}

// ReadArm is the arm of a file by its environment: the Arm that Read would give its
// Trace. It reads no event.
func ReadArm(ctx context.Context, path string, o Options) (arm string, err error) {
	if IsSummary(path) {
		return summaryArm(path)
	}
	p, err := capture.ReadMetadata(ctx, path, capture.Options{Converter: o.Converter})
	if err != nil {
		return "", err
	}
	arm, _ = armOf(p)
	return arm, nil
}

func summaryArm(path string) (arm string, err error) {
	err = inSummary(path, func(r io.Reader) error {
		head, _, err := summaryHead(r)
		var arms []string
		for _, e := range head.Exports {
			arms = append(arms, e.Arm)
		}
		arm = sharedArm(arms)
		return err
	})
	return arm, err
}

// MixedArms is the arm of exports that are of different ones.
const MixedArms = "mixed"

// sharedArm is the arm that all are of, or MixedArms.
func sharedArm(arms []string) string {
	switch arms = slices.Compact(slices.Sorted(slices.Values(arms))); len(arms) {
	case 0:
		return ""
	case 1:
		return arms[0]
	}
	return MixedArms
}

// arm is the arm all exports agree on, or mixed.
func (r *reduction) arm() {
	var arms []string
	for _, d := range r.exports {
		arms = append(arms, d.arm)
	}
	r.trace.Arm, r.trace.ArmEvidence = sharedArm(arms), r.exports[0].armEvidence
	if r.trace.Arm == MixedArms {
		r.trace.ArmEvidence = "the exports are of different arms"
		r.warn("mixed_arms", "", "the exports are of different arms, and their times are mixed: pass one arm at a time")
		return
	}
	if slices.ContainsFunc(r.exports, func(d *exportSummary) bool { return d.armEvidence != r.trace.ArmEvidence }) {
		r.trace.ArmEvidence = "the environment recorded in each export"
	}
}
