package diff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/kernel/ranges"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// KindChange is one kind of steps (see trace.StepKind) compared by itself, and empty where an arm has no
// such steps. Where ranges name the tokens of steps, only steps with equally many are compared.
type KindChange struct {
	Steps          string `json:"steps"` // such as "prefill steps of 8192 tokens": by ranges, else by time
	NormalSteps    []int  `json:"normal_steps"`
	PerfectSteps   []int  `json:"perfect_steps"`
	LeftOut        int    `json:"steps_left_out"`  // steps of either arm without a like in the other
	Tokens         int    `json:"tokens"`          // most in a step, 0 where a range does not say
	SlowestExperts Change `json:"experts_slowest"` // see Side.SlowestNS
	Step           Change `json:"step"`
	// Gain is the predicted one, of a step of this kind; undefined of one that is not comparable.
	Gain     router.Number `json:"predicted_gain"`
	Low      router.Number `json:"predicted_low"` // see Split.Low
	High     router.Number `json:"predicted_high"`
	Measured *gain.Gain    `json:"measured_gain"` // by a point of the campaign with as many tokens, else nil
}

// stepKind is a kind of steps of one arm; the zero value is none.
type stepKind struct {
	trace.StepKind
	batches map[int]ranges.Batch // by step, what ranges say
	experts int                  // nanoseconds of experts, over all ranks and steps
}

// batch is what ranges say of the last step: the others are alike.
func (k *stepKind) batch() ranges.Batch {
	if len(k.Steps) == 0 {
		return ranges.Batch{}
	}
	return k.batches[k.Steps[len(k.Steps)-1]]
}

// bySize are the steps by their tokens, 0 where a range does not say.
func (k *stepKind) bySize() map[int][]int {
	steps := map[int][]int{}
	for _, s := range k.Steps {
		steps[k.batches[s].Tokens] = append(steps[k.batches[s].Tokens], s)
	}
	return steps
}

// stepKinds are the kinds of steps of a trace, the one with most expert time first.
func stepKinds(t *trace.Trace) (kinds []*stepKind) {
	batches, experts := map[int]ranges.Batch{}, map[int]int{}
	for _, s := range t.StepTimes {
		batches[int(s.Step)] = s.Batch
	}
	for _, c := range t.Cells {
		if c.Phase == trace.PhaseExperts {
			experts[int(c.Kind)] += int(c.ComputeNS())
		}
	}
	for _, of := range t.StepKinds {
		kinds = append(kinds, &stepKind{of, batches, experts[of.Kind]})
	}
	slices.SortStableFunc(kinds, func(a, b *stepKind) int { return cmp.Compare(b.experts, a.experts) })
	return kinds
}

// near is how near two numbers are: 1 for equal ones, 0.5 for 10 and 20.
func near(a, b int) float64 { return float64(max(min(a, b), 1)) / float64(max(a, b, 1)) }

// likeness is how alike two kinds are: by the share of families of kernels in both, then by tokens, then by the
// experts' time in a step. It is nil where nothing is alike or ranges say that one is prefill and the other decode.
func (k *stepKind) likeness(o *stepKind) []float64 {
	alike, one, other := shared(k.Kernels, o.Kernels), k.batch(), o.batch()
	if alike == 0 || one.Named && other.Named && one.String() != other.String() {
		return nil
	}
	return []float64{alike, near(one.Tokens, other.Tokens), near(k.experts/len(k.Steps), o.experts/len(o.Steps))}
}

// shared is the share of families of kernels that both lists have: of "a", "b" and "b", "c" a third.
func shared(a, b []string) float64 {
	in := map[string]int{}
	for i, list := range [][]string{a, b} {
		for _, name := range list {
			in[kernel.Family(name)] |= 1 << i
		}
	}
	both := 0.0
	for _, where := range in {
		both += float64(where / 3)
	}
	return both / float64(len(in))
}

// kindPair is a kind of steps of the normal arm and the most alike one of the perfect arm; one is none where an arm
// has no such steps.
type kindPair struct {
	arms  [2]*stepKind
	steps [2][]int // compared
}

// leftOut is how many steps of either arm are not compared.
func (k *kindPair) leftOut() int {
	return len(k.arms[0].Steps) + len(k.arms[1].Steps) - len(k.steps[0]) - len(k.steps[1])
}

// pairOf pairs the steps of two kinds with equally many tokens, as many of each number in both arms: the
// last ones, as the first may be warm-up. Where ranges do not name the tokens of all steps, or about as many in
// both arms, they are all steps; 7 tokens are not like 12.
func pairOf(normal, perfect *stepKind) kindPair {
	p := kindPair{arms: [2]*stepKind{normal, perfect}}
	others := perfect.bySize()
	unsaid := len(normal.bySize()[0])+len(others[0]) > 0
	for size, own := range normal.bySize() {
		n := min(len(own), len(others[size]))
		p.steps[0] = append(p.steps[0], own[len(own)-n:]...)
		p.steps[1] = append(p.steps[1], others[size][len(others[size])-n:]...)
	}
	if unsaid || len(p.steps[0]) == 0 && near(normal.batch().Tokens, perfect.batch().Tokens) > 1-tokensMargin {
		p.steps = [2][]int{normal.Steps, perfect.Steps}
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
			if by := n.likeness(p); slices.Compare(by, most) > 0 {
				best, most = i, by
			}
		}
		if best < 0 {
			alone = append(alone, kindPair{arms: [2]*stepKind{n, {}}})
			continue
		}
		pairs = append(pairs, pairOf(n, perfect[best]))
		perfect = slices.Delete(slices.Clone(perfect), best, best+1)
	}
	for _, p := range perfect {
		alone = append(alone, kindPair{arms: [2]*stepKind{{}, p}})
	}
	return append(pairs, alone...)
}

