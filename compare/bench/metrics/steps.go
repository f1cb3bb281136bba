package metrics

import (
	"cmp"
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
	byRank := map[router.Whole][]int{}
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

// fullSteps are those of the rows that run the largest pure decode batch.
func fullSteps(steps []Step, rows []int) (full []int) {
	most := router.Whole(0)
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
func (s Step) decodeSize() (router.Whole, bool) {
	switch {
	case s.ContextTokens != 0:
		return 0, false
	case s.Requests > 0:
		return s.Requests, true
	}
	return s.GeneratedTokens, s.GeneratedTokens > 0
}

// BatchShape is what decides how much work a step is, routing aside. What the log
// does not state of it is undefined.
type BatchShape struct {
	Rank            router.Whole `json:"rank"`
	Requests        router.Whole `json:"requests"`
	ContextTokens   router.Whole `json:"context_tokens"`
	GeneratedTokens router.Whole `json:"generated_tokens"`
}

// Stratum compares the steps of one shape.
type Stratum struct {
	BatchShape
	NormalSteps   int           `json:"normal_steps"`
	PerfectSteps  int           `json:"perfect_steps"`
	NormalMeanMS  router.Number `json:"normal_mean_ms"`
	PerfectMeanMS router.Number `json:"perfect_mean_ms"`
}

// Match compares the iteration logs of two arms step by step of equal shape.
type Match struct {
	Clock  string    `json:"clock"`
	Strata []Stratum `json:"strata"` // the shapes that both arms ran, by rank, requests and tokens
	// Gain is Σ n·normal mean / Σ n·perfect mean − 1 over the strata, n the steps
	// of the normal arm: how much faster the same steps were. Undefined without
	// a common shape.
	Gain router.Number `json:"gain"`
	// The share of each arm's step time that lies in common shapes; a gain that
	// stands on a small share says little.
	NormalShare  router.Number `json:"normal_share"`
	PerfectShare router.Number `json:"perfect_share"`
}

// MatchSteps matches the steps of two logs by batch shape. Left out are steps
// that the parser marked as warm-up, those whose time is undefined, and those whose log says
// nothing of their shape. Two logs with different clocks match nowhere, and
// Clock is empty. The steps of several launches of an arm may be put together.
func MatchSteps(normal, perfect []Step) Match {
	m := Match{Gain: router.Undefined(), NormalShare: router.Undefined(), PerfectShare: router.Undefined()}
	a, aTotal, aClock := strata(normal)
	b, bTotal, bClock := strata(perfect)
	if aClock != bClock || aClock == "" {
		return m
	}
	m.Clock = aClock
	var base, treated, aShared, bShared router.Number
	for shape, n := range a {
		p, ok := b[shape]
		if !ok {
			continue
		}
		s := Stratum{shape, n.steps, p.steps, n.sum / router.Number(n.steps), p.sum / router.Number(p.steps)}
		m.Strata = append(m.Strata, s)
	}
	slices.SortFunc(m.Strata, func(x, y Stratum) int {
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Requests, y.Requests),
			cmp.Compare(x.ContextTokens, y.ContextTokens), cmp.Compare(x.GeneratedTokens, y.GeneratedTokens))
	})
	for _, s := range m.Strata {
		base += router.Number(s.NormalSteps) * s.NormalMeanMS
		treated += router.Number(s.NormalSteps) * s.PerfectMeanMS
		aShared += a[s.BatchShape].sum
		bShared += b[s.BatchShape].sum
	}
	if treated > 0 {
		m.Gain = base/treated - 1
	}
	if aTotal > 0 && bTotal > 0 {
		m.NormalShare, m.PerfectShare = aShared/aTotal, bShared/bTotal
	}
	return m
}

type stepSum struct {
	steps int
	sum   router.Number // ms
}

// strata sums the steady steps of a log by shape. The clock is empty when the
// steps do not agree on one.
func strata(steps []Step) (by map[BatchShape]stepSum, total router.Number, clock string) {
	by = map[BatchShape]stepSum{}
	for i, s := range steps {
		if i == 0 {
			clock = s.Clock
		} else if s.Clock != clock {
			return nil, 0, ""
		}
		if s.Warmup || !s.TimeMS.Defined() || !s.Requests.Defined() && !s.ContextTokens.Defined() && !s.GeneratedTokens.Defined() {
			continue
		}
		shape := BatchShape{s.Rank, s.Requests, s.ContextTokens, s.GeneratedTokens}
		sum := by[shape]
		by[shape] = stepSum{sum.steps + 1, sum.sum + s.TimeMS}
		total += s.TimeMS
	}
	return by, total, clock
}
