package place

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/answer/caveat"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/testdata/require"
)

func read(paths ...string) (records []*counts.Record) {
	for _, path := range paths {
		records = append(records, require.Value(counts.Read(path)))
	}
	return records
}

// near reports whether two numbers agree to the digits that were typed.
func near(a router.Number, b float64) bool { return math.Abs(float64(a)-b) <= 5.1e-5 }

// LMSYS's production counts of DeepSeek-R1, 58 MoE layers, 32 ranks and 288 physical experts, by a separate
// program: EPLB learned on prefill_in1024 promises 1.007 there, and holds 1.109 on traffic nearby.
func TestMatrixOfLMSYS(t *testing.T) {
	windows := lmsysWindows(t, "")
	judged, contiguous := map[string]float64{"decode_in1000out1000": 1.4094, "decode_in2000out100": 1.2790,
		"prefill_in2000out100": 1.1088, "prefill_in4096": 1.2247, "prefill_in512": 1.1129},
		map[string]float64{"decode_in1000out1000": 2.8800, "decode_in2000out100": 2.6329, "prefill_in2000out100": 2.6170,
			"prefill_in4096": 3.0419}
	at := slices.IndexFunc(windows, func(w Window) bool { return strings.Contains(w.Name, "prefill_in1024") })
	res, p := placedOn(windows[at:at+1], slices.Delete(slices.Clone(windows), at, at+1), 32, 32)
	for _, w := range res.Workloads {
		name := strings.TrimSuffix(filepath.Base(w.Window), ".json")
		if base, ok := contiguous[name]; !near(w.Judged, judged[name]) || ok && !near(w.Baseline, base) {
			t.Errorf("%+v", w)
		}
	}
	if !near(p.Learned, 1.0070) || !near(p.Judged, (1.1129+1.2247+1.1088+1.4094+1.2790)/5) || p.Verdict != Trial ||
		p.Time != nil || len(res.Layers) != 58 || len(res.Slots[Plan{32, 32}]) != 58 {
		t.Errorf("%+v, %d layers", p, len(res.Layers))
	}
}

