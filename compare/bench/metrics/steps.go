package metrics

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// firstFullSteps is how many full steps count as warm-up, at most: kernels are
// still being chosen, graphs captured and clocks raised in them.
const firstFullSteps = 10

// cutWarmup marks the steps that are not part of a launch's steady state, and
// no others. A rank's full steps are its pure decode steps with the most
// requests (most generated tokens, where a log has no requests). Warm-up is
// every step up to and including the first 10 full ones, or the first tenth of
// them when there are fewer than 100; cut as well is every step after the last
// full one, when requests run out. A rank that never ran a pure decode step has
// no steady state. It returns the full steps that are left, in order.
func cutWarmup(steps []Step) (steady []int) {
	byRank := map[router.OptInt][]int{}
	for i, s := range steps {
		byRank[s.Rank] = append(byRank[s.Rank], i)
	}
	for _, rows := range byRank {
		full := fullSteps(steps, rows)
		full = full[min(firstFullSteps, len(full)/10):]
		for _, i := range rows {
			steps[i].Warmup = len(full) == 0 || i < full[0] || i > full[len(full)-1]
		}
		steady = append(steady, full...)
	}
	slices.Sort(steady)
	return steady
}

// fullSteps are the rows that run the largest pure decode batch.
func fullSteps(steps []Step, rows []int) (full []int) {
	most := router.OptInt(0)
	for _, i := range rows {
		size, ok := steps[i].decodeSize()
		if !ok || size < most {
			continue
		}
		if size > most {
			full, most = nil, size
		}
		full = append(full, i)
	}
	return full
}

// decodeSize is how full a pure decode step is; not ok for any other step.
func (s Step) decodeSize() (router.OptInt, bool) {
	switch {
	case s.ContextTokens != 0:
		return 0, false
	case s.Requests > 0:
		return s.Requests, true
	}
	return s.GeneratedTokens, s.GeneratedTokens > 0
}
