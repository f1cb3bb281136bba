package steps

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The kernels of made models, by what they are. Marks are known by their names.
const (
	gemm = 1 + iota
	activation
	exchange
	attention
	gate
	projection
	head      // the LM head, which is no mark
	embedding = 100
	positions = 101
	tables    = 105 // and two more
	gather    = 102 // layers use it too
	send      = 103
	kind      = 1000 // the first number of a kind of layers
	mixed     = 3    // the kind of layers without attention
	mixer     = 104
)

func launch(name int) Launch {
	l := Launch{Name: int32(name), NS: 1000}
	switch name {
	case gemm:
		l.Anchor = ExpertGEMM
	case exchange:
		l.Anchor = Collective
	case attention, mixer:
		l.Anchor = Attention
	case gate:
		l.Anchor = Router
	case projection, head:
		l.Anchor = Dense
	case embedding, positions, tables, tables + 2, tables + 3:
		l.Mark = Sure
	case gather, gather + 4:
		l.Mark = Perhaps
	case send:
		l.Anchor, l.Mark = Collective, Transfer
	}
	return l
}

func launches(names ...int) (l []Launch) {
	for _, name := range names {
		l = append(l, launch(name))
	}
	return l
}

// part is a layer: kernels of some kind before its experts, and those before it that begin
// a step.
type part struct {
	kind, length int
	begin        []int
}

func launchesOf(parts []part) (l []Launch) {
	for _, p := range parts {
		l = append(l, launches(p.begin...)...)
		token := attention
		if p.kind == mixed {
			token = mixer
		}
		l = append(l, launches(exchange, token, projection)...)
		for n := range p.length {
			l = append(l, launch(kind*(1+p.kind)+n))
		}
		l = append(l, launches(gate, gemm, activation, gemm)...)
	}
	return append(l, launch(exchange))
}

// steps repeats a step of layers of some kinds in turn, before which its marks stand.
func steps(n, layers int, begin []int, kinds ...part) (parts []part) {
	for range n {
		step := repeat(layers, kinds...)
		step[0].begin = begin
		parts = append(parts, step...)
	}
	return parts
}

func repeat(n int, p ...part) (parts []part) {
	for len(parts) < n {
		parts = append(parts, p...)
	}
	return slices.Clone(parts[:n])
}

// marksAt puts marks before some layers.
func marksAt(parts []part, begin []int, at ...int) []part {
	for _, i := range at {
		parts[i].begin = append(slices.Clone(parts[i].begin), begin...)
	}
	return parts
}

