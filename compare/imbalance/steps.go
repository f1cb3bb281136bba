package imbalance

import (
	"cmp"
	"slices"

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
	// BusyNS is GPU time, mean over ranks; of a step that is not complete, over
	// ranks of which some lack kernels.
	BusyNS router.Number
	// Expert time (see Of) of the slowest rank of each layer, and of the mean rank that has
	// the layer, each added over layers; undefined for fewer than two ranks.
	SlowestExpertsNS, MeanExpertsNS router.Number
}

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

// excludePartial marks the steps that not every rank recorded whole: in which one ran nothing, in which a layer
// that one rank ran was not run by all ranks that have it, in as many expert GEMMs, and the cut ones at a rank's ends.
func (t *Times) excludePartial() {
	own := make([][]int, len(t.Ranks)) // steps in which each rank ran anything
	at := Places(t.Ranks)
	for i := range t.Steps {
		s, present := &t.Steps[i], make([]bool, len(t.Ranks))
		for _, l := range t.Layers {
			some, every, equal := false, true, true
			for r, phases := range l.ran[i] {
				present[at[l.Ranks[r]]] = present[at[l.Ranks[r]]] || phases > 0
				some, every, equal = some || phases > 0, every && phases > 0, equal && l.parts[i][r].GEMMs == l.parts[i][0].GEMMs
			}
			switch {
			case !l.Number.Defined():
			case some && !every:
				s.Excluded = Incomplete
			case !equal && s.Excluded == Counts:
				s.Excluded = Lost
			}
		}
		for r, ran := range present {
			if own[r] = append(own[r], i); !ran {
				own[r], s.Excluded = own[r][:len(own[r])-1], Incomplete
			}
		}
	}
	for r, rank := range t.Ranks {
		if len(own[r]) > 0 {
			t.excludeCut(rank, own[r])
		}
	}
}

// excludeCut marks the first and the last of a rank's own steps, at which the recording may
// begin or end: a layer and a phase of it that lacks there, and in none of the rank's other
// steps with the layer, was not recorded. Of the only step of one of several ranks the layers
// are compared.
func (t *Times) excludeCut(rank int, own []int) {
	var routed []phaseSet // of the layers with experts in the first step
	for _, l := range t.Layers {
		at, has := slices.BinarySearch(l.Ranks, rank)
		if !has || !l.Number.Defined() {
			continue
		}
		var ran []phaseSet
		for _, step := range own {
			ran = append(ran, l.ran[step][at])
		}
		for _, edge := range cutEdges(ran) {
			t.Steps[own[edge]].Excluded = Incomplete
		}
		if l.parts[own[0]][at].ComputeNS() > 0 {
			routed = append(routed, ran[0])
		}
	}
	if only := len(own) == 1 && len(t.Ranks) > 1 && !t.Unmarked; only && len(cutEdges(routed)) > 0 {
		t.Steps[own[0]].Excluded = Incomplete
	}
}

// cutEdges says of the first and the last of a list in order whether it lacks phases that
// all others have: those between, or without any the other one. What lacks altogether
// between says nothing.
func cutEdges(ran []phaseSet) (cut []int) {
	last := len(ran) - 1
	for _, edge := range slices.Compact([]int{0, last}) {
		var others []phaseSet
		switch {
		case last > 1:
			others = ran[1:last]
		case last == 1:
			others = ran[1-edge : 2-edge]
		}
		always, seen := ^phaseSet(0), false
		for _, phases := range others {
			if phases > 0 {
				always, seen = always&phases, true
			}
		}
		if seen && ran[edge]&always != always {
			cut = append(cut, edge)
		}
	}
	return cut
}

// excludeOtherKinds leaves the kind of steps with most expert time.
func (t *Times) excludeOtherKinds() {
	time := map[router.OptInt]float64{}
	for i, s := range t.Steps {
		if s.Excluded == Counts {
			time[s.Kind] += 0
			for _, l := range t.Layers {
				for r := range l.parts[i] {
					time[s.Kind] += float64(l.parts[i][r].ComputeNS())
				}
			}
		}
	}
	if t.Kinds = len(time); t.Kinds < 2 {
		return
	}
	kinds := sorted(time) // the first of two alike
	most := slices.MaxFunc(kinds, func(a, b router.OptInt) int { return cmp.Compare(time[a], time[b]) })
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Excluded == Counts && s.Kind != most {
			s.Excluded = OtherKind
		}
	}
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
func (t *Times) StepsOf(e Exclusion) []int {
	var numbers []int
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
