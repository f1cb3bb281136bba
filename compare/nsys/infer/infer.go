// Package infer finds the steps and MoE layers of a rank whose recording has no
// ranges, from the repetition of its kernels. It sees kernel names as numbers, in
// order of launch, with the few of them marked that serve as anchors, and knows
// nothing of files, times or GPUs.
//
// How it works. An expert block is a run of expert GEMMs with no attention,
// collective or router kernel between them: one MoE layer of one step. Where every
// second pair of runs has neither attention nor a router between, each such pair is
// one block: two microbatches of a layer. The launches between two blocks are a
// segment. Within a step, a segment leads from one MoE layer to the next; between two
// steps it also holds the final norm, the LM head, sampling, the embedding, and any
// dense layers before the first MoE layer, so that it has more launches than every
// segment of the steps beside it. A period is a
// distance L at which such longer segments recur; the steps it cuts out must
// agree on which of their segments are alike. That agreement, rather than equality
// of the segments themselves, is required because prefill and decode steps run
// different kernels for the same work. A boundary must further hold all kernels of
// some segment of the steps beside it, and one more GEMM or norm for all tokens, as
// the LM head is: the two kinds of attention that some models alternate differ in
// length too, but each lacks kernels of the other. Of several periods, the one wins
// whose boundaries stand out most.
//
// All of this is tried twice. First segments are alike if they have the same kernels.
// Where that shows nothing, because a stream beside the main one (shared experts, in a
// CUDA graph) starts its kernels now before and now behind an expert block, they are
// alike if they have the same attention, routers and collectives. These are the same in
// most layers, so that their agreement says little: boundaries must then stand out by a
// quarter and not by a twentieth.
//
// When it fails. All segments alike (a benchmark that loops over layers with
// nothing between its steps, or CUDA graph replays without sampling), one MoE layer
// per step, fewer than two boundaries or two whole steps in the recording, a stage of a pipeline
// without the LM head, an LM head that neither its name nor its operator shows to be
// a GEMM, a number of blocks per step that varies (microbatches that overlap,
// speculative steps of varying depth, pipeline schedules), or forward and backward
// blocks in one stream. Then the layers are unknown, never 1, and blocks are only
// numbered.
//
// Two failures are not noticed. One is nothing longer between the steps, and every n-th
// layer with all kernels of its neighbours and a GEMM or norm more. The other is chance,
// in recordings of a few blocks whose kernels a second stream shuffles: of simulated ones
// with nothing between their steps, 4 % showed a structure with 8 blocks, and 0.5 % at
// most with 48.
//
// Where ranges name the layers and no step, StepsOfLayers needs none of this.
package infer

import (
	"encoding/binary"
	"slices"
)

// Anchor is what a kernel is known to be before any structure is.
type Anchor uint8

// The anchors.
const (
	None Anchor = iota
	ExpertGEMM
	Attention
	Router
	Collective
	Backward // of a training step, in which blocks are not layers
	Dense    // a GEMM or norm that every token passes: projections, LM head, dense layers
)

// Launch is one kernel of a rank.
type Launch struct {
	Name   int32 // of the kernel, as a number; Generated for one that a compiler made
	Anchor Anchor
}

// Generated stands for the names of kernels that a compiler generates. It fuses other
// operators in the first and the last layer of a model than in the others, so that their
// names say nothing of what a segment lacks.
const Generated = -1

// Block is one MoE layer of one step: the positions of its first and last expert
// GEMM in the order of launch.
type Block struct{ First, Last int }

// Structure is what the repetition of launches shows. Block b belongs to MoE layer
// (FirstLayer + b) mod Layers; dense layers are not counted.
type Structure struct {
	Blocks     []Block
	Layers     int    // MoE layers per step, 0 where unknown
	FirstLayer int    // the layer of the first block, above 0 where a recording begins within a step
	Unknown    string // why Layers is 0
}

