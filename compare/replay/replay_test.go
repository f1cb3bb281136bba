package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/testdata/require"
)

// plan is a kernel of a made run: what it is and how long it takes; a collective's duration is
// its transfer.
type plan struct {
	Kernel
	ns   int64
	hold int64 // of the host before its launch
}

// Latencies of the made runs.
const (
	launchNS = 4000
	gapNS    = 1000
)

// simulate lets hosts launch a kernel every so many nanoseconds, GPUs run them in order, and
// ranks of a group meet; group gives each rank its group, and all begin at 0.
func simulate(ranks [][]plan, group []int, every int64) Step {
	s := Step{Ranks: make([][]Kernel, len(ranks)), Free: make([]int64, len(ranks))}
	host, free, at := make([]int64, len(ranks)), make([]int64, len(ranks)), make([]int, len(ranks))
	begin := func(r int) int64 { // of the next kernel
		p := ranks[r][at[r]]
		return max(host[r]+every+p.hold+launchNS, free[r]+gapNS)
	}
	run := func(r int, end int64) {
		p, k := ranks[r][at[r]], ranks[r][at[r]].Kernel
		k.Start, host[r], k.Waited = begin(r), host[r]+every+p.hold, None
		k.Launch, k.End = host[r], end
		s.Ranks[r] = append(s.Ranks[r], k)
		free[r] = end
		at[r]++
	}
	meets := func(r int) bool { return at[r] < len(ranks[r]) && ranks[r][at[r]].Collective != None }
	for {
		for r := range ranks {
			for at[r] < len(ranks[r]) && !meets(r) {
				run(r, begin(r)+ranks[r][at[r]].ns)
			}
		}
		moved := false
		for g := range ranks {
			last := int64(-1)
			for r := range ranks {
				if group[r] == g && meets(r) {
					last = max(last, begin(r)+ranks[r][at[r]].ns)
				}
			}
			for r := range ranks {
				if group[r] == g && meets(r) {
					run(r, last)
					moved = true
				}
			}
		}
		if !moved {
			return s
		}
	}
}

// made is a step of some layers on four ranks whose experts take the times of ns, with work
// before and behind them.
func made(ns [][4]int64, hold int64) (ranks [][]plan) {
	ranks = make([][]plan, 4)
	for layer, experts := range ns {
		for r := range ranks {
			ranks[r] = append(ranks[r],
				plan{Kernel{Layer: int32(layer), Collective: None, Class: Tokens}, 50e3, hold},
				plan{Kernel{Layer: int32(layer), Collective: None, Class: Experts}, experts[r], 0},
				plan{Kernel{Layer: int32(layer), Collective: None, Class: Fixed}, 20e3, 0},
				plan{Kernel{Layer: int32(layer), Collective: 7, Class: Fixed}, 30e3, 0})
		}
	}
	return ranks
}

// length is how long a simulated step takes.
func length(s Step) float64 {
	last := int64(0)
	for _, kernels := range s.Ranks {
		last = max(last, kernels[len(kernels)-1].End)
	}
	return float64(last)
}

// replayOf prepares steps.
func replayOf(t *testing.T, steps ...Step) *Run {
	t.Helper()
	run := New(steps)
	if run == nil {
		t.Fatal("the steps cannot be replayed")
	}
	return run
}

var oneGroup = []int{0, 0, 0, 0}

// By hand: the experts of two layers take 100 and 300 µs on the busy rank and 200 on the mean
// one. Where launches are early, even ranks save the difference, and a layer has 50, 20 and
// 30 µs and four gaps of 1 µs beside. Of tokens the busy rank has 90 µs and the mean one 60, in each layer.
func TestEvenRanksByHand(t *testing.T) {
	plans := made([][4]int64{{300e3, 100e3, 200e3, 200e3}, {100e3, 200e3, 200e3, 300e3}}, 0)
	plans[0][0].ns, plans[3][4].ns = 90e3, 90e3
	step := simulate(plans, oneGroup, 10)
	run := replayOf(t, step, step, step)
	recorded, gain := length(step), run.EvenRanks()
	require.Near(t, "recorded", run.StepNS, recorded, 0)
	require.Near(t, "saved", gain.SavedNS, 200e3, 1)
	require.Near(t, "left", float64(gain.LeftNS), recorded-200e3, 10e3)
	require.Near(t, "gain", gain.Estimate, 200e3/float64(gain.LeftNS), 1e-9)
	require.Near(t, "above it is the law's error", float64(gain.High-gain.Estimate), math.Abs(run.Law), 1e-4)
	require.Near(t, "experts", run.ExpertsNS(), 3*400e3, 1e-3)
	none := func(int) map[int32][]float64 { return nil }
	even := func(int) map[int32][]float64 { return map[int32][]float64{0: {-0.5, 0.5, 0, 0}, 1: {0.5, 0, 0, -0.5}} }
	require.Near(t, "saved by even loads", run.Shift(none, even).SavedNS, float64(gain.SavedNS), 1)
	require.Near(t, "saved by even tokens", run.EvenTokens().SavedNS, 60e3, 1)
}

