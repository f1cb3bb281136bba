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

// BatchShape is what decides how much work a step is, routing aside. What the log
// does not state of it is undefined.
type BatchShape struct {
	Rank            router.OptInt `json:"rank"`
	Requests        router.OptInt `json:"requests"`
	ContextTokens   router.OptInt `json:"context_tokens"`
	GeneratedTokens router.OptInt `json:"generated_tokens"`
}

// Kind is what a step of the shape does: "prefill", "decode", "mixed" for both at once, or
// empty where the log does not say.
func (b BatchShape) Kind() string {
	switch {
	case !b.ContextTokens.Defined():
		return ""
	case b.ContextTokens == 0:
		return "decode"
	case b.GeneratedTokens > 0:
		return "mixed"
	}
	return "prefill"
}

// shape is what a step ran; not ok where the log does not say.
func (s Step) shape() (b BatchShape, ok bool) {
	b = BatchShape{Rank: s.Rank, Requests: s.Requests, ContextTokens: s.ContextTokens,
		GeneratedTokens: s.GeneratedTokens}
	return b, b.Requests.Defined() || b.ContextTokens.Defined() || b.GeneratedTokens.Defined()
}

// HasShapes reports whether steps say what they ran: an iteration log, not mere times.
func (r Result) HasShapes() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { _, ok := s.shape(); return ok })
}

// Stratum compares the steps of one shape.
type Stratum struct {
	BatchShape
	Kind          string        `json:"kind"` // of the shape
	NormalSteps   int           `json:"normal_steps"`
	PerfectSteps  int           `json:"perfect_steps"`
	NormalMeanMS  router.Number `json:"normal_mean_ms"`
	PerfectMeanMS router.Number `json:"perfect_mean_ms"`
}

// Match compares the iteration logs of two arms step by step of equal shape.
type Match struct {
	Clock  string    `json:"clock"`  // empty where nothing is comparable
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

// Matcher matches the steps of the logs of two arms, of one or several launches each.
// Left out are steps that the parser marked as warm-up, those without a time, and those whose log
// says nothing of their shape. Logs with different clocks match nowhere.
type Matcher struct {
	arms [2]shapeSums
}

// shapeSums are the steady steps of an arm by shape.
type shapeSums struct {
	by     map[BatchShape]stepSum
	total  router.Number // ms
	clocks []string      // of the steps; one if they agree
}

type stepSum struct {
	steps int
	sum   router.Number // ms
}

// Add adds the log of one launch of an arm: 0 normal, 1 perfect.
func (m *Matcher) Add(arm int, steps []Step) {
	a := &m.arms[arm]
	if a.by == nil {
		a.by = map[BatchShape]stepSum{}
	}
	for _, s := range steps {
		if !slices.Contains(a.clocks, s.Clock) {
			a.clocks = append(a.clocks, s.Clock)
		}
		shape, ok := s.shape()
		if s.Warmup || !ok || !s.TimeMS.Defined() {
			continue
		}
		sum := a.by[shape]
		a.by[shape] = stepSum{sum.steps + 1, sum.sum + s.TimeMS}
		a.total += s.TimeMS
	}
}

// Match compares what was added.
func (m *Matcher) Match() Match {
	r := Match{Gain: router.Undefined(), NormalShare: router.Undefined(), PerfectShare: router.Undefined()}
	a, b := m.arms[0], m.arms[1]
	if len(a.clocks) != 1 || a.clocks[0] == "" || !slices.Equal(a.clocks, b.clocks) {
		return r
	}
	r.Clock = a.clocks[0]
	var base, treated, aShared, bShared router.Number
	for shape, n := range a.by {
		p, ok := b.by[shape]
		if !ok {
			continue
		}
		r.Strata = append(r.Strata, Stratum{BatchShape: shape, Kind: shape.Kind(), NormalSteps: n.steps,
			PerfectSteps: p.steps, NormalMeanMS: n.sum / router.Number(n.steps),
			PerfectMeanMS: p.sum / router.Number(p.steps)})
	}
	slices.SortFunc(r.Strata, func(x, y Stratum) int {
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Requests, y.Requests),
			cmp.Compare(x.ContextTokens, y.ContextTokens), cmp.Compare(x.GeneratedTokens, y.GeneratedTokens))
	})
	for _, s := range r.Strata { // in this order, so that the same logs give the same bits
		base += router.Number(s.NormalSteps) * s.NormalMeanMS
		treated += router.Number(s.NormalSteps) * s.PerfectMeanMS
		aShared += a.by[s.BatchShape].sum
		bShared += b.by[s.BatchShape].sum
	}
	if treated > 0 {
		r.Gain = base/treated - 1
	}
	if a.total > 0 && b.total > 0 {
		r.NormalShare, r.PerfectShare = aShared/a.total, bShared/b.total
	}
	return r
}