func TestFind(t *testing.T) {
	begin, other := []int{head, embedding, gather}, []int{head, positions, gather}
	full, sliding, long := part{kind: 1, length: 20}, part{kind: 2, length: 22}, part{length: 500}
	plain, linear := part{length: 5}, part{kind: mixed, length: 20}
	for _, c := range []struct {
		name          string
		parts         []part
		layers, first int
	}{
		{"3 layers, 3 steps", steps(3, 3, begin, plain), 3, 0},
		{"2 layers", steps(3, 2, begin, plain), 2, 0},
		{"alternating attention, 36 layers", steps(3, 36, begin, full, sliding), 36, 0},
		{"every third layer is much longer than what begins a step", steps(5, 48, begin, plain, plain, long), 48, 0},
		{"every fourth layer gathers", marksAt(steps(4, 12, append(begin, positions), plain), []int{gather, gather}, 3,
			7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47), 12, 0},
		{"begins within a step", steps(4, 4, begin, plain)[2:], 4, 2},
		{"two steps", steps(2, 3, begin, plain), 0, 0},
		{"two whole steps", steps(3, 4, begin, plain)[2:], 4, 2},
		{"half as many marks before the second layer", marksAt(steps(4, 6, slices.Concat(begin, begin), plain), begin, 1, 7,
			13, 19), 6, 0},
		{"two kinds of steps that share no mark", slices.Concat(steps(2, 4, begin, full), steps(2, 4, other, sliding)),
			4, 0},
		{"drafts of another model, fewer each time", slices.Concat(
			steps(1, 3, []int{embedding, gather, mixer, mixer, mixer}, plain),
			steps(1, 3, []int{embedding, gather, mixer, mixer}, plain),
			steps(2, 3, []int{embedding, gather, mixer}, plain)), 3, 0},
		{"every third step is of a kind that has marks of its own", repeat(48, slices.Concat(
			steps(1, 4, []int{embedding, tables}, linear), steps(2, 4, other, plain))...), 4, 0},
		{"a mark in some steps only", marksAt(steps(6, 4, begin, plain), []int{tables, positions, gather + 4}, 4, 8,
			20), 4, 0},
		{"a layer that predicts a further token", marksAt(steps(4, 6, begin, plain), begin, 5, 11, 17, 23), 6, 0},
		{"one that begins otherwise", marksAt(steps(4, 6, []int{embedding, positions}, plain),
			[]int{tables, gather, gather + 4}, 5, 11, 17, 23), 6, 0},
		{"one that samples first, in some steps", marksAt(marksAt(steps(8, 6, []int{embedding, positions}, plain),
			[]int{tables}, 5, 11, 17, 23, 29, 35, 41, 47), []int{tables + 2, tables + 3}, 29, 35, 41, 47), 6, 0},
		{"three such layers, and more before a step", marksAt(steps(4, 8, append(begin, positions), plain), begin, 5, 6,
			7, 13, 14, 15, 21, 22, 23, 29, 30, 31), 8, 0},
		{"a stage of a pipeline", steps(4, 7, []int{send}, plain), 7, 0},
		{"tokens sent in every layer, by the kernel of the stages", marksAt(steps(4, 6, []int{send, send}, plain),
			[]int{send}, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23), 0, 0},
		{"all alike", repeat(12, plain), 0, 0},
		{"alternating attention, nothing between steps", repeat(72, full, sliding), 0, 0},
		{"every third layer is longer, nothing between steps", repeat(72, plain, plain, long), 0, 0},
		{"marks in the first half only", marksAt(repeat(24, plain), begin, 0, 4, 8, 12), 0, 0},
		{"marks in the second half only", marksAt(repeat(24, plain), begin, 12, 16, 20), 0, 0},
		{"one beginning of a step, and none before it", marksAt(repeat(8, plain), begin, 4), 0, 0},
		{"one mark alone", steps(4, 6, []int{embedding}, plain), 0, 0},
		{"marks at 4 and at 6 layers", marksAt(steps(6, 4, begin, plain), other, 6, 12, 18), 0, 0},
		{"marks before two layers of a step", marksAt(steps(5, 6, begin, plain), other, 2, 8, 14, 20, 26), 0, 0},
		{"steps of different lengths", slices.Concat(steps(2, 4, begin, plain), steps(2, 5, begin, plain),
			steps(1, 4, begin, plain)), 0, 0},
		{"one step", steps(1, 9, begin, plain), 0, 0},
		{"one layer a step", steps(9, 1, begin, plain), 0, 0},
	} {
		s := Find(differently(launchesOf(c.parts)))
		first := 0
		if s.Layers > 0 {
			first = (s.Layers - s.steps[0].from) % s.Layers
		}
		if s.Layers != c.layers || first != c.first || len(s.Blocks) != len(c.parts) ||
			(s.Unknown == "") != (c.layers > 0) {
			t.Errorf("%s: %d layers from %d in %d blocks (%s), want %d from %d in %d", c.name, s.Layers, first,
				len(s.Blocks), s.Unknown, c.layers, c.first, len(c.parts))
		}
	}
}

// Of three GEMMs and more, one that varies by less than 3 % over layers, and takes 5 % of the longest at least, beside
// one that varies by more than 6 % passes shared experts, in half of the steps. It surely does if no GEMM varies by
// between.
func TestSharedExperts(t *testing.T) {
	for _, c := range []struct {
		even, odd, third, share float64
		gemms, unlike           int // steps without
		shared, sure            bool
	}{{0.029, 0.061, 0.045, 1, 3, 0, true, false}, {0.029, 0.061, 0.061, 1, 3, 0, true, true},
		{0.029, 0.061, 0.029, 1, 3, 0, true, true}, {0.029, 0.061, 0.061, 1, 3, 1, true, true},
		{0.031, 0.061, 0.045, 1, 3, 0, false, false}, {0.029, 0.059, 0.045, 1, 3, 0, false, false},
		{0.029, 0.061, 0.045, 0.051, 3, 0, true, false}, {0.029, 0.061, 0.045, 0.049, 3, 0, false, false},
		{0.029, 0.061, 0.061, 1, 2, 0, false, false}, {0.029, 0.061, 0.045, 1, 3, 1, true, false},
		{0.029, 0.061, 0.061, 1, 3, 2, false, false}} {
		s := Structure{of: &recording{}}
		for step := range 1 + c.unlike {
			s.tried = append(s.tried, stretch{2 * step, 2*step + 2})
			vary := []float64{c.even, c.odd, c.third}
			if step > 0 {
				vary[0] = 0.045
			}
			for _, side := range []float64{-1, 1} { // two layers, whose times are √2 of the deviation apart
				first := len(s.of.launches)
				for i, by := range vary[:c.gemms] {
					ns := 1e6 * []float64{c.share, 1, 1}[i] * (1 + side*by/math.Sqrt2)
					s.of.launches = append(s.of.launches, Launch{Anchor: ExpertGEMM, NS: uint32(ns)})
				}
				s.of.layers = append(s.of.layers, Block{first, len(s.of.launches) - 1})
			}
		}
		if places, shared := sharedIn(&s); shared != c.shared || len(places) > 0 != c.sure {
			t.Errorf("%+v: %v %v", c, shared, places)
		}
	}
}

