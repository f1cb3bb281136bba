package place

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router/placement"
)

// traced reads the traces of one arm.
func traced(t *testing.T, pattern, steps string) *trace.Trace {
	t.Helper()
	paths, _ := filepath.Glob(pattern)
	if len(paths) == 0 {
		t.Skip("no shared captures")
	}
	var o trace.Options
	if steps != "" {
		var err error
		if o.Steps, err = trace.ParseSteps(steps); err != nil {
			t.Fatal(err)
		}
	}
	trace, err := trace.Read(t.Context(), paths, o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// slowestNS is the measured time of the slowest rank's experts over all layers, mean over
// steps.
func slowestNS(trace *trace.Trace) (ns float64) {
	for _, l := range trace.Times(nil).Judged() {
		for _, step := range l.Experts {
			ns += slices.Max(step) / float64(len(l.Experts))
		}
	}
	return ns
}

// The cost of the normal arm predicts the balanced arm on H200s, whose traces it has not
// seen, from its counts. What it predicts is smaller than what was measured, by a fifth at
// most of what changed: balanced experts are also of equal size, which no placement does.
func TestCostPredictsTheOtherArm(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
	const hf, vllm = "../../../shared/captures/hf-qwen3-ep4/", "../../testdata/field/results/vllm-qwen3-"
	for _, c := range []struct {
		name, folder, counts, steps string
		share                       float64 // the least of the measured change that is predicted
	}{
		{"transformers, prefill", hf, "counts-%s", "", 0.85},
		{"vLLM, prefill", vllm, "%s.counts.json", "2-4", 0.7},
		{"vLLM, decode", vllm, "%s.decode.counts.json", "7-10", 0.75},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := func(arm string) *trace.Trace { return traced(t, c.folder+arm+".rank*", c.steps) }
			normal, perfect := of("normal"), of("perfect")
			windows := Whole(read(t, c.folder+fmt.Sprintf(c.counts, "normal"),
				c.folder+fmt.Sprintf(c.counts, "perfect")))
			cost, reason, err := FromTrace(normal, windows[0].record, 0, 0)
			if err != nil || reason.Code != "" {
				t.Fatal(reason, err)
			}
			flat, _, err := Options{}.baseline(windows, windows[0].record.Experts, cost.Ranks)
			if err != nil {
				t.Fatal(err)
			}
			var predicted [2]float64
			for i, w := range windows {
				s, err := w.score([]plan{flat}, w.record.Experts, cost)
				if err != nil {
					t.Fatal(err)
				}
				predicted[i] = s[0].ns.Float64()
			}
			measured := slowestNS(perfect)/slowestNS(normal) - 1
			change := predicted[1]/predicted[0] - 1
			t.Logf("predicted %+.1f %%, measured %+.1f %%, held out %+v", 100*change, 100*measured, cost.HeldOut[0])
			if share := change / measured; share < c.share || share > 1.05 ||
				math.Abs(predicted[0]/slowestNS(normal)-1) > 0.02 || cost.HeldOut[0].Median > 0.03 {
				t.Errorf("predicted %+.3f of %+.3f measured; %+v", change, measured, cost)
			}
		})
	}
}

// The step time of unprofiled launches is that of the normal arm: 16,384 tokens at 264,324 and 262,913 tokens/s
// take 62.15 ms. A campaign that was refused, or that gives no tokens of a step, tells none.
func TestStepTimeOfACampaign(t *testing.T) {
	measured := gain.Result{Metric: gain.Metric{Name: "throughput", Unit: "tokens/s"},
		Pairs: []gain.Pair{{Normal: 264323.7, Status: gain.PairComplete}, {Normal: 262913.3, Status: gain.PairComplete},
			{Normal: 1, Status: "incomplete"}}}
	for _, c := range []struct {
		verdict gain.Verdict
		tokens  float64
		why     any
	}{{"", 0, "metric"}, {gain.Invalid, 16384, "refused"}, {gain.NotComparable, 16384, "refused"}, {"", 16384, nil}} {
		cost := Cost{StepBasis: "profiled"}
		measured.Verdict = c.verdict
		why := cost.WithCampaign(measured, c.tokens)
		if why.Args["why"] != c.why || (cost.StepBasis == "profiled") == (c.why == nil) ||
			c.why == nil && math.Abs(cost.StepNS.Float64()-62.15e6) > 5e4 {
			t.Errorf("%+v: %v, %+v", c, why, cost)
		}
	}
}

