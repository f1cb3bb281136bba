package wait

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/router"
)

// Waiting is all waiting at the collectives of all ranks in the steps that count, whatever
// they end: last arrival − mean arrival, added over a step's collectives that do not
// overlap, mean over steps. Undefined where Waits are unknown.
type Waiting struct {
	Steps  int           `json:"steps"`
	WaitNS router.Number `json:"mean_wait_ns"`
	Parts  Parts         `json:"parts"`
	Cause
	Ranks  []Arrival  `json:"ranks"` // that are last at any, the longest wait first
	Late   []LateStep `json:"late"`  // the longest wait first
	Blocks Blocks     `json:"blocks"`
}

// Blocks is the waiting at the collectives that end an expert block alone, per step, added over
// the layers. Steps in which ranks disagree on the layer of a block are left out.
type Blocks struct {
	Layers int           `json:"layers"`
	WaitNS router.Number `json:"mean_wait_ns"`
	HostNS router.Number `json:"host_ns"` // for late launches
}

// MostlyHosts reports whether more than half of the waiting behind experts is for hosts that
// launch late: steps are then longer than their compute, and cutting compute shortens them only
// partly. It is false where launches are not recorded.
func (w *Waiting) MostlyHosts() bool { return 2*w.Blocks.HostNS > w.Blocks.WaitNS }

// Cause is the part that explains more than half of a wait, empty where none does; for late
// launches also what the host did in more than half of that time.
type Cause struct {
	Name  string        `json:"cause"`
	NS    router.Number `json:"cause_ns"`
	Did   Deed          `json:"host_did"`
	DidNS router.Number `json:"host_did_ns"`
}

// Deed is what a host does instead of launching.
type Deed string

// The deeds; empty for anything else.
const (
	CollectsGarbage Deed = "Python garbage collection"
	WaitsForLock    Deed = "waiting for Python's lock"
	Launches        Deed = "launch calls"
)

// Arrival is how long the ranks wait for one of them, per step, mean over all steps.
type Arrival struct {
	Rank      int           `json:"rank"`
	LastSteps int           `json:"last_steps"` // in which they wait for it longest
	WaitNS    router.Number `json:"mean_wait_ns"`
	Cause
}

// LateStep is a step in which the ranks wait far longer than in most for one of them: it
// arrives late, where others are even.
type LateStep struct {
	Step    router.OptInt `json:"step"`
	Layer   router.OptInt `json:"layer"` // of the collective with the longest wait for it
	Phase   kernel.Phase  `json:"phase"`
	Rank    int           `json:"rank"`
	WaitNS  router.Number `json:"mean_wait_ns"`  // for it
	UsualNS router.Number `json:"usual_wait_ns"` // median over steps, for all ranks
	Cause
}

// Explained is how much of the wait the cause explains.
func (a Arrival) Explained() router.Number { return min(a.WaitNS, a.NS) }

// Explained is how much of the wait the cause explains.
func (l LateStep) Explained() router.Number { return min(l.WaitNS, l.NS) }

// Unknown is the waiting of which nothing is known.
func Unknown() Waiting {
	none := router.Undefined()
	return Waiting{WaitNS: none, Parts: Parts{none, none, none, none}, Cause: Cause{NS: none, DidNS: none},
		Ranks: []Arrival{}, Late: []LateStep{}, Blocks: Blocks{WaitNS: none, HostNS: none}}
}

// partsIn are the parts; that of hosts is undefined where launches are not recorded.
func (a *analysis) partsIn(v values) Parts {
	p := Parts{router.Number(v[partExpert]), router.Number(v[partOther]), router.Number(v[partHost]),
		router.Number(v[partUnexplained])}
	if !a.hosts {
		p.HostNS = router.Undefined()
	}
	return p
}

func (a *analysis) causeOf(v values) Cause {
	c := Cause{NS: router.Undefined(), DidNS: router.Undefined()}
	if c.Name, c.NS = mainPart(router.Number(v[partWhole]), a.partsIn(v)); c.Name != LateHosts {
		return c
	}
	for _, did := range []struct {
		deed Deed
		part int
	}{{CollectsGarbage, partGC}, {WaitsForLock, partGIL}, {Launches, partCall}} {
		if ns := v[did.part]; 2*ns > v[partHost] {
			c.Did, c.DidNS = did.deed, router.Number(ns)
			break
		}
	}
	return c
}

