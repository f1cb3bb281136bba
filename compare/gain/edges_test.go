package gain

import "testing"

func TestStepTimeInNanoseconds(t *testing.T) {
	if ns := (Metric{Name: "step_time_mean", Unit: "ms"}).StepNS(2.5, 0); ns != 2.5e6 {
		t.Errorf("2.5 ms are %v ns", ns)
	}
}