// Times made by 5 + 2 slots + 7 experts give these back, and no negative part.
func TestFit(t *testing.T) {
	var obs []observation
	for i, slots := range []float64{10, 20, 40, 80, 30, 60} {
		active := float64(1 + i*i%5)
		obs = append(obs, observation{layer: i, slots: slots, active: active, ns: 5 + 2*slots + 7*active})
	}
	var c Cost
	h, reason := c.fitTo(obs)
	if reason.Code != "" || !floats.EqualApprox(c.fit[:], []float64{5, 2, 7}, 1e-6) || h.P90 > 1e-6 || h.Groups != 6 {
		t.Error(c.fit, h, reason)
	}
	for i := range obs {
		obs[i].ns = 2*obs[i].slots - 3 // a fixed part below zero
	}
	if c, ok := fit(obs); !ok || c[0] < 0 || c[1] <= 0 || c[2] < 0 {
		t.Error(c, ok)
	}
	if _, reason := c.fitTo(obs[:2]); reason.Args["groups"] != 2.0 || reason.Args["least"] != 3.0 {
		t.Error(reason)
	}
}

// By hand: 4 experts of 300 300 100 100 slots on 2 ranks at 1 ns per slot: contiguous 600,
// EPLB 420 on steps that differ from those learned. Moved experts are those that ranks lack.
func TestTimeAndPrice(t *testing.T) {
	path := counted(t, "0,5,0,300\n0,5,1,300\n0,5,2,100\n0,5,3,100\n1,5,0,310\n1,5,1,290\n1,5,2,100\n1,5,3,100\n2,5,0,300\n2,5,1,300\n2,5,2,80\n2,5,3,120\n3,5,0,300\n3,5,1,300\n3,5,2,120\n3,5,3,80\n")
	windows, err := parts(read(t, path)[0], []int64{0, 1, 2, 3})
	if err != nil || len(windows) != 2 {
		t.Fatal(windows, err)
	}
	cost := &Cost{Ranks: 2, StepNS: 2000, Slots: 800, slots: 800, TopK: 1, fit: [3]float64{0, 1, 0},
		HeldOut: []HeldOut{{Change: 0.1}}}
	res, err := Judge(windows[:1], windows[1:], Options{Ranks: []int{2}, Redundant: []int{0}, Threshold: 0.1,
		Cost: cost, ExpertBytes: 1e6, Bandwidth: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	p := res.Placements[0]
	if p.Time == nil || !near(p.Time.SavedNS, 180) || !near(p.Time.Estimate, -0.09) || !near(p.Time.Error, 0.03) ||
		!near(p.Time.Low, -0.12) || !near(p.Time.High, -0.06) || p.Verdict != Trial {
		t.Errorf("%+v, %+v", p, p.Time)
	}
	if p.Moved != 2 || p.MovedBytes != 2e6 || !near(p.MoveNS, 1e6) || !near(p.PaidBackAfter, 1e6/180.) ||
		p.ReplicaBytes != 0 {
		t.Errorf("%+v", p.Price)
	}
}

// By hand: from 0 1 | 2 3, rank 0 loads nothing more for 0 1 1 and rank 1 expert 0 for 2 3 0: the
// move takes as long as rank 1 loads its 1 MB, at 1 GB/s. A copy of each 4 MB layer is 1 MB a rank.
func TestPriceIsOfTheRankThatLoadsMost(t *testing.T) {
	at := func(slots ...int32) plan {
		p := newPlan("", "")
		layout, err := placement.Layout(4, slots, 2)
		if err != nil {
			t.Fatal(err)
		}
		p.layouts[3] = layout
		return p
	}
	p := Options{ExpertBytes: 1e6, Bandwidth: 1e9}.price(Plan{2, 2}, at(0, 1, 2, 3), at(0, 1, 1, 2, 3, 0))
	if p.Moved != 1 || !near(p.MoveNS, 1e6) || p.MovedBytes != 1e6 || p.MemoryBytes != 1e6 {
		t.Errorf("%+v", p)
	}
}
