package wait

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/router"
)

// Collective splits the collectives of one rank, layer and phase into wait
// (until the last rank arrived) and transfer (from then on). Undefined where
// ranks cannot be aligned.
type Collective struct {
	Rank       int           `json:"rank"`
	Layer      router.OptInt `json:"layer"`
	Phase      kernel.Phase  `json:"phase"`
	Instances  int64         `json:"instances"`
	TotalNS    int64         `json:"total_ns"`
	WaitNS     router.Number `json:"wait_ns"`
	TransferNS router.Number `json:"transfer_ns"`
	// The parts of both in the steps that count.
	CountedWaitNS     router.Number `json:"counted_wait_ns"`
	CountedTransferNS router.Number `json:"counted_transfer_ns"`
}

// Alignment is how one rank's clock was brought to the lowest rank's: OffsetNS
// is added to its times, and DriftPPM millionths of the time since its first collective.
// Basis is "one report" (the same clock), "session time" or "collective ends"; ResidualNS
// is the median distance that is left between the ends of the same collective, the accuracy
// of wait and transfer.
type Alignment struct {
	Rank        int           `json:"rank"`
	Basis       string        `json:"basis"`
	OffsetNS    int64         `json:"offset_ns"`
	DriftPPM    float64       `json:"drift_ppm"`
	Collectives int           `json:"collectives"`
	ResidualNS  router.Number `json:"residual_ns"`
}

// Rank is what one rank ran, in its own clock.
type Rank struct {
	Number  int
	Report  int   // ranks of one report share its clock
	Session int64 // when the report's clock was 0, UTC; 0 where not recorded
	Kernels iter.Seq[Kernel]

	collectives map[key][]instance
	clock
}

// Kernel is one kernel. A rank's come in the order of their starts.
type Kernel struct {
	Start, End  int64
	Step, Layer int32 // router.NoID outside
	Phase       kernel.Phase
	Name        int32 // among Input.Names
	Collective  bool
}

// Input is what is known of a run. Ranks are in the order of their numbers.
type Input struct {
	Ranks []Rank
	World int            // of the whole run, 0 where not recorded
	Names []string       // of kernels
	Steps map[int32]bool // those that count
}

// Result is what Of finds. Collectives are by rank, layer and phase.
type Result struct {
	Collectives []Collective
	Alignment   []Alignment
	Warnings    []router.Warning
}

// instance is a collective of one rank in its own clock.
type instance struct{ start, end int64 }

// key is what collectives of several ranks have in common: the k-th instance of a key
// on one rank is the same collective as the k-th of it on every other.
type key struct {
	Step, Layer int32
	Phase       kernel.Phase
	name        string
}

func (v key) compare(o key) int {
	return cmp.Or(cmp.Compare(v.Step, o.Step), cmp.Compare(v.Layer, o.Layer), kernel.ComparePhases(v.Phase, o.Phase),
		cmp.Compare(v.name, o.name))
}

// analysis is an Input on its way to a Result.
type analysis struct {
	Input
	Result
	order   []key
	matched map[key]bool // every rank has as many instances
}

// Of finds who waits for whom.
//
// Ranks of one report share its clock; reports are aligned by their session
// start times, and then by the ends of collectives: all ranks leave a blocking
// one together, so a rank's clock is moved by the median difference of its ends
// from the lowest rank's. A rank waits until the last rank arrives, in aligned
// time and never longer than its own kernel lasts; the rest is transfer.
func Of(in Input) Result {
	a := &analysis{Input: in, matched: map[key]bool{}}
	a.gather()
	keys := map[key]bool{}
	for i := range a.Ranks {
		for v := range a.Ranks[i].collectives {
			keys[v] = true
		}
	}
	a.order = slices.SortedFunc(maps.Keys(keys), key.compare)
	for _, v := range a.order {
		a.matched[v] = len(a.Ranks) > 1
		for i := range a.Ranks {
			a.matched[v] = a.matched[v] && len(a.Ranks[i].collectives[v]) == len(a.Ranks[0].collectives[v])
		}
	}
	arrivals := map[key][]int64{}
	possible := a.alignable()
	if possible {
		a.align()
		if a.dropParted() {
			a.align()
		}
		for _, v := range a.order {
			if a.matched[v] {
				arrivals[v] = a.lastArrivals(v)
			}
		}
	}
	for i := range a.Ranks {
		a.Collectives = append(a.Collectives, a.collectivesOf(&a.Ranks[i], arrivals)...)
	}
	if possible {
		a.warnSkew()
	}
	return a.Result
}