// On a stream of their own GEMMs are of shared experts up to 0.55 of the longest routed one, whatever the others take.
func TestSharedExpertsOnAStream(t *testing.T) {
	for ns, shared := range map[uint32]bool{40e3: true, 60e3: false} {
		s := Structure{of: &recording{}, tried: []stretch{{0, 2}}}
		for layer := range uint32(2) {
			first := len(s.of.launches)
			s.of.launches = append(s.of.launches, Launch{NS: 90e3 + layer*20e3, Stream: 7, Anchor: ExpertGEMM},
				Launch{NS: 45e3 + layer*10e3, Stream: 7, Anchor: ExpertGEMM}, Launch{NS: ns, Stream: 20, Anchor: ExpertGEMM})
			s.of.layers = append(s.of.layers, Block{first, first + 2})
		}
		for range 20 { // in whatever order places come
			if places, _ := sharedIn(&s); len(places) > 0 != shared {
				t.Fatalf("%d ns: %v", ns, places)
			}
		}
	}
}

// Where GEMMs pass shared experts on all ranks, in the second half of the layers, they are none of the routed experts;
// where a rank's take longer, or microbatches may differ so, layers are unknown.
func TestWithoutSharedExperts(t *testing.T) {
	for _, c := range []struct {
		name   string
		slower uint32 // on the second rank
		second []int  // what stands between the routed GEMMs and the shared ones
		layers int
	}{{"behind the routed ones", 0, nil, 6}, {"slower on a rank", 100, nil, 0}, {"in a piece of their own", 0, []int{exchange}, 0}} {
		var ranks []*Structure
		for rank := range uint32(2) {
			var l []Launch
			for i, p := range steps(4, 6, []int{head, embedding, positions}, part{}) {
				own := launchesOf([]part{p})
				for n := range own {
					own[n].NS += uint32(i*7%5)*100 + 50*rank
				}
				if own = own[:len(own)-1]; i%6 > 2 {
					group := launches(append(c.second, gemm, gemm)...)
					for n := range group {
						group[n].NS += c.slower * rank
					}
					own = append(own, group...)
				}
				l = append(append(l, own...), launch(exchange))
			}
			s := Find(l)
			ranks = append(ranks, &s)
		}
		if Together(ranks); ranks[0].Layers != c.layers || ranks[1].Layers != c.layers {
			t.Errorf("%s: %d and %d layers (%s)", c.name, ranks[0].Layers, ranks[1].Layers, ranks[0].Unknown)
		}
	}
}

// differently gives the kernels other numbers: names are only labels.
func differently(l []Launch) []Launch {
	rename := rand.New(rand.NewPCG(1, 2)).Perm(20000)
	for i := range l {
		l[i].Name = int32(rename[l[i].Name])
	}
	return l
}

