package plots

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/router"
)

// small is a trace of 2 ranks, layers 1 and 2, steps 5 and 6 and 4 experts, two
// per rank. Each rank's expert work is, in microseconds:
//
//	          layer 1        layer 2
//	step   rank 0 rank 1  rank 0 rank 1
//	  5       10     30      20     20
//	  6       30     10      20     20
//
// Each step and layer also has a dispatch phase of 4 µs per rank, of which 3 µs
// are collectives, and a kernel outside every step takes 1 ms. The load was
// counted over two steps: 50, 100, 150 and 200 slots per step in both layers.
func small() *nsys.Trace {
	t := &nsys.Trace{Ranks: []nsys.Rank{{Rank: 0}, {Rank: 1}}}
	for step, rows := range map[router.OptInt][2][2]int64{5: {{10, 30}, {20, 20}}, 6: {{30, 10}, {20, 20}}} {
		for i, row := range rows {
			for rank, us := range row {
				t.Cells = append(t.Cells,
					nsys.Cell{Rank: rank, Step: step, Layer: router.OptInt(i + 1), Phase: nsys.PhaseExperts,
						TotalNS: us * 1000},
					nsys.Cell{Rank: rank, Step: step, Layer: router.OptInt(i + 1), Phase: nsys.PhaseDispatch,
						TotalNS: 4000, CollectiveNS: 3000})
			}
		}
	}
	t.Cells = append(t.Cells, nsys.Cell{Rank: 0, Step: nsys.NoID, Layer: nsys.NoID, Phase: nsys.PhaseOther,
		TotalNS: 1e6})
	for layer := router.OptInt(1); layer <= 2; layer++ {
		for e := range 4 {
			t.Experts = append(t.Experts, nsys.ExpertStat{
				Rank: e / 2, Layer: layer, Expert: e, Basis: imbalance.Observed, Known: true,
				Slots: router.OptInt(100 * (e + 1)),
				Stats: nsys.Stats{TotalNS: int64(1000*(e+1)) * int64(layer)},
			})
		}
		t.Imbalance = append(t.Imbalance, imbalance.Row{Layer: layer, Level: router.LevelExpert,
			Quantity: imbalance.Load, Steps: 2})
		t.Stragglers = append(t.Stragglers, imbalance.Straggler{Layer: layer, Steps: 2,
			LossNS: router.Number(10000 * (2 - layer)), WorstRank: 1})
	}
	for rank := range 2 {
		// 12 µs of collectives per rank in all: 9 waiting, 3 transferring.
		t.Collectives = append(t.Collectives, wait.Collective{Rank: rank, Layer: 1, Phase: nsys.PhaseDispatch,
			TotalNS: 12000, WaitNS: 9000, TransferNS: 3000, CountedWaitNS: 9000, CountedTransferNS: 3000})
	}
	return t
}

func TestRankTimes(t *testing.T) {
	s := RankTimes(NewArm("normal", small()))
	// Rank 0: (10+30+20+20)/2 steps = 40 µs per step, and so has rank 1: the
	// rank that alternates cancels, which the caption says.
	checkValues(t, "rank times", s.Series[0].Values, []float64{40000, 40000})
	if want := "Expert time per step: every rank has 40.0 µs (normal)"; s.Title != want {
		t.Errorf("alt %q, want %q", s.Title, want)
	}
	if !strings.Contains(s.Caption, "cancels") || s.ValueLabel != "expert time per step" {
		t.Errorf("caption %q, label %q", s.Caption, s.ValueLabel)
	}
	if want := "2 ranks, 2 layers, 4 experts, 2 steps"; !strings.HasPrefix(s.Caption, want) {
		t.Errorf("caption %q does not begin with the shape %q", s.Caption, want)
	}
}

