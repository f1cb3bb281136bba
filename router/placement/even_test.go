package placement

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// randomWindows are loads that share a skew and differ from window to window.
func randomWindows(rng *rand.Rand, windows, experts int) [][]float64 {
	out := make([][]float64, windows)
	skew := make([]float64, experts)
	for e := range skew {
		skew[e] = math.Exp(rng.NormFloat64())
	}
	for w := range out {
		for _, v := range skew {
			out[w] = append(out[w], v*math.Exp(rng.NormFloat64()/2)*float64(1+w))
		}
	}
	return out
}

// squares is the sum of squares of the ranks' loads over the mean load, over windows.
func squares(windows [][]float64, slots []int32, ranks int) (sum float64) {
	copies := map[int32]float64{}
	for _, e := range slots {
		copies[e]++
	}
	for _, load := range windows {
		total := floats.Sum(load)
		for rank := range slices.Chunk(slots, len(slots)/ranks) {
			on := 0.0
			for _, e := range rank {
				on += load[e] / copies[e]
			}
			sum += on * on * float64(ranks*ranks) / (total * total)
		}
	}
	return sum
}

func hasDouble(slots []int32, ranks int) bool {
	for rank := range slices.Chunk(slots, len(slots)/ranks) {
		if slices.Sort(rank); len(slices.Compact(slices.Clone(rank))) < len(rank) {
			return true
		}
	}
	return false
}

// No swap betters a robust placement, which is looked for one by one; it keeps EPLB's copies
// and nodes, and no rank has two copies of an expert.
func TestRobustIsLocallyBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 30 {
		nodes := 1 + rng.IntN(2)
		s := Size{Ranks: 4 * nodes, Slots: 4 * nodes * (3 + rng.IntN(3)), Groups: nodes * 2, Nodes: nodes}
		experts := 8 * nodes
		windows := randomWindows(rng, 2+rng.IntN(4), experts)
		slots := require.Value(Robust(windows, s))
		if l, err := Layout(experts, slots, s.Ranks); err != nil || l.Ranks() != s.Ranks {
			t.Fatal(err)
		}
		value, perRank := squares(windows, slots, s.Ranks), s.Slots/s.Ranks
		if clone := slices.Clone(slots); hasDouble(clone, s.Ranks) {
			t.Errorf("%+v: %v has an expert twice on a rank", s, slots)
		}
		for a := range slots {
			for b := range slots {
				ra, rb := a/perRank, b/perRank
				if ra/4 != rb/4 || ra == rb {
					continue
				}
				other := slices.Clone(slots)
				other[a], other[b] = slots[b], slots[a]
				if v := squares(windows, other, s.Ranks); v < value-1e-9 && !hasDouble(slices.Clone(other), s.Ranks) {
					t.Fatalf("%+v: swapping slots %d and %d makes %v of %v", s, a, b, v, value)
				}
			}
		}
		node := map[int32]int{} // no expert stands on two nodes
		for i, e := range slots {
			if at, ok := node[e]; ok && at != i/perRank/4 {
				t.Fatalf("%+v: expert %d leaves its node in %v", s, e, slots)
			}
			node[e] = i / perRank / 4
		}
	}
	if slots, err := Robust([][]float64{{1, 2}, {2, 1}}, Size{Slots: 3, Ranks: 2}); !errors.Is(err,
		router.ErrShape) {
		t.Error(slots, err)
	}
}

// By hand: experts 0 and 1 are hot in turn, 2 and 3 when neither is. By their mean all four
// are equal, so that any two may stand together; over the windows, 0 and 1 must not stand with
// what is hot at the same time.
func TestRobustSeparatesWhatIsHotTogether(t *testing.T) {
	windows := [][]float64{{3, 3, 1, 1}, {1, 1, 3, 3}, {30, 30, 10, 10}} // the unit of a window does not matter
	slots, err := Robust(windows, Size{Slots: 4, Ranks: 2})
	if err != nil || slots[0]/2 == slots[1]/2 {
		t.Errorf("%v, %v", slots, err)
	}
	if v := squares(windows, slots, 2); math.Abs(v-6) > 1e-12 {
		t.Errorf("sum of squares %v, want 2 ranks at 1 in 3 windows", v)
	}
}

