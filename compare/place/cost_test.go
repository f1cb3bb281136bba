package place

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// traced reads the traces of one arm.
func traced(t *testing.T, pattern string) *trace.Trace {
	t.Helper()
	paths, _ := filepath.Glob(pattern)
	if len(paths) == 0 {
		t.Skip("no shared captures")
	}
	return require.Value(trace.Read(t.Context(), paths, trace.Options{}))
}

// The experts' time of the normal arm on H200s follows its load, and with the load of the balanced arm, whose trace
// it has not seen, its steps replay to what they do with even expert times.
func TestReplayWithTheOtherLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	const hf, vllm = "../../../shared/captures/hf-qwen3-ep4/", "../../testdata/field/results/vllm-qwen3-"
	for folder, name := range map[string]string{hf: "counts-%s", vllm: "%s.counts.json"} { // prefill
		t.Run(folder, func(t *testing.T) {
			normal := traced(t, folder+"normal.rank*")
			windows := Whole(read(folder+fmt.Sprintf(name, "normal"), folder+fmt.Sprintf(name, "perfect")))
			cost, reason, err := FromTrace(normal, windows[0].record)
			if err != nil || reason.Code != "" {
				t.Fatal(reason, err)
			}
			cost.phase = counts.Prefill
			for phase, want := range map[counts.Phase]bool{counts.Decode: false, counts.Prefill: true, "": true} {
				w, kind := windows[0], *windows[0].record
				w.record, kind.Phase = &kind, phase
				few := Window{record: &kind, most: int64(cost.kind.Tokens()) - 1}
				if cost.like(w) != want || cost.like(few) {
					t.Errorf("%q: like %v, want %v", phase, cost.like(w), want)
				}
			}
			flat, _, err := Options{}.baseline(windows, windows[0].record.Experts, cost.Ranks)
			require.NoError(t, err)
			even := normal.Replay().EvenRanks
			same := cost.change(seen{Window: windows[0], plans: []plan{flat, flat}})
			if same == nil || same.Estimate != 0 || same.SavedNS != 0 {
				t.Errorf("the same placement changes time: %+v", same)
			}
			other := plan{layouts: map[int]router.Layout{}} // the first rank's experts on the last one, and so on
			for layer, l := range flat.layouts {
				var held [][]int32
				for r := range l.Ranks() {
					held = append(held, l.Held(l.Ranks()-1-r))
				}
				other.layouts[layer] = require.Value(router.Placed(l.Experts(), held))
			}
			moved := cost.change(seen{Window: windows[0], plans: []plan{flat, other}})
			if !(moved.Low < moved.Estimate && moved.Estimate < moved.High && moved.High-moved.Low < 0.5) {
				t.Errorf("%+v", moved)
			}
			with := func(follows, wrong router.Number) *TimeChange {
				x := *cost
				x.Follows, x.Error = follows, wrong
				return x.change(seen{Window: windows[0], plans: []plan{flat, other}})
			}
			for _, k := range [][4]router.Number{{0.8, 0.1, 0.7, 0.9}, {0.8, 0.3, 0.5, 1}, {0.2, 0.3, 0, 0.5}} {
				wide, is, least, most := with(k[0], k[1]), with(k[0], 0), with(k[2], 0), with(k[3], 0) // from 0 to all of it
				if wide.Low != min(is.Low, least.Low, most.Low) || wide.High != max(is.High, least.High, most.High) ||
					wide.Estimate != is.Estimate {
					t.Errorf("%v: %+v, want what holds %+v, %+v and %+v", k, wide, is, least, most)
				}
			}
			g := normal.Replay().Run.Shift(cost.loads(windows[0], flat, cost.Follows),
				cost.loads(windows[1], flat, cost.Follows))
			if share := router.Number(g.InTime) / even.InTime; share < 0.95 || share > 1.02 {
				t.Errorf("%+v of %+v; %+v", g, even, cost)
			}
		})
	}
}

// By hand: Σload² is 0.4, Σload·time 0.2, Σtime² 0.1008, and 0.0008 are left of it: times follow load by half, ±
// 2·√(0.0008/3/0.4). Times that rise by more than load follow it whole, and noise that outweighs them explains nothing.
func TestFit(t *testing.T) {
	var c Cost
	if c.fit([]float64{0.2, -0.2, 0.4, -0.4}, []float64{0.12, -0.08, 0.2, -0.2}); !near(c.Follows, 0.5) ||
		!near(c.Explained, 1-0.0008/0.1008) || !near(c.Error, 0.05164) {
		t.Errorf("%+v", c)
	}
	if c.fit([]float64{0.2, -0.2}, []float64{0.3, -0.3}); c.Follows != 1 {
		t.Errorf("%+v", c)
	}
	for loads, times := range map[[2]float64][]float64{{0.1, -0.1}: {0.3, 0.3}, {0, 0}: {0.3, -0.3}, {0.1, -0.1001}: {-0.3, 0.3}} {
		c = Cost{}
		if c.fit(loads[:], times); c.predicts() || c.Explained != 0 {
			t.Errorf("%+v", c)
		}
	}
	for explained, want := range map[router.Number]bool{0.5: true, 0.499: false} {
		if fitted := (Cost{Explained: explained}); fitted.predicts() != want {
			t.Errorf("%v: want %v", explained, want)
		}
	}
}

// By hand: two windows save 100 and 200 ns of a step of 2 µs, 5 and 10 %.
func TestTimeOverWindows(t *testing.T) {
	if overall([]*TimeChange{nil}) != nil {
		t.Error("a change from nothing")
	}
	at := func(saved, low, high router.Number) *TimeChange {
		return &TimeChange{Estimate: -saved / 2000, Low: low, High: high, SavedNS: saved}
	}
	c := overall([]*TimeChange{at(100, -0.06, -0.04), nil, at(200, -0.12, -0.08)})
	if !near(c.Estimate, -0.075) || c.Low != -0.12 || c.High != -0.04 || c.Windows != 2 || c.SavedNS != 150 {
		t.Errorf("%+v", c)
	}
}