func TestRankLoads(t *testing.T) {
	s := RankLoads(NewArm("normal", small()))
	// Per layer and step rank 0 holds experts 0 and 1: 50+100; rank 1 150+200. Two layers.
	checkValues(t, "rank loads", s.Series[0].Values, []float64{300, 700})
	if s.Series[0].Floor != 500 { // 2 layers · ⌈1000/2⌉ / 2 steps
		t.Errorf("floor %g, want 500", s.Series[0].Floor)
	}
	odd := small()
	odd.Experts = []nsys.ExpertStat{odd.Experts[0], odd.Experts[2]}
	odd.Experts[0].Slots, odd.Experts[1].Slots = 3, 0
	if s := RankLoads(NewArm("normal", odd)); s.Series[0].Floor != 1 { // ⌈3/2⌉ on the busiest of two, over two steps
		t.Errorf("floor of 3 slots on 2 ranks over 2 steps %g, want 1", s.Series[0].Floor)
	}
	odd.Experts = odd.Experts[:1] // what rank 1 had is not known, so the 3 slots are rank 0's alone
	if s := RankLoads(NewArm("normal", odd)); s.Series[0].Floor != 1.5 {
		t.Errorf("floor of 3 slots of the only rank known %g, want 1.5", s.Series[0].Floor)
	} else {
		checkValues(t, "loads", s.Series[0].Values, []float64{1.5, nan})
		if want := "Load per recorded step: every rank has 1.5 slots (normal)"; s.Title != want {
			t.Errorf("alt %q, want %q", s.Title, want)
		}
	}
	if want := "Load per recorded step: rank 1 has most, 700 slots, 1.40 × the mean (normal)"; s.Title != want {
		t.Errorf("alt %q, want %q", s.Title, want)
	}
}

func TestRankLayerTimes(t *testing.T) {
	s := RankLayerTimes(NewArm("normal", small())) // per step
	checkValues(t, "layer 1", s.Grids[0].Values[0], []float64{20000, 20000})
	checkValues(t, "layer 2", s.Grids[0].Values[1], []float64{20000, 20000})
	if !slices.Equal(s.Grids[0].Rows, []int{1, 2}) {
		t.Errorf("layers %v", s.Grids[0].Rows)
	}
}

func TestExpertHeat(t *testing.T) {
	perfect := small()
	perfect.Experts = perfect.Experts[1:] // expert 0 of layer 1 was never seen
	s := ExpertTimes(NewArm("normal", small()), NewArm("perfect", perfect))
	checkValues(t, "layer 2 per step", s.Grids[0].Values[1], []float64{1000, 2000, 3000, 4000})
	checkValues(t, "layer 1 without expert 0", s.Grids[1].Values[0], []float64{nan, 1000, 1500, 2000})
	if !slices.Equal(s.Grids[0].Cuts, []int{2}) {
		t.Errorf("cuts %v, want one before expert 2", s.Grids[0].Cuts)
	}
	if !strings.Contains(s.Caption, "observed") {
		t.Errorf("caption %q does not say how the times came about", s.Caption)
	}
	perfect.Experts[0].Basis = imbalance.Allocated
	if s := ExpertTimes(NewArm("perfect", perfect)); !strings.Contains(s.Caption, "Some times are observed") {
		t.Errorf("caption %q hides that some times are allocated", s.Caption)
	}
	if want := "Time by layer and expert: layer 1, expert 3 has most, 1.60 × the layer's mean (normal)"; !strings.HasPrefix(s.Title, want) {
		t.Errorf("alt %q, want %q", s.Title, want) // 4000 over the mean 2500
	}
}

// An expert with copies on several ranks counts with their sum, and draws no
// boundary between ranks.
func TestReplicatedExpert(t *testing.T) {
	trace := small()
	copied := trace.Experts[0]
	copied.Rank = 1
	trace.Experts = append(trace.Experts, copied)
	s := ExpertTimes(NewArm("normal", trace))
	checkValues(t, "layer 1", s.Grids[0].Values[0], []float64{1000, 1000, 1500, 2000})
	if s.Grids[0].Cuts != nil {
		t.Errorf("cuts %v, want none", s.Grids[0].Cuts)
	}
}

