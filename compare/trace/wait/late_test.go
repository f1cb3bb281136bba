package wait

import (
	"math"
	"testing"

	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/router"
)

// busy are 50 steps in which ranks wait 2000 for the experts of rank 5. change may add to them.
func busy(change func(s *Step)) (list []Step) {
	for n := 1; n <= 50; n++ {
		s := Step{n, map[int]*replay.Wait{5: {NS: 2000, Experts: 1900, Late: 50, Layer: 4}}, map[int]Late{}}
		change(&s)
		list = append(list, s)
	}
	return list
}

// One rank is late in one of 50 steps: that is found, with what its host did, and no step is late where
// none is.
func TestOneLateRankInOneStep(t *testing.T) {
	if w := Judge(busy(func(*Step) {}), 5020); len(w.Late) != 0 || len(w.Ranks) != 1 || w.Ranks[0].LastSteps != 50 ||
		w.Ranks[0].Name != ExpertTime || w.Ranks[0].Did != "" {
		t.Errorf("even steps: have %+v", w)
	}
	for did, late := range map[Deed]Late{CollectsGarbage: {GC: 2900, Call: 40}, WaitsForLock: {GIL: 1600},
		Launches: {Call: 3000, GC: 1400}, "": {Call: 1000, GIL: 1400}} {
		late.NS = 2990
		w := Judge(busy(func(s *Step) {
			if s.Number == 37 {
				s.For[11], s.Late[11] = &replay.Wait{NS: 3000, Late: 2990, Layer: 3}, late
			}
		}), 5020)
		if len(w.Late) != 1 || w.Late[0].Step != 37 || w.Late[0].Rank != 11 || w.Late[0].Layer != 3 ||
			w.Late[0].Name != LateHosts || w.Late[0].Did != did {
			t.Fatalf("%q: have %+v", did, w.Late)
		}
		near(t, "for it", w.Late[0].WaitNS, 3000)
		near(t, "explained", w.Late[0].Explained(), 2990)
		near(t, "usually", w.Late[0].UsualNS, 2000)
		near(t, "all", w.WaitNS, 2000+3000.0/50)
		near(t, "unexplained", w.Parts.UnexplainedNS, 50+10.0/50)
		if w.Name != ExpertTime || w.Ranks[0].Rank != 5 || w.Ranks[0].LastSteps != 49 || w.Ranks[1].Rank != 11 ||
			w.Ranks[1].LastSteps != 1 || w.Steps != 50 {
			t.Errorf("over steps: have %+v", w)
		}
	}
}

// Waiting that grows by less than a twentieth of a step is no late one, nor is one of steps
// that differ as much anyhow.
func TestStepsThatAreNotLate(t *testing.T) {
	for what, ns := range map[string]func(step int) float64{
		"little":        func(step int) float64 { return map[int]float64{37: 200}[step] },
		"as the others": func(step int) float64 { return float64(step * 7919 % 50 * 60) },
	} {
		if w := Judge(busy(func(s *Step) { s.For[11] = &replay.Wait{NS: ns(s.Number)} }), 5020); len(w.Late) != 0 {
			t.Errorf("%s: have %+v", what, w.Late)
		}
	}
}

// A cause is named only if it explains more than half.
func TestMainCause(t *testing.T) {
	for _, c := range []struct {
		of   replay.Wait
		want string
	}{
		{replay.Wait{Experts: 60, Other: 40}, ExpertTime},
		{replay.Wait{Experts: 40, Other: 35, Late: 25}, ""},
		{replay.Wait{Experts: 50, Late: 50}, ""},
		{replay.Wait{Experts: -60, Late: 160}, LateHosts},
		{replay.Wait{Experts: 70, Late: 90}, LateHosts},
		{replay.Wait{Other: 51}, OtherCompute},
		{replay.Wait{}, ""},
	} {
		c.of.NS = 100
		if have := causeOf(c.of, Late{}); have.Name != c.want || have.NS.Defined() != (c.want != "") {
			t.Errorf("%+v: have %+v", c.of, have)
		}
	}
}

// Lateness within times counts, both ends included.
func TestBetween(t *testing.T) {
	list := []Late{{At: 1, NS: 1}, {At: 5, NS: 2, GC: 1}, {At: 9, NS: 4}, {At: 12, NS: 8}}
	if have := Between(list, 5, 9); have.NS != 6 || have.GC != 1 {
		t.Errorf("have %+v", have)
	}
	if w := Judge(nil, math.NaN()); w.WaitNS.Defined() || w.Steps != 0 {
		t.Errorf("no steps: %+v", w)
	}
}

func near(t *testing.T, what string, have router.Number, want float64) {
	t.Helper()
	if math.Abs(float64(have)-want) > 1e-6 {
		t.Errorf("%s: have %v, want %v", what, have, want)
	}
}