// Shared experts that a rank runs for its own tokens, before ranks exchange them, do not follow the load behind: even
// ranks save as much with these as without.
func TestSharedExpertsBeforeExchange(t *testing.T) {
	plans := made([][4]int64{{300e3, 100e3, 200e3, 200e3}, {100e3, 200e3, 200e3, 300e3}}, 0)
	for r := range plans {
		for _, at := range []int{5, 1} {
			shared := Kernel{Layer: int32(at / 4), Collective: None, Class: Experts, Beside: true}
			plans[r] = slices.Insert(plans[r], at, plan{shared, 80e3, 0}, plan{Kernel{Collective: 8, Class: Fixed}, 30e3, 0})
		}
	}
	step := simulate(plans, oneGroup, 10)
	require.Near(t, "saved", replayOf(t, step, step, step).EvenRanks().SavedNS, 200e3, 1)
}

// Against a simulation of what is asked: loads drawn at random, hosts from fast to slower than
// the GPUs, clocks apart. The replay of even ranks takes as long as the simulation of even
// loads, also where it gains nothing since hosts are late.
func TestAgainstSimulation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, every := range []int64{1e3, 20e3, 60e3, 200e3} {
		var steps []Step
		var even, recorded float64
		for range 4 {
			ns := make([][4]int64, 12)
			mean := make([][4]int64, 12)
			for layer := range ns {
				for r := range 4 {
					ns[layer][r] = 100e3 + rng.Int64N(150e3)
				}
				m := (ns[layer][0] + ns[layer][1] + ns[layer][2] + ns[layer][3]) / 4
				mean[layer] = [4]int64{m, m, m, m}
			}
			step := simulate(made(ns, 0), oneGroup, every)
			recorded += length(step)
			even += length(simulate(made(mean, 0), oneGroup, every))
			for r := range step.Ranks {
				for i := range step.Ranks[r] {
					k := &step.Ranks[r][i]
					k.Start, k.End, k.Launch = k.Start+int64(r)*1e9, k.End+int64(r)*1e9, k.Launch+int64(r)*1e9
				}
				step.Free[r] += int64(r) * 1e9
			}
			steps = append(steps, step)
		}
		run := replayOf(t, steps...)
		require.Near(t, "law", run.Law, 0, 0.002)
		require.Near(t, "gain", float64(run.EvenRanks().Estimate), recorded/even-1, 0.005)
		if truth := recorded/even - 1; every == 200e3 && truth > 0.001 {
			t.Errorf("a host of %d ns a launch leaves a gain of %v", every, truth)
		}
	}
}

// Ranks that do not meet do not wait for each other: two groups with one busy rank each are
// even by themselves, whatever the other group does.
func TestGroups(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	ns := make([][4]int64, 20)
	for layer := range ns {
		a, b := 100e3+rng.Int64N(200e3), 100e3+rng.Int64N(200e3)
		ns[layer] = [4]int64{a, a, b, b}
	}
	step := simulate(made(ns, 0), []int{0, 0, 2, 2}, 10)
	run := replayOf(t, step, step)
	if have := run.steps[0].meetings.group; !slices.Equal(have, []int{0, 0, 2, 2}) {
		t.Errorf("groups %v", have)
	}
	require.Near(t, "gain of groups that are even", run.EvenRanks().Estimate, 0, 1e-9)
	if !run.Split() {
		t.Error("not split")
	}
}

