package imbalance

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// expertCell is compute of the phase experts.
func expertCell(rank int, step, layer router.OptInt, ns int64) Cell {
	return Cell{Rank: rank, Step: step, Layer: layer, Phase: kernel.PhaseExperts, Sum: Sum{TotalNS: ns, BusyNS: ns}}
}

// alternating is two ranks that are hot in turns: 30 and 10 ns, 4 steps, 1 layer.
func alternating() (cells []Cell) {
	for step := range 4 {
		for rank := range 2 {
			cells = append(cells, expertCell(rank, router.OptInt(step), 3, []int64{30, 10}[(step+rank)%2]))
		}
	}
	return cells
}

func TestAlternatingRanksDoNotCancel(t *testing.T) {
	cells := append(alternating(),
		Cell{Rank: 0, Step: 1, Layer: 3, Sum: Sum{TotalNS: 7, CollectiveNS: 5, BusyNS: 7}},
		Cell{Rank: 1, Step: 1, Layer: 3, Sum: Sum{TotalNS: 2, BusyNS: 2}})
	for range 2 {
		x := New(cells)
		r := x.Rows(0.1)[0]
		if r.Layer != 3 || r.Steps != 4 || r.Parts != 2 || !r.Flagged || r.Worst != 0 || r.WorstSteps != 2 {
			t.Errorf("%+v", r)
		}
		require.Near(t, "max/mean", r.MaxOverMean, 1.5, 1e-9) // of sums it would be 1
		require.Near(t, "balancedness", r.Balancedness, 2.0/3, 1e-9)
		require.Near(t, "loss", x.Loss(x.Rows(0)), 10, 1e-9)
		require.Near(t, "busy", x.Steps[1].BusyNS, 24.5, 1e-9)
		require.Near(t, "slowest", x.Steps[1].SlowestExpertsNS, 30, 1e-9)
		slices.Reverse(cells)
	}
}

// 1.5 over 1.25 is further than 1.6 over 1.4, of a floor that is not known 1 is meant, and on a
// tie the first row is taken.
func TestFurthest(t *testing.T) {
	row := func(layer router.OptInt, level, quantity string, maxOverMean, floor router.Number) Row {
		return Row{Layer: layer, Level: level, Quantity: quantity, MaxOverMean: maxOverMean, Floor: floor}
	}
	u := router.Undefined()
	rows := []Row{
		row(0, router.LevelRank, Load, u, 1), row(1, router.LevelRank, Load, 1.6, 1.4),
		row(2, router.LevelRank, Load, 1.5, 1.25), row(3, router.LevelRank, Load, 1.2, u),
		row(4, router.LevelRank, Load, 3, 2.5),
		row(5, router.LevelExpert, Load, 9, 1), row(6, router.LevelRank, Time, 9, 1),
	}
	if r := Furthest(rows, router.LevelRank, Load); r != &rows[2] {
		t.Errorf("have %+v, want layer 2", r)
	}
	if r := Furthest(rows, router.LevelExpert, Time); r != nil {
		t.Errorf("have %+v, want none", r)
	}
	if r := Furthest([]Row{rows[2], rows[6]}, router.LevelRank, Time); r == nil || r.Layer != 6 {
		t.Errorf("have %+v, want layer 6", r)
	}
}

