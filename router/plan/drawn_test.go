package plan

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// A drawn plan has the max/mean of its target in each layer, and but for chance in small batches, on another
// hot rank in each layer, with valid tokens.
func TestTargets(t *testing.T) {
	for _, mode := range []router.Mode{router.DEP, router.TEP} {
		for _, target := range []float64{1.2, 2} {
			p := problem(32, 4, 8, 4, 8, mode, drawnLayers*drawnRows)
			hot := map[int]bool{}
			plan := require.Value(New(Target(strconv.FormatFloat(target, 'g', -1, 64)), p, Options{Seed: 1}))
			ids := make([][]int32, len(p.sources()))
			for s := range ids {
				ids[s] = make([]int32, drawnLayers*drawnRows*4)
				plan.Fill(ids[s], s)
			}
			for layer := range drawnLayers {
				for _, rows := range []int{drawnRows, 64} {
					load := router.NewLoad(32)
					for _, of := range ids {
						load.Add(of[layer*drawnRows*4:][:rows*4])
					}
					b := load.Ranks(p.Layout)
					if rows == drawnRows {
						hot[b.Worst] = true
					}
					slots := float64(load.Total()) / 8 // of a rank; a batch is off by chance
					if off := math.Abs(float64(b.MaxOverMean) - target); off > 0.01 && rows == drawnRows ||
						off > 4*math.Sqrt(target*slots)/slots {
						t.Errorf("%s, layer %d, %d rows: %v, want %v", mode, layer, rows, b.MaxOverMean, target)
					}
				}
			}
			if c := Certify(p, plan); !c.Valid || len(hot) != drawnLayers {
				t.Errorf("%s: hot ranks %v, %+v", mode, hot, c)
			}
		}
	}
}

// Each expert comes as often as it was counted, layer by layer; steps add up, and a dense layer is none.
func TestRecorded(t *testing.T) {
	name, counts, err := Recorded([]byte(`{"logical_count": [[[0,0,0,0],[1,2,3,4],[4,0,2,4]],
		[[0,0,0,0],[1,2,3,4],[4,0,2,4]]]}`))
	if err != nil || !Drawn(name) || !slices.Equal(counts[0], []float64{2, 4, 6, 8}) ||
		!slices.Equal(counts[1], []float64{8, 0, 4, 8}) {
		t.Fatalf("%s %v %v", name, counts, err)
	}
	p := problem(4, 1, 0, 0, 2, router.TEP, 2*drawnRows)
	ids := fill(name, p, Options{Counts: counts}, 0)
	for layer, want := range counts {
		load := router.NewLoad(4)
		load.Add(ids[layer*drawnRows:][:drawnRows])
		for e, n := range load.PerExpert {
			if share := want[e] / 20; math.Abs(float64(n)/drawnRows-share) > 0.02 {
				t.Errorf("layer %d, expert %d: %v of the slots, want %v", layer, e, float64(n)/drawnRows, share)
			}
		}
	}
	plan, err := New(name, p, Options{Counts: counts})
	if err != nil || plan.Extent != (Extent{Rows: 2 * drawnRows, Layers: 2}) {
		t.Errorf("%v, %v", plan, err)
	}
}

// A batch of 64 tokens meets as many experts as tokens that choose by themselves do: with p the share of tokens
// that choose an expert, Σ 1 − (1 − p)^64 of them. Groups change that little.
func TestDrawnTokensAreIndependent(t *testing.T) {
	for _, shape := range [][4]int{{128, 4, 0, 0}, {256, 8, 8, 4}} {
		p := problem(shape[0], shape[1], shape[2], shape[3], 2, router.TEP, drawnRows)
		counts, want := [][]float64{make([]float64, shape[0])}, 0.0
		for e := range counts[0] {
			counts[0][e] = 1 / float64(1+e) // the hottest by a fifth of the slots, and more than half of the tokens
		}
		share, _ := shares(counts[0])
		for _, x := range share {
			want += 1 - math.Pow(1-min(1, x*float64(shape[1])), 64)
		}
		ids, met, all := fill("recorded-x", p, Options{Counts: counts}, 0), 0, router.NewLoad(shape[0])
		for batch := range slices.Chunk(ids, 64*shape[1]) {
			load := router.NewLoad(shape[0])
			load.Add(batch)
			met += router.BalanceOf(load.PerExpert).Active
		}
		if mean := float64(met) / (drawnRows / 64); math.Abs(mean-want) > 0.08*want {
			t.Errorf("%v: %v experts in 64 tokens, want %v", shape, mean, want)
		}
		all.Add(ids)
		for e, n := range all.PerExpert {
			if of := min(share[e], 1/float64(shape[1])); math.Abs(float64(n)/float64(len(ids))-of) > 0.01 {
				t.Errorf("%v: expert %d has %v of the slots, want %v", shape, e, float64(n)/float64(len(ids)), of)
			}
		}
	}
}

func TestDrawnRefuses(t *testing.T) {
	p := problem(4, 1, 0, 0, 2, router.TEP, 1)
	for name, counts := range map[string][][]float64{
		"target-0.5": nil, "target-1.20": nil, "target-NaN": nil, "target-9": nil, "recorded-x": nil,
		"recorded-short": {{1, 2}}, "recorded-minus": {{1, 2, 3, -1}}, "recorded-none": {{0, 0, 0, 0}},
		"recorded-inf": {{1, 1, 1, math.Inf(1)}},
	} {
		if _, err := New(name, p, Options{Counts: counts}); err == nil {
			t.Errorf("%s was planned", name)
		}
	}
	for _, text := range []string{"", "[]", `{"logical_count": 3}`, `{"logical_count": [[1,2],[1]]}`} {
		if name, counts, err := Recorded([]byte(text)); err == nil && len(counts) > 0 {
			t.Errorf("%.20q: %s %v", text, name, counts)
		}
	}
}