// gather lists each rank's collectives by key in order of time, the ranks side by side.
func (a *analysis) gather() {
	names := make([]string, len(a.Names)) // spelt the same for every version
	for i, name := range a.Names {
		names[i] = kernel.NormalName(name)
	}
	var wait sync.WaitGroup
	for i := range a.Ranks {
		r := &a.Ranks[i]
		wait.Go(func() {
			r.collectives = map[key][]instance{}
			for k := range r.Kernels {
				if k.Collective {
					v := key{k.Step, k.Layer, k.Phase, names[k.Name]}
					r.collectives[v] = append(r.collectives[v], instance{k.Start, k.End})
				}
			}
		})
	}
	wait.Wait()
}

// lastArrivals is when the last rank arrived at each collective of a key, in
// the first rank's time.
func (a *analysis) lastArrivals(v key) []int64 {
	var last []int64
	for i := range a.Ranks {
		for k, m := range a.Ranks[i].collectives[v] {
			if i == 0 {
				last = append(last, a.Ranks[i].common(m.start))
			} else {
				last[k] = max(last[k], a.Ranks[i].common(m.start))
			}
		}
	}
	return last
}

// collectivesOf sums a rank's collectives by layer and phase. Wait and transfer
// are undefined where any of them has no known last arrival.
func (a *analysis) collectivesOf(r *Rank, arrivals map[key][]int64) []Collective {
	type group struct {
		layer int32
		phase kernel.Phase
	}
	index, stats := map[group]int{}, []Collective(nil)
	for _, v := range a.order {
		list := r.collectives[v]
		if len(list) == 0 {
			continue
		}
		g := group{v.Layer, v.Phase}
		at, ok := index[g]
		if !ok {
			at = len(stats)
			index[g] = at
			stats = append(stats, Collective{Rank: r.Number, Layer: router.OptInt(v.Layer), Phase: v.Phase})
		}
		s := &stats[at]
		last, known := arrivals[v]
		for k, m := range list {
			s.Instances++
			s.TotalNS += m.end - m.start
			wait, transfer := router.Undefined(), router.Undefined()
			if known {
				wait = router.Number(min(max(last[k]-r.common(m.start), 0), m.end-m.start))
				transfer = router.Number(m.end-m.start) - wait
			}
			s.WaitNS, s.TransferNS = s.WaitNS+wait, s.TransferNS+transfer
			if a.Steps[v.Step] {
				s.CountedWaitNS, s.CountedTransferNS = s.CountedWaitNS+wait, s.CountedTransferNS+transfer
			}
		}
	}
	slices.SortFunc(stats, func(a, b Collective) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), kernel.ComparePhases(a.Phase, b.Phase))
	})
	return stats
}

func (a *analysis) warn(code string, args ...any) {
	a.Warnings = append(a.Warnings, router.Warn(code, "", args...))
}

// warnSkew warns where ranks leave the same collectives so far apart that
// wait and transfer mean little: the clocks disagree, or the ranks do not meet
// in these collectives.
func (a *analysis) warnSkew() {
	var transfer, instances float64
	for _, c := range a.Collectives {
		if c.TransferNS.Defined() {
			transfer += float64(c.TransferNS)
			instances += float64(c.Instances)
		}
	}
	for _, l := range a.Alignment {
		if left := float64(l.ResidualNS); instances > 0 && left > transfer/instances {
			a.warn("skew", "rank", l.Rank, "spread_ns", left, "transfer_ns", transfer/instances)
		}
	}
}

// alignable reports whether waiting can be told, and warns of why it cannot.
func (a *analysis) alignable() bool {
	if len(a.order) == 0 {
		return false
	}
	common := slices.ContainsFunc(a.order, func(v key) bool { return a.matched[v] })
	reports := map[int]bool{}
	timed := true
	for _, r := range a.Ranks {
		reports[r.Report] = true
		timed = timed && r.Session != 0
	}
	switch {
	case len(a.Ranks) < 2:
		a.warn("no_wait", "why", "one_rank")
	case a.World > len(a.Ranks):
		a.warn("no_wait", "why", "missing", "given", len(a.Ranks), "world", a.World)
	case !common:
		a.warn("no_wait", "why", "unmatched")
	case len(reports) > 1 && !timed:
		a.warn("no_wait", "why", "no_sessions")
	default:
		return true
	}
	return false
}
