package wait

import (
	"math"
	"testing"
)

// Clocks that run up to 150 millionths slower or 60 faster are brought together: the ranks wait as if
// they were one, and the late rank is found.
func TestClocksThatDrift(t *testing.T) {
	run := func(drift float64) Result {
		in := sixteen(func(step, rank int, r *recorder) {
			if step == 37 && rank == 11 {
				r.idle(3000, 2990)
			}
		})
		for i := range in.Ranks {
			r := &in.Ranks[i]
			skewed := func(at int64) int64 {
				at *= 1000 // µs
				return at + int64(math.Round(1e6*float64(i)+drift*float64(i)*float64(at)))
			}
			kernels := r.Kernels
			r.Report, r.Kernels = i, func(yield func(Kernel) bool) {
				for k := range kernels {
					k.Start, k.End = skewed(k.Start), skewed(k.End)
					if !yield(k) {
						return
					}
				}
			}
			for k := range r.Late {
				r.Late[k].At = skewed(r.Late[k].At)
			}
		}
		in.StepNS *= 1000
		return Of(in)
	}
	even := run(0)
	for drift, allowed := range map[float64]float64{0: 0, 4e-6: 300, -10e-6: 600} {
		r := run(drift)
		for i, l := range r.Alignment {
			if math.Abs(l.DriftPPM+1e6*drift*float64(i)) > 0.2 || !(l.ResidualNS <= 20) {
				t.Errorf("drift %v: have %+v", drift, l)
			}
		}
		if d := float64(r.Waiting.WaitNS - even.Waiting.WaitNS); math.Abs(d) > allowed || len(r.Waiting.Late) != 1 {
			t.Errorf("drift %v: have %+v, want %v", drift, r.Waiting, even.Waiting.WaitNS)
		}
	}
}
