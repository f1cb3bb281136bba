package nsys

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/nsys/kernel"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// collectiveInstance is a collective of one rank in the capture's own time.
type collectiveInstance struct {
	start, end int64
}

// collectiveKey is what collectives of several ranks have in common: the k-th
// instance of a key on one rank is the same collective as the k-th of it on every
// other.
type collectiveKey struct {
	Step, Layer int32
	Phase       Phase
	name        string
}

func (v collectiveKey) compare(o collectiveKey) int {
	return cmp.Or(cmp.Compare(v.Step, o.Step), cmp.Compare(v.Layer, o.Layer), comparePhases(v.Phase, o.Phase), cmp.Compare(v.name, o.name))
}

// collectives fills Collectives and Alignment.
//
// Ranks of one report share its clock; reports are aligned by their session
// start times, and then by the ends of collectives: all ranks leave a blocking
// one together, so a rank's clock is moved by the median difference of its ends
// from the lowest rank's. A rank waits until the last rank arrives, in aligned
// time and never longer than its own kernel lasts; the rest is transfer.
func (r *reduction) collectives() {
	byRank := r.collectivesOf
	keys := map[collectiveKey]bool{}
	for i := range byRank {
		for v := range byRank[i] {
			keys[v] = true
		}
	}
	order := slices.SortedFunc(maps.Keys(keys), collectiveKey.compare)
	matched := map[collectiveKey]bool{}
	for _, v := range order {
		matched[v] = len(r.ranks) > 1
		for i := range byRank {
			matched[v] = matched[v] && len(byRank[i][v]) == len(byRank[0][v])
		}
	}
	reason := r.unalignable(order, matched)
	offsets := r.align(order, matched, byRank, reason == "")
	arrivals := map[collectiveKey][]int64{}
	if reason == "" {
		for _, v := range order {
			if matched[v] {
				arrivals[v] = lastArrivals(v, byRank, offsets)
			}
		}
	}
	for i, p := range r.ranks {
		r.trace.Collectives = append(r.trace.Collectives, p.collectiveStats(order, byRank[i], arrivals, offsets[i])...)
	}
	r.warnSkew()
}

// lastArrivals is when the last rank arrived at each collective of a key, in
// the first rank's time.
func lastArrivals(v collectiveKey, byRank []map[collectiveKey][]collectiveInstance, offsets []int64) []int64 {
	var last []int64
	for i, instances := range byRank {
		for k, m := range instances[v] {
			if i == 0 {
				last = append(last, m.start+offsets[i])
			} else {
				last[k] = max(last[k], m.start+offsets[i])
			}
		}
	}
	return last
}

// collectiveStats sums a rank's collectives by layer and phase. Wait and transfer
// are undefined where any of them has no known last arrival.
func (p *rankEvents) collectiveStats(order []collectiveKey, instances map[collectiveKey][]collectiveInstance, arrivals map[collectiveKey][]int64, offset int64) []CollectiveStat {
	type group struct {
		layer int32
		phase Phase
	}
	index, stats := map[group]int{}, []CollectiveStat(nil)
	for _, v := range order {
		list := instances[v]
		if len(list) == 0 {
			continue
		}
		g := group{v.Layer, v.Phase}
		at, ok := index[g]
		if !ok {
			at = len(stats)
			index[g] = at
			stats = append(stats, CollectiveStat{Rank: p.rank.Rank, Layer: router.Whole(v.Layer), Phase: v.Phase})
		}
		s := &stats[at]
		last, known := arrivals[v]
		for k, m := range list {
			s.Instances++
			s.TotalNS += m.end - m.start
			if !known {
				s.WaitNS, s.TransferNS = router.Undefined(), router.Undefined()
				continue
			}
			wait := min(max(last[k]-offset, m.start), m.end) - m.start
			s.WaitNS += router.Number(wait)
			s.TransferNS += router.Number(m.end - m.start - wait)
		}
	}
	slices.SortFunc(stats, func(a, b CollectiveStat) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), comparePhases(a.Phase, b.Phase))
	})
	return stats
}

