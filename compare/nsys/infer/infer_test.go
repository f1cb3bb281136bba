package infer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// part is a segment: kernels of a layer of some kind, and those that end a step.
type part struct{ kind, length, more int }

// launchesOf writes launches: each block is two expert GEMMs with an activation between,
// each segment a collective, an attention, a router, glue of its kind to a given length,
// and what is more where a step ends, the LM head among it.
func launchesOf(parts []part) []Launch {
	var l []Launch
	for i, p := range parts {
		if i > 0 || p.length > 0 {
			l = append(l, Launch{3, Collective}, Launch{4, Attention})
			for n := range p.more {
				l = append(l, Launch{int32(500 + n), []Anchor{Dense, None}[min(n, 1)]})
			}
			name := int32(1000 * (1 + p.kind))
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

// decoder repeats a step of layers of some kinds in turn, with as much more at its end.
func decoder(n, layers, more int, kinds ...part) []part {
	inner := repeat(layers, kinds...)
	boundary := inner[0]
	boundary.more = more
	return steps(n, boundary, inner[1:]...)
}

func repeat(n int, p ...part) []part {
	var parts []part
	for len(parts) < n {
		parts = append(parts, p...)
	}
	return parts[:n]
}

func TestFind(t *testing.T) {
	full, sliding := part{kind: 1, length: 20}, part{kind: 2, length: 22}
	prefill, decode := part{kind: 3, length: 98}, part{kind: 4, length: 89}
	mixed := slices.Concat(decoder(1, 5, 368, part{kind: 5, length: 96}), decoder(1, 5, 158, prefill), decoder(22, 5, 141, decode), decoder(1, 5, 101, part{kind: 6, length: 89}))
	for _, c := range []struct {
		name          string
		parts         []part
		layers, first int
	}{
		{"transformers Qwen3-MoE, 3 layers, 3 steps", decoder(3, 3, 28, part{length: 102}), 3, 0},
		{"one dense layer first", decoder(3, 2, 100, part{length: 100}), 2, 0},
		{"alternating attention, 36 layers", decoder(3, 36, 20, full, sliding), 36, 0},
		{"alternating attention, longer kind first", decoder(10, 36, 18, sliding, full), 36, 0},
		{"a kind of attention in every fourth layer", decoder(5, 48, 20, full, full, full, sliding), 48, 0},
		{"94 layers, 3 steps", decoder(3, 94, 4, part{length: 10}), 94, 0},
		{"58 layers, every tenth step with more at its boundary", slices.Concat(decoder(9, 58, 8, part{length: 12}), decoder(1, 58, 10, part{length: 12}), decoder(12, 58, 8, part{length: 12})), 58, 0},
		{"prefill and decode mixed", mixed, 5, 0},
		{"begins within a step", decoder(4, 4, 28, part{length: 102})[2:], 4, 2},
		{"all alike", repeat(12, part{length: 50}), 0, 0},
		{"alternating attention, nothing between steps", repeat(72, full, sliding), 0, 0},
		{"a kind of attention in every fourth layer, nothing between steps", repeat(72, full, full, full, sliding), 0, 0},
		{"one step of alternating attention, one GEMM more in each", repeat(24, part{kind: 1, length: 20, more: 1}, part{kind: 2, length: 20}), 0, 0},
		{"lengths at random", []part{{0, 50, 0}, {1, 60, 0}, {2, 40, 0}, {3, 90, 0}, {4, 41, 0}, {5, 42, 0}, {6, 95, 0}, {7, 30, 0}, {8, 77, 0}}, 0, 0},
		{"one boundary only", decoder(2, 3, 28, part{length: 102}), 0, 0},
		{"one layer a step", repeat(9, part{length: 50, more: 1}), 0, 0},
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
	l := launchesOf(decoder(3, 2, 28, part{length: 102}))
	l[len(l)/2].Anchor = Backward
	if s := Find(l); s.Layers != 0 || s.Unknown == "" {
		t.Errorf("%d layers in a training trace", s.Layers)
	}
}

// With two microbatches, as vLLM's dual-batch overlap and SGLang's two-batch overlap run
// them, a layer has two runs of expert GEMMs: behind one another, or with the attention
// of the next layer between, which nothing tells from that of its own.
func TestMicrobatches(t *testing.T) {
	attention, experts := []Launch{{4, Attention}, {6, Dense}, {5, Router}}, []Launch{{3, Collective}, {1, ExpertGEMM}, {2, None}, {1, ExpertGEMM}, {3, Collective}}
	const layers, n = 26, 4
	var behind, between []Launch
	for range n {
		between = append(append(between, attention...), attention...)
		for l := range layers {
			behind = slices.Concat(behind, attention, attention, experts, experts)
			for range 2 {
				if between = append(between, experts...); l < layers-1 {
					between = append(between, attention...)
				}
			}
		}
		end := []Launch{{8, Dense}, {9, None}, {10, None}, {11, None}}
		behind, between = append(behind, end...), append(between, end...)
	}
	if s := Find(behind); s.Layers != layers || len(s.Blocks) != n*layers {
		t.Errorf("%d layers in %d blocks (%s), want %d in %d", s.Layers, len(s.Blocks), s.Unknown, layers, n*layers)
	}
	if s := Find(between); s.Layers != 0 || !strings.Contains(s.Unknown, "microbatches") {
		t.Errorf("%d layers (%s), want none", s.Layers, s.Unknown)
	}
}

// A compiler fuses other operators in the first layer than in the others, as in traces of
// vLLM: the segment between two steps lacks a kernel of every segment within them.
func TestGeneratedKernels(t *testing.T) {
	for name, want := range map[int32]int{Generated: 24, 7: 0} {
		var l []Launch
		for range 5 {
			l = append(l, Launch{11, Dense}, Launch{12, None}, Launch{13, Dense}, Launch{14, None})
			for layer := range 24 {
				if layer > 0 {
					l = append(l, Launch{name, None})
				}
				l = append(l, Launch{4, Attention}, Launch{6, Dense}, Launch{5, Router}, Launch{1, ExpertGEMM})
			}
		}
		if s := Find(l); s.Layers != want {
			t.Errorf("kernel %d: %d layers (%s), want %d", name, s.Layers, s.Unknown, want)
		}
	}
}

// Shared experts on a stream of their own, in a CUDA graph, start before, inside or behind
// the expert block, in another way in every layer.
func TestKernelsOfAnotherStream(t *testing.T) {
	const layers = 26
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		var l []Launch
		for range 6 {
			for n := range int32(12) { // norm, LM head, sampling, embedding
				l = append(l, Launch{50 + n, []Anchor{Dense, None}[min(n, 1)]})
			}
			for range layers {
				main := []Launch{{3, Collective}, {4, Attention}, {6, Dense}, {16, None}, {5, Router}, {17, None}, {18, None}, {1, ExpertGEMM}, {2, None}, {1, ExpertGEMM}, {19, None}, {20, None}, {3, Collective}}
				for at, n := 5, int32(0); n < 3; n++ {
					at += random.IntN(len(main) - at)
					main = slices.Insert(main, at, Launch{30 + n, Dense})
					at++
				}
				l = append(l, main...)
			}
		}
		if s := Find(l); s.Layers != layers || s.FirstLayer != 0 {
			t.Errorf("seed %d: %d layers from %d (%s), want %d", seed, s.Layers, s.FirstLayer, s.Unknown, layers)
		}
	}
}

// Names are only labels: renaming them changes nothing.
func TestRenaming(t *testing.T) {
	l := launchesOf(decoder(5, 3, 28, part{length: 102}, part{kind: 1, length: 104}))
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
	l := launchesOf(decoder(200, 58, 28, part{length: 12}))
	b.ReportMetric(float64(len(l)), "launches")
	for b.Loop() {
		Find(l)
	}
}