// Ranks meet that leave collectives within 20 µs, 0.35 of their stay or 0.7 times as far apart as they come; they are
// one group surely within 10 µs, 0.35 or 0.58, and none is 20 times as far from another as the closest, where four
// collectives tell.
func TestMeetingsAtTheirLimits(t *testing.T) {
	for _, c := range []struct {
		n                        int
		stay, come, leave, third float64 // µs: by how much rank 1 is behind rank 0 every other time, and rank 2, 0 for none
		meet, split              bool
	}{
		{8, 101, 100, 57, 0, true, false}, {8, 101, 100, 59, 0, true, true}, {8, 101, 100, 69, 0, true, true},
		{8, 101, 100, 71, 0, false, true}, {2, 101, 100, 71, 0, false, true}, {8, 16, 15, 9.9, 0, true, false},
		{8, 16, 15, 10.1, 0, true, true}, {8, 26, 25, 19.9, 0, true, true}, {8, 26, 25, 20.1, 0, false, true},
		{8, 86, 30, 30, 0, true, false}, {8, 85, 30, 30, 0, false, true}, {8, 1, 0, 0.1, 1.999, true, false},
		{8, 1, 0, 0.1, 2.001, true, true}, {8, 1, 0, 0.001, 0.639, true, false}, {8, 1, 0, 0.001, 0.641, true, true},
		{8, 1, 0, 2.001, 0, true, false}, {3, 1, 0, 0.1, 2.001, true, false},
	} {
		s := Step{Ranks: make([][]Kernel, 3), Free: make([]int64, 3)}
		for i := range int64(c.n) {
			for r, by := range [][2]float64{{}, {c.come, c.leave}, {0, c.third}} {
				at := func(us float64) int64 { return i*1e6 + int64(math.Round(1e3*us)) }
				s.Ranks[r] = append(s.Ranks[r], Kernel{Start: at(float64(i%2) * by[0]), End: at(c.stay + float64(i%2)*by[1])})
			}
		}
		if c.third == 0 {
			s.Ranks, s.Free = s.Ranks[:2], s.Free[:2]
		}
		if m, alike := s.meet(); !alike || (m.group[1] == 0) != c.meet || m.split != c.split {
			t.Errorf("%+v: groups %v, split %v", c, m.group, m.split)
		}
	}
}

// Uneven experts on a host that is late gain what the earliest host lets them, what all of them
// would gain in time where lateness may be the profiler's, as by a twentieth of the step, and nothing where it
// makes the step.
func TestHosts(t *testing.T) {
	ns := [][4]int64{{300e3, 100e3, 200e3, 200e3}, {100e3, 200e3, 200e3, 300e3}}
	for i := range int64(400) {
		ranks, every := made(ns, 0), 10+i*500 // all hosts late, from nothing to most of the step, or one of them
		if i%2 == 0 {
			ranks[2][0].hold, every = 25*i*i, 10
		}
		run := replayOf(t, simulate(ranks, oneGroup, every))
		prompt, common, recorded := run.times[inTime][0], run.times[together][0], run.times[asRecorded][0]
		require.Near(t, "unseen", run.unseen, 0, 0.005)
		want := inTime
		switch {
		case prompt < 0.5*recorded || common < 0.88*recorded:
			want = asRecorded
		case prompt < 0.95*common:
			want = together
		}
		if run.hosts != want {
			t.Errorf("%v, %v and %v: hosts %v, want %v", prompt, common, recorded, run.hosts, want)
		}
	}
}

// A first step that ranks begin a hundredth of it apart is left out, if two others are there.
func TestStepsBegunApart(t *testing.T) {
	step := simulate(made([][4]int64{{300e3, 100e3, 200e3, 200e3}}, 0), oneGroup, 10)
	for _, c := range []struct {
		apart   float64
		n, want int
	}{{0.7, 1, 2}, {0.0105, 2, 2}, {0.0095, 2, 3}, {0.7, 3, 3}} {
		apart := step
		apart.Free = []int64{-int64(c.apart * length(step)), 0, 0, 0}
		steps := append([]Step{apart}, slices.Repeat([]Step{step}, c.n)...)
		run := replayOf(t, steps...)
		if run.Steps() != c.want {
			t.Errorf("%+v: %d are replayed", c, run.Steps())
		}
		require.Near(t, "from when the last rank was free", run.StepNS, length(step), 1)
		require.Near(t, "law", run.Law, 0, 0.01)
	}
}

