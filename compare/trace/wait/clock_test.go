package wait

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
)

// Clocks that run up to 30 millionths slower or 12 faster are brought together: the ranks wait as if
// they were one.
func TestClocksThatDrift(t *testing.T) {
	run := func(drift float64) Result {
		in := inputOf(steps(50, func(step, rank int, r *recorder) {
			if step == 37 && rank == 1 {
				r.idle(3000)
			}
		}))
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
		}
		return Of(in)
	}
	even := run(0)
	for drift, allowed := range map[float64]float64{0: 0, 4e-6: 3e4, -10e-6: 6e4} {
		r := run(drift)
		for i, l := range r.Alignment {
			if math.Abs(l.DriftPPM+1e6*drift*float64(i)) > 0.2 || !(l.ResidualNS <= 20) {
				t.Errorf("drift %v: have %+v", drift, l)
			}
		}
		for i, c := range r.Collectives {
			if d := float64(c.WaitNS - even.Collectives[i].WaitNS); math.Abs(d) > allowed {
				t.Errorf("drift %v: have %+v, want %v", drift, c, even.Collectives[i].WaitNS)
			}
		}
	}
}

// Ranks of a tensor-parallel group wait for each other before they meet the other groups: a
// collective of four is none of sixteen.
func TestGroupsOfRanks(t *testing.T) {
	var ranks []*recorder
	for range 16 {
		ranks = append(ranks, &recorder{})
	}
	meet(ranks)
	for step := int32(1); step <= 20; step++ {
		for i, r := range ranks {
			r.step = step
			r.run(attention, kernel.PhaseAttention, 1000+int64(i/4)*100)
		}
		for g := range 4 {
			group := ranks[4*g : 4*g+4]
			meet(group)
			for i, r := range group {
				k := &r.kernels[len(r.kernels)-1]
				k.Name, k.Phase = gather, kernel.PhaseCommunication
				r.run(small, kernel.PhaseExperts, []int64{7, 3, 0, 5}[i])
			}
		}
		meet(ranks)
	}
	if r := Of(inputOf(ranks)); r.Alignment[5].Collectives != 21 { // the first is before the steps
		t.Errorf("have %+v", r.Alignment)
	}
}
