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

// KindChange is one kind of steps that both arms ran (see trace.StepKind), compared by
// itself. Where ranges name the tokens of steps, only steps with equally many are
// compared.
type KindChange struct {
	Steps          string `json:"steps"` // such as "prefill steps of 8192 tokens": by ranges, else by time
	NormalSteps    []int  `json:"normal_steps"`
	PerfectSteps   []int  `json:"perfect_steps"`
	SlowestExperts Change `json:"experts_slowest"`
	Step           Change `json:"step"`
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

// like is what ranges say of all steps of the kind.
func (k *stepKind) like() string {
	seen := map[string]bool{}
	for _, s := range k.steps {
		seen[k.batches[s].String()] = true
	}
	for word := range seen {
		if len(seen) == 1 && word != "" {
			return word + "-like"
		}
	}
	return ""
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

// alike is how alike the kernels of two kinds are: the share of names in both plus the
// share of families in both, from 0 to 2. It is 0 where ranges say that one is prefill
// and the other decode.
func alike(a, b *stepKind) float64 {
	if x, y := a.like(), b.like(); x != "" && y != "" && x != y {
		return 0
	}
	return common(a.Kernels, b.Kernels, func(s string) string { return s }) +
		common(a.Kernels, b.Kernels, kernel.Family)
}

// common is the share of the names of both lists that are in either.
func common(a, b []string, name func(string) string) float64 {
	in := map[string]int{}
	for i, list := range [][]string{a, b} {
		for _, s := range list {
			in[name(s)] |= 1 << i
		}
	}
	both := 0
	for _, where := range in {
		if where == 3 {
			both++
		}
	}
	return float64(both) / float64(len(in))
}

// kernelsPerStep is over all ranks.
func (k *stepKind) kernelsPerStep() float64 { return float64(k.instances) / float64(len(k.steps)) }

// tokens is the mean over the steps of the kind, 0 where a range does not say.
func (k *stepKind) tokens() (mean float64) {
	for _, s := range k.steps {
		if k.batches[s].Tokens == 0 {
			return 0
		}
		mean += float64(k.batches[s].Tokens) / float64(len(k.steps))
	}
	return mean
}

// match finds for each kind of the normal arm the most alike one of the perfect arm:
// by MoE kernels, then by tokens and kernels per step. What is left is in one arm only.
func match(normal, perfect []*stepKind) (pairs [][2]*stepKind, alone [2][]*stepKind) {
	for _, n := range normal {
		best := -1
		for i, p := range perfect {
			if alike(n, p) == 0 {
				continue
			}
			apart := func(i int, of func(*stepKind) float64) float64 {
				a, b := of(n), of(perfect[i])
				return max(a, b, 1) / max(min(a, b), 1)
			}
			if best < 0 || cmp.Or(cmp.Compare(alike(n, p), alike(n, perfect[best])),
				cmp.Compare(apart(best, (*stepKind).tokens), apart(i, (*stepKind).tokens)),
				cmp.Compare(apart(best, (*stepKind).kernelsPerStep), apart(i, (*stepKind).kernelsPerStep))) > 0 {
				best = i
			}
		}
		if best < 0 {
			alone[0] = append(alone[0], n)
			continue
		}
		pairs = append(pairs, [2]*stepKind{n, perfect[best]})
		perfect = slices.Delete(slices.Clone(perfect), best, best+1)
	}
	alone[1] = perfect
	return pairs, alone
}

// equalBatches are the steps of two kinds with equally many tokens, as many of each
// number in both arms: the last ones, as the first may be warm-up. Where ranges do not
// name the tokens of all steps, or none has its like, they are all steps.
func equalBatches(kinds [2]*stepKind) (steps [2][]int) {
	sizes := [2]map[int][]int{{}, {}}
	for i, k := range kinds {
		for _, s := range k.steps {
			sizes[i][k.batches[s].Tokens] = append(sizes[i][k.batches[s].Tokens], s)
		}
	}
	for tokens, normal := range sizes[0] {
		perfect := sizes[1][tokens]
		n := min(len(normal), len(perfect))
		steps[0], steps[1] = append(steps[0], normal[len(normal)-n:]...), append(steps[1], perfect[len(perfect)-n:]...)
	}
	if len(sizes[0][0])+len(sizes[1][0]) > 0 || len(steps[0]) == 0 {
		return [2][]int{kinds[0].steps, kinds[1].steps}
	}
	slices.Sort(steps[0])
	slices.Sort(steps[1])
	return steps
}

// restrictTo is the trace with these steps alone, and what is outside all steps. Waiting is a
// mean over the steps of the trace that count: it stays where these hold all steps.
func restrictTo(t *trace.Trace, steps []int) *trace.Trace {
	part := t.WithCells(slices.DeleteFunc(slices.Clone(t.Cells), func(c trace.Cell) bool {
		return c.Step.Defined() && !slices.Contains(steps, int(c.Step))
	}))
	times := part.Times(nil)
	have, of := times.StepsOf(imbalance.Counts), t.Times(nil).StepsOf(imbalance.Counts)
	if !slices.Equal(have, of) {
		part.Imbalance = slices.DeleteFunc(slices.Clone(t.Imbalance),
			func(r imbalance.Row) bool { return r.Quantity == imbalance.Time })
		part.Imbalance = append(part.Imbalance, times.Rows(balancedWithin)...)
	}
	return part
}

// CompareBuilds compares the traces of two builds of these names, or without names is Compare. Nothing is asked
// about arms and balance, and what needs a balanced arm is undefined or empty: the gain of balance, bounded,
// predicted or split. Each kind of steps is compared with its like; the comparison is that of the kind with most
// expert time in the normal arm.
func CompareBuilds(normal, perfect *trace.Trace, builds gain.Builds) Comparison {
	n, p := stepKinds(normal), stepKinds(perfect)
	pairs, alone := match(n, p)
	if len(pairs) == 0 {
		return compare(normal, perfect, builds)
	}
	var first Comparison
	var rows []KindChange
	for i, pair := range pairs {
		steps := equalBatches(pair)
		if len(n) == 1 && len(p) == 1 && slices.Equal(steps[0], pair[0].steps) &&
			slices.Equal(steps[1], pair[1].steps) {
			return compare(normal, perfect, builds)
		}
		c := compare(restrictTo(normal, steps[0]), restrictTo(perfect, steps[1]), builds)
		name := kindName(pair, steps[0], pairs, c.Step.NormalNS)
		if i == 0 {
			first = c
		} else if first.Comparable && !c.Comparable {
			reason, differ := "other", c.different()
			if len(differ) > 0 {
				reason = "work"
			}
			first.warn("kind_not_comparable", "", "why", reason, "kind", name, "quantities", differ)
			continue
		}
		if !first.Comparable {
			c.Prediction.Gain, c.Step.Ratio = router.Undefined(), router.Undefined()
		}
		rows = append(rows, KindChange{name, steps[0], steps[1], c.Ceiling.SlowestExperts, c.Step,
			c.Prediction.Gain})
		for arm, k := range pair {
			first.warnUnequal(builds.Names()[arm], name, k, steps[arm])
		}
	}
	first.Kinds = rows
	for i, list := range alone {
		for _, k := range list {
			first.warn("kind_in_one_arm", string(builds.Names()[i]), "steps", k.steps, "kernels", len(k.Kernels))
		}
	}
	return first
}

// kindName names two kinds of steps alike by the tokens that ranges name: "decode steps of 57 to 64 tokens".
// Without these it is "decode-like steps", with their GPU time where other kinds are called the same.
func kindName(pair [2]*stepKind, steps []int, pairs [][2]*stepKind, ns router.Number) string {
	var batches []ranges.Batch
	for _, s := range steps {
		batches = append(batches, pair[0].batches[s])
	}
	if word, size, ok := strings.Cut(ranges.BatchesName(batches), ", "); ok {
		return word + " steps of " + size
	}
	name := cmp.Or(pair[0].like(), pair[1].like())
	if same := slices.ContainsFunc(pairs, func(o [2]*stepKind) bool {
		return o != pair && cmp.Or(o[0].like(), o[1].like()) == name
	}); name != "" && !same {
		return name + " steps"
	}
	return strings.TrimSpace(name+" steps") + " of " + quantity.Duration(ns) + " GPU time"
}

// different are the quantities of work in which the sides differ.
func (c *Comparison) different() (names []string) {
	for _, w := range c.Work {
		if !w.Equal {
			names = append(names, w.Quantity)
		}
	}
	return names
}

// warnUnequal says which steps of a kind were left out.
func (c *Comparison) warnUnequal(arm gain.Arm, name string, k *stepKind, steps []int) {
	left := slices.DeleteFunc(slices.Clone(k.steps), func(s int) bool { return slices.Contains(steps, s) })
	if len(left) > 0 {
		c.warn(unequalTokens, string(arm), "kind", name, "left", left)
	}
}

// unequalTokens is the code of a warning of steps that were left out.
const unequalTokens = "unequal_tokens"

// UnequalSteps reports arms whose steps of the compared kind, its first, hold different numbers of tokens, so
// that means over all of them are not of equal work.
func (c Comparison) UnequalSteps() bool {
	return slices.ContainsFunc(c.Warnings, func(w router.Warning) bool {
		return w.Code == unequalTokens && len(c.Kinds) > 0 && w.Args["kind"] == c.Kinds[0].Steps
	}) || slices.ContainsFunc(c.Work, func(w Work) bool { return w.Quantity == tokensPerStep && !w.Equal })
}
