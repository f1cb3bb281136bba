package trace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// recordedCounts are the same loads in the given layers, experts split evenly.
func recordedCounts(ranks int, perExpert []int64, layers ...int) Recorded {
	layout := require.Value(router.Contiguous(len(perExpert), ranks))
	r := Recorded{Layers: map[int]Counted{}}
	for _, layer := range layers {
		r.Layers[layer] = Counted{router.Load{PerExpert: slices.Clone(perExpert)}, layout}
	}
	return r
}

// The run has 4 experts on 2 ranks in layers 0 and 1; experts 0 (30 ns) and 1
// (10 ns) run on rank 0, experts 2 (10 ns) and 3 (never) on rank 1.
func fourExperts(t *testing.T) string {
	f := newFixture()
	for layer, name := range []string{"layer 0 expert ", "layer 1 expert "} {
		at := int64(1000 * layer)
		f.push(0, at, at+99, name+"0").work(0, at+1, at+10, 30, "gemm")
		f.push(0, at+100, at+199, name+"1").work(0, at+2, at+110, 10, "gemm")
		f.push(1, at, at+99, name+"2").work(1, at+1, at+10, 10, "gemm")
	}
	return f.write(t, "four.sqlite")
}

func TestCountsThatDoNotFitAreRefused(t *testing.T) {
	path := fourExperts(t)
	for _, c := range []struct {
		what     string
		recorded Recorded
		text     string
	}{
		{"fewer experts", recordedCounts(2, []int64{5, 5}, 0, 1),
			"counts of 2 experts, expert 1 of layer 0 ran on rank 0"},
		{"too few experts on the same owners",
			Recorded{Layers: map[int]Counted{0: {Load: router.Load{PerExpert: []int64{5, 5}}}}},
			"counts of 2 experts, expert 2 of layer 0 ran on rank 1"},
		{"more experts", recordedCounts(2, make([]int64, 256), 0, 1),
			"counts of 256 experts, expert 2 of layer 0 ran on rank 1"},
		{"fewer ranks", recordedCounts(1, []int64{1, 1, 1, 1}, 0, 1), "of 1 rank, the trace has rank 1"},
		{"no layer in common", recordedCounts(2, []int64{1, 1, 1, 1}, 3, 4),
			"counts of layers 3, 4, experts run in layers 0, 1"},
		{"layers counted from another one", recordedCounts(2, []int64{1, 1, 1, 1}, 1, 2),
			"counts of layers 1, 2, experts run in layers 0, 1"},
	} {
		_, err := Read(context.Background(), []string{path}, Options{Recorded: c.recorded})
		if !errors.Is(err, ErrCounts) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: want %q, have %v", c.what, c.text, err)
		}
	}
}

// Beside even counts the rank that is slowest in every layer may have a slow kernel, not so beside uneven ones. More
// ranks than --ep says are a doubt.
func TestCountsThatContradict(t *testing.T) {
	path := fourExperts(t)
	for rank, load := range map[string][]int64{"[0]": {5, 5, 5, 5}, "<nil>": {1, 1, 9, 9}} {
		given := recordedCounts(2, load, 0, 1)
		given.Imbalance = []imbalance.Row{{Level: router.LevelRank, Quantity: imbalance.Load,
			MaxOverMean: router.Number(load[3]) / 5}}
		trace := mustRead(t, Options{Recorded: given, World: 1}, path)
		w := trace.warning(CountsContradict)
		if have := fmt.Sprint(w.Args["slowest"]); have != rank || trace.Doubt().Key() != "rank_groups.ep" {
			t.Errorf("%v: slowest %s, %v", load, have, trace.Warnings)
		}
	}
}

// The gate's kernel is made for a number of experts; counts of another are refused,
// unless a second model in the trace has theirs.
func TestCountsForAnotherGate(t *testing.T) {
	for _, c := range []struct {
		names []string
		text  string
	}{
		{[]string{"topkGatingSoftmax<8, 256, 4, 16>(float const*)"},
			"counts of 4 experts, the top-k kernel in the trace is compiled for 256"},
		{[]string{"topkGatingSoftmax<8, 256, 4, 16>(float const*)", "topkGatingSoftmax<1, 4, 4, 4>(float const*)"}, ""},
	} {
		f := newFixture()
		for i, name := range c.names {
			f.push(0, 0, 99, "layer 0 experts").work(0, int64(i+1), int64(10+i), 5, name)
		}
		_, err := Read(context.Background(), []string{f.write(t, "gate.sqlite")},
			Options{Recorded: recordedCounts(1, []int64{1, 1, 1, 1}, 0)})
		if c.text == "" && err != nil || c.text != "" &&
			(!errors.Is(err, ErrCounts) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%q: want %q, have %v", c.names, c.text, err)
		}
	}
}