func TestStepsThatCount(t *testing.T) {
	base := func() (cells []Cell) {
		for step := range 6 {
			for rank := range 2 {
				cells = append(cells, expertCell(rank, router.OptInt(step), 0, 100),
					expertCell(rank, router.OptInt(step), 1, 100))
			}
		}
		return cells
	}
	long := func(steps ...router.OptInt) func(Cell) []Cell {
		return func(s Cell) []Cell {
			if slices.Contains(steps, s.Step) {
				s.CollectiveNS, s.TotalNS, s.BusyNS = s.CollectiveNS+151-s.TotalNS, 151, 151 // waiting
			}
			return []Cell{s}
		}
	}
	first := func(total, busy int64) func(Cell) []Cell {
		return func(s Cell) []Cell {
			if s.Step == 0 {
				s.TotalNS, s.BusyNS = total, busy
			}
			return []Cell{s}
		}
	}
	without := func(drop func(Cell) bool) func(Cell) []Cell {
		return func(s Cell) []Cell { return slices.DeleteFunc([]Cell{s}, drop) }
	}
	for name, c := range map[string]struct {
		change             func(Cell) []Cell
		incomplete, warmUp []int
		warning            string
	}{
		"all":                      {change: long()},
		"warm-up":                  {change: long(0, 1), warmUp: []int{0, 1}, warning: "start_upmap[factor:1.5 steps:[0 1]]"},
		"a late long one":          {change: long(3)},
		"more tokens in the first": {change: first(151, 151)},
		"half as long again":       {change: first(100, 149)},
		"cut off": {change: without(func(s Cell) bool { return s.Step == 5 && s.Rank == 1 }), incomplete: []int{5},
			warning: "partial_stepsmap[steps:[5]]"},
		"a layer lost on one rank": {incomplete: []int{2},
			change: without(func(s Cell) bool { return s.Step == 2 && s.Rank == 1 && s.Layer == 1 })},
		"a layer that no rank ran": {change: without(func(s Cell) bool { return s.Step == 2 && s.Layer == 1 })},
		"stages of a pipeline":     {change: without(func(s Cell) bool { return int(s.Layer) != s.Rank })},
		"time outside layers differs": {change: func(s Cell) []Cell {
			return []Cell{s, {Rank: 0, Step: 4, Layer: router.NoID, Sum: Sum{TotalNS: 1}}}
		}},
		"an incomplete, long first one": {incomplete: []int{0}, warmUp: []int{1}, change: func(s Cell) []Cell {
			return slices.DeleteFunc(long(1)(s), func(c Cell) bool { return c.Step == 0 && c.Rank == 1 })
		}},
	} {
		var cells []Cell
		for _, s := range base() {
			cells = append(cells, c.change(s)...)
		}
		x := New(cells)
		if have := x.StepsOf(Incomplete); !slices.Equal(have, c.incomplete) {
			t.Errorf("%s: incomplete %v, want %v", name, have, c.incomplete)
		}
		if have := x.StepsOf(WarmUp); !slices.Equal(have, c.warmUp) {
			t.Errorf("%s: warm-up %v, want %v", name, have, c.warmUp)
		}
		if n := len(x.StepsOf(Counts)); n != 6-len(c.incomplete)-len(c.warmUp) ||
			len(x.Layers[0].Experts) != n && name != "time outside layers differs" {
			t.Errorf("%s: %d steps count", name, n)
		}
		var text string
		for _, w := range x.Warnings() {
			text += fmt.Sprint(w.Code, w.Args)
		}
		if !strings.Contains(text, c.warning) || (text != "") != (len(c.incomplete)+len(c.warmUp) > 0) {
			t.Errorf("%s: warnings %q", name, text)
		}
	}
}

func TestLoadOfExperts(t *testing.T) {
	var steps []router.Balance
	for _, step := range [][]int64{{3, 1, 1}, {0, 0, 0}, {1, 2, 3}} {
		steps = append(steps, router.BalanceOf(step))
	}
	r := Row{Layer: 4, Level: router.LevelExpert, Quantity: Load, Basis: Recorded}.Over(steps, []int{10, 20, 30}, 0.1)
	require.Near(t, "max/mean", r.MaxOverMean, (9.0/5+9.0/6)/2, 1e-9)
	require.Near(t, "floor", r.Floor, (6.0/5+1)/2, 1e-9)
	require.Near(t, "active", r.Active, 3, 1e-9)
	if r.Steps != 2 || r.Worst != 10 || r.NullP95.Defined() || !r.Flagged {
		t.Errorf("%+v", r)
	}
	even := r
	even.Layer, even.MaxOverMean, even.Balancedness, even.Flagged = 2, 1, 1, false
	s := Summarize([]Row{even, r, {Level: router.LevelRank, Quantity: Load, MaxOverMean: 9}, {Level: router.LevelExpert,
		Quantity: Time, MaxOverMean: 9}, {Level: router.LevelExpert, Quantity: Load, MaxOverMean: router.Undefined()}},
		router.LevelExpert, Load)
	require.Near(t, "mean over layers", s.MaxOverMean, (1+r.MaxOverMean.Float64())/2, 1e-9)
	if s.Layers != 2 || s.Flagged != 1 || s.WorstLayer != 4 || s.WorstMaxOverMean != r.MaxOverMean ||
		s.WorstFloor != r.Floor {
		t.Errorf("%+v", s)
	}
	if none := Summarize(nil, router.LevelRank, Time); none.Imbalance.Defined() || none.WorstLayer.Defined() ||
		none.WorstMaxOverMean.Defined() {
		t.Errorf("%+v", none)
	}
}