// Steps of a recording that begins or ends within one have places where they are whole. What ends the recording ends
// each step, but not where it ends in a dense layer.
func TestPlace(t *testing.T) {
	l := launches(gemm, head, embedding, attention, gate, gemm, head, embedding, attention)
	for n, want := range []int{7: 1, 8: 2, 9: 0} {
		if have := (Structure{Blocks: []Block{{0, 0}, {5, 5}}}).Tail(l[:max(n, 6)], []int{0, 5}, 0); have != want {
			t.Errorf("a recording of %d: a tail of %d, want %d", n, have, want)
		}
	}
	for _, c := range []struct {
		name  string
		s     Structure
		steps []int // by block
	}{
		{"begins within a step", Structure{steps: []stretch{{1, 4}, {4, 7}}}, []int{-1, 1, 1, 1, 2, 2, 2}},
		{"steps of unequal length", Structure{steps: []stretch{{0, 1}, {1, 4}, {4, 5}}}, []int{0, 1, 1, 1, 2}},
		{"unknown", Structure{}, []int{-1, -1}},
	} {
		c.s.Blocks = make([]Block, len(c.steps))
		for block, want := range c.steps {
			step, layer := c.s.Place(block)
			if step != want || want < 0 && layer != -1 || want >= 0 && layer != block-slices.Index(c.steps, want) {
				t.Errorf("%s: block %d is layer %d of step %d, want step %d", c.name, block, layer, step, want)
			}
		}
	}
}

// Drafts in varying number, and models in turn, make steps of several lengths, which recur.
func TestUnequalSteps(t *testing.T) {
	begin, plain := []int{head, embedding, positions}, part{length: 5}
	models := repeat(5*16, slices.Concat(steps(1, 4, begin, plain), steps(1, 12, begin, plain))...)
	drafts := slices.Concat(steps(1, 6, begin, plain), steps(3, 1, begin, plain), steps(1, 6, begin, plain),
		steps(1, 1, begin, plain))
	for _, c := range []struct {
		name  string
		parts []part
		last  [2]int // step and layer of the last block
		most  int    // layers
	}{
		{"two models in turn", models, [2]int{9, 11}, 12},
		{"the last step is not whole", models[:5*16-1], [2]int{-1, -1}, 12},
		{"one or three drafts", repeat(4*16, drafts...), [2]int{7, 6}, 9},
		{"a length that does not recur", slices.Concat(models[:32], steps(1, 3, begin, plain), models[32:]),
			[2]int{-1, -1}, 0},
	} {
		s, other := Find(launchesOf(c.parts)), Find(launchesOf(c.parts))
		if s.Unknown != severalPeriods {
			t.Errorf("%s: a rank alone, which may lack marks, knows %d layers", c.name, s.Layers)
		}
		Together([]*Structure{&s, &other})
		if step, layer := s.Place(len(s.Blocks) - 1); [2]int{step, layer} != c.last || s.Layers != c.most {
			t.Errorf("%s: layer %d of step %d, of %d (%s)", c.name, layer, step, s.Layers, s.Unknown)
		}
	}
}

// The first stage of a pipeline sends before it looks tokens up, the last one samples before it receives.
func TestStages(t *testing.T) {
	each := make([]int, 24)
	for i := range each {
		each[i] = i
	}
	stages := map[string]bool{}
	for _, parts := range [][]part{steps(4, 6, []int{send, embedding}, part{}),
		steps(4, 6, []int{positions, send}, part{}), steps(4, 6, []int{send}, part{}), steps(4, 6, []int{embedding, positions}, part{}),
		marksAt(steps(4, 6, []int{embedding, positions}, part{}), []int{send}, each...)} {
		s := Find(launchesOf(parts))
		if stages[s.Stage] = true; s.Layers != 6 {
			t.Errorf("%+v", s)
		}
	}
	if len(stages) != 4 || !stages[""] { // without transfers, or with some in each layer, there are no stages
		t.Errorf("stages %v", stages)
	}
}

// Kernels that are tuned leave their step without layers: in the first or second one of a recording, in one step of
// three, and in an eighth of the steps. In more, microbatches overlap.
func TestTunedKernels(t *testing.T) {
	for _, c := range []struct {
		steps, layers int
		tuned         []int // layers
		want          int
	}{{4, 3, []int{0}, 3}, {4, 2, []int{1}, 2}, {3, 3, []int{0}, 3}, {2, 3, []int{0}, 0}, {4, 3, []int{1, 4}, 0},
		{16, 3, []int{1, 4}, 3}, {16, 3, []int{1, 4, 7}, 0}} {
		var l []Launch
		for i, p := range steps(c.steps, c.layers, []int{head, embedding, positions}, part{}) {
			if l = append(l, launchesOf([]part{p})...); slices.Contains(c.tuned, i) {
				l = slices.Insert(l, len(l)-2, launches(gemm, gemm, gemm)...)
			}
		}
		s := Find(l)
		if _, layer := s.Place(c.tuned[0]); s.Layers != c.want || layer >= 0 {
			t.Errorf("%+v: %d layers, the tuned one %d", c, s.Layers, layer)
		}
	}
}
