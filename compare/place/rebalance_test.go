package place

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/router"
)

// Four experts on two ranks, by hand. Contiguous ranks get 1.5 × the mean of A and are even in B;
// EPLB of A has 0 with 2 and 1 with 3, which is even in A and 1.5 in B; 0 with 3 and 1 with 2 is
// even in both. Each change of these moves a copy on each rank.
var traffic = map[rune][4]int{'A': {300, 300, 100, 100}, 'B': {300, 100, 300, 100}, 'C': {100, 100, 300, 300}}

// sequence has a window for each letter.
func sequence(t *testing.T, letters string) []Window {
	t.Helper()
	var records []*counts.Record
	for _, l := range letters {
		rows := ""
		for e, n := range traffic[l] {
			rows += fmt.Sprintf("0,0,%d,%d\n", e, n)
		}
		records = append(records, read(t, counted(t, rows))...)
	}
	windows, err := InOrder(records)
	if err != nil {
		t.Fatal(err)
	}
	return windows
}

func rebalanced(t *testing.T, windows []Window, o Options) *Rebalance {
	t.Helper()
	o.Ranks, o.Redundant, o.Threshold, o.Rebalance = []int{2}, []int{0}, 0.1, true
	res, err := Judge(windows[:len(windows)/2], windows[len(windows)/2:], o)
	if err != nil {
		t.Fatal(err)
	}
	return res.Rebalance
}

func way(t *testing.T, r *Rebalance, name, learns string) Way {
	t.Helper()
	at := slices.IndexFunc(r.Ways, func(w Way) bool { return w.Name == name && (w.Learns == learns || name == Never) })
	if at < 0 {
		t.Fatalf("no %s of %s in %+v", name, learns, r.Ways)
	}
	return r.Ways[at]
}

func TestWhenToRebalance(t *testing.T) {
	for _, c := range []struct {
		name, letters, policy string
		chosen, learns        string
		verdict               Verdict
		sums                  map[string]float64 // of max/mean over the seven windows after the first
		times                 int
	}{
		{"steady and even", "BBBBBBBB", "", Never, "baseline", NotNow, map[string]float64{Never: 7, Once: 7, Always: 7}, 0},
		{"steady", "AAAAAAAA", "", Once, PlanRobust, Trial, map[string]float64{Never: 10.5, Once: 7, Always: 7}, 1},
		// the window of the change is served by what was learned before it
		{"one change", "AAAABBBB", PlanEPLB, "below 0.95", PlanEPLB, Trial,
			map[string]float64{Never: 8.5, Once: 9, Always: 7.5, "every 2": 7.5, "below 0.7": 7.5}, 2},
		// the last window is always the wrong one to learn from
		{"in turn", "ABABABAB", PlanEPLB, Never, "baseline", NotNow,
			map[string]float64{Never: 8.5, Once: 9, Always: 10.5, "below 0.7": 10.5}, 0},
		{"in turn, all learned from", "ABABABAB", "", "below 0.95", PlanRobust, Trial,
			map[string]float64{Never: 8.5, Always: 7.5, "below 0.7": 7.5}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rebalanced(t, sequence(t, c.letters), Options{Policy: c.policy})
			if w := r.ChosenWay(); w.Name != c.chosen || w.Learns != c.learns || w.Times != c.times ||
				r.Verdict != c.verdict || w.Moved != 2*c.times || r.Order != AsGiven || r.Windows != 8 {
				t.Errorf("%s, %+v", r.Verdict, w)
			}
			policy := PlanRobust
			if c.policy != "" {
				policy = c.policy
			}
			for name, sum := range c.sums {
				if w := way(t, r, name, policy); !near(7*w.MaxOverMean, sum) {
					t.Errorf("%s: %v, want %v", name, 7*w.MaxOverMean, sum)
				}
			}
		})
	}
}

// What a window holds bears on no decision before it, and on no placement that serves it.
func TestNoLookAhead(t *testing.T) {
	for _, policy := range []string{PlanEPLB, ""} {
		a, c := rebalanced(t, sequence(t, "AABBAABB"), Options{Policy: policy}), rebalanced(t, sequence(t, "AABBAABC"),
			Options{Policy: policy})
		for i, w := range a.Ways {
			for n, s := range w.served {
				other := c.Ways[i].served[n]
				if s.MovedShare != other.MovedShare || n < 7 && s.MaxOverMean != other.MaxOverMean {
					t.Errorf("%s, window %d: %+v, %+v", w.Name, n, s, other)
				}
			}
		}
	}
}

