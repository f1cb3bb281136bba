package bench

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// allDifferences are the differences between the arms in the finished pairs, each once; compared says
// that there are such pairs.
func (c *Campaign) allDifferences() (found []gain.Difference, compared bool) {
	if c.Spec.Design.Within() { // one process routes all arms, and one client measures them
		for _, arm := range c.Spec.arms()[1:] {
			found = append(found, c.Spec.wordDifferences(arm)...)
		}
		return found, c.Finished() > 0
	}
	normal := c.finished(gain.Normal)
	for _, arm := range c.Spec.arms()[1:] {
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
		switch counted := v.order.Counted; {
		case counted == nil:
			load = proof.Most(load, RankLoad(v.report.Proof))
		default:
			ranks = max(ranks, counted.Ranks)
			load = proof.Most(load, c.Spec.countedLoad(v.Attempt, counted))
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

// loads say how uneven each arm was, where launches hold further ones: as the counts of their orders say,
// or else as the arm's router was told.
func (c *Campaign) loads() map[float64]map[gain.Arm]gain.Load {
	if !c.Spec.Design.Within() || len(c.Spec.more()) == 0 {
		return nil
	}
	loads := make(map[gain.Arm]gain.Load)
	for _, arm := range c.Spec.routers() {
		var counted []float64
		for _, l := range c.Launches {
			a, _ := l.Done()
			for _, o := range a.Orders {
				if string(o.Arm) != arm.Name || o.Counted == nil {
					continue
				}
				if load := c.Spec.countedLoad(a, o.Counted); load.Defined() {
					counted = append(counted, load.Float64())
				}
			}
		}
		if len(counted) > 0 {
			loads[gain.Arm(arm.Name)] = gain.Load{MaxOverMean: router.Number(stat.Mean(counted, nil)), Measured: true}
		} else if told := arm.Target(); told > 0 {
			loads[gain.Arm(arm.Name)] = gain.Load{MaxOverMean: router.Number(told)}
		}
	}
	_, at := c.Spec.Points.Judged()
	all := map[float64]map[gain.Arm]gain.Load{0: loads}
	for _, point := range at {
		all[point] = loads
	}
	return all
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
