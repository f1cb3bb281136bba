package infer

import (
	"math/rand/v2"
	"testing"
)

// run writes launches: each block is two expert GEMMs with an activation between,
// each segment a collective, an attention, a router and glue to a given length. A
// segment is written as kind and length.
type part struct{ kind, length int }

func launchesOf(parts []part) []Launch {
	var l []Launch
	for i, p := range parts {
		if i > 0 || p.length > 0 {
			name := int32(1000 * (1 + p.kind))
			l = append(l, Launch{3, Collective}, Launch{4, Attention})
			for n := range p.length - 3 {
				l = append(l, Launch{name + int32(n), None})
			}
			l = append(l, Launch{5, Router})
		}
		l = append(l, Launch{1, ExpertGEMM}, Launch{2, None}, Launch{1, ExpertGEMM})
	}
	return l
}

// steps repeats a step: a boundary and its inner segments.
func steps(n int, boundary part, inner ...part) []part {
	var parts []part
	for range n {
		parts = append(append(parts, boundary), inner...)
	}
	return parts
}

func repeat(n int, p ...part) []part {
	var parts []part
	for len(parts) < n {
		parts = append(parts, p...)
	}
	return parts[:n]
}

func TestFind(t *testing.T) {
	prefill, decode := part{0, 98}, part{1, 89}
	mixed := append(steps(1, part{2, 464}, repeat(4, part{3, 96})...), steps(1, part{4, 256}, repeat(4, prefill)...)...)
	mixed = append(mixed, steps(22, part{5, 230}, repeat(4, decode)...)...)
	mixed = append(mixed, steps(1, part{6, 190}, repeat(4, part{7, 89})...)...)
	for _, c := range []struct {
		name          string
		parts         []part
		layers, first int
	}{
		{"transformers Qwen3-MoE, 3 layers, 3 steps", steps(3, part{0, 130}, part{1, 102}, part{1, 102}), 3, 0},
		{"one dense layer first", steps(3, part{0, 200}, part{1, 100}), 2, 0},
		{"alternating attention, 36 layers", steps(3, part{0, 40}, repeat(35, part{1, 20}, part{2, 22})...), 36, 0},
		{"alternating attention, longer kind first", steps(10, part{0, 40}, repeat(35, part{2, 22}, part{1, 20})...), 36, 0},
		{"94 layers, 3 steps", steps(3, part{0, 14}, repeat(93, part{1, 10})...), 94, 0},
		{"58 layers, every tenth step with more at its boundary", append(steps(9, part{0, 20}, repeat(57, part{1, 12})...), append(steps(1, part{9, 22}, repeat(57, part{1, 12})...), steps(12, part{0, 20}, repeat(57, part{1, 12})...)...)...), 58, 0},
		{"prefill and decode mixed", mixed, 5, 0},
		{"begins within a step", steps(4, part{0, 130}, part{1, 102}, part{1, 102}, part{1, 102})[2:], 4, 2},
		{"all alike", repeat(12, part{0, 50}), 0, 0},
		{"lengths at random", []part{{0, 50}, {1, 60}, {2, 40}, {3, 90}, {4, 41}, {5, 42}, {6, 95}, {7, 30}, {8, 77}}, 0, 0},
		{"one boundary only", steps(2, part{0, 130}, part{1, 102}, part{1, 102}), 0, 0},
		{"one layer a step", repeat(9, part{0, 50}, part{1, 50}, part{2, 50}), 0, 0},
	} {
		s := Find(launchesOf(c.parts))
		if s.Layers != c.layers || s.FirstLayer != c.first || len(s.Blocks) != len(c.parts) || (s.Unknown == "") != (c.layers > 0) {
			t.Errorf("%s: %d layers from %d in %d blocks (%s), want %d from %d in %d", c.name, s.Layers, s.FirstLayer, len(s.Blocks), s.Unknown, c.layers, c.first, len(c.parts))
		}
	}
}

func TestPlaceAndComplete(t *testing.T) {
	s := Structure{Blocks: make([]Block, 7), Layers: 3, FirstLayer: 2}
	for block, want := range [][2]int{{0, 2}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {2, 2}} {
		if step, layer := s.Place(block); step != want[0] || layer != want[1] {
			t.Errorf("block %d is layer %d of step %d, want %v", block, layer, step, want)
		}
	}
	if s.Complete(0) || !s.Complete(1) || !s.Complete(2) || s.Complete(3) {
		t.Error("the completeness of steps is wrong")
	}
	if step, layer := (Structure{Blocks: make([]Block, 2)}).Place(1); step != -1 || layer != -1 {
		t.Error("an unknown structure places blocks")
	}
}

// Training runs forward and backward blocks, which are no layers of a step.
func TestBackward(t *testing.T) {
	l := launchesOf(steps(3, part{0, 130}, part{1, 102}))
	l[len(l)/2].Anchor = Backward
	if s := Find(l); s.Layers != 0 || s.Unknown == "" {
		t.Errorf("%d layers in a training trace", s.Layers)
	}
}

// Names are only labels: renaming them changes nothing.
func TestRenaming(t *testing.T) {
	l := launchesOf(steps(5, part{0, 130}, part{1, 102}, part{2, 104}))
	want := Find(l)
	rename := rand.New(rand.NewPCG(1, 2)).Perm(20000)
	for i := range l {
		l[i].Name = int32(rename[l[i].Name])
	}
	if got := Find(l); got.Layers != want.Layers || got.FirstLayer != want.FirstLayer || want.Layers != 3 {
		t.Errorf("%d layers after renaming, %d before", got.Layers, want.Layers)
	}
}

func BenchmarkFind(b *testing.B) {
	l := launchesOf(steps(200, part{0, 40}, repeat(57, part{1, 12})...))
	b.ReportMetric(float64(len(l)), "launches")
	for b.Loop() {
		Find(l)
	}
}