func counted(t *testing.T, rows string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counts.csv")
	write(t, path, "step,layer,expert,count\n"+rows)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// placedOn judges on some ranks, without redundant experts unless asked, at a threshold of 10 %.
func placedOn(learn, judge []Window, ranks int, redundant ...int) (*Result, Placement) {
	o := Options{Ranks: []int{ranks}, Redundant: append(redundant, 0)[:1], Threshold: 0.1}
	res := require.Value(Judge(learn, judge, o))
	return res, res.Placements[0]
}

// By hand: learned on 300 300 100 100, EPLB puts experts 0 2 and 1 3 together. Where
// 0 and 2 are hot, contiguous ranks are even, and the placement is 600 against 200.
func TestHelpsOneHurtsAnother(t *testing.T) {
	a := counted(t, "0,5,0,300\n0,5,1,300\n0,5,2,100\n0,5,3,100\n")
	b := counted(t, "0,5,0,300\n0,5,1,100\n0,5,2,300\n0,5,3,100\n")
	c := counted(t, "0,5,0,2900\n0,5,1,3100\n0,5,2,1100\n0,5,3,900\n") // much as a
	windows := Whole(read(a, b, c))
	res, p := placedOn(windows[:1], windows[1:], 2)
	if w := res.Workloads; len(w) != 2 || !near(w[0].Judged, 1.5) || !near(w[0].Baseline, 1) ||
		!near(w[0].Change, 0.5) || !near(w[1].Judged, 1) || !near(w[1].Change, -1./3) {
		t.Errorf("%+v", w)
	}
	if p.Verdict != NotNow || !near(p.Judged, 1.25) || !near(p.Baseline, 1.25) || !near(p.Learned, 1) ||
		!near(p.Change, 0) {
		t.Errorf("%+v", p)
	}
	if res, p = placedOn(windows[:1], nil, 2); p.Verdict != NoVerdict || p.Judged.Defined() || p.Change.Defined() ||
		!near(p.Learned, 1) || len(res.Workloads) != 0 {
		t.Errorf("%+v", res)
	}
	// Without others each is judged by the plan of the other: c is much as a, so the kinds are a with c, and b.
	// By EPLB of b, which puts 0 with 1 and 2 with 3, a is as contiguous; by EPLB of a, b is at 1.5. Both
	// together put 0 with 3, which is written: 400 400 in a and b, 3800 4200 in c.
	res, p = placedOn(windows, nil, 2)
	if w := res.Workloads; res.LeftOut != 2 || len(w) != 3 || !near(w[0].Judged, 1.5) || !near(w[1].Judged, 1.5) ||
		!near(w[2].Judged, 1.5) || !near(p.Learned, (1+1+1.05)/3) || p.Name != PlanRobust || p.Verdict != NotNow {
		t.Errorf("%+v, %+v", w, p)
	}
}

// A dozen slots are as uneven by chance. Of n slots drawn alone, one of two ranks gets n/2 ± √n/2,
// so max/mean is 1 + |z|/√n, above 1 + 1.96/100 once in twenty times for 10,000.
func TestTooFewTokens(t *testing.T) {
	windows := Whole(read(counted(t, "0,5,0,4\n0,5,1,4\n0,5,2,2\n0,5,3,2\n"),
		counted(t, "0,5,0,5\n0,5,1,4\n0,5,2,2\n0,5,3,1\n")))
	if _, p := placedOn(windows[:1], windows[1:], 2); p.Verdict != NoVerdict || !near(p.Change, -2./9) ||
		!strings.Contains(caveat.Text(p.Reason), "too few tokens") {
		t.Errorf("%+v", p)
	}
	many := Whole(read(counted(t, "0,5,0,4000\n0,5,1,3000\n0,5,2,1000\n0,5,3,2000\n")))
	if res, p := placedOn(windows, many, 2); math.Abs(float64(p.NullP95)-1.0196) > 0.004 ||
		res.Workloads[0].NullP95 != p.NullP95 {
		t.Errorf("noise floor: %+v", p)
	}
}

// The same counts in every step, or in another file, are no other counts, nor are they with one slot moved; with 100 of
// 10,000 more or less on each of 30 experts they are other tokens, as they are of another layer.
func TestRepeatedCounts(t *testing.T) {
	file := func(layer, steps int, off func(expert int) int) string {
		var rows strings.Builder
		for i := range 30 * steps {
			fmt.Fprintf(&rows, "%d,%d,%d,%d\n", i/30, layer, i%30, 10000+off(i%30)+1000*(i%30%7))
		}
		return counted(t, rows.String())
	}
	same, moved := func(int) int { return 0 }, func(e int) int { return map[int]int{3: 1, 4: -1}[e] }
	learn, judge := Halves(read(file(0, 3, same)))
	for i, w := range Whole(read(file(0, 1, same), file(0, 1, moved), file(0, 1, func(e int) int { return 100 - 200*(e%2) }),
		file(1, 1, same))) {
		if again := w.repeats(learn[0]); again != (i < 2) {
			t.Errorf("%d: %v", i, again)
		}
	}
	if _, p := placedOn(learn, judge, 2); p.Verdict != NoVerdict || !strings.Contains(caveat.Text(p.Reason), "recur") {
		t.Errorf("%+v", p)
	}
}

func TestVerdicts(t *testing.T) {
	better, worse := Workload{Change: -0.2}, Workload{Change: 0.1}
	for i, c := range []struct {
		change, null router.Number
		of           []Workload
		want         Verdict
		time         *TimeChange
	}{
		{-0.1, 1.01, []Workload{better}, Trial, nil},
		{-0.0999, 1.01, []Workload{better}, NotNow, nil},
		{-0.2, 1.01, []Workload{better, better, better, better, better, worse}, NotNow, nil},
		{-0.2, 1.5, []Workload{better}, NoVerdict, nil},
		{-0.2, 1.4, []Workload{better}, Trial, nil},
		{-0.2, router.Undefined(), []Workload{better}, Trial, nil},
		{-0.2, 1.01, []Workload{better, {Change: -0.2, Repeats: true}}, NoVerdict, nil},
		{router.Undefined(), 1, nil, NoVerdict, nil},
		{-0.2, 1.01, []Workload{better}, Trial, &TimeChange{Estimate: -0.1, Low: -0.2, High: -0.01}},
		{-0.2, 1.01, []Workload{better}, NoVerdict, &TimeChange{Estimate: -0.1, Low: -0.2, High: 0}},
		{-0.2, 1.01, []Workload{better}, NotNow, &TimeChange{Estimate: -0.1, Low: -0.2, High: -0.0099}},
		{-0.09, 1.01, []Workload{better}, Trial, &TimeChange{Estimate: -0.1, Low: -0.2, High: -0.01}},
		{-0.2, 1.01, []Workload{better}, NotNow, &TimeChange{Estimate: 0.1, Low: 0, High: 0.2}},
	} {
		p := Placement{Judged: 1.5 * (1 + c.change), Baseline: 1.5, Change: c.change, NullP95: c.null, Time: c.time}
		for _, w := range c.of {
			if p.Hurt++; w.Change < 0 {
				p.Hurt, p.Helped = p.Hurt-1, p.Helped+1
			}
		}
		if have, why := verdict(p, c.of, 0.1, router.Warning{}); have != c.want || why.Code == "" {
			t.Errorf("%d: %s (%s), want %s", i, have, why, c.want)
		}
	}
	// A campaign's gains count as a trace's time does: at least 2 % at one point and 12 % at another are 1.96 and 10.7 % of
	// time, at least 1 and 12 % are 0.99 and 10.7 %.
	p := Placement{Judged: 1.2, Baseline: 1.5, Change: -0.2, NullP95: 1.01, Helped: 1}
	for low, want := range map[router.Number]Verdict{0.02: Trial, 0.01: NotNow, -0.01: NoVerdict} {
		p.Gains = []gain.Predicted{{Interval: gain.Interval{Estimate: low, Low: low, High: 0.13}},
			{Interval: gain.Interval{Estimate: 0.13, Low: 0.12, High: 0.14}}, {Refused: &router.Warning{}}}
		if have, why := verdict(p, []Workload{better}, 0.1, router.Warning{}); have != want {
			t.Errorf("gain from %v: %s (%s), want %s", low, have, why, want)
		}
	}
	p.Gains = nil
	for load, want := range map[router.Number]string{1.005: "the judged load is even already (max/mean 1.005)", 1.0051: "better in"} {
		p.Baseline = load
		if _, why := verdict(p, []Workload{better, {Change: 0}}, 0.1, router.Warning{}); !strings.HasPrefix(caveat.Text(why), want) {
			t.Error(why)
		}
	}
	p.Baseline = 1.5
	if _, why := verdict(p, []Workload{better, {Change: 0}}, 0.1, router.Warning{}); caveat.Text(why) !=
		"better in 1 of 2 judged windows" {
		t.Error(why)
	}
	for want, c := range map[string]struct {
		of     []Workload
		noTime router.Warning
	}{
		Flat:        {nil, noTime(Flat)},
		Unlike:      {[]Workload{better}, noTime(Unlike, "explained", 0.014)},
		Contradicts: {[]Workload{better}, doubted(router.Warn(trace.CountsContradict, "", "layer", 3))},
		"alike":     {[]Workload{{Change: -0.2, alike: true}, {Change: -0.2, alike: true}}, router.Warning{}},
		"load":      {[]Workload{{Change: -0.2, alike: true}, better}, router.Warning{}},
	} {
		p.Helped = len(c.of)
		have, why := verdict(p, c.of, 0.1, c.noTime)
		if why.Args["why"] != want || (have == NoVerdict) == (want == "load" || want == Flat) {
			t.Errorf("%s (%s), want %s", have, why, want)
		}
	}
}

// The answer is about no more redundant experts than the intervals of time ask for, or
// without time 1 % of max/mean.
func TestBestHasTheFewestOfEqualPlacements(t *testing.T) {
	at := func(redundant int, estimate, half router.Number, verdict Verdict) Placement {
		return Placement{Plan: Plan{8, redundant}, Time: &TimeChange{Estimate: estimate, Low: estimate - half,
			High: estimate + half}, Verdict: verdict}
	}
	other := at(0, -0.3, 0.01, Trial)
	other.Ranks = 4
	for i, c := range []struct {
		placements []Placement
		want       int
	}{
		{[]Placement{at(0, -0.10, 0.01, Trial), at(8, -0.11, 0.01, Trial), at(16, -0.112, 0.01, Trial)}, 0},
		{[]Placement{at(0, -0.05, 0.01, Trial), at(8, -0.11, 0.01, Trial), at(16, -0.112, 0.01, Trial)}, 8},
		{[]Placement{at(0, -0.10, 0.01, NotNow), at(16, -0.112, 0.01, Trial)}, 16},
		{[]Placement{at(0, router.Undefined(), 0.01, Trial), at(8, -0.1, router.Undefined(), Trial)}, 8},
		{[]Placement{other, at(4, -0.10, 0.02, Trial), at(16, -0.112, 0.001, Trial)}, 4},
		{[]Placement{{Plan: Plan{8, 0}, Judged: 1.3}, {Plan: Plan{8, 8}, Judged: 1.11},
			{Plan: Plan{8, 16}, Judged: 1.1}}, 8},
		{[]Placement{{Plan: Plan{8, 8}, Judged: 1.112}, {Plan: Plan{8, 16}, Judged: 1.1}}, 16},
		{[]Placement{{Plan: Plan{8, 0}, Judged: router.Undefined()}, {Plan: Plan{8, 8}, Judged: 1.1}}, 8},
	} {
		if best := (&Result{Placements: c.placements, Threshold: 0.1}).Best(); best.Redundant != c.want ||
			best.Ranks != 8 {
			t.Errorf("%d: %+v, want %d redundant experts", i, best.Plan, c.want)
		}
	}
}

// The halves of five iterations are three and two, and a mean over steps is no ratio of
// sums: busy ranks that alternate do not cancel.
func TestHalves(t *testing.T) {
	rows := "1,0,0,100\n1,0,1,100\n2,0,0,100\n2,0,1,100\n4,0,0,100\n4,0,1,100\n7,0,0,300\n7,0,1,100\n9,0,0,100\n9,0,1,300\n"
	learn, judge := Halves(read(counted(t, rows)))
	if len(learn) != 1 || len(judge) != 1 || learn[0].Iterations != 3 || judge[0].Iterations != 2 ||
		learn[0].Slots != 600 || judge[0].Slots != 800 {
		t.Fatalf("%+v, %+v", learn, judge)
	}
	if _, p := placedOn(learn, judge, 2); !near(p.Learned, 1) || !near(p.Judged, 1.5) || !near(p.Baseline, 1.5) {
		t.Errorf("%+v", p)
	}
	learn, judge = Halves(read(counted(t, "1,0,0,9\n1,0,1,9\n2,1,0,9\n2,1,1,9\n"))) // of another layer
	if _, err := Judge(learn, judge, Options{Ranks: []int{2}, Redundant: []int{0}}); !errors.Is(err, counts.ErrOptions) {
		t.Error(err)
	}
	// Prefill and decode of the same steps are windows of their own.
	both := "step,layer,expert,count,phase\n"
	for step := range 4 {
		both += fmt.Sprintf("%d,0,0,30,prefill\n%[1]d,0,1,10,prefill\n%[1]d,0,0,1,decode\n%[1]d,0,1,3,decode\n", step)
	}
	path := filepath.Join(t.TempDir(), "both.csv")
	write(t, path, both)
	if learn, judge = Halves(read(path)); len(learn) != 2 || len(judge) != 2 || learn[0].Slots != 80 || judge[1].Slots != 8 {
		t.Errorf("%+v, %+v", learn, judge)
	}
	// Several records are left out in turn; of one kind, each alone, which proves nothing.
	records := read(counted(t, rows), counted(t, rows), counted(t, rows))
	if learn, judge = Halves(records); len(learn) != 3 || judge != nil {
		t.Errorf("%+v, %+v", learn, judge)
	}
	if res, p := placedOn(learn, judge, 2); res.LeftOut != 3 || len(res.Workloads) != 3 || p.Verdict != NoVerdict ||
		!strings.Contains(caveat.Text(p.Reason), "recur in 3 of 3 judged windows") {
		t.Errorf("%+v", p)
	}
}

// By hand, the load is 300 300 100 100. Contiguous ranks get 600 and 200. The running
// placement has 0 with 2 and 1 with 3, as EPLB would, so that nothing is to win and nothing
// moves; a layer that it places as 0 1 | 2 3 is at 1.5, and there one expert of each rank moves.
func TestRunningPlacementIsTheBaseline(t *testing.T) {
	rows := ""
	for step := range 2 {
		for layer := 3; layer < 5; layer++ {
			rows += fmt.Sprintf("%d,%d,0,300\n%[1]d,%d,1,300\n%[1]d,%[2]d,2,100\n%[1]d,%[2]d,3,100\n", step, layer)
		}
	}
	path := filepath.Join(t.TempDir(), "running.yaml")
	write(t, path, "num_slots: 4\nep_size: 2\ninitial_global_assignments:\n  3: [0, 2, 1, 3]\n  4: [0, 1, 2, 3]\n")
	running := require.Value(counts.ReadPlacement(path, 0))
	for name, c := range map[string]struct {
		records []*counts.Record
		from    *placement.Map
		before  string
		base    float64
		moved   int
	}{
		"nothing known": {read(counted(t, rows)), nil, Contiguous, 1.5, 4},
		"given":         {read(counted(t, rows)), running, path, 1.25, 2},
	} {
		learn, judge := Halves(c.records)
		res := require.Value(Judge(learn, judge, Options{Ranks: []int{2}, Redundant: []int{0}, Threshold: 0.1, From: c.from}))
		p := res.Placements[0]
		if p.Before != c.before || math.Abs(float64(p.Baseline)-c.base) > 0.002 || p.Moved != c.moved ||
			math.Abs(float64(p.Change)-(1/c.base-1)) > 0.003 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	// The map may stand beside the counts, and be of physical experts on any ranks.
	beside := filepath.Join(t.TempDir(), "beside.json")
	write(t, beside, `{"logical_count": [[300, 300, 100, 100]], "p2l_map": [[0, 2, 1, 3, 0, 1]]}`)
	for ranks, base := range map[int]float64{2: 1, 3: 1.125} { // copies of 0 and 1 get 150: 400 400, or 250 250 300
		res, err := Judge(Whole(read(beside)), Whole(read(beside)),
			Options{Ranks: []int{ranks}, Redundant: []int{2}})
		if err != nil || res.Placements[0].Before != beside || !near(res.Placements[0].Baseline, base) ||
			(Options{Ranks: []int{ranks}}).Running(read(beside)) != 2 {
			t.Errorf("%d ranks: %+v, %v, want %v", ranks, res, err, base)
		}
	}
	// A map that places no experts is no placement, and is not passed over in silence.
	for _, placed := range []string{"[[0, 2, 1, 3, 0]]", "[[0, 2, 1, 1]]", "[[0, 2, 1, 9]]"} {
		write(t, beside, `{"logical_count": [[300, 300, 100, 100]], "p2l_map": `+placed+`}`)
		if res, p := placedOn(Whole(read(beside)), nil, 2); p.Before != Contiguous || !slices.ContainsFunc(res.Warnings,
			func(w router.Warning) bool { return w.Code == "no_placement" }) {
			t.Errorf("%s: %+v", placed, res)
		}
	}
	other, _ := placement.Contiguous(8, 2)
	if res, err := Judge(Whole(read(counted(t, rows))), nil, Options{Ranks: []int{2}, Redundant: []int{0}, From: other}); !errors.Is(
		err, counts.ErrOptions) {
		t.Errorf("a placement of other experts: %+v, %v", res, err)
	}
}
