package nsys

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/capture"
)

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
	arm, _ = p.Arm()
	return arm, nil
}

func summaryArm(path string) (arm string, err error) {
	err = inSummary(path, func(r io.Reader) error {
		head, _, err := summaryHead(r)
		if len(head.Exports) > 0 {
			arm = head.Exports[0].Arm
		}
		if slices.ContainsFunc(head.Exports, func(e summaryExport) bool { return e.Arm != arm }) {
			arm = "" // some do not say
		}
		return err
	})
	return arm, err
}

// arm is the arm of all exports; unknown where some of them do not say. oneArm has
// refused those of both.
func (r *reduction) arm() {
	first := r.exports[0]
	r.trace.Arm, r.trace.ArmEvidence = first.arm, first.armEvidence
	said := 0
	for _, d := range r.exports {
		if d.arm != "" {
			said++
		}
		if d.armEvidence != first.armEvidence {
			r.trace.ArmEvidence = "the environment recorded in each export"
		}
	}
	if said < len(r.exports) && said > 0 {
		r.trace.Arm, r.trace.ArmEvidence = "", fmt.Sprintf("only %d of %d exports record the arm", said, len(r.exports))
	}
}
