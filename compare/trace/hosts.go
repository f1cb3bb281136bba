package trace

import (
	"cmp"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/capture"
	"github.com/moebalance/moebalance/compare/trace/wait"
)

// host fills in what the host did for a launched kernel before it ran.
func (a *attribution) host(k *capture.Kernel, e *event) {
	clip := func(ns int64) int32 { return int32(min(max(ns, 0), math.MaxInt32-1)) }
	l := &a.rec.Launches[k.Launch]
	e.Queued, e.Replayed = clip(k.Start-l.Start), a.several[k.Launch] > 1
	if w, waited := a.waits[k.Launch]; waited {
		e.Waited, e.Since = max(1, clip(w.End-w.Start)), clip(l.Start-w.End)
		delete(a.waits, k.Launch) // the other kernels of a graph do not wait again
	}
}

// waits gives the launches before which their thread waited, since its launch before, from the
// first such wait to the last.
func waits(rec *capture.Recording) map[int32]capture.Wait {
	waited := map[int32]capture.Wait{}
	if len(rec.Waits) == 0 {
		return waited
	}
	order := make([]int32, len(rec.Launches))
	for i := range order {
		order[i] = int32(i)
	}
	at := func(i int32) *capture.Launch { return &rec.Launches[i] }
	slices.SortFunc(order, func(x, y int32) int {
		return cmp.Or(cmp.Compare(at(x).Thread, at(y).Thread), cmp.Compare(at(x).Start, at(y).Start))
	})
	slices.SortFunc(rec.Waits, func(x, y capture.Wait) int {
		return cmp.Or(cmp.Compare(x.Thread, y.Thread), cmp.Compare(x.End, y.End))
	})
	next := 0
	for n, i := range order {
		l := at(i)
		for next < len(rec.Waits) {
			w := rec.Waits[next]
			if w.Thread > l.Thread || w.Thread == l.Thread && w.End > l.Start {
				break
			}
			next++
			if w.Thread == l.Thread && (n == 0 || at(order[n-1]).Thread != l.Thread || at(order[n-1]).Start < w.Start) {
				if before, again := waited[i]; again {
					w.Start = before.Start
				}
				waited[i] = w
			}
		}
	}
	return waited
}

// lateness sums the host lateness of each rank before its collectives, in the order of
// time; none where no launch is recorded.
func (a *attribution) lateness(ranks []*rankEvents) {
	order, sums := make([]int32, len(a.rec.Kernels)), make([]wait.Late, len(ranks))
	for i := range order {
		order[i] = int32(i)
	}
	byStart := func(x, y int32) int { return cmp.Compare(a.rec.Kernels[x].Start, a.rec.Kernels[y].Start) }
	if !slices.IsSortedFunc(order, byStart) {
		slices.SortFunc(order, byStart)
	}
	free := slices.Repeat([]int64{never}, len(ranks)) // when each GPU became free; before the first kernel nobody knows
	for _, i := range order {
		k := &a.rec.Kernels[i]
		r, sum, free := ranks[k.Device], &sums[k.Device], &free[k.Device]
		if a.rec.Launched(k) {
			l := &a.rec.Launches[k.Launch]
			if until := min(k.Start, l.End); *free != never && until > *free {
				sum.NS += until - *free
				sum.GC += a.python.Collects[r.device.Process].Within(*free, until)
				sum.GIL += a.python.Locked[l.Thread].Within(*free, until)
				sum.Call += max(0, until-max(*free, l.Start))
			}
		}
		*free = max(*free, k.End)
		if a.classes[k.Name].Collective {
			sum.At = k.Start
			r.Late, *sum = append(r.Late, *sum), wait.Late{}
		}
	}
	for _, r := range ranks {
		if r.LaunchedNS == 0 {
			r.Late = nil
		}
	}
}

// never is a time before all others.
const never = math.MinInt64