// Place is the step and layer of a block, counted from 0; a step that the recording
// begins within is step 0. Both are −1 where layers are unknown.
func (s Structure) Place(block int) (step, layer int) {
	if s.Layers == 0 {
		return -1, -1
	}
	at := s.FirstLayer + block
	return at / s.Layers, at % s.Layers
}

// Complete reports whether all blocks of a step were recorded.
func (s Structure) Complete(step int) bool {
	return s.Layers > 0 && step*s.Layers >= s.FirstLayer && (step+1)*s.Layers <= s.FirstLayer+len(s.Blocks)
}

const (
	mostLayers      = 256  // per step; the deepest published MoE models have 94
	searched        = 4096 // blocks from the start in which periods are looked for; the winner must hold in all
	fewestBoundary  = 2    // boundaries that make a period
	fewestSteps     = 2    // whole steps, likewise: one is like itself wherever it is cut
	mostExceptions  = 0.05 // the share of boundaries that may be shorter than the rule asks
	mostIrregular   = 0.25 // the share of steps, and of segments, that may be like no other: streams that overlap swap kernels
	leastProminence = 1.05 // launches of a boundary over those of the longest segment beside it
	leastOfAnchors  = 1.25 // the same where anchors alone tell segments apart: other streams lengthen some
)

// Find infers the structure of one rank's launches, given in the order in which its
// threads launched them, or for replayed graphs in the order of graph launch and
// start. It takes time in proportion to the launches.
func Find(launches []Launch) Structure {
	blocks, overlap := blocksOf(launches)
	s := Structure{Blocks: blocks}
	switch {
	case len(s.Blocks) == 0:
		s.Unknown = "no kernel is recognized as an expert GEMM"
		return s
	case slices.ContainsFunc(launches, func(l Launch) bool { return l.Anchor == Backward }):
		s.Unknown = "forward and backward kernels are mixed, so expert blocks are not the layers of a step"
		return s
	case overlap:
		s.Unknown = "microbatches overlap: some expert blocks have neither attention nor a router between them, so blocks are not layers"
		return s
	}
	segments := segmentsOf(launches, s.Blocks)
	if !slices.ContainsFunc(segments[1:], func(s segment) bool { return s.length != segments[1].length }) {
		s.Unknown = "every expert block is followed by the same kernels, so nothing marks where a step ends"
		return s
	}
	best := prominentPeriod(segments, leastProminence)
	if best.layers == 0 {
		for i := range segments {
			segments[i].symbol = segments[i].anchors
		}
		best = prominentPeriod(segments, leastOfAnchors)
	}
	if best.layers == 0 {
		s.Unknown = "no kernels that end a step (final norm, LM head, sampling) recur at a fixed number of expert blocks"
		return s
	}
	s.Layers = best.layers
	s.FirstLayer = (best.layers - best.first) % best.layers
	return s
}

// prominentPeriod is the period whose boundaries stand out most, and enough.
func prominentPeriod(segments []segment, least float64) (best period) {
	head := segments[:min(searched, len(segments))]
	for layers := 2; layers <= min(mostLayers, len(head)/2+1); layers++ {
		inner := longestWithin(head, layers)
		for first := range layers {
			if p, ok := periodAt(head, inner, layers, first, least); ok && p.prominence > best.prominence {
				best = p
			}
		}
	}
	if best.layers > 0 && len(head) < len(segments) {
		best, _ = periodAt(segments, longestWithin(segments, best.layers), best.layers, best.first, least)
	}
	return best
}

// blocksOf cuts the launches into runs of expert GEMMs, or into pairs of them where
// every layer runs its two microbatches behind one another. Where attention and routers
// are missing between fewer runs, microbatches of different layers overlap.
func blocksOf(launches []Launch) (blocks []Block, overlap bool) {
	runs, layers := runsOf(launches, None), runsOf(launches, Collective)
	switch joined := len(runs) - len(layers); {
	case joined > 0 && joined == len(runs)/2:
		return layers, false
	case joined > 1 && joined < len(runs)/2:
		return runs, true
	}
	return runs, false
}

