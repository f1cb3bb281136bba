package wait

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// sixteen ranks run attention, dispatch, experts and combine in 50 steps. Rank 5 has twice the
// experts. change gets each rank before it goes to the dispatch of a step.
func sixteen(change func(step, rank int, r *recorder)) Input {
	var ranks []*recorder
	for range 16 {
		ranks = append(ranks, &recorder{})
	}
	meet(ranks)
	for step := 1; step <= 50; step++ { // before, they met
		for i, r := range ranks {
			r.step = int32(step)
			r.run(attention, kernel.PhaseAttention, 1000)
			change(step, i, r)
		}
		meet(ranks)
		for i, r := range ranks {
			ns := int64(2000)
			if i == 5 {
				ns = 4000
			}
			r.run(small, kernel.PhaseExperts, ns)
		}
		meet(ranks)
	}
	in := inputOf(ranks)
	in.StepNS = 5020
	return in
}

// One of 16 ranks is late in one of 50 steps, before the dispatch: that is found, with what its
// host did, and no step is late where none is.
func TestOneLateRankInOneStep(t *testing.T) {
	if w := Of(sixteen(func(int, int, *recorder) {})).Waiting; len(w.Late) != 0 || len(w.Ranks) != 1 ||
		w.Ranks[0].LastSteps != 50 || w.Ranks[0].Name != ExpertLoad || w.Ranks[0].Did != "" {
		t.Errorf("even steps: have %+v", w)
	}
	for did, late := range map[Deed]Late{CollectsGarbage: {GC: 2900, Call: 40}, WaitsForLock: {GIL: 1600},
		Launches: {Call: 3000, GC: 1400}, "": {Call: 1000, GIL: 1400}} {
		in := sixteen(func(step, rank int, r *recorder) {
			if step == 37 && rank == 11 {
				r.idle(3000, 2990)
				r.waited.GC, r.waited.GIL, r.waited.Call = late.GC, late.GIL, late.Call
			}
		})
		w := Of(in).Waiting
		if len(w.Late) != 1 || w.Late[0].Step != 37 || w.Late[0].Rank != 11 || w.Late[0].Layer != 4 ||
			w.Late[0].Name != LateHosts || w.Late[0].Did != did {
			t.Fatalf("%q: have %+v", did, w.Late)
		}
		near(t, "for it", w.Late[0].WaitNS, 3000*15.0/16)
		near(t, "explained", w.Late[0].NS, 2990*15.0/16)
		near(t, "usually", w.Late[0].UsualNS, 2000*15.0/16)
		near(t, "all", w.WaitNS, (2000+3000.0/50)*15/16)
		if w.Name != ExpertLoad || w.Ranks[0].Rank != 5 || w.Ranks[0].LastSteps != 49 || w.Ranks[1].Rank != 11 ||
			w.Ranks[1].LastSteps != 1 || w.Steps != 50 {
			t.Errorf("over steps: have %+v", w)
		}
	}
}

// Waiting that grows by less than a twentieth of a step is no late one, nor is one of steps
// that differ as much anyhow.
func TestStepsThatAreNotLate(t *testing.T) {
	for what, idle := range map[string]func(step int) int64{
		"little":        func(step int) int64 { return map[int]int64{37: 200}[step] },
		"as the others": func(step int) int64 { return int64(step * 7919 % 50 * 60) },
	} {
		w := Of(sixteen(func(step, rank int, r *recorder) {
			if rank == 11 {
				r.idle(idle(step), idle(step))
			}
		})).Waiting
		if len(w.Late) != 0 {
			t.Errorf("%s: have %+v", what, w.Late)
		}
	}
}

// A cause is named only if it explains more than half.
func TestMainCause(t *testing.T) {
	unknown := router.Undefined()
	for _, c := range []struct {
		parts Parts
		want  string
	}{
		{Parts{ExpertNS: 60, OtherNS: 40, HostNS: 0}, ExpertLoad},
		{Parts{ExpertNS: 40, OtherNS: 35, HostNS: 25}, ""},
		{Parts{ExpertNS: 50, HostNS: 50}, ""},
		{Parts{ExpertNS: -60, HostNS: 160}, LateHosts},
		{Parts{ExpertNS: 70, HostNS: 90, UnexplainedNS: -60}, LateHosts},
		{Parts{UnexplainedNS: 100, HostNS: unknown}, ""},
	} {
		if have, ns := mainPart(100, c.parts); have != c.want || ns.Defined() != (c.want != "") {
			t.Errorf("%+v: have %q, %v", c.parts, have, ns)
		}
	}
	if have, _ := mainPart(unknown, Parts{ExpertNS: 1}); have != "" {
		t.Error("nothing explains an unknown wait")
	}
}

// Two collectives that run at once wait for the same late rank: it counts once.
func TestOverlappingMeetingsCountOnce(t *testing.T) {
	ranks := []*recorder{{}, {}}
	meet(ranks)
	for step := range int32(3) {
		for i, r := range ranks {
			r.step = step
			r.run(small, kernel.PhaseExperts, 100+int64(i)*60)
			r.beside(reduce, kernel.PhaseDispatch, 0, 90)
			r.kernels[len(r.kernels)-1].Collective = true
		}
		meet(ranks)
	}
	in := inputOf(ranks)
	w := Of(in).Waiting
	if have := w.WaitNS; math.Abs(float64(have)-30) > 1e-9 {
		t.Errorf("have %v, want 30: %+v", have, w)
	}
}