// phase is what ranges call the steps of either arm: decode.
func (k *kindPair) phase() string {
	return cmp.Or(k.arms[0].batch().String(), k.arms[1].batch().String())
}

// name names steps of the arm by what ranges say and the tokens that they name, else by GPU time: "decode steps of 57
// to 64 tokens", "steps of 3.2 ms GPU time"; empty for none.
func (k *kindPair) name(arm int, steps []int, ns router.Number) string {
	var batches []ranges.Batch
	for _, s := range steps {
		batches = append(batches, k.arms[arm].batches[s])
	}
	if len(steps) == 0 {
		return ""
	}
	name := strings.TrimSpace(k.phase() + " steps")
	if _, size, known := strings.Cut(ranges.BatchesName(batches), ", "); known {
		return name + " of " + size
	}
	if ns.Defined() {
		name += " of " + quantity.Duration(ns) + " GPU time"
	}
	return name
}

// warnOfKinds names the first kind of each phase that both arms have and of which no kind has a gain.
func (c *Comparison) warnOfKinds(pairs []kindPair, whys []string) {
	done := map[string]bool{"dummy": true} // by phase
	for i, p := range pairs {
		done[p.phase()] = done[p.phase()] || whys[i] == ""
	}
	for i, p := range pairs {
		one, other := p.name(0, p.arms[0].Steps, router.Undefined()), p.name(1, p.arms[1].Steps, router.Undefined())
		if !done[p.phase()] && one != "" && other != "" {
			c.warn(KindsApart, "", "why", whys[i], "kinds", one, "others", other)
			done[p.phase()] = true
		}
	}
}

// restrict is the traces of both arms with these steps of the kind alone, and what is outside all steps.
func (k *kindPair) restrict(sides [2]*trace.Trace) (parts [2]*trace.Trace) {
	for i, t := range sides {
		at := imbalance.Places(k.steps[i])
		parts[i] = t.WithCells(slices.DeleteFunc(slices.Clone(t.Cells), func(c trace.Cell) bool {
			_, wanted := at[int(c.Step)]
			return c.Step.Defined() && !wanted
		}))
		parts[i].StepKinds = []trace.StepKind{k.arms[i].StepKind}
	}
	return parts
}

// Compare compares the traces of a normal and a perfect arm, or of two builds of these names: then nothing is asked
// about arms and balance, and what needs a balanced arm is undefined or empty: the gain of balance, bounded, predicted
// or split. What only one side has is named in the warnings and left out; they may have recorded different numbers of
// steps. Sides that are no pair of arms come back with Comparable false. Each kind of steps is compared with its like;
// all other numbers are of the kind with most expert time in the normal arm.
func Compare(normal, perfect *trace.Trace, builds gain.Builds) (first Comparison) {
	sides, pairs := [2]*trace.Trace{normal, perfect}, match(stepKinds(normal), stepKinds(perfect))
	if len(pairs) > 0 && len(pairs[0].steps[0]) == 0 { // of other tokens, for which they are refused
		pairs[0].steps = [2][]int{pairs[0].arms[0].Steps, pairs[0].arms[1].Steps}
	}
	if len(pairs) == 0 || pairs[0].leftOut() == 0 && len(pairs) == 1 || len(pairs[0].steps[1]) == 0 {
		return compare(sides, builds)
	}
	u := router.Undefined()
	var rows []KindChange
	whys := make([]string, len(pairs))
	for i, p := range pairs {
		k := KindChange{NormalSteps: []int{}, PerfectSteps: []int{}, LeftOut: p.leftOut(),
			SlowestExperts: changeOf(u, u), Step: changeOf(u, u), Gain: u, Low: u, High: u}
		whys[i] = "unlike"
		if len(p.steps[0]) > 0 {
			c := compare(p.restrict(sides), builds)
			if i == 0 {
				first = c
			}
			k.NormalSteps, k.PerfectSteps, k.Step = p.steps[0], p.steps[1], c.Step
			k.SlowestExperts = changeOf(c.Normal.SlowestNS, c.Perfect.SlowestNS)
			whys[i] = ""
			if k.Gain, k.Low, k.High = c.Split.Gain, c.Split.Low, c.Split.High; !c.Comparable || !first.Comparable {
				k.Gain, k.Low, k.High, k.Step.Ratio, whys[i] = u, u, u, u, "work"
			} else if !builds.Named() && len(c.Ranks) > 1 && !k.Gain.Defined() {
				whys[i] = "replay"
			}
			for _, s := range p.steps[0] {
				k.Tokens = max(k.Tokens, p.arms[0].batches[s].Tokens)
			}
		}
		ns := k.Step.NormalNS
		k.Steps = cmp.Or(p.name(0, p.steps[0], ns), p.name(0, p.arms[0].Steps, ns), p.name(1, p.arms[1].Steps, ns))
		rows = append(rows, k)
	}
	if first.Kinds = rows; first.Comparable {
		first.warnOfKinds(pairs, whys)
	}
	return first
}