// A step that takes 104 µs without its experts is left out where it takes a fifth longer, or its experts a fifth less,
// if two others are alike.
func TestStepsUnlikeOthers(t *testing.T) {
	step := func(experts, longer int64) Step {
		ranks := made([][4]int64{{2 * experts, experts, experts, experts}}, 0)
		ranks[1][0].ns += longer
		return simulate(ranks, oneGroup, 10)
	}
	held := made([][4]int64{{400e3, 200e3, 200e3, 200e3}}, 0)
	held[1][0].hold = 60e3 // of which launches in time know nothing
	usual := step(200e3, 0)
	for _, c := range []struct {
		others []Step
		want   int
	}{
		{[]Step{step(200e3, 20e3)}, 3}, {[]Step{step(200e3, 26e3)}, 2}, {[]Step{step(168e3, 0)}, 3},
		{[]Step{step(160e3, 0)}, 2}, {[]Step{step(200e3, 26e3), step(200e3, 27e3)}, 4},
		{[]Step{step(200e3, 26e3), step(200e3, 80e3)}, 2}, {[]Step{step(200e3, 18e3), step(200e3, 44e3)}, 4},
		{[]Step{step(100e3, 0), step(100e3, 0)}, 4}, {[]Step{simulate(held, oneGroup, 10)}, 3},
	} {
		run := replayOf(t, append(c.others, usual, usual)...)
		if run.Steps() != c.want {
			t.Errorf("%d of %d are replayed, want %d", run.Steps(), len(c.others)+2, c.want)
		}
	}
	apart := usual
	apart.Free = []int64{-20e3, 0, 0, 0}
	for of, want := range map[*Step]int{&usual: 2, &apart: 2} {
		if run := replayOf(t, step(200e3, 80e3), *of, usual); run.Steps() != want {
			t.Errorf("%d of three, want %d", run.Steps(), want)
		}
	}
	if run := replayOf(t, usual, step(200e3, 80e3)); run.Steps() != 2 {
		t.Errorf("%d of two", run.Steps())
	}
}

// The experts' times of another run, by its GPUs or by others that are a hundredth faster: the interval holds what
// that would change. Its collectives take as long as there.
func TestWithExperts(t *testing.T) {
	uneven := simulate(made([][4]int64{{300e3, 100e3, 100e3, 100e3}}, 0), oneGroup, 10)
	even := func(scale, transfer float64) *Run {
		ranks := made([][4]int64{{140e3, 140e3, 140e3, 140e3}}, 0)
		for r := range ranks {
			for i := range ranks[r] {
				p := &ranks[r][i]
				if p.ns = int64(scale * float64(p.ns)); p.Collective != None {
					p.ns = int64(transfer * float64(p.ns))
				}
			}
		}
		step := simulate(ranks, oneGroup, 10)
		return replayOf(t, step, step)
	}
	a := replayOf(t, uneven, uneven)
	for _, c := range []struct{ scale, transfer, wide, saved float64 }{
		{1, 1, 0, 160e3}, {0.99, 1, 700, 160.7e3 + 300}, {1, 1.1, 0, 160e3 - 3e3},
	} {
		gain := a.WithExperts(even(c.scale, c.transfer))
		require.Near(t, "saved", float64(gain.SavedNS), c.saved, 110)
		require.Near(t, "above it", (float64(gain.High-gain.Estimate)-math.Abs(a.Law))*float64(gain.LeftNS), c.wide, 600)
	}
}

// A rank that skips empty GEMMs in a layer gets its share where ranks are even, also where it runs what is beside them.
func TestRankWithoutExperts(t *testing.T) {
	ranks := made([][4]int64{{200e3, 100e3, 100e3, 100e3}, {100e3, 100e3, 100e3, 100e3}}, 0)
	ranks[3] = slices.Delete(ranks[3], 1, 2)
	ranks[3][0].ns += 50e3 // with its share it is the last one
	for r := range ranks {
		ranks[r] = slices.Insert(ranks[r], 1, plan{Kernel{Collective: None, Class: Experts, Beside: true}, 90e3, 0})
	}
	step := simulate(ranks, oneGroup, 10)
	gain := replayOf(t, step, step).EvenRanks()
	require.Near(t, "saved", gain.SavedNS, 50e3, 2e3)
}