// A step counts by its time: of 1000 and 10 ns the imbalance is Σ max / Σ mean, and the
// loss of the experts is imbalance × mean. Over layers likewise.
func TestSmallStepsWeighLittle(t *testing.T) {
	var cells []Cell
	for step, ns := range [][4]int64{{1000, 500, 400, 400}, {1, 9, 30, 10}} { // by rank of layer 0, of layer 1
		for i, v := range ns {
			cells = append(cells, expertCell(i%2, router.OptInt(step), router.OptInt(i/2), v))
		}
	}
	x := New(cells)
	var rows []Row
	for i, want := range []float64{1009 / 755.0, 430 / 420.0} {
		r := x.Rows(0.1)[i]
		require.Near(t, "max/mean", r.MaxOverMean, want, 1e-9)
		require.Near(t, "balancedness", r.Balancedness, 1/want, 1e-9)
		rows = append(rows, r)
	}
	require.Near(t, "over layers", Summarize(rows, router.LevelRank, Time).MaxOverMean, (1009+430)/(755+420.0), 1e-9)
	require.Near(t, "loss", x.Loss(x.Rows(0)), float64(rows[0].Imbalance*rows[0].MeanNS+rows[1].Imbalance*rows[1].MeanNS), 1e-9)
}

func TestKinds(t *testing.T) {
	type step struct {
		what    string
		tokens  int
		outside float64
	}
	for what, c := range map[string]struct {
		steps []step
		want  []router.OptInt
	}{
		"tokens twofold apart": {[]step{{"a", 8192, 1}, {"a", 1024, 1}, {"a", 4096, 1}, {"a", 1024, 1}},
			[]router.OptInt{0, 1, 0, 1}},
		"tokens more than twofold apart": {[]step{{"a", 8192, 1}, {"a", 4095, 1}}, []router.OptInt{0, 1}},
		"a chain of sizes": {[]step{{"a", 1024, 1}, {"a", 1536, 1}, {"a", 3000, 1}, {"a", 8192, 1}, {"a", 5000, 1}},
			[]router.OptInt{0, 1, 1, 2, 2}},
		"kernels": {[]step{{"a", 8, 1}, {"b", 8, 1}, {"a", 8, 1}}, []router.OptInt{0, 1, 0}},
		"times where one has no tokens": {[]step{{"a", 8192, 100}, {"a", 0, 30}, {"a", 8, 60}},
			[]router.OptInt{0, 1, 0}},
		"experts take long, the rest does not": {[]step{{"a", 0, 99}, {"a", 0, 101}}, []router.OptInt{0, 0}},
	} {
		var x Times
		for i, s := range c.steps {
			x.Steps = append(x.Steps, Step{Number: router.OptInt(i), outsideNS: s.outside})
		}
		for i, s := range x.Classify(func(i router.OptInt) (string, int) { return c.steps[i].what, c.steps[i].tokens }).Steps {
			if s.Kind != c.want[i] {
				t.Errorf("%s: step %d is of kind %v, want %v", what, i, s.Kind, c.want[i])
			}
		}
	}
}

// Of two kinds the one with most expert time counts. Ranks run 2 GEMMs of a layer or none, and 4 where they do so in
// half of the steps, behind as many routers; a rank that ran 3 lost one.
func TestKindsOfUnequalGEMMs(t *testing.T) {
	for _, c := range []struct {
		unequal       int // steps of the second kind
		gemms, router int64
		count, lost   []int
	}{{3, 4, 1, []int{1, 3, 5}, nil}, {1, 0, 1, []int{1, 3, 5}, nil}, {2, 4, 1, []int{5}, nil},
		{1, 3, 1, []int{3, 5}, []int{1}}, {1, 4, 2, []int{3, 5}, []int{1}}, {1, 4, 0, []int{3, 5}, []int{1}}} {
		var cells []Cell
		for i := range 12 {
			rank, step := i%2, router.OptInt(i/2)
			experts, other := expertCell(rank, step, 0, []int64{10, 70}[step%2]), expertCell(rank, step, 0, 1)
			experts.GEMMs, experts.Kind, other.Instances, other.Phase = 2, step%2, min(1, c.router), kernel.PhaseRouter
			if other.Kind = step % 2; rank == 1 && step%2 == 1 && int(step) < 2*c.unequal {
				experts.GEMMs, other.Instances = c.gemms, c.router
			}
			cells = append(cells, experts, other)
		}
		x := New(cells)
		count, lost, first := x.StepsOf(Counts), x.StepsOf(Lost), x.OfKind(0).StepsOf(Counts)
		if !slices.Equal(count, c.count) || !slices.Equal(lost, c.lost) || !slices.Equal(first, []int{0, 2, 4}) {
			t.Errorf("%+v: %v count, lost %v, first %v", c, count, lost, first)
		}
	}
}

