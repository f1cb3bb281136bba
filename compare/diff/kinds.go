package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// KindChange is one kind of steps (see trace.StepKind) compared by itself, and empty where an arm has no
// such steps. Where ranges name the tokens of steps, only steps with equally many are compared.
type KindChange struct {
	Steps          string   `json:"steps"` // such as "prefill steps of 8192 tokens": by ranges, else by time
	NormalSteps    []int    `json:"normal_steps"`
	PerfectSteps   []int    `json:"perfect_steps"`
	LeftOut        int      `json:"steps_left_out"`    // steps of either arm without a like in the other
	Refused        []string `json:"refused,omitempty"` // for what the kind is not comparable, see Refusals
	SlowestExperts Change   `json:"experts_slowest"`
	Step           Change   `json:"step"`
	// Gain is the predicted one, of a step of this kind.
	Gain router.Number `json:"predicted_gain"`
}

// stepKind is one kind of steps of one arm.
type stepKind struct {
	trace.StepKind
	steps     []int
	batches   map[int]ranges.Batch // by step
	expertNS  int64
	instances int64
}

// stepKinds are the kinds of steps of a trace, the one with most expert time first.
func stepKinds(t *trace.Trace) []*stepKind {
	kinds := make([]*stepKind, len(t.StepKinds))
	for i, k := range t.StepKinds {
		kinds[i] = &stepKind{StepKind: k, batches: map[int]ranges.Batch{}}
	}
	names := map[router.OptInt]string{}
	for _, s := range t.StepTimes {
		names[s.Step] = s.Range
	}
	for i := range t.Cells {
		c := &t.Cells[i]
		if !c.Step.Defined() || !c.Kind.Defined() || int(c.Kind) >= len(kinds) {
			continue
		}
		k, step := kinds[c.Kind], int(c.Step)
		if _, known := k.batches[step]; !known {
			k.batches[step] = ranges.BatchOf(names[c.Step])
			k.steps = append(k.steps, step)
		}
		k.instances += c.Instances
		if c.Phase == trace.PhaseExperts {
			k.expertNS += c.TotalNS - c.CollectiveNS
		}
	}
	for _, k := range kinds {
		slices.Sort(k.steps)
	}
	kinds = slices.DeleteFunc(kinds, func(k *stepKind) bool { return len(k.steps) == 0 })
	slices.SortStableFunc(kinds, func(a, b *stepKind) int { return cmp.Compare(b.expertNS, a.expertNS) })
	return kinds
}

// word is what ranges say of all steps of the kind: prefill, decode, or nothing.
func (k *stepKind) word() string {
	word := k.batches[k.steps[0]].String()
	for _, b := range k.batches {
		if b.String() != word {
			return ""
		}
	}
	return word
}

// bySize are the steps of the kind by their tokens, 0 where a range does not say.
func (k *stepKind) bySize() map[int][]int {
	sizes := map[int][]int{}
	for _, s := range k.steps {
		sizes[k.batches[s].Tokens] = append(sizes[k.batches[s].Tokens], s)
	}
	return sizes
}

// tokens is the mean over the steps of the kind, 0 where a range does not say.
func (k *stepKind) tokens() (mean float64) {
	sizes := k.bySize()
	for size, steps := range sizes {
		mean += float64(size*len(steps)) / float64(len(k.steps))
	}
	if len(sizes[0]) > 0 {
		return 0
	}
	return mean
}

// likeness is how alike two kinds are: by the share of kernels in both, of names plus of families, then by
// tokens, then by kernels per step. It is nil where nothing is alike or ranges say that one is prefill and
// the other decode.
func (k *stepKind) likeness(o *stepKind) []float64 {
	shared := func(name func(string) string) float64 {
		in := map[string]int{}
		for i, list := range [][]string{k.Kernels, o.Kernels} {
			for _, s := range list {
				in[name(s)] |= 1 << i
			}
		}
		both := 0
		for _, where := range in {
			both += where / 3
		}
		return float64(both) / float64(len(in))
	}
	near := func(a, b float64) float64 { return max(min(a, b), 1) / max(a, b, 1) }
	alike := shared(func(name string) string { return name }) + shared(kernel.Family)
	if a, b := k.word(), o.word(); alike == 0 || a != "" && b != "" && a != b {
		return nil
	}
	perStep := func(k *stepKind) float64 { return float64(k.instances) / float64(len(k.steps)) }
	return []float64{alike, near(k.tokens(), o.tokens()), near(perStep(k), perStep(o))}
}

// kindPair is a kind of steps of the normal arm and the most alike one of the perfect arm, nil where an arm
// has none.
type kindPair struct {
	arms  [2]*stepKind
	steps [2][]int // compared
}

// pairOf pairs the steps of two kinds with equally many tokens, as many of each number in both arms: the
// last ones, as the first may be warm-up. Where ranges do not name the tokens of all steps, or none has its
// like, they are all steps.
func pairOf(normal, perfect *stepKind) kindPair {
	p, sizes := kindPair{arms: [2]*stepKind{normal, perfect}}, perfect.bySize()
	for size, own := range normal.bySize() {
		other := sizes[size]
		n := min(len(own), len(other))
		p.steps[0], p.steps[1] = append(p.steps[0], own[len(own)-n:]...), append(p.steps[1], other[len(other)-n:]...)
	}
	if len(p.steps[0]) == 0 || normal.tokens() == 0 || perfect.tokens() == 0 {
		p.steps = [2][]int{normal.steps, perfect.steps}
	}
	slices.Sort(p.steps[0])
	slices.Sort(p.steps[1])
	return p
}

