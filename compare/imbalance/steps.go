package imbalance

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// warmUpFactor is how many times the median of the later steps the GPU time of a
// leading step must exceed to be excluded as warm-up: ranks enter a capture at
// different times, and wait for the last one in their first collectives. A step whose
// expert compute exceeds the later steps' as much is no warm-up: it has more
// tokens.
const warmUpFactor = 1.5

// Step is one step of a recording.
type Step struct {
	Number   router.OptInt // undefined where no step is marked: the whole recording is one
	Kind     router.OptInt // see Kinds
	Excluded Exclusion     // Counts for a step that counts
	// BusyNS is GPU time, mean over ranks; some lack kernels in a step that is not complete.
	BusyNS router.Number
	// Expert time (see Of) of the slowest rank of each layer, and of the mean rank that has
	// the layer, each added over layers; undefined for fewer than two ranks.
	SlowestExpertsNS, MeanExpertsNS router.Number

	// outsideNS is compute in layers, or where none is named anywhere, and outside the phase experts, over all ranks. It
	// follows the number of tokens, and not how evenly they are routed; what stands between steps may be of either.
	outsideNS float64
	expertNS  float64 // compute of the phase experts, likewise
}

// whole reports that every rank recorded the step whole.
func (s *Step) whole() bool { return s.Excluded != Incomplete && s.Excluded != Lost }

// Exclusion is why a step does not count.
type Exclusion string

// The exclusions; their values are the codes of the warnings.
const (
	Counts     Exclusion = ""
	Incomplete Exclusion = "partial_steps"
	WarmUp     Exclusion = "start_up"
	Lost       Exclusion = "lost_kernels"
	OtherKind  Exclusion = "other_kind"
)

// excludePartial marks the steps that not every rank recorded whole: a rank ran nothing in the step, or not a layer
// that it has and another rank ran, or fewer expert GEMMs of the layer; or the recording of a rank begins or ends in
// it. Behind as many routers, ranks may run no GEMMs for want of tokens, 2, 2 and 0, and in half of the steps more
// chunks of a layer than others: 2, 4 and 0. Fewer steps of these tune kernels.
func (t *Times) excludePartial() {
	steps := map[int][]router.OptInt{} // in which each rank ran anything
	chunked := map[*Step]bool{}        // of unequal numbers: whether of more chunks
	t.inLayers(func(l *Layer, s *Step, own []Cell) {
		equal, alike, gemms, routers := true, true, map[int]int64{}, map[int]int64{} // by rank
		for _, c := range own {
			if gemms[c.Rank] += c.GEMMs; c.Phase == kernel.PhaseRouter {
				routers[c.Rank] += c.Instances
			}
		}
		for rank, n := range gemms {
			equal = equal && n == gemms[own[0].Rank]
			alike = alike && n%2 == 0 && routers[rank] > 0 && routers[rank] == routers[own[0].Rank]
			steps[rank] = append(steps[rank], s.Number)
		}
		switch {
		case !l.Number.Defined():
		case len(gemms) < len(l.Ranks):
			s.Excluded = Incomplete
		case equal || s.Excluded != Counts:
		case alike:
			numbers := slices.Sorted(maps.Values(gemms))
			fewer := func(n int64) bool { return 0 < n && n < numbers[len(numbers)-1] }
			chunked[s] = chunked[s] || slices.ContainsFunc(numbers, fewer)
		default:
			s.Excluded = Lost
		}
	})
	for s, more := range chunked {
		if more && s.Excluded == Counts && 2*len(chunked) < len(t.Steps) {
			s.Excluded = Incomplete
		}
	}
	ran := map[router.OptInt]int{} // ranks
	for rank, own := range steps {
		slices.Sort(own)
		steps[rank] = slices.Compact(own)
		for _, step := range steps[rank] {
			ran[step]++
		}
	}
	for step, ranks := range ran {
		if ranks < len(t.Ranks) {
			t.step(step).Excluded = Incomplete
		}
	}
	t.excludeCut(steps, chunked)
}

// excludeCut marks the first and the last of a rank's own steps, at which the recording may
// begin or end: a layer and a phase of it that lacks there, and in none of the rank's other
// steps with the layer, was not recorded. In chunked steps a rank without tokens lacks phases.
func (t *Times) excludeCut(steps map[int][]router.OptInt, chunked map[*Step]bool) {
	type place struct{ rank, layer int }
	ran := map[place]map[router.OptInt]phaseSet{} // by step
	t.inLayers(func(l *Layer, s *Step, own []Cell) {
		for _, c := range own {
			at, by := place{c.Rank, int(l.Number)}, s.Number
			if l.Number.Defined() {
				if ran[at] == nil {
					ran[at] = map[router.OptInt]phaseSet{}
				}
				ran[at][by] |= 1 << (slices.Index(kernel.Phases, c.Phase) + 1)
				if _, unequal := chunked[s]; unequal {
					ran[at][by] = ^phaseSet(0)
				}
			}
		}
	})
	for at, phases := range ran {
		for _, end := range cut(steps[at.rank], phases) {
			t.step(end).Excluded = Incomplete
		}
	}
}