// A rank whose experts take longer while no other's take less has a slower kernel; load that it has more
// of, others have less of.
func TestOneSlower(t *testing.T) {
	run := func(layers ...[4]int64) *Run {
		return replayOf(t, simulate(made(layers, 0), oneGroup, 10), simulate(made(layers, 0), oneGroup, 10))
	}
	even := run([4]int64{200e3, 200e3, 200e3, 200e3}, [4]int64{200e3, 200e3, 200e3, 200e3})
	if _, by, alone := even.OneSlower(run([4]int64{200e3, 0, 200e3, 200e3}, [4]int64{200e3, 0, 200e3, 200e3})); alone {
		t.Errorf("slower by %v than without experts", by)
	}
	for _, c := range []struct {
		what   string
		normal *Run
		alone  bool
	}{
		{"a slow kernel", run([4]int64{200e3, 260e3, 200e3, 200e3}, [4]int64{200e3, 260e3, 200e3, 200e3}), true},
		{"in one layer", run([4]int64{200e3, 200e3, 200e3, 200e3}, [4]int64{201e3, 260e3, 200e3, 200e3}), true},
		{"more load", run([4]int64{194e3, 260e3, 194e3, 194e3}, [4]int64{194e3, 260e3, 194e3, 194e3}), false},
		{"load of others as well", run([4]int64{200e3, 260e3, 200e3, 200e3}, [4]int64{200e3, 260e3, 170e3, 230e3}), false},
		{"a layer more", run([4]int64{200e3, 200e3, 200e3, 200e3}, [4]int64{200e3, 200e3, 200e3, 200e3},
			[4]int64{200e3, 260e3, 200e3, 200e3}), false},
		{"all slower", run([4]int64{220e3, 260e3, 220e3, 220e3}, [4]int64{220e3, 260e3, 220e3, 220e3}), false},
		{"noise", run([4]int64{200e3, 203.9e3, 200e3, 200e3}, [4]int64{200e3, 203.9e3, 200e3, 200e3}), false},
		{"more than noise", run([4]int64{200e3, 204.1e3, 200e3, 200e3}, [4]int64{200e3, 204.1e3, 200e3, 200e3}), true},
		{"others 0.045 of it", run([4]int64{199.1e3, 260e3, 199.1e3, 199.1e3}, [4]int64{200e3, 200e3, 200e3, 200e3}), true},
		{"others 0.055 of it", run([4]int64{198.9e3, 260e3, 198.9e3, 198.9e3}, [4]int64{200e3, 200e3, 200e3, 200e3}), false},
	} {
		rank, by, alone := c.normal.OneSlower(even)
		if alone != c.alone || alone && rank != 1 {
			t.Errorf("%s: rank %d by %v, alone %v", c.what, rank, by, alone)
		}
	}
}

// A gain holds where the law does. Its interval holds what is left if hosts are as late as recorded, or less on all
// ranks alike, or never.
func TestGainOfALawThatHolds(t *testing.T) {
	for of, holds := range map[[2]float64]bool{{0.0199, 0}: true, {-0.0199, 0}: true, {0.0201, 0}: false,
		{-0.0201, 0}: false, {0, 0.099}: true, {0, 0.101}: false} {
		if r := (&Run{Law: of[0], unseen: of[1]}); r.Holds() != holds {
			t.Errorf("law and unseen %v", of)
		}
	}
	_, low, _ := overSteps([]float64{110, 121}, []float64{100, 100}) // t of one degree of freedom is 12.7062
	require.Near(t, "low of two steps", float64(low), 1.155*math.Exp(-12.7062*math.Log(1.1)/2)-1, 1e-5)
	for of, want := range map[hosts][3]float64{asRecorded: {0.1, 0.1, 0.12}, together: {0.12, 0.1, 0.25},
		inTime: {0.25, 0.1, 0.25}} {
		r := &Run{Law: -0.01, hosts: of, times: [3][]float64{{110, 110}, {112, 112}, {100, 100}}}
		g := r.gain([3][]float64{{100, 100}, {100, 100}, {80, 80}})
		require.Near(t, "gain", float64(g.Estimate), want[0], 1e-9)
		require.Near(t, "low", float64(g.Low), want[1]-0.01, 1e-9)
		require.Near(t, "high", float64(g.High), want[2]+0.01, 1e-9)
	}
}