// match pairs each kind of the normal arm with the most alike one of the perfect arm; kinds of one arm alone
// come last.
func match(normal, perfect []*stepKind) []kindPair {
	var pairs, alone []kindPair
	for _, n := range normal {
		best, most := -1, []float64(nil)
		for i, p := range perfect {
			if by := n.likeness(p); by != nil && (best < 0 || slices.Compare(by, most) > 0) {
				best, most = i, by
			}
		}
		if best < 0 {
			alone = append(alone, kindPair{arms: [2]*stepKind{n, nil}})
			continue
		}
		pairs = append(pairs, pairOf(n, perfect[best]))
		perfect = slices.Delete(slices.Clone(perfect), best, best+1)
	}
	for _, p := range perfect {
		alone = append(alone, kindPair{arms: [2]*stepKind{nil, p}})
	}
	return append(pairs, alone...)
}

// leftOut is how many steps of either arm are not compared.
func (p kindPair) leftOut() (n int) {
	for i, k := range p.arms {
		if k != nil {
			n += len(k.steps) - len(p.steps[i])
		}
	}
	return n
}

// name names a kind by the tokens that ranges name: "decode steps of 57 to 64 tokens". Without these it is
// "decode-like steps", with their GPU time where other kinds are called the same.
func (p kindPair) name(pairs []kindPair, ns router.Number) string {
	of := cmp.Or(p.arms[0], p.arms[1])
	steps, name := p.steps[0], p.word()
	if len(steps) == 0 {
		steps = of.steps
	}
	var batches []ranges.Batch
	for _, s := range steps {
		batches = append(batches, of.batches[s])
	}
	if word, size, ok := strings.Cut(ranges.BatchesName(batches), ", "); ok {
		return word + " steps of " + size
	}
	if name != "" {
		name += "-like "
	}
	same := slices.ContainsFunc(pairs, func(o kindPair) bool { return o.arms != p.arms && o.word() == p.word() })
	if name += "steps"; ns.Defined() && (same || p.word() == "") {
		name += " of " + quantity.Duration(ns) + " GPU time"
	}
	return name
}

// word is what ranges of either arm say of all steps of a kind.
func (p kindPair) word() (word string) {
	for _, k := range p.arms {
		if k != nil {
			word = cmp.Or(word, k.word())
		}
	}
	return word
}

// restrictTo is the trace with these steps of a kind alone, and what is outside all steps.
func restrictTo(t *trace.Trace, kind *stepKind, steps []int) *trace.Trace {
	part := t.WithCells(slices.DeleteFunc(slices.Clone(t.Cells), func(c trace.Cell) bool {
		return c.Step.Defined() && !slices.Contains(steps, int(c.Step))
	}))
	part.StepKinds = []trace.StepKind{kind.StepKind}
	return part
}

// CompareBuilds compares the traces of two builds of these names, or without names is Compare. Nothing is
// asked about arms and balance, and what needs a balanced arm is undefined or empty: the gain of balance,
// bounded, predicted or split. Each kind of steps is compared with its like; the comparison is that of the
// kind with most expert time in the normal arm.
func CompareBuilds(normal, perfect *trace.Trace, builds gain.Builds) Comparison {
	pairs := match(stepKinds(normal), stepKinds(perfect))
	if len(pairs) == 0 || pairs[0].leftOut() == 0 && len(pairs) == 1 || len(pairs[0].steps[1]) == 0 {
		return compare([2]*trace.Trace{normal, perfect}, builds)
	}
	var first Comparison
	rows := make([]KindChange, len(pairs))
	for i, p := range pairs {
		none := changeOf([2][]float64{})
		rows[i] = KindChange{Steps: p.name(pairs, none.NormalNS), NormalSteps: []int{}, PerfectSteps: []int{},
			LeftOut: p.leftOut(), SlowestExperts: none, Step: none, Gain: router.Undefined()}
		if len(p.steps[0]) == 0 {
			continue
		}
		c := compare([2]*trace.Trace{restrictTo(normal, p.arms[0], p.steps[0]),
			restrictTo(perfect, p.arms[1], p.steps[1])}, builds)
		if i == 0 {
			first = c
		}
		k := &rows[i]
		k.Steps, k.Refused = p.name(pairs, c.Step.NormalNS), c.whys()
		k.NormalSteps, k.PerfectSteps, k.SlowestExperts, k.Step = p.steps[0], p.steps[1], c.Ceiling.SlowestExperts, c.Step
		if k.Gain = c.Prediction.Gain; !c.Comparable || !first.Comparable {
			k.Gain, k.Step.Ratio = router.Undefined(), router.Undefined()
		}
	}
	first.Kinds = rows
	return first
}

// UnequalSteps reports arms whose steps of the compared kind hold different numbers of tokens, so that
// means over all of them are not of equal work.
func (c Comparison) UnequalSteps() bool {
	return len(c.Kinds) > 0 && c.Kinds[0].LeftOut > 0 || slices.Contains(c.whys(), "tokens")
}