// The kind with most expert time counts, but where it is even and one with a tenth of the time is not.
func TestUnevenKindLeads(t *testing.T) {
	for _, c := range []struct {
		other [2]int64 // of step 4, the one of its kind
		count []int
	}{{[2]int64{60, 40}, []int{4}}, {[2]int64{50, 50}, []int{0, 1, 2, 3}}, {[2]int64{50, 30}, []int{0, 1, 2, 3}}} {
		var cells []Cell
		for i := range 10 {
			cell := expertCell(i%2, router.OptInt(i/2), 0, 100)
			if i > 7 {
				cell = expertCell(i%2, 4, 0, c.other[i%2])
				cell.Kind = 1
			}
			cells = append(cells, cell)
		}
		if count := New(cells).StepsOf(Counts); !slices.Equal(count, c.count) {
			t.Errorf("%v: %v count", c.other, count)
		}
	}
}

// At the ends of a recording a step lacks layers, or the last phases of one.
func TestEdgesOfARecording(t *testing.T) {
	steps := func(n int, lost func(step, layer int, phase string) bool) (cells []Cell) {
		for step := range n {
			for layer := range 3 {
				for _, phase := range []string{"router", "experts", "combine"} {
					for rank := range 2 {
						if !lost(step, layer, phase) {
							cells = append(cells, Cell{Rank: rank, Step: router.OptInt(step),
								Layer: router.OptInt(layer), Phase: kernel.Phase(phase), Sum: Sum{TotalNS: 10}})
						}
					}
				}
			}
		}
		return cells
	}
	type lost = func(step, layer int, phase string) bool
	only := func(step, layer int, phase string) lost {
		return func(s, l int, p string) bool { return s == step && l == layer && p == phase }
	}
	for what, c := range map[string]struct {
		n    int
		lost lost
		want []int // incomplete
	}{
		"whole":                   {4, only(9, 9, ""), nil},
		"the last combine":        {4, only(3, 2, "combine"), []int{3}},
		"the first router of two": {2, only(0, 0, "router"), []int{0}},
		"the last layer":          {3, func(s, l int, p string) bool { return s == 2 && l == 2 }, []int{2}},
		"both ends": {3, func(s, l int, p string) bool { return s == 0 && l == 0 || s == 2 && l > 0 },
			[]int{0, 2}},
		"a phase of one step":   {3, func(s, l int, p string) bool { return s != 1 && p == "router" }, []int{0, 2}},
		"a phase of some steps": {4, func(s, l int, p string) bool { return s != 1 && p == "router" }, nil},
	} {
		if have := New(steps(c.n, c.lost)).StepsOf(Incomplete); !slices.Equal(have, c.want) {
			t.Errorf("%s: incomplete %v, want %v", what, have, c.want)
		}
	}
}

// A file of as many steps and layers as events takes memory for the events alone.
func TestManyStepsAndLayers(t *testing.T) {
	const n = 20_000
	var cells []Cell
	for i := range router.OptInt(n) {
		cells = append(cells, expertCell(0, i, i, 10), expertCell(1, i, i, 30), expertCell(int(i)+2, n, n, 1))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x := New(cells)
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 200 || len(x.Steps) != n+1 || len(x.Layers) != n+1 {
		t.Errorf("%d MiB for %d steps and %d layers", mib, len(x.Steps), len(x.Layers))
	}
}

// Steps of two models have one of two lists of busiest ranks, in turn. One rank in place of another is of one model.
func TestTurns(t *testing.T) {
	for lists, want := range map[string]bool{"01 10 01 10": true, "01 01 10 10": false, "01 10 01 00": false,
		"00 11 00 11": false, "01 12 01 12": true} {
		for _, last := range []int{2, 150} { // the rank that 2 stands for
			var cells []Cell
			for i, busiest := range strings.ReplaceAll(lists, " ", "") { // two layers a step
				for rank := range last + 1 {
					more := map[bool]int64{true: 10}[rank == map[rune]int{'0': 0, '1': 1, '2': last}[busiest]]
					cells = append(cells, expertCell(rank, router.OptInt(i/2), router.OptInt(i%2), 10+more))
				}
			}
			if turns := New(cells).Turns(); (turns != nil) != want {
				t.Errorf("%s of %d ranks: %v", lists, last+1, turns)
			}
		}
	}
}