// mainPart is the largest part, if it explains more than half of a wait.
func mainPart(whole router.Number, p Parts) (cause string, ns router.Number) {
	ns = router.Undefined()
	for _, part := range []struct {
		cause string
		ns    router.Number
	}{{ExpertLoad, p.ExpertNS}, {OtherCompute, p.OtherNS}, {LateHosts, p.HostNS}} {
		if part.ns > 0 && 2*part.ns > whole && !(part.ns <= ns) {
			cause, ns = part.cause, part.ns
		}
	}
	return cause, ns
}

// lateness fills Waiting from the waits by step and rank. The waiting of the first step
// recorded is not whole: it counts where there is no other.
func (a *analysis) lateness(byStep map[int32]map[int]*stepWait) {
	whole := maps.Clone(byStep)
	maps.DeleteFunc(whole, func(step int32, _ map[int]*stepWait) bool { return a.headless[step] })
	if len(whole) > 0 {
		byStep = whole
	}
	w, n := &a.Waiting, float64(len(byStep))
	var all values
	byRank, last := map[int]values{}, map[int]int{}
	for _, step := range slices.Sorted(maps.Keys(byStep)) {
		for rank, s := range byStep[step] {
			sum := byRank[rank]
			sum.add(s.parts)
			byRank[rank] = sum
		}
		last[longest(byStep[step])]++
	}
	for _, rank := range slices.Sorted(maps.Keys(byRank)) {
		sum := byRank[rank]
		for p := range sum {
			sum[p] /= n
		}
		all.add(sum)
		if sum[partWhole] > 0 {
			w.Ranks = append(w.Ranks, Arrival{a.Ranks[rank].Number, last[rank], router.Number(sum[partWhole]),
				a.causeOf(sum)})
		}
	}
	slices.SortStableFunc(w.Ranks, func(x, y Arrival) int { return cmp.Compare(y.WaitNS, x.WaitNS) })
	if len(byStep) > 0 {
		w.Steps, w.WaitNS, w.Parts, w.Cause = len(byStep), router.Number(all[partWhole]), a.partsIn(all), a.causeOf(all)
		a.lateSteps(byStep)
	}
}

// longest is the rank, as its position, that is waited for longest in a step.
func longest(byRank map[int]*stepWait) int {
	return slices.MinFunc(slices.Sorted(maps.Keys(byRank)), func(x, y int) int {
		return cmp.Compare(byRank[y].parts[partWhole], byRank[x].parts[partWhole])
	})
}

// A step is late where its waiting exceeds the median of the steps by leastLate of a step
// and by as many median absolute deviations as normal noise exceeds once in 3.5 million.
const (
	leastLate      = 0.05
	mostDeviations = 5 * 1.4826
)

// lateSteps lists the steps with far more waiting than most.
func (a *analysis) lateSteps(byStep map[int32]map[int]*stepWait) {
	steps := slices.Sorted(maps.Keys(byStep))
	if len(steps) < 3 { // no step is most of two
		return
	}
	var waits, apart []float64
	for _, step := range steps {
		sum := 0.0
		for _, s := range byStep[step] {
			sum += s.parts[partWhole]
		}
		waits = append(waits, sum)
	}
	usual := stats.Median(waits)
	for _, ns := range waits {
		apart = append(apart, max(ns-usual, usual-ns))
	}
	least := max(leastLate*a.StepNS, mostDeviations*stats.Median(apart))
	for i, step := range steps {
		rank := longest(byStep[step])
		if s := byStep[step][rank]; waits[i]-usual > least {
			a.Waiting.Late = append(a.Waiting.Late, LateStep{router.OptInt(step), router.OptInt(s.at.Layer), s.at.Phase,
				a.Ranks[rank].Number, router.Number(s.parts[partWhole]), router.Number(usual), a.causeOf(s.parts)})
		}
	}
	slices.SortStableFunc(a.Waiting.Late, func(x, y LateStep) int { return cmp.Compare(y.WaitNS, x.WaitNS) })
}
