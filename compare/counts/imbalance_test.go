package counts

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/placement"
	"github.com/moebalance/moebalance/testdata/require"
)

// record builds a record of one layer whose steps have these slots per expert.
func record(topK, ranks int, steps ...[]int64) *Record {
	r := &Record{Source: "hand-made", Experts: len(steps[0]), TopK: topK, Ranks: ranks}
	var list []Step
	for i, s := range steps {
		list = append(list, Step{Iteration: int64(i), Layer: 3, Load: router.Load{PerExpert: s}})
	}
	return finished(r, list...)
}

// finished is a record made by hand, as a reader would return it.
func finished(r *Record, steps ...Step) *Record {
	r.steps = steps
	r.finish()
	return r
}

func judged(t *testing.T, r *Record, o Options) (rank, expert imbalance.Row) {
	t.Helper()
	layers, _, err := r.Imbalance(o)
	require.NoError(t, err)
	for _, l := range layers {
		if l.Level == router.LevelRank {
			rank = l
		} else {
			expert = l
		}
	}
	return rank, expert
}

func near(a router.Number, b float64) bool { return math.Abs(float64(a)-b) < 1e-12 }

func TestEmptyStepsAreDropped(t *testing.T) {
	rank, _ := judged(t, record(1, 2, []int64{0, 0}, []int64{3, 1}), Options{})
	if rank.Steps != 1 || !near(rank.MaxOverMean, 1.5) {
		t.Errorf("%+v", rank)
	}
	empty := record(1, 2, []int64{0, 0})
	rank, expert := judged(t, empty, Options{Threshold: 0.1})
	if rank.Steps != 0 || rank.MaxOverMean.Defined() || rank.Flagged || rank.Worst != -1 ||
		expert.Floor.Defined() || !slices.Equal(codes(empty.Warnings), []string{"no_load"}) {
		t.Errorf("nothing but empty steps: %+v, %+v", rank, expert)
	}
}

// One token of top-2 over 16 experts: max/mean is 8 and so is the floor.
func TestTheFloorIsNotFlagged(t *testing.T) {
	load := make([]int64, 16)
	load[3], load[9] = 1, 1
	rank, expert := judged(t, record(2, 2, load), Options{Threshold: 0.1})
	if !near(expert.MaxOverMean, 8) || !near(expert.Floor, 8) || expert.Flagged || !near(rank.MaxOverMean, 1) {
		t.Errorf("%+v, %+v", rank, expert)
	}
}

// 64 tokens of top-8 over 256 experts on 8 ranks: chance reaches 1.16 in the
// middle, so a rank load of 1.125 is not flagged though it is above 10 %; a
// load of 2 is.
func TestChanceIsNotFlagged(t *testing.T) {
	load := make([]int64, 256)
	for e := range load {
		load[e] = 2
	}
	for e := range 8 {
		load[e], load[40+e] = 3, 1 // rank 0 gets 72 of a mean of 64
	}
	rank, _ := judged(t, record(8, 8, load), Options{Threshold: 0.1})
	if !near(rank.MaxOverMean, 1.125) || rank.Flagged || rank.NullMedian < 1.1 || rank.NullP95 < rank.NullMedian {
		t.Errorf("within chance: %+v", rank)
	}
	if rank, _ = judged(t, record(0, 8, load), Options{Threshold: 0.1}); rank.Flagged || !(rank.NullP95 > 1.125) {
		t.Errorf("without top-k chance is of 512 tokens of one slot: %+v", rank)
	}
	for e := range 32 {
		load[e], load[32+e] = 4, 0
	}
	rank, _ = judged(t, record(8, 8, load), Options{Threshold: 0.1})
	if !rank.Flagged || rank.Worst != 0 || !near(rank.MaxOverMean, 2) {
		t.Errorf("beyond chance: %+v", rank)
	}
}

