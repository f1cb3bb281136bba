package bench

import (
	"fmt"
	"slices"

	"github.com/moebalance/moebalance/compare/bench/control"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// allDifferences are the differences between the arms in the finished pairs; compared says that there are
// such pairs.
func (c *Campaign) allDifferences() (found []gain.Difference, compared bool) {
	at := func(l Launch) string { return fmt.Sprint(l.Pair, " ", l.Point) }
	normal := map[string]Attempt{}
	for _, l := range c.Launches {
		if a, done := l.Done(); done && l.Arm == gain.Normal {
			normal[at(l)] = a
		}
	}
	for _, l := range c.Launches {
		other, done := l.Done()
		if first, paired := normal[at(l)]; done && paired && l.Arm != gain.Normal {
			found, compared = append(found, c.Spec.differences(l.Arm, first, other)...), true
		}
	}
	for _, arm := range c.Spec.arms()[1:] {
		if c.Spec.Design.Within() { // one process routes all arms, and one client measures them
			found, compared = append(found, c.Spec.wordDifferences(arm)...), c.Finished() > 0
		}
	}
	return found, compared
}

// loadOf is how uneven the ranks' loads were in a segment: as the counts of its order say, where they are of its point
// alone, or its report, or else as the router was told.
func (s Spec) loadOf(a Attempt, of Segment) gain.Load {
	elsewhere := func(o Segment) bool { return o.Sequence == of.Sequence && o.Timed && o.Point != of.Point }
	mixed := slices.ContainsFunc(a.Segments, elsewhere)
	for _, o := range a.Orders {
		named, _ := a.placement(s.Folder) // where counts do not know of it, they do not know the load of ranks
		n := o.Counted
		if o.Sequence == of.Sequence && !mixed && n != nil && n.RankMean.Defined() && (named == "" || n.Placed) {
			return gain.Load{MaxOverMean: n.RankMean, Measured: true}
		}
	}
	if load := reportedLoad(of.Result.Proof); load.Measured {
		return load
	}
	return gain.Load{MaxOverMean: router.Number(control.Arm{Router: of.Router}.Target())}
}

// reportedLoad is max/mean of the load of ranks, a mean over layers, as a report says it.
func reportedLoad(said metrics.Proof) gain.Load {
	sum, n := router.Number(0), router.Number(len(said.Layers))
	for _, l := range said.Layers {
		sum += l.RankMaxOverMean
	}
	return gain.Load{MaxOverMean: sum / max(1, n), Measured: sum > 0}
}
