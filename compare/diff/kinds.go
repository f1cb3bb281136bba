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
	batches   map[int]ranges.Batch // by step
	sizes     map[int][]int        // steps by their tokens, 0 where a range does not say
	word      string               // what ranges say of all steps: prefill, decode, or nothing
	tokens    float64              // mean, 0 where a range does not say
	expertNS  int64
	instances float64 // of kernels in a step
}

// stepKinds are the kinds of steps of a trace, the one with most expert time first.
func stepKinds(t *trace.Trace) (kinds []*stepKind) {
	names := map[int]string{}
	for _, s := range t.StepTimes {
		names[int(s.Step)] = s.Range
	}
	for _, of := range t.StepKinds {
		k := &stepKind{StepKind: of, batches: map[int]ranges.Batch{}, sizes: map[int][]int{},
			word: ranges.BatchOf(names[of.Steps[0]]).String()}
		n := float64(len(k.Steps))
		for _, step := range k.Steps {
			b := ranges.BatchOf(names[step])
			k.batches[step], k.sizes[b.Tokens] = b, append(k.sizes[b.Tokens], step)
			if k.tokens += float64(b.Tokens) / n; b.String() != k.word {
				k.word = ""
			}
		}
		if len(k.sizes[0]) > 0 {
			k.tokens = 0
		}
		for _, c := range t.Cells {
			if int(c.Kind) == k.Kind && c.Step.Defined() {
				if k.instances += float64(c.Instances) / n; c.Phase == trace.PhaseExperts {
					k.expertNS += c.ComputeNS()
				}
			}
		}
		kinds = append(kinds, k)
	}
	slices.SortStableFunc(kinds, func(a, b *stepKind) int { return cmp.Compare(b.expertNS, a.expertNS) })
	return kinds
}

// likeness is how alike two kinds are: by the share of kernels in both, of names plus of families, then by
// tokens, then by kernels per step. It is nil where nothing is alike or ranges say that one is prefill and
// the other decode.
func (k *stepKind) likeness(o *stepKind) []float64 {
	near := func(a, b float64) float64 { return max(min(a, b), 1) / max(a, b, 1) }
	alike := shared(k.Kernels, o.Kernels, strings.Clone) + shared(k.Kernels, o.Kernels, kernel.Family)
	if alike == 0 || k.word != "" && o.word != "" && k.word != o.word {
		return nil
	}
	return []float64{alike, near(k.tokens, o.tokens), near(k.instances, o.instances)}
}

// shared is the share of names that both lists have: "a", "b" and "b", "c" share a third.
func shared(a, b []string, name func(string) string) float64 {
	in := map[string]int{}
	for i, list := range [][]string{a, b} {
		for _, s := range list {
			in[name(s)] |= 1 << i
		}
	}
	both := 0.0
	for _, where := range in {
		both += float64(where / 3)
	}
	return both / float64(len(in))
}

// kindPair is a kind of steps of the normal arm and the most alike one of the perfect arm, nil where an arm
// has none.
type kindPair struct {
	arms    [2]*stepKind
	steps   [2][]int // compared
	leftOut int      // steps of either arm that are not
}

// pairOf pairs the steps of two kinds with equally many tokens, as many of each number in both arms: the
// last ones, as the first may be warm-up. Where ranges do not name the tokens of all steps, or none has its
// like, they are all steps.
func pairOf(normal, perfect *stepKind) kindPair {
	p := kindPair{arms: [2]*stepKind{normal, perfect}}
	for size, own := range normal.sizes {
		other := perfect.sizes[size]
		n := min(len(own), len(other))
		p.steps[0], p.steps[1] = append(p.steps[0], own[len(own)-n:]...), append(p.steps[1], other[len(other)-n:]...)
	}
	if len(p.steps[0]) == 0 || normal.tokens == 0 || perfect.tokens == 0 {
		p.steps = [2][]int{normal.Steps, perfect.Steps}
	}
	slices.Sort(p.steps[0])
	slices.Sort(p.steps[1])
	p.leftOut = len(normal.Steps) + len(perfect.Steps) - len(p.steps[0]) - len(p.steps[1])
	return p
}

