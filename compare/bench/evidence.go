package bench

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/points"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// allDifferences are the differences between the arms in the finished pairs, each once; compared says
// that there are such pairs.
func (c *Campaign) allDifferences() (found []gain.Difference, compared bool) {
	for _, arm := range c.Spec.arms()[1:] {
		if c.Spec.Design.Within() { // one process routes all arms, and one client measures them
			found, compared = append(found, c.Spec.wordDifferences(arm)...), c.Finished() > 0
			continue
		}
		normal := c.finished(gain.Normal)
		for at, other := range c.finished(arm) {
			first, paired := normal[at]
			for _, d := range c.Spec.differences(arm, first, other) {
				if compared = compared || paired; paired && !slices.Contains(found, d) {
					found = append(found, d)
				}
			}
		}
	}
	return found, compared
}

// rankLoad is how many ranks the launches have, 0 where it is not known, and the largest
// max/mean of their load in the normal arm, a mean over layers; undefined where no launch
// shows it.
func (c *Campaign) rankLoad() (ranks int, load router.Number) {
	load = router.Undefined()
	for _, v := range c.views(gain.Normal) {
		ranks = max(ranks, c.Spec.ranks(v))
		if counted := v.order.Counted; counted != nil {
			ranks, load = max(ranks, counted.Ranks), proof.Most(load, c.Spec.countedLoad(v.Attempt, counted))
		} else {
			load = proof.Most(load, RankLoad(v.report.Proof))
		}
	}
	return ranks, load
}

// countedLoad is max/mean of the ranks' load by counts; undefined where the command places experts otherwise than
// the counts know.
func (s Spec) countedLoad(a Attempt, counted *proof.LoadProof) router.Number {
	if named, _ := a.placement(s.Folder); named != "" && !counted.Placed {
		return router.Undefined()
	}
	return counted.RankMean
}

// loads say how uneven each arm was at each point, where launches hold further arms: as the counts of its orders at
// that point say, or else as the arm's router was told.
func (c *Campaign) loads() map[float64]map[gain.Arm]gain.Load {
	if !c.Spec.Design.Within() || len(c.Spec.more()) == 0 {
		return nil
	}
	counted := map[float64]map[gain.Arm][]float64{}
	for _, l := range c.Launches {
		a, _ := l.Done()
		for _, o := range a.Orders {
			at, alone := a.pointOf(o)
			if o.Counted == nil || !alone {
				continue
			}
			if load := c.Spec.countedLoad(a, o.Counted); load.Defined() {
				if counted[at] == nil {
					counted[at] = map[gain.Arm][]float64{}
				}
				counted[at][o.Arm] = append(counted[at][o.Arm], load.Float64())
			}
		}
	}
	_, values := c.Spec.Points.Judged()
	all := map[float64]map[gain.Arm]gain.Load{}
	for _, at := range append(values, 0) {
		all[at] = map[gain.Arm]gain.Load{}
		for _, arm := range c.Spec.routers() {
			name := gain.Arm(arm.Name)
			if known := counted[at][name]; len(known) > 0 {
				all[at][name] = gain.Load{MaxOverMean: router.Number(stat.Mean(known, nil)), Measured: true}
			} else if told := arm.Target(); told > 0 {
				all[at][name] = gain.Load{MaxOverMean: router.Number(told)}
			}
		}
	}
	return all
}

// pointOf is the point of the segments under an order, 0 without points; not alone where there are several.
func (a Attempt) pointOf(o Ordered) (at float64, alone bool) {
	first := -1
	for i, s := range a.Segments {
		switch {
		case s.Sequence != o.Sequence:
		case first < 0:
			first = i
		case s.Point != a.Segments[first].Point:
			return 0, false
		}
	}
	if first < 0 || a.Segments[first].Point == "" {
		return 0, true
	}
	return points.Number(a.Segments[first].Point), true
}

// RankLoad is max/mean of the load of ranks, a mean over layers; undefined where a report
// does not say it.
func RankLoad(said metrics.Proof) router.Number {
	sum := router.Number(0)
	for _, l := range said.Layers {
		sum += l.RankMaxOverMean
	}
	return sum / router.Number(len(said.Layers)) // 0/0 is NaN: undefined
}
