package wait

import (
	"math"
	"math/rand/v2"
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
	late    []Late
	waited  Late
}

func (r *recorder) idle(ns, host int64) {
	r.now += ns
	r.waited.NS += host
}

// run is a kernel that lasts so long, the next one begins after it.
func (r *recorder) run(name int32, phase kernel.Phase, ns int64) {
	r.beside(name, phase, 0, ns)
	r.now += ns
}

// beside is a kernel on another stream, that begins so much later.
func (r *recorder) beside(name int32, phase kernel.Phase, later, ns int64) {
	r.kernels = append(r.kernels, Kernel{Start: r.now + later, End: r.now + later + ns, Step: r.step, Layer: 4,
		Phase: phase, Name: name, Expert: phase == kernel.PhaseExperts})
}

// meet is a collective that the ranks leave at the same time.
func meet(ranks []*recorder) {
	leave := int64(0)
	for _, r := range ranks {
		leave = max(leave, r.now+10)
	}
	for _, r := range ranks {
		r.waited.At = r.now
		r.late, r.waited = append(r.late, r.waited), Late{}
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
		in.Ranks = append(in.Ranks, Rank{Number: i, Session: 1, Kernels: slices.Values(r.kernels), Late: r.late})
	}
	return in
}

func near(t *testing.T, what string, have router.Number, want float64) {
	t.Helper()
	if math.Abs(float64(have)-want) > 1e-6 {
		t.Errorf("%s: have %v, want %v", what, have, want)
	}
}

// Three ranks leave a collective at 10 and arrive at the next at 10 + 100 + 5,
// 10 + 160 + 5 and 10 + 90 + 30 + 80: rank 2, with least expert work, arrives last at
// 210. The mean is (115 + 175 + 210)/3 = 166⅔, so the mean wait 43⅓. Rank 2 has 90
// − 116⅔ of expert time, 30 − 10 of other compute and 80 − 10/3 of idle time, of which
// 70 by the host.
func lateRank() []*recorder {
	ranks := []*recorder{{}, {}, {}}
	meet(ranks)
	for step := range int32(3) {
		for i, r := range ranks {
			r.step = step
			r.run(small, kernel.PhaseExperts, []int64{100, 160, 90}[i])
			if i == 2 {
				r.run(attention, kernel.PhaseAttention, 30)
			}
			r.idle([]int64{5, 5, 80}[i], []int64{0, 0, 70}[i])
		}
		meet(ranks)
	}
	return ranks
}

func TestWaitIsForTheLast(t *testing.T) {
	w := Of(inputOf(lateRank())).Waiting
	if w.Ranks[0].Rank != 2 || w.Ranks[0].LastSteps != 2 || w.Steps != 2 || len(w.Ranks) != 1 || w.Name != LateHosts {
		t.Errorf("have %+v", w)
	}
	near(t, "wait", w.WaitNS, 200-470.0/3)
	near(t, "expert load", w.Parts.ExpertNS, 90-350.0/3)
	near(t, "other compute", w.Parts.OtherNS, 20)
	near(t, "host", w.Parts.HostNS, 70-70.0/3)
	near(t, "unexplained: 10 idle, and 5 of the others", w.Parts.UnexplainedNS, 10-20.0/3)
	if b := w.Blocks; b.Layers != 1 || b.WaitNS != w.WaitNS || b.HostNS != w.Parts.HostNS || !w.MostlyHosts() {
		t.Errorf("behind the experts of the only layer: have %+v", b)
	}
	blind := inputOf(lateRank())
	blind.Ranks[0].Late = nil
	if w = Of(blind).Waiting; w.Parts.HostNS.Defined() || w.MostlyHosts() {
		t.Errorf("a rank without launches: have %+v", w.Parts)
	}
	near(t, "unexplained holds the host's part", w.Parts.UnexplainedNS, 80-90.0/3)
}

