package bench

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// allDifferences are those between the arms in the finished pairs, each once; compared says
// that there are such pairs.
func (c *Campaign) allDifferences() (found []gain.Difference, compared bool) {
	if c.Spec.Design.Within() {
		return nil, c.Finished() > 0 // one process routes all arms
	}
	for _, arm := range c.Spec.arms()[1:] {
		for _, pair := range c.versus(arm) {
			normal, _ := pair[0].Done()
			other, _ := pair[1].Done()
			if pair[0].Arm != gain.Normal {
				normal, other = other, normal
			}
			compared = true
			for _, d := range c.differences(arm, normal, other) {
				if !slices.Contains(found, d) {
					found = append(found, d)
				}
			}
		}
	}
	return found, compared
}

// Exports are the profiler's exports of an arm's profiled launch, which may hold all arms, sorted.
func (c *Campaign) Exports(arm gain.Arm) []string {
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Kind == Profiled && (l.Arm == arm || c.Spec.Design.Within()) {
			paths, _ := filepath.Glob(filepath.Join(c.Folder, a.Folder, outName, "*.sqlite"))
			return paths
		}
	}
	return nil
}

// rankLoad is how many ranks the launches have, 0 where it is not known, and the largest
// max/mean of their load in the normal arm, a mean over layers; undefined where no launch
// shows it.
func (c *Campaign) rankLoad() (ranks int, load router.Number) {
	load = router.Undefined()
	for _, a := range c.counted(gain.Normal) {
		ranks = max(ranks, c.Spec.ranks(a))
		if a.Counted != nil {
			ranks = max(ranks, a.Counted.Ranks)
			if named, _ := a.placement(c.Spec.Folder); named == "" || a.Counted.Placed {
				load = proof.Most(load, a.Counted.RankMean)
			}
			continue
		}
		if a.Result != nil {
			load = proof.Most(load, RankLoad(a.Result.Proof))
		}
	}
	return ranks, load
}

// loads are those of the arms of launches that hold further ones: as the counts of their orders say,
// or else as the arm's router was told.
func (c *Campaign) loads() map[gain.Arm]gain.Load {
	if !c.Spec.Design.Within() || len(c.Spec.more()) == 0 {
		return nil
	}
	loads := make(map[gain.Arm]gain.Load)
	for _, arm := range c.Spec.routers() {
		var counted []float64
		for _, l := range c.Launches {
			a, _ := l.Done()
			for _, o := range a.Orders {
				if named, _ := a.placement(c.Spec.Folder); string(o.Arm) == arm.Name && o.Counted != nil &&
					o.Counted.RankMean.Defined() && (named == "" || o.Counted.Placed) {
					counted = append(counted, o.Counted.RankMean.Float64())
				}
			}
		}
		if len(counted) > 0 {
			loads[gain.Arm(arm.Name)] = gain.Load{MaxOverMean: router.Number(stat.Mean(counted, nil)), Measured: true}
		} else if told := arm.Target(); told > 0 {
			loads[gain.Arm(arm.Name)] = gain.Load{MaxOverMean: router.Number(told)}
		}
	}
	return loads
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

// reportedTokens are those that the launch's reports say; false where one does not say.
func (a Attempt) reportedTokens() (tokens float64, known bool) {
	results := []PointRun{{Result: a.Result}}
	if len(a.Points) > 0 {
		results = a.Points
	}
	for _, p := range results {
		if p.Result == nil || !p.Result.Work.InputTokens.Known && !p.Result.Work.OutputTokens.Known {
			return 0, false
		}
		tokens += float64(p.Result.Work.InputTokens.N + p.Result.Work.OutputTokens.N)
	}
	return tokens, tokens > 0
}

// tokensOff is the factor by which counted and reported tokens may differ: prefix caches,
// padding, drafts, preempted requests, warm-up and idle ranks part them.
const tokensOff = 2

// otherWork says how the counts contradict the reported tokens; empty where they do not.
// Without a top-k, of which the counts of a layer are a multiple, too few slots contradict
// alone; without both kinds of tokens, too.
func (a Attempt) otherWork() string {
	c := a.Counted
	reported, known := a.reportedTokens()
	if !known || len(c.Slots) == 0 {
		return ""
	}
	slots := 0.0
	for _, n := range c.Slots {
		slots += float64(n)
	}
	counted := slots / float64(len(c.Slots)) / float64(max(1, c.TopK))
	if c.Recorded > 0 {
		counted /= c.Recorded
	}
	whole := c.TopK > 0 && !slices.ContainsFunc(a.pointAttempts(), func(v Attempt) bool {
		return v.Result == nil || !v.Result.Work.InputTokens.Known || !v.Result.Work.OutputTokens.Known
	})
	if counted*tokensOff >= reported && (!whole || counted <= tokensOff*reported) {
		return ""
	}
	return fmt.Sprintf("they hold %s per layer, the report says %s: record all steps of the measured requests alone",
		quantity.Count(int64(math.Round(counted)), "token"), quantity.Count(int64(reported), "token"))
}

// placement is the option or variable by which the launch places experts, empty for none,
// and the file that it names, if it names one.
func (a Attempt) placement(folder string) (named, file string) {
	return evidence.Placement(a.Arguments, a.Environment, folder)
}

// slotTolerance is the relative difference of counted slots up to which two arms did the
// same work.
const slotTolerance = 0.01

// checkSlots compares the counted slots of both launches of a pair, layer by layer.
func (c *Campaign) checkSlots() (gain.Check, bool) {
	const name = "equal_slots"
	compared, tolerance := 0, max(slotTolerance, c.Spec.WorkTolerance)
	for _, pair := range c.Pairs() {
		a, _ := pair[0].Done()
		b, _ := pair[1].Done()
		if a.Counted == nil || b.Counted == nil || len(a.Counted.Slots)+len(b.Counted.Slots) == 0 {
			continue
		}
		compared++
		layers := map[int]int64{}
		maps.Copy(layers, a.Counted.Slots)
		maps.Copy(layers, b.Counted.Slots)
		for _, layer := range slices.Sorted(maps.Keys(layers)) {
			n, m := a.Counted.Slots[layer], b.Counted.Slots[layer]
			if math.Abs(float64(n-m)) > tolerance*float64(max(n, m)) {
				return gain.NewCheck(name, gain.Fail, "unequal", "pair", pair[0].Pair, "layer", layer, "arm", pair[0].Arm,
					"slots", n, "other", pair[1].Arm, "others", m, "tolerance", tolerance), true
			}
		}
	}
	return gain.NewCheck(name, gain.Pass, "equal", "tolerance", tolerance, "pairs", compared), compared > 0
}