// By hand: a slot takes 1 ms, so that the windows after the first take 3.4 s if never placed anew,
// and 3.0 s below any balancedness, whose two moves take a rank 1 s each at 1 GB/s.
func TestMovesArePriced(t *testing.T) {
	cost := &Cost{Ranks: 2, slots: 800, Slots: 800, fits: [][3]float64{{0, 1e6, 0}}, StepNS: router.Undefined()}
	for bandwidth, chosen := range map[float64]string{1e9: Never, 1e12: "below 0.95"} {
		r := rebalanced(t, sequence(t, "AAAABBBB"), Options{Policy: PlanEPLB, Cost: cost, ExpertBytes: 1e9,
			Bandwidth: bandwidth})
		w := way(t, r, "below 0.95", PlanEPLB)
		if r.ChosenWay().Name != chosen || !near(w.MoveNS/router.Number(2e18/bandwidth), 1) ||
			!near(w.TimeNS/(3e9+w.MoveNS), 1) || !near(r.Ways[0].TimeNS/3.4e9, 1) {
			t.Errorf("%+v, %+v", r.ChosenWay(), w)
		}
	}
}

// Time stamps order windows where all have one; each engine gets the settings that it knows.
func TestOrderAndSettings(t *testing.T) {
	windows := sequence(t, "ABBAAAAA")
	for i, w := range windows {
		w.record.Time = []float64{10, 70, 80, 20, 30, 40, 50, 60}[i]
	}
	var records []*counts.Record
	for _, w := range windows {
		records = append(records, w.record)
	}
	windows, err := InOrder(records)
	if err != nil || windows[1].record != records[3] || windows[7].record != records[2] {
		t.Fatal(err)
	}
	r := rebalanced(t, windows, Options{Policy: PlanEPLB})
	if r.Order != ByTime || r.Served[1].Time != 20 {
		t.Errorf("%+v", r.Served[1])
	}
	for i, want := range [][]string{
		{`"step_interval": 2, "window_size": 1, "num_redundant_experts": 0`},
		{"--eplb-rebalance-num-iterations 1 --eplb-min-rebalancing-utilization-threshold 0.95 --ep-num-redundant-experts 0"},
		{"num_slots: 4, layer_updates_per_iter: 1"},
	} {
		if !strings.Contains(r.Settings[i].Text, want[0]) {
			t.Errorf("%+v", r.Settings[i])
		}
	}
	if _, err := InOrder(records[:2]); err == nil || !strings.Contains(err.Error(), "3 windows or more") {
		t.Error(err)
	}
	// a single record is divided
	rows := ""
	for step := range 12 {
		for e, n := range traffic['A'] {
			rows += fmt.Sprintf("%d,0,%d,%d\n", step, e, n)
		}
	}
	if windows, err = InOrder(read(t, counted(t, rows))); err != nil || len(windows) != 6 || windows[5].Iterations != 2 {
		t.Errorf("%+v, %v", windows, err)
	}
}

// A window without load, as of an idle server, says nothing: no number is of it.
func TestIdleWindows(t *testing.T) {
	traffic['I'] = [4]int{}
	defer delete(traffic, 'I')
	windows := sequence(t, "AAIABBAA")
	r := rebalanced(t, windows, Options{Policy: PlanEPLB})
	if never := way(t, r, Never, ""); never.MaxOverMean != (4*1.5+2)/6 || never.Worst != 1.5 {
		t.Errorf("never: have %v, worst %v", never.MaxOverMean, never.Worst)
	}
	res, err := Judge(windows[:6], windows[6:], Options{Ranks: []int{2}, Redundant: []int{0}, Threshold: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	// A and B, of the learned windows, are left out in turn
	if have := leftOut(t, res, PlanEPLB); have.Folds != 2 || have.Judged != 1.5 {
		t.Errorf("left out: have %d, %v", have.Folds, have.Judged)
	}
	windows = sequence(t, "AACIC") // both C become even
	if res, err = Judge(windows[:2], windows[2:], Options{Ranks: []int{2}, Redundant: []int{0}, Threshold: 0.1}); err != nil {
		t.Fatal(err)
	}
	if best := res.Best(); best.Verdict != Trial || best.Helped != 2 {
		t.Errorf("have %+v", best)
	}
}