func TestWhereTheExpertsAre(t *testing.T) {
	load := []int64{8, 4, 2, 2}
	placed := record(1, 0, load)
	placed.Placement = mustPlace(4, 0, 2, 1, 3)
	for name, c := range map[string]struct {
		r    *Record
		o    Options
		want float64
	}{
		"as recorded, 2 ranks":  {record(1, 2, load), Options{}, 12.0 / 8},
		"asked for 4 ranks":     {record(1, 2, load), Options{Ranks: 4}, 8.0 / 4},
		"counted per rank":      {withReceived(record(1, 2, load), 9, 7), Options{}, 9.0 / 8},
		"asked, though counted": {withReceived(record(1, 2, load), 9, 7), Options{Ranks: 2}, 12.0 / 8},
		"placed by hand": {record(1, 0, load), Options{Placement: mustPlace(4, 0, 2, 1, 3)},
			10.0 / 8},
		"replicated": {record(1, 0, load),
			Options{Placement: mustPlace(4, 0, 1, 2, 0, 2, 3)}, 9.0 / 8},
		"more placed than occur": {parsed("layer,expert,count\n3,0,8\n3,2,4\n"), Options{Placement: mustPlace(4, 0, 3, 1, 2)},
			8.0 / 6},
		"recorded with its place": {placed, Options{}, 10.0 / 8},
	} {
		if rank, _ := judged(t, c.r, c.o); !near(rank.MaxOverMean, c.want) {
			t.Errorf("%s: %v, want %v", name, rank.MaxOverMean, c.want)
		}
	}
	layers, warnings, err := record(1, 0, load).Imbalance(Options{})
	if err != nil || len(layers) != 1 || layers[0].Level != router.LevelExpert ||
		!slices.Equal(codes(warnings), []string{"no_ranks"}) {
		t.Errorf("without ranks: %+v, %v, %v", layers, warnings, err)
	}
}

func withReceived(r *Record, perRank ...int64) *Record {
	s := r.Steps()[0]
	s.Received = perRank
	return finished(r, s)
}

func mustPlace(experts int, slots ...int32) *placement.Map {
	return must(placement.MapOf("hand-made", experts, 2, placement.Slots{3: slots}))
}

func TestContradictions(t *testing.T) {
	load := []int64{8, 4, 2, 2}
	full, place := record(2, 2, load), mustPlace(4, 0, 2, 1, 3)
	ranksOnly := finished(&Record{Format: "counters", Ranks: 2}, Step{Received: []int64{3, 1}})
	other, _ := placement.MapOf("hand-made", 4, 2, placement.Slots{1: {0, 2, 1, 3}})
	for want, c := range map[string]struct {
		r *Record
		o Options
	}{
		"model has 8 experts":                        {full, Options{Shape: &router.Shape{Experts: 8, TopK: 2}}},
		"counters without slots":                     {ranksOnly, Options{Ranks: 4}},
		"placement is of 4":                          {record(2, 2, load[:2]), Options{Placement: place}},
		"is of layers 1, the counts are of layers 3": {full, Options{Placement: other}},
		"between 1 and 4 ranks":                      {full, Options{Ranks: 5}},
	} {
		if _, _, err := c.r.Imbalance(c.o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a contradiction with %q, have %v", want, err)
		}
	}
	layers, _, err := ranksOnly.Imbalance(Options{})
	if err != nil || len(layers) != 1 || !near(layers[0].MaxOverMean, 1.5) {
		t.Errorf("only ranks: %+v, %v", layers, err)
	}
}

// One rank holds all the load: that it is even over one says nothing, and must pass no gate.
func TestOneRankIsNoEvidence(t *testing.T) {
	res := NewResult(0.1)
	require.NoError(t, res.Add(parsed(`[[1, 2], [3, 4]]`), Options{Ranks: 1, Threshold: 0.1}))
	worst := imbalance.Furthest(res.Imbalance, router.LevelRank, imbalance.Load)
	if len(res.Imbalance) != 2 || res.Imbalance[0].Level != router.LevelExpert || worst != nil {
		t.Errorf("rows %+v, worst rank %+v", res.Imbalance, worst)
	}
}
