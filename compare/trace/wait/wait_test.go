package wait

import (
	"math"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// The kernels of the tests.
var names = []string{"nccl", "gemm_64x64", "gemm_128x64", "attention", "gather"}

const (
	reduce = iota
	small
	large
	attention
	gather
)

// recorder writes down what one rank does.
type recorder struct {
	now     int64
	step    int32
	kernels []Kernel
}

func (r *recorder) idle(ns int64) { r.now += ns }

// run is a kernel that lasts so long, the next one begins after it.
func (r *recorder) run(name int32, phase kernel.Phase, ns int64) {
	r.kernels = append(r.kernels, Kernel{Start: r.now, End: r.now + ns, Step: r.step, Layer: 4, Phase: phase, Name: name})
	r.now += ns
}

// meet is a collective that the ranks leave at the same time.
func meet(ranks []*recorder) {
	leave := int64(0)
	for _, r := range ranks {
		leave = max(leave, r.now+10)
	}
	for _, r := range ranks {
		r.kernels = append(r.kernels, Kernel{Start: r.now, End: leave, Step: r.step, Layer: 4,
			Phase: kernel.PhaseCombine, Name: reduce, Collective: true})
		r.now = leave
	}
}

func inputOf(ranks []*recorder) Input {
	in := Input{Names: names, Steps: map[int32]bool{}}
	for i, r := range ranks {
		slices.SortStableFunc(r.kernels, func(a, b Kernel) int { return int(a.Start - b.Start) })
		for _, k := range r.kernels {
			in.Steps[k.Step] = k.Step > 0 // step 0 is warm-up
		}
		in.Ranks = append(in.Ranks, Rank{Number: i, Session: 1, Kernels: slices.Values(r.kernels)})
	}
	return in
}

func near(t *testing.T, what string, have router.Number, want float64) {
	t.Helper()
	if math.Abs(float64(have)-want) > 1e-6 {
		t.Errorf("%s: have %v, want %v", what, have, want)
	}
}

// steps of four ranks, each with experts of its own length.
func steps(n int, change func(step, rank int, r *recorder)) []*recorder {
	ranks := []*recorder{{}, {}, {}, {}}
	meet(ranks)
	for step := 1; step <= n; step++ {
		for i, r := range ranks {
			r.step = int32(step)
			r.run(small, kernel.PhaseExperts, int64(1000+100*i))
			change(step, i, r)
		}
		meet(ranks)
	}
	return ranks
}

func unchanged(int, int, *recorder) {}

// Ranks leave together, and arrive 300, 200, 100 and 0 before the last: that is their wait, and 10 the
// transfer.
func TestWaitAndTransfer(t *testing.T) {
	for i, c := range Of(inputOf(steps(5, unchanged))).Collectives {
		near(t, "wait", c.CountedWaitNS, float64(5*(300-100*i)))
		near(t, "transfer", c.CountedTransferNS, 5*10)
	}
}

// Nothing is said of ranks whose collectives are not those of the others.
func TestWaitingIsUnknown(t *testing.T) {
	for what, change := range map[string]func(*Input){
		"one rank":          func(in *Input) { in.Ranks = in.Ranks[:1] },
		"a rank is missing": func(in *Input) { in.World = 4 },
		"no session":        func(in *Input) { in.Ranks[0].Report, in.Ranks[0].Session = 1, 0 },
		"other collectives": func(in *Input) {
			in.Ranks[1].Kernels = slices.Values(
				slices.Collect(in.Ranks[0].Kernels)[1:2])
		},
	} {
		in := inputOf(steps(3, unchanged)[:3])
		change(&in)
		r := Of(in)
		known := slices.ContainsFunc(r.Collectives, func(c Collective) bool { return c.WaitNS.Defined() })
		if known || len(r.Warnings) != 1 || r.Warnings[0].Code != "no_wait" {
			t.Errorf("%s: have %+v, %v", what, r.Collectives, r.Warnings)
		}
	}
}