// warnSkew warns where ranks leave the same collectives so far apart that
// wait and transfer mean little: the clocks disagree, or the ranks do not meet
// in these collectives.
func (r *reduction) warnSkew() {
	var transfer, instances float64
	for _, c := range r.trace.Collectives {
		if c.TransferNS.Defined() {
			transfer += float64(c.TransferNS)
			instances += float64(c.Instances)
		}
	}
	for _, a := range r.trace.Alignment {
		if left := float64(a.ResidualNS); instances > 0 && left > transfer/instances {
			r.warn("skew", "", fmt.Sprintf("rank %d leaves collectives %s apart from the first rank (median), longer than their mean transfer of %s: wait and transfer are uncertain by as much",
				a.Rank, quantity.Duration(left), quantity.Duration(transfer/instances)))
		}
	}
}

// collectiveInstances lists a rank's collective kernels by key in order of time.
func (p *rankEvents) collectiveInstances() map[collectiveKey][]collectiveInstance {
	names := make([]string, len(p.of.names)) // of collectives, spelt the same for every version
	for i, c := range p.of.classes {
		if c.Collective {
			names[i] = kernel.NormalName(p.of.names[i])
		}
	}
	list := map[collectiveKey][]collectiveInstance{}
	for i := range p.events {
		e := &p.events[i]
		if names[e.name] == "" {
			continue
		}
		at := p.of.locations[e.location]
		v := collectiveKey{at.Step, at.Layer, at.Phase, names[e.name]}
		list[v] = append(list[v], collectiveInstance{e.start, e.start + e.duration})
	}
	return list
}

// unalignable is the reason why nobody's wait can be told, empty when it can.
func (r *reduction) unalignable(order []collectiveKey, matched map[collectiveKey]bool) string {
	if len(order) == 0 {
		return "no collectives"
	}
	reason := ""
	common := slices.ContainsFunc(order, func(v collectiveKey) bool { return matched[v] })
	clocks := map[*exportSummary]bool{}
	timed := true
	for _, p := range r.ranks {
		clocks[p.of] = true
		timed = timed && p.of.session != 0
	}
	world := r.world()
	switch {
	case len(r.ranks) < 2:
		reason = "only one rank was given"
	case world > len(r.ranks):
		reason = fmt.Sprintf("%d of the run's %d ranks were given, and another one may have arrived last", len(r.ranks), world)
	case !common:
		reason = "the ranks' collectives do not correspond"
	case len(clocks) > 1 && !timed:
		reason = "not every export records when its session started"
	}
	if reason != "" {
		r.warn("no_wait", "", "wait and transfer of collectives are unknown: "+reason)
	}
	return reason
}

// align returns what to add to each rank's times, and fills Alignment.
func (r *reduction) align(order []collectiveKey, matched map[collectiveKey]bool, byRank []map[collectiveKey][]collectiveInstance, possible bool) []int64 {
	offsets := make([]int64, len(r.ranks))
	if !possible {
		return offsets
	}
	base := r.ranks[0].of
	for i, p := range r.ranks {
		a := Alignment{Rank: p.rank.Rank, Basis: "one report", ResidualNS: router.Undefined()}
		offset := int64(0)
		if p.of != base {
			a.Basis = "session time"
			offset = p.of.session - base.session
		}
		var apart []int64
		for _, v := range order {
			if matched[v] {
				for k, m := range byRank[i][v] {
					apart = append(apart, byRank[0][v][k].end-(m.end+offset))
				}
			}
		}
		a.Collectives = len(apart)
		if len(apart) > 0 {
			slices.Sort(apart)
			if p.of != base {
				shift := apart[(len(apart)-1)/2]
				a.Basis, offset = "collective ends", offset+shift
				for k := range apart {
					apart[k] -= shift
				}
			}
			for k := range apart {
				apart[k] = max(apart[k], -apart[k])
			}
			a.ResidualNS = kernel.StatsOf(apart).MedianNS
		}
		offsets[i], a.OffsetNS = offset, offset
		r.trace.Alignment = append(r.trace.Alignment, a)
	}
	return offsets
}