// runsOf are the runs of expert GEMMs with no anchors between them but dense GEMMs, of
// shared experts, and the given one.
func runsOf(launches []Launch, within Anchor) []Block {
	var blocks []Block
	inside := false
	for i, l := range launches {
		switch l.Anchor {
		case ExpertGEMM:
			if !inside {
				blocks = append(blocks, Block{First: i})
			}
			blocks[len(blocks)-1].Last, inside = i, true
		case None, Dense, within:
		default:
			inside = false
		}
	}
	return blocks
}

// segment is what was launched between the block before and the one of its index.
type segment struct {
	kernels int32 // equal for equal names, in whatever order: streams that overlap start them in any
	anchors int32 // equal for equal names of attention, routers and collectives
	symbol  int32 // the one of these by which segments count as alike
	length  int   // launches
	dense   int   // of these, the dense ones
	names   []int32
}

// exceeds reports whether a segment has all kernels of another but generated ones, and
// more, dense ones among them.
func (s *segment) exceeds(o *segment) bool {
	if s.dense <= o.dense {
		return false
	}
	at := 0
	for _, name := range o.names { // both in ascending order
		if name == Generated {
			continue
		}
		for at < len(s.names) && s.names[at] < name {
			at++
		}
		if at == len(s.names) || s.names[at] != name {
			return false
		}
		at++
	}
	return true
}

// segmentsOf returns one segment per block. The first, before all blocks, may
// begin anywhere and is left zero.
func segmentsOf(launches []Launch, blocks []Block) []segment {
	segments := make([]segment, len(blocks))
	symbols, anchors := newSymbols(), newSymbols()
	var names, marks []int32
	for i := 1; i < len(blocks); i++ {
		between := launches[blocks[i-1].Last+1 : blocks[i].First]
		names, marks = names[:0], marks[:0]
		dense := 0
		for _, l := range between {
			names = append(names, l.Name)
			switch l.Anchor {
			case Dense:
				dense++
			case Attention, Router, Collective:
				marks = append(marks, l.Name)
			}
		}
		symbol, mark := symbols.of(names), anchors.of(marks)
		segments[i] = segment{symbol, mark, symbol, len(between), dense, symbols.names[symbol]}
	}
	return segments
}

// symbols number lists of names, in whatever order, by first sight.
type symbols struct {
	numbers map[string]int32
	names   [][]int32 // by number, in ascending order
	key     []byte
}

func newSymbols() *symbols { return &symbols{numbers: map[string]int32{}} }

// of sorts the names.
func (s *symbols) of(names []int32) int32 {
	slices.Sort(names)
	s.key = s.key[:0]
	for _, n := range names {
		s.key = binary.LittleEndian.AppendUint32(s.key, uint32(n))
	}
	number, known := s.numbers[string(s.key)]
	if !known {
		number = int32(len(s.names))
		s.numbers[string(s.key)] = number
		s.names = append(s.names, slices.Clone(names))
	}
	return number
}

// longestWithin is, for every position i, the length of the longest of the
// layers−1 segments after it: those within the step that begins with block i.
func longestWithin(segments []segment, layers int) []int {
	inner := make([]int, len(segments))
	var window []int // positions of decreasing length
	for i := len(segments) - 1; i >= 0; i-- {
		for len(window) > 0 && window[0] > i+layers-1 {
			window = window[1:]
		}
		if len(window) > 0 {
			inner[i] = segments[window[0]].length
		}
		for len(window) > 0 && segments[window[len(window)-1]].length <= segments[i].length {
			window = window[:len(window)-1]
		}
		window = append(window, i)
	}
	return inner
}

// period is a way to cut the blocks into steps: before block first and every
// layers blocks after it.
type period struct {
	layers, first int
	prominence    float64 // how much longer boundaries are than segments within steps, at the least
}