// Each swap of a mover evens most, without an expert twice on a rank, and it counts what ranks load; at the end no swap
// betters anything.
func TestMover(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	s := Size{Slots: 40, Ranks: 8}
	var windows [][][]float64
	var slots [][]int32
	var runs []router.Layout
	for range 3 {
		w := randomWindows(rng, 3, 32)
		stale := require.Value(Robust(randomWindows(rng, 2, 32), s)) // for other traffic
		l := require.Value(Layout(32, stale, s.Ranks))
		windows, slots, runs = append(windows, w), append(slots, stale), append(runs, l)
	}
	m := NewMover(windows, runs, slots, s)
	value, best, done := math.Inf(1), math.Inf(1), 0
	for steps := 0; ; steps++ {
		sum, loaded := 0.0, 0
		for l := range slots {
			from, _ := Layout(32, slots[l], s.Ranks)
			to := require.Value(Layout(32, m.Slots(l), s.Ranks))
			loaded += Loaded(from, to)
			sum += squares(windows[l], m.Slots(l), s.Ranks)
		}
		if sum >= value || sum > best+1e-9 || loaded != done || hasDouble(m.Slots(0), s.Ranks) {
			t.Fatalf("step %d: %v after %v, %v by another swap, %d copies of %d", steps, sum, value, best, loaded, done)
		}
		best = sum
		for l := range slots {
			now := m.Slots(l)
			for _, pair := range combin.Combinations(len(now), 2) {
				other := slices.Clone(now)
				other[pair[0]], other[pair[1]] = now[pair[1]], now[pair[0]]
				if after := sum - squares(windows[l], now, s.Ranks) + squares(windows[l], other, s.Ranks); after < best &&
					!hasDouble(slices.Clone(other), s.Ranks) {
					best = after
				}
			}
		}
		value = sum
		_, copies, ok := m.Next()
		if !ok {
			if steps < 5 {
				t.Errorf("%d steps", steps)
			}
			break
		}
		done += copies
	}
}

// A second implementation adds the loads up anew before each copy, over running placements of any form: of loads 6 1 | 2 1
// rank 1 takes a copy of expert 0, after which they have 4 and 6, and rank 0 one of expert 2.
func TestGrown(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 400 {
		experts, ranks, most, tie := 5+rng.IntN(9), 2+rng.IntN(3), 0, false
		held, share, windows := make([][]int32, ranks), make([]float64, experts), randomWindows(rng, 1+rng.IntN(3), experts)
		for i := range experts + rng.IntN(4) { // each expert once, and some again
			if r, e := rng.IntN(ranks), int32(i%experts); !slices.Contains(held[r], e) {
				held[r] = append(held[r], e)
				most = max(most, len(held[r]))
			}
		}
		for _, w := range windows {
			floats.AddScaled(share, 1/floats.Sum(w), w)
		}
		perRank := most - 1 + rng.IntN(6)
		slots, ok := Grown(require.Value(router.Placed(experts, held)), windows, Size{Slots: ranks * perRank, Ranks: ranks})
		can := perRank >= most && perRank <= experts
		for can && len(slices.Concat(held...)) < ranks*perRank {
			l, each := require.Value(router.Placed(experts, held)), slices.Clone(share)
			loads := RankLoad(l, share)
			for r := range held {
				if len(held[r]) == perRank {
					loads[r] = math.Inf(1)
				}
			}
			to, sorted := floats.MinIdx(loads), slices.Sorted(slices.Values(loads))
			tie = tie || sorted[1]-sorted[0] < 1e-9 // which rounding decides
			for e := range each {
				if each[e] /= float64(len(l.Places(e))); slices.Contains(held[to], int32(e)) {
					each[e] = -1
				}
			}
			held[to] = append(held[to], int32(floats.MaxIdx(each)))
		}
		if ok != can || ok && !tie && !slices.Equal(slots, slices.Concat(held...)) {
			t.Fatalf("%d experts on %d ranks of %d: %v %v, want %v %v", experts, ranks, perRank, slots, ok, held, can)
		}
	}
}
