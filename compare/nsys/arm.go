package nsys

import (
	"context"
	"fmt"
	"io"
	"slices"

	"zombiezen.com/go/sqlite"
)

// ArmVariables are the switches of balanced routing that tell a capture's arm,
// by engine: TensorRT-LLM, SGLang (two), vLLM.
var ArmVariables = []string{
	"ENABLE_PERFECT_ROUTER", "SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS", "SGLANG_SIMULATE_UNIFORM_EXPERTS", "VLLM_MOE_ROUTING_SIMULATION_STRATEGY",
}

// switchedOn reports whether a value switches a variable on. TensorRT-LLM takes
// "1" and nothing else; "true" leaves its router as it is.
func switchedOn(variable, value string) bool {
	if variable == ArmVariables[0] {
		return value == "1"
	}
	return slices.Contains([]string{"1", "true", "True", "uniform_random"}, value)
}

// arm says which arm a capture is of, and why.
func (p *probe) arm() (arm, evidence string) {
	for _, name := range ArmVariables {
		value, ok := p.environment[name]
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
	case p.environments > 0:
		return "normal", fmt.Sprintf("%s is not among the %d recorded environment variables", ArmVariables[0], p.environments)
	}
	return "", "no environment recorded"
}

// ReadArm is the Arm that Read would give the Trace of the file by itself. It
// reads only what the file says about its environment, and no event.
func ReadArm(ctx context.Context, path string, o Options) (arm string, err error) {
	switch {
	case isSummary(path):
		return summaryArm(path)
	case isTorchTrace(path):
		arm, _ = new(probe).arm() // the format has no place for an environment
		return arm, nil
	}
	export, err := o.exportOf(ctx, path)
	if err != nil {
		return "", err
	}
	db, err := openDatabase(ctx, export)
	if err != nil {
		return "", err
	}
	var p probe
	err = db.each(ctx, func(_ context.Context, conn *sqlite.Conn) error { return p.follow(conn, db, p.readCaptureData) })
	arm, _ = p.arm()
	return arm, err
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
	for _, d := range r.digests {
		arms = append(arms, d.arm)
	}
	r.trace.Arm, r.trace.ArmEvidence = sharedArm(arms), r.digests[0].armEvidence
	if r.trace.Arm == MixedArms {
		r.trace.ArmEvidence = "the exports are of different arms"
		r.warn("mixed_arms", "", "the exports are of different arms: times of both are taken together")
		return
	}
	if slices.ContainsFunc(r.digests, func(d *digest) bool { return d.armEvidence != r.trace.ArmEvidence }) {
		r.trace.ArmEvidence = "the environment recorded in each export"
	}
}
