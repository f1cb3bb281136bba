package place

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// traced reads the traces of one arm.
func traced(t *testing.T, pattern, steps string) *nsys.Trace {
	t.Helper()
	paths, _ := filepath.Glob(pattern)
	if len(paths) == 0 {
		t.Skip("no shared captures")
	}
	var o nsys.Options
	if steps != "" {
		var err error
		if o.Steps, err = nsys.ParseSteps(steps); err != nil {
			t.Fatal(err)
		}
	}
	trace, err := nsys.Read(t.Context(), paths, o)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// slowestNS is the measured time of the slowest rank's experts over all layers, mean over
// steps.
func slowestNS(trace *nsys.Trace) (ns float64) {
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
			of := func(arm string) *nsys.Trace { return traced(t, c.folder+arm+".rank*", c.steps) }
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
				s, err := w.scores([]plan{flat}, w.record.Experts, cost)
				if err != nil {
					t.Fatal(err)
				}
				predicted[i] = s[0].ns[0]
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

// The campaign of the same model measured +6.8 % to +7.9 % for balanced routing, unprofiled.
// Even ranks alone are predicted to win nearly that.
func TestStepTimeOnH200(t *testing.T) {
	const hf = "../../../shared/captures/hf-qwen3-ep4/"
	trace := traced(t, hf+"normal.rank*", "")
	windows := Whole(read(t, hf+"counts-normal", hf+"counts-perfect"))
	cost, reason, err := FromTrace(trace, windows[0].record, 16384*8, 8)
	if err != nil || reason.Code != "" {
		t.Fatal(reason, err)
	}
	metric := gain.Metric{Name: "throughput", Unit: "tokens/s"}
	pairs := []gain.Pair{{Normal: 264323.7, Status: gain.PairComplete}, {Normal: 262913.3, Status: gain.PairComplete},
		{Normal: 1, Status: "incomplete"}}
	if why := cost.WithCampaign(gain.Result{Metric: metric, Pairs: pairs}, 0); why.Args["why"] != "metric" ||
		cost.StepBasis != "profiled" {
		t.Error(why, cost.StepBasis)
	}
	for _, refused := range []gain.Verdict{gain.Invalid, gain.NotComparable} {
		if why := cost.WithCampaign(gain.Result{Metric: metric, Pairs: pairs, Verdict: refused}, 16384); why.Args["why"] !=
			"refused" ||
			why.Args["verdict"] != string(refused) {
			t.Errorf("%s: %v", refused, why)
		}
	}
	if why := cost.WithCampaign(gain.Result{Metric: metric, Pairs: pairs}, 16384); why.Code != "" ||
		math.Abs(cost.StepNS.Float64()-62.15e6) > 5e4 {
		t.Error(why, cost.StepNS)
	}
	res, err := Judge(windows[:1], Whole(read(t, hf+"counts-normal")), Options{Ranks: []int{4}, Redundant: []int{0, 4},
		Threshold: 0.1, Cost: cost})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range res.Placements {
		if gain := 1/(1+p.Time.Estimate) - 1; p.Time.Of != "step time" || gain < 0.066 || gain > 0.079 ||
			p.Time.Low > p.Time.Estimate || p.Time.High < p.Time.Estimate || p.Verdict != NoVerdict {
			t.Errorf("gain %v: %+v, %+v", gain, p, p.Time)
		}
	}
}

// Times of 0.1 ms and 1 µs per slot give these back, and a tenth more on one rank and less
// on the other in turn is their spread; without the time of a step there is none, and with
// one rank, or the counts of other steps, no cost.
func TestFromTimes(t *testing.T) {
	var rows strings.Builder
	var ms [][][]float64
	for step := range 2 {
		ms = append(ms, nil)
		for layer := range 3 {
			slots := []int{10 + 40*layer, 200 - 30*layer}
			fmt.Fprintf(&rows, "%d,%d,0,%d\n%d,%d,1,%d\n", step, layer, slots[0], step, layer, slots[1])
			off := 0.1 - 0.2*float64(step)
			ms[step] = append(ms[step], []float64{(1 + off) * (0.1 + 0.001*float64(slots[0])),
				(1 - off) * (0.1 + 0.001*float64(slots[1]))})
		}
	}
	r := read(t, counted(t, rows.String()))[0]
	c, reason, err := FromTimes("w.json", ms, 2, r)
	if err != nil || reason.Code != "" || math.Abs((c.FixedNS+c.ExpertNS).Float64()-1e5) > 1 ||
		math.Abs(c.SlotNS.Float64()-1e3) > 1e-3 || c.StepNS != 2e6 || c.HeldOut[0].Regime != "steps of the benchmark" {
		t.Errorf("%+v, %v, %v", c, reason, err)
	}
	off := func(us, share float64) float64 { return share * math.Sqrt(1e3*us) }
	if len(c.spread) != 6 || !floats.EqualApprox(c.spread[0], []float64{off(110, 0.1), off(300, -0.1)}, 1e-6) ||
		!floats.EqualApprox(c.spread[5], []float64{off(190, -0.1), off(240, 0.1)}, 1e-6) {
		t.Error(c.spread)
	}
	if c, reason, err = FromTimes("w.json", ms, 0, r); err != nil || reason.Code != "" || c.StepNS.Defined() ||
		c.StepBasis != "" {
		t.Errorf("without a step's time: %+v, %v, %v", c, reason, err)
	}
	for want, ms := range map[string][][][]float64{
		"two or more ranks": {{{1}}}, "no expert time": nil, "differ in layers or ranks": {{{1, 2}}, {{1}}},
		"it has 1 step and the counts have 2": ms[:1],
	} {
		if c, reason, err = FromTimes("w.json", ms, 2, r); err != nil || c != nil || !strings.Contains(caveat.Text(reason), want) {
			t.Errorf("%s: %+v, %v, %v", want, c, reason, err)
		}
	}
}

// By hand: 121 ns for 100 are 2.1·√100 more; what a rank without work takes is left out.
func TestSpread(t *testing.T) {
	c := &Cost{Ranks: 2, fits: [][3]float64{{0, 1, 0}}}
	have := c.spreadOf([]observation{{3, 0, 0, 0, 0, 5}, {3, 1, 0, 100, 1, 121}, {4, 1, 0, 400, 1, 380}})
	if len(have) != 2 || !slices.Equal(have[0], []float64{0, 2.1}) || !slices.Equal(have[1], []float64{0, -1}) {
		t.Error(have)
	}
}

// By hand: of ranks of 900 and 100 ns, of which either takes 2·√t longer in turn, the
// slowest takes 960 or 900; of two of 400, 440 in any case.
func TestSlowestOfEqualRanks(t *testing.T) {
	l, err := router.Contiguous(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cost{fits: [][3]float64{{0, 1, 0}, {0, 2, 0}}, spread: [][]float64{{2, 0}, {0, 2}}}
	for _, ns := range []struct {
		load []int64
		want []float64
	}{{[]int64{900, 100}, []float64{930, 1860}}, {[]int64{400, 400}, []float64{440, 880}},
		{[]int64{0, 0}, []float64{0, 0}}} {
		if have := c.slowest(l, ns.load, 1, false); !floats.EqualApprox(have, ns.want, 1e-9) {
			t.Errorf("%v: %v, want %v", ns.load, have, ns.want)
		}
	}
}

// Times made by 5 + 2 slots + 7 experts give these back, and no negative part.
func TestFit(t *testing.T) {
	var obs []observation
	for i, slots := range []float64{10, 20, 40, 80, 30, 60} {
		active := float64(1 + i*i%5)
		obs = append(obs, observation{group: i, slots: slots, active: active, ns: 5 + 2*slots + 7*active})
	}
	fits, h, reason := fitAll(obs, "layer")
	if c := fits[0]; reason.Code != "" || math.Abs(c[0]-5) > 1e-6 || math.Abs(c[1]-2) > 1e-6 || math.Abs(c[2]-7) > 1e-6 ||
		h.P90 > 1e-6 || len(fits) != 7 || h.Groups != 6 {
		t.Error(fits, h, reason)
	}
	for i := range obs {
		obs[i].ns = 2*obs[i].slots - 3 // a fixed part below zero
	}
	if c, ok := fit(obs); !ok || c[0] < 0 || c[1] <= 0 || c[2] < 0 {
		t.Error(c, ok)
	}
	if _, _, reason := fitAll(obs[:2], "layer"); reason.Args["groups"] != 2.0 || reason.Args["least"] != 3.0 {
		t.Error(reason)
	}
}

// A table of the cost 10 µs + 0.1 µs per slot + 2 µs per expert, whose rows say how many of
// 1000 tokens, top-1, reach the rank: as many as it has slots.
func TestTable(t *testing.T) {
	model := router.Model{Hidden: 64, Intermediate: 32, Shape: router.Shape{Experts: 16, TopK: 1}}
	table := func(rows string) string { return strings.Join(tableColumns, ",") + ",device\n" + rows }
	var rows strings.Builder
	for _, ep := range []int{2, 4, 8} {
		for _, tokens := range []int{100, 1000} {
			for _, reached := range []int{tokens / 10, tokens / 2, tokens} {
				held := 16 / float64(ep)
				us := 10 + 0.1*float64(reached) + 2*held*(1-math.Exp(-float64(reached)/held))
				if reached == tokens {
					us = 1e6 // is left out
				}
				fmt.Fprintf(&rows, "%d,%d,64,32,1,16,16,%d,%v,H200\n64,32,65,32,1,16,16,2,5,H100\n", tokens, reached,
					ep, us/1e3)
			}
		}
	}
	c, err := FromTable("t.csv", strings.NewReader(table(rows.String())), model, 1000)
	if err != nil || math.Abs(c.SlotNS.Float64()-100) > 1e-3 || math.Abs(c.ExpertNS.Float64()-2000) > 1 ||
		len(c.HeldOut) != 2 || c.HeldOut[1].P90 > 1e-6 || c.StepNS.Defined() || c.slots != 1000 ||
		c.LeastTokens != 100 || c.MostTokens != 1000 || c.Beyond() || c.other == [3]float64{} {
		t.Errorf("%+v, %v", c, err)
	}
	for rows, want := range map[string]string{
		"":                             "have 0 of other shapes",
		"1,1,64,32,1,16,16,2\n":        "CSV cost table",
		"9,x,64,32,1,16,16,2,5,H200\n": `line 2, rank0_num_tokens: want a number above 0, have "x"`,
		"9,5,64,32,1,16,16,2,5,H200\n9,5,64,32,1,16,16,4,5,H100\n": "want rows of one device, have H200 and H100",
		"900,5,64,32,1,16,16,2,5,H200\n":                           "have 1 EP size, where a cost takes at least 3",
	} {
		if _, err := FromTable("t.csv", strings.NewReader(table(rows)), model, 1000); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", rows, err, want)
		}
	}
}

// By hand: 4 experts of 300 300 100 100 slots on 2 ranks at 1 ns per slot: contiguous 600,
// EPLB 420 on steps that differ from those learned. Moved experts are those that ranks lack.
func TestTimeAndPrice(t *testing.T) {
	path := counted(t, "0,5,0,300\n0,5,1,300\n0,5,2,100\n0,5,3,100\n1,5,0,310\n1,5,1,290\n1,5,2,100\n1,5,3,100\n2,5,0,300\n2,5,1,300\n2,5,2,80\n2,5,3,120\n3,5,0,300\n3,5,1,300\n3,5,2,120\n3,5,3,80\n")
	windows, err := parts(read(t, path)[0], []int64{0, 1, 2, 3}, maxParts)
	if err != nil || len(windows) != 2 {
		t.Fatal(windows, err)
	}
	cost := &Cost{StepNS: 2000, Slots: 800, slots: 800, TopK: 1, fits: [][3]float64{{0, 1, 0}, {0, 1.1, 0}}, off: 0.1}
	res, err := Judge(windows[:1], windows[1:], Options{Ranks: []int{2}, Redundant: []int{0}, Threshold: 0.1,
		Cost: cost, ExpertBytes: 1e6, Bandwidth: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	p := res.Placements[0]
	if p.Time == nil || !near(p.Time.SavedNS, 180) || !near(p.Time.Estimate, -0.09) || !near(p.Time.Error, 0.03) ||
		!near(p.Time.Low, -0.129) || !near(p.Time.High, -0.06) || p.Verdict != Trial {
		t.Errorf("%+v, %+v", p, p.Time)
	}
	if p.Moved != 2 || p.MovedBytes != 2e6 || !near(p.MoveNS, 1e6) || !near(p.PaidBackAfter, 1e6/180.) ||
		p.ReplicaBytes != 0 || p.BreakEvenTokens.Defined() {
		t.Errorf("%+v", p.Price)
	}
}

// A placement with copies activates more experts: below some batch it costs time. By hand,
// of T tokens the busiest rank gets 3T/4 and runs 2 experts; with a copy of each, T/2 and 4:
// at 50 ns per expert the copies save time above 400 tokens.
func TestBreakEven(t *testing.T) {
	windows := Whole(read(t, counted(t, "0,0,0,300\n0,0,1,300\n0,0,2,100\n0,0,3,100\n"),
		counted(t, "0,0,0,290\n0,0,1,310\n0,0,2,110\n0,0,3,90\n")))
	for perExpert, want := range map[float64]router.Number{0: router.Undefined(), 50: 512, 1e9: router.Undefined()} {
		cost := &Cost{Slots: 800, slots: 800, TopK: 1, StepNS: router.Undefined(), LeastTokens: 1, MostTokens: 4096,
			fits: [][3]float64{{0, 1, perExpert}, {0, 1, perExpert}}}
		res, err := Judge(windows[:1], windows[1:], Options{Ranks: []int{2}, Redundant: []int{4}, Threshold: 0.1,
			Cost: cost})
		if err != nil || fmt.Sprint(res.Placements[0].BreakEvenTokens) != fmt.Sprint(want) {
			t.Errorf("%v per expert: %+v, %v", perExpert, res.Placements[0].Price, err)
		}
	}
}

// The cost of small steps is that of the decode rows: those of prefill see no price of experts.
// Beyond what was measured there is no break-even, and predictions are said to be extrapolated.
func TestBreakEvenOfTables(t *testing.T) {
	windows := Whole(read(t, counted(t, "0,0,0,300\n0,0,1,300\n0,0,2,100\n0,0,3,100\n"),
		counted(t, "0,0,0,290\n0,0,1,310\n0,0,2,110\n0,0,3,90\n")))
	perSlot, perExpert := [3]float64{0, 1, 0}, [3]float64{0, 1, 50}
	for i, c := range []struct {
		prefill, decode [3]float64
		least, most     router.Number
		want            router.Number
	}{
		{perSlot, perExpert, 1, 4096, 512},
		{perSlot, perSlot, 1, 4096, router.Undefined()},
		{perExpert, perExpert, 1, 300, router.Undefined()},     // none that were measured
		{perExpert, perExpert, 1000, 4096, router.Undefined()}, // any
		{perExpert, perExpert, 1000, 1000, router.Undefined()}, // one point
	} {
		cost := &Cost{Slots: 1000, slots: 1000, TopK: 1, StepNS: router.Undefined(), LeastTokens: c.least, MostTokens: c.most,
			fits: [][3]float64{c.prefill, c.prefill}, other: c.decode}
		res, err := Judge(windows[:1], windows[1:], Options{Ranks: []int{2}, Redundant: []int{4}, Threshold: 0.1,
			Cost: cost})
		if err != nil || fmt.Sprint(res.Placements[0].BreakEvenTokens) != fmt.Sprint(c.want) ||
			cost.Beyond() != (c.most < 1000) {
			t.Errorf("%d: %+v, %v", i, res.Placements[0].Price, err)
		}
	}
}

// Any bytes: an error of one line, or a cost.
func FuzzTable(f *testing.F) {
	model := router.Model{Hidden: 64, Intermediate: 32, Shape: router.Shape{Experts: 16, TopK: 1}}
	head := strings.Join(tableColumns, ",") + "\n"
	for _, rows := range []string{"", "1,1,64,32,1,16,16,2\n",
		"9,5,64,32,1,16,16,2,5\n9,4,64,32,1,16,16,4,5\n9,3,64,32,1,16,16,8,5\n",
		"1e308,1e-308,64,32,1,16,1e308,1e308,5\n"} {
		f.Add(head + rows)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := FromTable("t.csv", strings.NewReader(text), model, 9); err != nil &&
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	})
}
