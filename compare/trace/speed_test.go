package trace

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Rank 1 takes 1.3 and 1.031 times as long as the mean, or as long as healthy ranks do.
func TestSlowGPU(t *testing.T) {
	for _, c := range []struct {
		speeds []float64
		by     float64
		ok     bool
	}{
		{[]float64{0.7, 1.3}, 1.3/0.7 - 1, true},
		{[]float64{0.99, 1.03, 0.99, 0.99}, 1.03/0.99 - 1, true},
		{[]float64{0.971, 1.029}, 1.029/0.971 - 1, false},
		{[]float64{1}, 0, false},
	} {
		trace := &Trace{}
		for rank, s := range c.speeds {
			trace.Speeds = append(trace.Speeds, Speed{rank, router.Number(s)})
		}
		rank, by, ok := trace.SlowGPU()
		if ok != c.ok || ok && rank != 1 || math.Abs(float64(by)-c.by) > 1e-9 {
			t.Errorf("%v: rank %d by %v, %t", c.speeds, rank, by, ok)
		}
	}
}

// A second stream multiplies matrices on rank 1's GPU all the time, or another process does, or
// nothing: testdata/field/README.md. The kernels of that stream are none that rank 0 lost.
func TestSlowGPUOfCaptures(t *testing.T) {
	for pattern, slow := range map[string]bool{"slow-gpu.normal": true, "slow-gpu.perfect": true, "shared.normal": true,
		"healthy.normal": false, "late-host.normal": false, "middle-late-host.normal": false} {
		paths, _ := filepath.Glob(filepath.Join(testdata, "field/results/transformers-two-h200", pattern+".rank?.json.gz"))
		trace := mustRead(t, Options{Threshold: 0.1}, paths...)
		if rank, by, ok := trace.SlowGPU(); ok != slow || ok && rank != 1 || trace.Doubt().Code != "" {
			t.Errorf("%s: rank %d by %v, %t; doubt %v", pattern, rank, by, ok, trace.Doubt())
		}
	}
}