func TestRecordedLoads(t *testing.T) {
	s := RecordedLoads(
		Recorded{"a", map[int][]int64{2: {1, 3}, 7: {2, 2}}},
		Recorded{"b", map[int][]int64{7: {0, 0, 6}}})
	if !slices.Equal(s.Grids[0].Rows, []int{2, 7}) || !slices.Equal(s.Grids[1].Columns, []int{0, 1, 2}) {
		t.Fatalf("layers %v and experts %v, want the union of both", s.Grids[0].Rows, s.Grids[1].Columns)
	}
	checkValues(t, "layer 2 of a", s.Grids[0].Values[0], []float64{1, 3, nan})
	checkValues(t, "layer 2 of b", s.Grids[1].Values[0], []float64{nan, nan, nan})
	checkValues(t, "layer 7 of b", s.Grids[1].Values[1], []float64{0, 0, 6})
	if want := "Load by layer and expert: layer 2, expert 1 has most, 1.50 × the layer's mean (a); layer 7, expert 2 has most, 3.00 × the layer's mean (b)"; s.Title != want {
		t.Errorf("alt %q, want %q", s.Title, want)
	}
}

// What is even only because steps were added up is not called even, and every
// figure that adds them up says so.
func TestSumsOverStepsAreNoVerdict(t *testing.T) {
	arm := NewArm("normal", small()) // layer 1: rank 0 is hot in step 6, rank 1 in step 5
	recorded := RecordedLoads(Recorded{"counts", map[int][]int64{2: {7, 7}}})
	if want := "Time by layer and rank: even in every layer (normal)"; RankLayerTimes(arm).Title != want {
		t.Errorf("alt %q, want %q", RankLayerTimes(arm).Title, want)
	}
	if want := "Load by layer and expert: even in every layer (counts)"; recorded.Title != want {
		t.Errorf("alt %q, want %q", recorded.Title, want)
	}
	for part, captions := range map[string][]string{
		"rank":   {RankTimes(arm).Caption, RankLoads(arm).Caption, RankLayerTimes(arm).Caption},
		"expert": {ExpertTimes(arm).Caption, ExpertLoads(arm).Caption, recorded.Caption},
	} {
		for _, caption := range captions {
			if want := "A hot " + part + " that changes from"; !strings.Contains(caption, want) {
				t.Errorf("caption %q does not say %q", caption, want)
			}
		}
	}
}

func TestLayerLosses(t *testing.T) {
	other := small()
	other.Stragglers = []imbalance.Straggler{{Layer: 7, ExpertsLossNS: router.Undefined(), GEMMLossNS: 5}}
	learned := small()
	learned.Stragglers[0].ExpertsLossNS, learned.Stragglers[0].GEMMLossNS = 10000, 7
	s := LayerLosses(NewArm("normal", learned), NewArm("perfect", other))
	checkValues(t, "normal", s.Series[0].Values, []float64{10000, 0, nan})
	checkValues(t, "perfect", s.Series[1].Values, []float64{nan, nan, nan})
	if !slices.Equal(s.Groups, []int{1, 2, 7}) {
		t.Errorf("layers %v", s.Groups)
	}
}

func TestPhaseTimes(t *testing.T) {
	s := PhaseTimes(NewArm("normal", small()))
	if !slices.Equal(s.Phases, []string{"dispatch", "experts"}) {
		t.Fatalf("phases %v: only those with work in a step are wanted", s.Phases)
	}
	a := s.Arms[0]
	checkValues(t, "work of rank 0", a.Work[0], []float64{2000, 40000}) // 2 layers · (4−3) µs of dispatch per step
	// 6 µs of collectives per step and rank, of which 9/12 waiting.
	checkValues(t, "wait", a.Wait, []float64{4500, 4500})
	checkValues(t, "transfer", a.Transfer, []float64{1500, 1500})

	foreign := small()
	for i := range foreign.Cells {
		if foreign.Cells[i].Phase == nsys.PhaseDispatch {
			foreign.Cells[i].Phase = "lunch"
		}
	}
	if s := PhaseTimes(NewArm("normal", foreign)); !slices.Equal(s.Phases, []string{"experts", "unknown"}) {
		t.Errorf("phases %v: want one that no trace has under unknown", s.Phases)
	}

	unaligned := small()
	unaligned.Collectives[0].CountedWaitNS, unaligned.Collectives[0].CountedTransferNS = router.Undefined(),
		router.Undefined()
	a = PhaseTimes(NewArm("normal", unaligned)).Arms[0]
	checkValues(t, "wait where clocks cannot be aligned", a.Wait, []float64{nan, 4500})
	checkValues(t, "its transfer", a.Transfer, []float64{6000, 1500})
}