// periodAt tests one period.
func periodAt(segments []segment, inner []int, layers, first int, least float64) (period, bool) {
	ratios := make([]float64, 0, len(segments)/layers+1)
	short, most := 0, int(mostExceptions*float64(len(segments)/layers+1))
	for b := first; b < len(segments) && short <= most; b += layers {
		if b == 0 {
			continue // the recording begins here, with or without what precedes a step
		}
		within := inner[b]
		if before := b - layers; before >= 0 {
			within = max(within, inner[before])
		} else { // the step that the recording begins within
			for _, s := range segments[1:b] {
				within = max(within, s.length)
			}
		}
		ratio := float64(segments[b].length + 1)
		if within > 0 {
			ratio = float64(segments[b].length) / float64(within)
		}
		if ratios = append(ratios, ratio); ratio < least {
			short++
		}
	}
	if len(ratios) < fewestBoundary {
		return period{}, false
	}
	slices.Sort(ratios)
	prominence := ratios[int(mostExceptions*float64(len(ratios)))]
	if prominence < least {
		return period{}, false
	}
	odd, steps := irregular(segments, layers, first)
	if steps < fewestSteps || float64(odd) > mostIrregular*float64(steps) || !recurring(segments, layers, first) || !marked(segments, layers, first) {
		return period{}, false
	}
	return period{layers, first, prominence}, true
}

// marked reports whether most boundaries hold what stands between two steps: the
// kernels of a segment within the step before or behind, and more. Two kinds of layers
// in turn differ in length too, but each lacks kernels of the other.
func marked(segments []segment, layers, first int) bool {
	plain, all := 0, 0
	for b := first; b < len(segments); b += layers {
		if b == 0 {
			continue
		}
		all++
		from, to := max(1, b-layers+1), min(len(segments), b+layers)
		seen, holds := map[int32]bool{segments[b].kernels: true}, false
		for i := from; i < to && !holds; i++ {
			if !seen[segments[i].kernels] {
				seen[segments[i].kernels] = true
				holds = segments[b].exceeds(&segments[i])
			}
		}
		if !holds {
			plain++
		}
	}
	return float64(plain) <= mostIrregular*float64(all)
}

// recurring reports whether the segments within steps are ones that occur again:
// kernels that never repeat show no structure, wherever the long ones stand.
func recurring(segments []segment, layers, first int) bool {
	times := map[int32]int{}
	for i, s := range segments {
		if i%layers != first%layers && i > 0 {
			times[s.symbol]++
		}
	}
	once, all := 0, 0
	for _, n := range times {
		all += n
		if n == 1 {
			once++
		}
	}
	return float64(once) <= mostIrregular*float64(all)
}

// irregular counts the complete steps whose segments are not alike in the pattern
// of most steps.
func irregular(segments []segment, layers, first int) (odd, steps int) {
	patterns := map[string]int{}
	most := 0
	key := make([]byte, layers-1)
	for b := first; b+layers <= len(segments); b += layers {
		seen := map[int32]byte{}
		for i, s := range segments[b+1 : b+layers] {
			n, known := seen[s.symbol]
			if !known {
				n = byte(len(seen))
				seen[s.symbol] = n
			}
			key[i] = n
		}
		patterns[string(key)]++
		most = max(most, patterns[string(key)])
		steps++
	}
	return steps - most, steps
}

// Tail is how many launches behind the layer of a block end its step, as the LM head
// does: those that also end the recording, where they follow the block. The others
// begin the next step. ends is what Ends returns.
func (s Structure) Tail(launches []Launch, ends []int, block int) int {
	from, rest := ends[block]+1, launches[ends[len(ends)-1]+1:]
	if block+1 < len(s.Blocks) && from+len(rest) < s.Blocks[block+1].First && slices.Equal(rest, launches[from:from+len(rest)]) {
		return len(rest)
	}
	return 0
}