// Rank 1 runs its experts from 10 to 110 and beside them a gather from 60 to 160, of
// which the last 50 count, and another from 100 to 170, of which 10 do. Rank 0 runs
// experts for 40 and is idle for 110.
func TestOverlappingKernelsCountOnce(t *testing.T) {
	ranks := []*recorder{{}, {}}
	meet(ranks)
	for step := range int32(2) {
		ranks[0].step, ranks[1].step = step, step
		ranks[0].run(small, kernel.PhaseExperts, 40)
		ranks[0].idle(110, 0)
		ranks[1].beside(gather, kernel.PhaseDispatch, 50, 100)
		ranks[1].beside(gather, kernel.PhaseDispatch, 90, 70)
		ranks[1].run(small, kernel.PhaseExperts, 100)
		ranks[1].idle(60, 0)
		meet(ranks)
	}
	w := Of(inputOf(ranks)).Waiting
	near(t, "wait", w.WaitNS, 10.0/2)
	near(t, "experts", w.Parts.ExpertNS, 60.0/2)
	near(t, "beside them", w.Parts.OtherNS, 60.0/2)
	near(t, "idle", w.Parts.UnexplainedNS, -110.0/2)
}

// random ranks run overlapping kernels on several streams.
func random(seed uint64) []*recorder {
	rng := rand.New(rand.NewPCG(seed, 0))
	ranks := []*recorder{{}, {}, {}, {}}
	meet(ranks)
	for step := range int32(4) {
		for i, r := range ranks {
			r.step = step
			for range 5 {
				r.beside(gather, kernel.PhaseDispatch, rng.Int64N(2e5), 1+rng.Int64N(6e5))
				r.run(small, kernel.PhaseExperts, 1+rng.Int64N(1e6))
				ns := rng.Int64N(5e5)
				r.idle(ns, rng.Int64N(ns+1))
			}
			for range i + 1 { // of a part of the ranks
				r.beside(reduce, kernel.PhaseDispatch, rng.Int64N(2e5), 1+rng.Int64N(6e5))
				r.kernels[len(r.kernels)-1].Collective = true
			}
			r.now += 1e6 // every kernel ends
		}
		meet(ranks)
	}
	return ranks
}

func parts(w Waiting) []router.Number {
	return []router.Number{w.Parts.ExpertNS, w.Parts.OtherNS, w.Parts.HostNS, w.Parts.UnexplainedNS}
}

func TestLawsOfWaiting(t *testing.T) {
	for seed := range uint64(20) {
		w := Of(inputOf(random(seed))).Waiting
		sum := router.Number(0)
		for _, p := range parts(w) {
			sum += p
		}
		near(t, "the sum of the parts", sum, float64(w.WaitNS))

		turned := random(seed)
		slices.Reverse(turned)
		other := Of(inputOf(turned)).Waiting
		for i, p := range parts(other) {
			near(t, "ranks in another order", p, float64(parts(w)[i]))
		}

		shifted := random(seed)
		for i := range shifted[2].kernels {
			shifted[2].kernels[i].Start += 1e9
			shifted[2].kernels[i].End += 1e9
		}
		for i := range shifted[2].late {
			shifted[2].late[i].At += 1e9
		}
		in := inputOf(shifted)
		in.Ranks[2].Report = 1
		for i, p := range parts(Of(in).Waiting) {
			near(t, "a clock that is ahead", p, float64(parts(w)[i]))
		}
	}
}

// A rank that idles 1 ms more before every collective waits for nobody; of 4 ranks the
// mean arrives ¼ ms later, so that ¾ ms are its host's, or unexplained.
func TestIdleTimeMovesOnePart(t *testing.T) {
	with := func(host int64) []router.Number {
		ranks := []*recorder{{}, {}, {}, {}}
		meet(ranks)
		for step := range int32(3) {
			for i, r := range ranks {
				r.step = step
				r.run(attention, kernel.PhaseAttention, int64(10*i))
				r.run(small, kernel.PhaseExperts, int64(100+50*i))
			}
			if host >= 0 {
				ranks[3].idle(1e6, host)
			}
			meet(ranks)
		}
		return parts(Of(inputOf(ranks)).Waiting)
	}
	plain := with(-1)
	for host, part := range map[int64]int{1e6: 2, 0: 3} {
		for i, p := range with(host) {
			want := float64(plain[i])
			if i == part {
				want += 0.75e6
			}
			near(t, "part", p, want)
		}
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
		in := inputOf(lateRank())
		change(&in)
		if r := Of(in); r.Waiting.WaitNS.Defined() || len(r.Warnings) != 1 || r.Warnings[0].Code != "no_wait" {
			t.Errorf("%s: have %+v, %v", what, r.Waiting, r.Warnings)
		}
	}
}