// A warm-up step stays out of the means, not out of the timeline.
func TestWarmUp(t *testing.T) {
	trace := small()
	for _, c := range trace.Cells {
		if c.Step == 6 {
			c.Step = 7
			trace.Cells = append(trace.Cells, c)
		}
	}
	for i, c := range trace.Cells {
		if c.Step == 5 && c.CollectiveNS > 0 {
			trace.Cells[i].TotalNS, trace.Cells[i].CollectiveNS = 104000, 103000
		}
		trace.Cells[i].BusyNS = trace.Cells[i].TotalNS
	}
	for i := range trace.Collectives { // per rank 2·103 + 4·3 µs in all, of which 9 + 3 count
		trace.Collectives[i].TotalNS, trace.Collectives[i].WaitNS, trace.Collectives[i].TransferNS = 218000, 213500,
			4500
	}
	arm := NewArm("normal", trace)
	a := PhaseTimes(arm).Arms[0]
	checkValues(t, "work of rank 0 in steps 6 and 7", a.Work[0], []float64{2000, 50000})
	checkValues(t, "transfer", a.Transfer, []float64{1500, 1500}) // in steps 6 and 7
	checkValues(t, "wait", a.Wait, []float64{4500, 4500})
	if got := StepTimes(arm).Arms[0]; !slices.Equal(got.Numbers, []int{5, 6, 7}) || !known(got.MaxNS[0]) {
		t.Errorf("timeline %+v, want steps 5, 6 and 7", got)
	}
	if s := PhaseTimes(arm); !strings.Contains(s.Caption, "2 of 3 steps (warm-up") {
		t.Errorf("caption %q does not say that warm-up is excluded", s.Caption)
	}
}

// A rank that one arm lacks is unknown there and divides nothing: means are over
// the ranks that every arm has, so that the arms stay comparable.
func TestMissingRank(t *testing.T) {
	lacking := small()
	lacking.Ranks = lacking.Ranks[:1]
	lacking.Cells = slices.DeleteFunc(lacking.Cells, func(c nsys.Cell) bool { return c.Rank == 1 })
	lacking.Experts = slices.DeleteFunc(lacking.Experts, func(e nsys.ExpertStat) bool { return e.Rank == 1 })
	lacking.Collectives = lacking.Collectives[:1]
	longer := small()
	longer.Cells[0].TotalNS += 40000 // of rank 0 in some layer of some step: 20 µs per step
	normal, perfect := NewArm("normal", longer), NewArm("perfect", lacking)

	phases := PhaseTimes(normal, perfect)
	checkValues(t, "work of rank 1", phases.Arms[1].Work[1], []float64{nan, nan})
	checkValues(t, "its collectives", []float64{phases.Arms[1].Wait[1], phases.Arms[1].Transfer[1]},
		[]float64{nan, nan})
	means, _ := meanPhases([]Arm{normal, perfect})
	work := func(p perstep.Phases) []float64 {
		return []float64{p.Work[nsys.PhaseDispatch], p.Work[nsys.PhaseExperts]}
	}
	checkValues(t, "mean work, normal", work(means[0]), []float64{2000, 60000})
	checkValues(t, "mean work, perfect", work(means[1]), []float64{2000, 40000})
	checkValues(t, "wait and collectives", []float64{means[1].Wait, means[1].Collectives}, []float64{4500, 6000})
	if want := "42.0 µs of work, 1.50 µs of transfer, 4.50 µs of waiting (perfect)"; !strings.HasSuffix(phases.Title, want) {
		t.Errorf("alt %q, want %q", phases.Title, want)
	}
	if want := "2 ranks (perfect has 1), 2 layers, 4 experts, 2 steps."; !strings.HasPrefix(phases.Caption, want) {
		t.Errorf("caption %q, want %q", phases.Caption, want)
	}
	checkValues(t, "rank times", RankTimes(normal, perfect).Series[1].Values, []float64{40000, nan})
	checkValues(t, "ranks of layer 1", RankLayerTimes(normal, perfect).Grids[1].Values[0], []float64{20000, nan})
	loads := RankLoads(normal, perfect).Series[1]
	checkValues(t, "rank loads and floor", append(loads.Values, loads.Floor), []float64{300, nan, 300})

	lacking.Cells = nil
	phases = PhaseTimes(normal, NewArm("perfect", lacking))
	if want := "No rank has kernel time in every arm"; phases.Title != want {
		t.Errorf("alt %q, want %q", phases.Title, want)
	}
}