// Runs that do not fit the model are no runs, or give no gain.
func TestLawFails(t *testing.T) {
	step := func() Step {
		return simulate(made([][4]int64{{300e3, 100e3, 200e3, 200e3}, {100e3, 200e3, 200e3, 300e3}}, 0), oneGroup, 10)
	}
	unlike := step()
	unlike.Ranks[1] = unlike.Ranks[1][:4]
	if New([]Step{unlike}) != nil {
		t.Error("a rank without a collective is replayed")
	}
	crossed := step()
	for r := range 2 { // the two collectives of ranks 0 and 1 come in another order
		crossed.Ranks[r][3].Collective, crossed.Ranks[r][7].Collective = int32(1+r), int32(2-r)
	}
	for r := 2; r < 4; r++ {
		crossed.Ranks[r][3].Collective, crossed.Ranks[r][7].Collective = 1, 2
	}
	if New([]Step{crossed}) != nil {
		t.Error("collectives in another order are replayed")
	}
	late := step()
	for r := range late.Ranks {
		for i := range late.Ranks[r][4:] {
			k := &late.Ranks[r][4+i]
			k.Start, k.End = k.Start+400e3, k.End+400e3
		}
	}
	if run := replayOf(t, late); run.Holds() || run.EvenRanks().Estimate.Defined() {
		t.Errorf("unseen time: the law is off by %v", run.Law)
	}
}

// By hand: in two layers ranks 0 and 3 take 100 µs more for experts than the mean, and rank 1's host
// is 400 µs late for a third.
func TestWaitsByHand(t *testing.T) {
	ranks := made([][4]int64{{300e3, 100e3, 200e3, 200e3}, {100e3, 200e3, 200e3, 300e3}, {100e3, 100e3, 100e3, 100e3}}, 0)
	ranks[1][8].hold = 1000e3 // beyond what hosts are ahead
	run := replayOf(t, simulate(ranks, oneGroup, 10))
	waits := run.Waits()
	for _, w := range waits {
		if w.Rank == 1 {
			require.Near(t, "late launches", w.Late, w.NS, 5e3)
			if w.NS < 50e3 {
				t.Errorf("have %+v", w)
			}
			continue
		}
		require.Near(t, "wait", w.NS, 100e3, 5e3)
		require.Near(t, "experts", w.Experts, 100e3, 1)
		require.Near(t, "late", w.Late, 0, 5e3)
	}
	if len(waits) != 3*run.Steps() || waits[2].Rank != 3 {
		t.Errorf("have %+v", waits)
	}
	if run.Split() {
		t.Error("split")
	}
}

// Of ranks that load makes late in turn, the ones that were recorded stay long where the last one
// was not.
func TestStayOfMissingRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	ns := make([][4]int64, 16)
	for layer := range ns {
		ns[layer] = [4]int64{100e3, 100e3, 100e3, 100e3 + rng.Int64N(300e3)}
	}
	step := simulate(made(ns, 0), oneGroup, 10)
	require.Near(t, "all ranks", replayOf(t, step).StayRatio(), 1, 0.05)
	require.Near(t, "too few layers", replayOf(t, simulate(made(ns[:7], 0), oneGroup, 10)).StayRatio(), 1, 0)
	step.Ranks, step.Free = step.Ranks[:3], step.Free[:3]
	if have := replayOf(t, step).StayRatio(); have < 3 {
		t.Errorf("a rank is missing: %v", have)
	}
}

// A map has no order, a sum has one.
func TestSameSumEachTime(t *testing.T) {
	layers := byLayer{}
	for i := range int32(50) {
		layers[i] = []float64{1 / float64(i+3)}
	}
	first := layers.total()
	for range 50 {
		if again := layers.total(); again != first {
			t.Fatalf("%v, then %v", first, again)
		}
	}
}

// Where the missing rank is as late in every layer, the collectives of the same name behind attention tell.
func TestStayOfMissingRankThatIsAlwaysLate(t *testing.T) {
	for _, c := range []struct {
		layers int
		want   float64
	}{{4, 6}, {3, 1}} { // three of each tell nothing
		ranks := made(slices.Repeat([][4]int64{{100e3, 100e3, 100e3, 250e3}}, c.layers), 0)
		for r := range ranks {
			var with []plan
			for _, p := range ranks[r] {
				if with = append(with, p); p.Class == Tokens {
					with = append(with, plan{Kernel{Layer: p.Layer, Collective: 7, Class: Fixed}, 30e3, 0})
				}
			}
			ranks[r] = with
		}
		step := simulate(ranks, oneGroup, 10)
		require.Near(t, "all ranks", replayOf(t, step).StayRatio(), 1, 0.05)
		step.Ranks, step.Free = step.Ranks[:3], step.Free[:3]
		require.Near(t, "a rank is missing", replayOf(t, step).StayRatio(), c.want, 0.05)
	}
}
