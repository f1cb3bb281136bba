package source

import (
	"context"
	"testing"
)

// Captures of a launch that switched its router hold both arms: a report has a trace of each, and their comparison.
func TestOneCaptureOfBothArms(t *testing.T) {
	const folder = "../../testdata/field/results/vllm-two-h200-quantized/fp8-triton/pair0"
	_, sides, err := ReadArms([]string{folder}, nil)
	if err != nil || sides[0].Arm != "normal" || sides[1].Arm != "perfect" {
		t.Fatalf("%+v, %v", sides, err)
	}
	items, err := Gather(context.Background(), []string{folder}, nil,
		func([]string) (func(int64), func()) { return func(int64) {}, func() {} })
	if err != nil || len(items) != 3 || items[0].Trace.Arm != "normal" || items[1].Trace.Arm != "perfect" ||
		!items[2].Compared.Comparable || items[2].Compared.Normal.Evidence != "the hook's ranges of steps" {
		t.Errorf("a report has %+v, %v", items, err)
	}
}