// A step that one rank lacks is left out of every mean over steps, and in the
// timeline the slowest rank of it is unknown.
func TestMissingStep(t *testing.T) {
	trace := small()
	trace.Cells = slices.DeleteFunc(trace.Cells, func(c nsys.Cell) bool { return c.Rank == 1 && c.Step == 6 })
	for i := range trace.Collectives { // in step 5
		trace.Collectives[i].CountedWaitNS, trace.Collectives[i].CountedTransferNS = 4500, 1500
	}
	arm := NewArm("normal", trace)
	checkValues(t, "rank times of step 5", RankTimes(arm).Series[0].Values, []float64{30000, 50000})
	checkValues(t, "layer 1 of step 5", RankLayerTimes(arm).Grids[0].Values[0], []float64{10000, 30000})
	a := PhaseTimes(arm).Arms[0]
	checkValues(t, "work of rank 1", a.Work[1], []float64{2000, 50000})
	checkValues(t, "transfer", a.Transfer, []float64{1500, 1500})
	steps := StepTimes(arm)
	checkValues(t, "slowest rank", steps.Arms[0].MaxNS, []float64{52000, nan})
	checkValues(t, "mean rank", steps.Arms[0].MeanNS, []float64{42000, nan})
	for _, caption := range []string{steps.Caption, RankTimes(arm).Caption, LayerLosses(arm).Caption} {
		if !strings.Contains(caption, ", 1 of 2 steps (incomplete steps excluded).") {
			t.Errorf("caption %q does not say that a step is left out", caption)
		}
	}
	none := small()
	none.Cells = slices.DeleteFunc(none.Cells, func(c nsys.Cell) bool { return (c.Rank == 1) == (c.Step == 6) })
	if s := RankTimes(NewArm("normal", none)); !strings.Contains(s.Caption,
		"0 of 2 steps (incomplete steps excluded)") {
		t.Errorf("caption %q does not say that no step is left", s.Caption)
	} else if _, err := BarChart(s); !errors.Is(err, ErrNothing) {
		t.Errorf("a figure of no step: %v", err)
	}
	// The experts of rank 1 took their time in one step, those of rank 0 in two.
	arm.Trace.Experts[2].TotalNS = 1500
	checkValues(t, "expert times per step", ExpertTimes(arm).Grids[0].Values[0][:3], []float64{500, 1000, 1500})
}

func TestStepTimes(t *testing.T) {
	a := StepTimes(NewArm("normal", small())).Arms[0]
	// Step 5: rank 0 10+20+2 µs, rank 1 30+20+2; step 6 the reverse.
	if !slices.Equal(a.Numbers, []int{5, 6}) {
		t.Fatalf("steps %v", a.Numbers)
	}
	checkValues(t, "slowest", a.MaxNS, []float64{52000, 52000})
	checkValues(t, "mean", a.MeanNS, []float64{42000, 42000})
}

func TestTimeAgainstLoad(t *testing.T) {
	s := TimeAgainstLoad(NewArm("normal", small()))
	c := s.Clouds[0]
	// Experts have kernels of their own: layer 1 costs 1000(e+1)/2 ns at
	// 50(e+1) slots, layer 2 twice that.
	checkValues(t, "slots", c.Slots, []float64{50, 100, 150, 200, 50, 100, 150, 200})
	checkValues(t, "times", c.TimeNS, []float64{500, 1000, 1500, 2000, 1000, 2000, 3000, 4000})
	// Both lines go through 0; their mean slope is (10+20)/2 ns per slot.
	if math.Abs(c.Fit.SlopeNS-15) > 1e-9 || math.Abs(c.Fit.InterceptNS) > 1e-6 || len(c.Slots) != 8 {
		t.Errorf("fit %+v, want 15 ns per slot through 0 over 8 points", c.Fit)
	}
	grouped := small()
	for i := range grouped.Experts {
		grouped.Experts[i].Basis = imbalance.Allocated
	}
	c = TimeAgainstLoad(NewArm("normal", grouped)).Clouds[0]
	// Allocated times prove nothing: one point per layer and rank, 150 and 350
	// slots against the observed 20 µs, all per step.
	checkValues(t, "slots of ranks", c.Slots, []float64{150, 350, 150, 350})
	checkValues(t, "times of ranks", c.TimeNS, []float64{20000, 20000, 20000, 20000})

	if s := TimeAgainstLoad(NewArm("normal",
		grouped)); s.Title != "Time against load: too few distinct points to fit a line (normal)" {
		t.Errorf("all times are the same, and the answer is %q", s.Title)
	}

	grouped.Experts[0].Known = false
	c = TimeAgainstLoad(NewArm("normal", grouped)).Clouds[0]
	checkValues(t, "ranks whose load is known in full", c.Slots, []float64{350, 150, 350})
}