// match pairs each kind of the normal arm with the most alike one of the perfect arm; kinds of one arm alone
// come last.
func match(normal, perfect []*stepKind) []kindPair {
	var pairs, alone []kindPair
	for _, n := range normal {
		best, most := -1, []float64(nil)
		for i, p := range perfect {
			if by := n.likeness(p); slices.Compare(by, most) > 0 {
				best, most = i, by
			}
		}
		if best < 0 {
			alone = append(alone, kindPair{arms: [2]*stepKind{n, nil}, leftOut: len(n.Steps)})
			continue
		}
		pairs = append(pairs, pairOf(n, perfect[best]))
		perfect = slices.Delete(slices.Clone(perfect), best, best+1)
	}
	for _, p := range perfect {
		alone = append(alone, kindPair{arms: [2]*stepKind{nil, p}, leftOut: len(p.Steps)})
	}
	return append(pairs, alone...)
}

// name names a kind by the tokens that ranges name: "decode steps of 57 to 64 tokens". Without these it is
// "decode-like steps", with their GPU time where other kinds are called the same.
func (p kindPair) name(pairs []kindPair, ns router.Number) string {
	of, word := cmp.Or(p.arms[0], p.arms[1]), p.word()
	steps := p.steps[0]
	if len(steps) == 0 {
		steps = of.Steps
	}
	var batches []ranges.Batch
	for _, s := range steps {
		batches = append(batches, of.batches[s])
	}
	if word, size, ok := strings.Cut(ranges.BatchesName(batches), ", "); ok {
		return word + " steps of " + size
	}
	name := strings.TrimPrefix(word+"-like steps", "-like ")
	same := slices.ContainsFunc(pairs, func(o kindPair) bool { return o.arms != p.arms && o.word() == word })
	if ns.Defined() && (same || word == "") {
		name += " of " + quantity.Duration(ns) + " GPU time"
	}
	return name
}

// word is what ranges of either arm say of all steps of a kind.
func (p kindPair) word() (word string) {
	for _, k := range p.arms {
		if k != nil {
			word = cmp.Or(word, k.word)
		}
	}
	return word
}

// restrict is the traces of both arms with these steps of the kind alone, and what is outside all steps.
func (p kindPair) restrict(sides [2]*trace.Trace) (parts [2]*trace.Trace) {
	for i, t := range sides {
		parts[i] = t.WithCells(slices.DeleteFunc(slices.Clone(t.Cells), func(c trace.Cell) bool {
			return c.Step.Defined() && !slices.Contains(p.steps[i], int(c.Step))
		}))
		parts[i].StepKinds = []trace.StepKind{p.arms[i].StepKind}
	}
	return parts
}

// CompareBuilds compares the traces of two builds of these names, or without names is Compare. Nothing is
// asked about arms and balance, and what needs a balanced arm is undefined or empty: the gain of balance,
// bounded, predicted or split. Each kind of steps is compared with its like; all other numbers are of the
// kind with most expert time in the normal arm.
func CompareBuilds(normal, perfect *trace.Trace, builds gain.Builds) (first Comparison) {
	sides, pairs := [2]*trace.Trace{normal, perfect}, match(stepKinds(normal), stepKinds(perfect))
	if len(pairs) == 0 || pairs[0].leftOut == 0 && len(pairs) == 1 || len(pairs[0].steps[1]) == 0 {
		return compare(sides, builds)
	}
	var rows []KindChange
	for i, p := range pairs {
		u := router.Undefined()
		k := KindChange{NormalSteps: []int{}, PerfectSteps: []int{}, LeftOut: p.leftOut,
			SlowestExperts: changeOf(u, u), Step: changeOf(u, u), Gain: u}
		if len(p.steps[0]) > 0 {
			c := compare(p.restrict(sides), builds)
			if i == 0 {
				first = c
			}
			for _, w := range c.Refusals {
				k.Refused = append(k.Refused, w.Key())
			}
			if i > 0 && slices.Contains(k.Refused, "refused.tokens") { // 7 tokens are not like 12
				k.LeftOut += len(p.steps[0]) + len(p.steps[1])
			} else {
				k.NormalSteps, k.PerfectSteps, k.SlowestExperts, k.Step = p.steps[0], p.steps[1], c.Ceiling.SlowestExperts, c.Step
			}
			if k.Gain = c.Prediction.Gain; !c.Comparable || !first.Comparable {
				k.Gain, k.Step.Ratio = u, u
			}
		}
		k.Steps = p.name(pairs, k.Step.NormalNS)
		rows = append(rows, k)
	}
	first.Kinds = rows
	return first
}

// UnequalSteps reports arms whose steps of the compared kind hold different numbers of tokens, so that
// means over all of them are not of equal work.
func (c Comparison) UnequalSteps() bool {
	return len(c.Kinds) > 0 && c.Kinds[0].LeftOut > 0 ||
		slices.ContainsFunc(c.Refusals, func(w router.Warning) bool { return w.Key() == "refused.tokens" })
}