// phaseSet is which phases ran, a bit for each.
type phaseSet uint32

// cut gives the first and the last of steps, in order, if they lack phases that
// all others have: those between, or without any the other one. What lacks altogether
// between says nothing.
func cut(order []router.OptInt, ran map[router.OptInt]phaseSet) (cut []router.OptInt) {
	ends := []router.OptInt{order[0], order[len(order)-1]}
	for _, end := range slices.Compact(slices.Clone(ends)) {
		always, seen := ^phaseSet(0), false
		for at, phases := range ran {
			if at != end && (len(order) == 2 || !slices.Contains(ends, at)) {
				always, seen = always&phases, true
			}
		}
		if seen && ran[end]&always != always {
			cut = append(cut, end)
		}
	}
	return cut
}

// A kind of steps leads that has leadTime of the expert time and a layer more uneven than leadUneven; see OfKind.
const leadTime, leadUneven = 0.1, 0.1

// lead is the kind that leads, of times by kind.
func (t *Times) lead(time map[router.OptInt]float64) router.OptInt {
	kinds, all := slices.Sorted(maps.Keys(time)), 0.0
	for _, kind := range kinds {
		all += time[kind]
	}
	slices.SortStableFunc(kinds, func(a, b router.OptInt) int { return cmp.Compare(time[b], time[a]) })
	for _, kind := range kinds {
		if kind.Defined() && time[kind] >= leadTime*all &&
			slices.ContainsFunc(t.OfKind(kind).Rows(leadUneven), func(r Row) bool { return r.Flagged }) {
			return kind
		}
	}
	return kinds[0]
}

// OfKind is the same times with the whole steps of one kind that count, but for warm-up. NoID takes the kind with most
// expert time, the first of two alike; where that is even, the next one with a tenth of the time that is uneven.
func (t *Times) OfKind(kind router.OptInt) *Times {
	own, time := *t, map[router.OptInt]float64{}
	own.Steps, own.Layers = slices.Clone(t.Steps), slices.Clone(t.Layers)
	for i := range own.Steps {
		if s := &own.Steps[i]; s.whole() {
			time[s.Kind] += s.expertNS
		}
	}
	if own.Kinds = len(time); !kind.Defined() && len(time) > 0 {
		kind = t.lead(time)
	}
	for i := range own.Steps {
		if s := &own.Steps[i]; s.whole() {
			if s.Excluded = Counts; s.Kind != kind {
				s.Excluded = OtherKind
			}
		}
	}
	excludeWarmUp(own.Steps)
	counted := len(own.StepsOf(Counts))
	for i, l := range own.Layers {
		own.Layers[i] = &Layer{Number: l.Number, Ranks: l.Ranks, steps: counted}
	}
	own.inLayers(func(l *Layer, s *Step, ran []Cell) {
		if s.Excluded == Counts {
			l.Experts = append(l.Experts, own.experts(l, ran))
		}
	})
	return &own
}

// excludeWarmUp marks the leading complete steps that are warm-up. Of two steps
// none is.
func excludeWarmUp(steps []Step) {
	var complete []int
	var busy, experts []float64
	for i, s := range steps {
		if s.Excluded == Counts {
			complete = append(complete, i)
			busy, experts = append(busy, s.BusyNS.Float64()), append(experts, s.MeanExpertsNS.Float64())
		}
	}
	long := func(values []float64) bool { return values[0] > warmUpFactor*stats.Median(values[1:]) }
	for n := 0; len(busy)-n > 2 && long(busy[n:]) && !long(experts[n:]); n++ {
		steps[complete[n]].Excluded = WarmUp
	}
}

// StepsOf lists the numbers of the steps that are excluded so, or that count.
func (t *Times) StepsOf(e Exclusion) (numbers []int) {
	for _, s := range t.Steps {
		if s.Excluded == e {
			numbers = append(numbers, int(s.Number))
		}
	}
	return numbers
}

// Warnings say which steps were excluded, and why.
func (t *Times) Warnings() []router.Warning {
	var out []router.Warning
	warn := func(e Exclusion, args ...any) {
		if numbers := t.StepsOf(e); len(numbers) > 0 {
			out = append(out, router.Warn(string(e), "", append(args, "steps", numbers)...))
		}
	}
	warn(Incomplete)
	warn(Lost, "why", "steps")
	warn(OtherKind, "kinds", t.Kinds)
	warn(WarmUp, "factor", warmUpFactor)
	return out
}