// The same routing counted over five times as many steps costs the same time per
// slot, and has the same load per rank.
func TestLoadIsPerRecordedStep(t *testing.T) {
	longer := small()
	for i := range longer.Experts {
		longer.Experts[i].Slots *= 5
	}
	for i := range longer.Imbalance {
		longer.Imbalance[i].Steps *= 5
	}
	short, long := NewArm("normal", small()), NewArm("normal", longer)
	if a, b := TimeAgainstLoad(short), TimeAgainstLoad(long); a.Title != b.Title ||
		!strings.Contains(a.Title, "15.0 ns per slot") {
		t.Errorf("%q over 2 steps, %q over 10, want 15.0 ns per slot", a.Title, b.Title)
	}
	if a, b := RankLoads(short), RankLoads(long); a.Title != b.Title || a.Series[0].Floor != b.Series[0].Floor {
		t.Errorf("%q above %g over 2 steps, %q above %g over 10", a.Title, a.Series[0].Floor, b.Title, b.Series[0].Floor)
	}
	longer.Warnings = []router.Warning{{Code: "counts_window"}} // each recorded step is a sum of passes
	if s := TimeAgainstLoad(long); !s.Clouds[0].Windows || !strings.Contains(s.Title, "the time per slot is unknown") ||
		strings.Contains(s.Title, "ns per slot") {
		t.Errorf("%q gives a time per slot of sums over passes", s.Title)
	}
	longer.Imbalance = nil // nobody says over how many steps
	if s := TimeAgainstLoad(long); len(s.Clouds[0].Slots) > 0 {
		t.Errorf("%v slots per an unknown number of steps", s.Clouds[0].Slots)
	}
}

// A trace without steps, ranks or anything at all draws what it has and refuses
// the rest with ErrNothing.
func TestPoorTraces(t *testing.T) {
	stepless := small()
	for i := range stepless.Cells {
		stepless.Cells[i].Step = nsys.NoID
	}
	s := RankTimes(NewArm("normal", stepless))
	checkValues(t, "whole capture", s.Series[0].Values, []float64{80000, 80000})
	if s.ValueLabel != "expert time in the capture" {
		t.Errorf("label %q", s.ValueLabel)
	}
	for _, trace := range []*nsys.Trace{{}, {Ranks: []nsys.Rank{{Rank: 3}}}} {
		a := NewArm("empty", trace)
		for name, draw := range map[string]func() (Figure, error){
			"experts": func() (Figure, error) { return HeatMap(ExpertTimes(a)) },
			"loads":   func() (Figure, error) { return HeatMap(ExpertLoads(a)) },
			"ranks":   func() (Figure, error) { return BarChart(RankTimes(a)) },
			"layers":  func() (Figure, error) { return BarChart(LayerLosses(a)) },
			"phases":  func() (Figure, error) { return PhaseStacks(PhaseTimes(a)) },
			"steps":   func() (Figure, error) { return StepLines(StepTimes(a)) },
			"scatter": func() (Figure, error) { return Scatter(TimeAgainstLoad(a)) },
			"grid":    func() (Figure, error) { return HeatMap(RankLayerTimes(a)) },
		} {
			if _, err := draw(); !errors.Is(err, ErrNothing) {
				t.Errorf("%s of an empty trace: want ErrNothing, have %v", name, err)
			}
		}
	}
}

func checkValues(t *testing.T, name string, got, want []float64) {
	t.Helper()
	same := func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Abs(b)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}
