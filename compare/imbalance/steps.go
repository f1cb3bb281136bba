package imbalance

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// WarmUpFactor is how many times the median of the later steps the GPU time of a
// leading step must exceed to be excluded as warm-up: ranks enter a capture at
// different times, and wait for the last one in their first collectives. A step whose
// expert compute exceeds that of the later steps as much is no warm-up: it has more
// tokens.
const WarmUpFactor = 1.5

// Step is one step of a recording.
type Step struct {
	Number   router.Whole // undefined where no step is marked: the whole recording is one
	Excluded Exclusion    // Counts for a step that counts
	// BusyNS is GPU time, mean over ranks; of a step that is not complete, over
	// ranks of which some lack kernels.
	BusyNS router.Number
	// Compute of the slowest rank of each judged layer, and of the mean rank, each
	// added over the layers that several ranks have: their difference is the straggler
	// loss of the step. Undefined where no layer has several ranks.
	SlowestNS, MeanNS router.Number
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
	long := func(values []float64) bool { return values[0] > WarmUpFactor*stats.Median(values[1:]) }
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
	say := func(e Exclusion, why string) {
		if numbers := t.StepsOf(e); len(numbers) > 0 {
			noun := "step "
			if len(numbers) > 1 {
				noun = "steps "
			}
			out = append(out, router.Warning{Code: string(e), Text: noun + quantity.Ranges(numbers) + " excluded as " + why})
		}
	}
	say(Incomplete, "incomplete: some rank has no kernels there, or none of a layer that others ran")
	say(Lost, "incomplete: ranks have different numbers of expert GEMMs in a layer, so kernels were lost")
	say(OtherKind, fmt.Sprintf("of another kind: the capture mixes %d kinds of steps, which run different kernels for the same work (prefill and decode), and the kind with most expert time counts", t.Kinds))
	say(WarmUp, fmt.Sprintf("warm-up: GPU time over %g× the median of later steps", WarmUpFactor))
	return out
}
