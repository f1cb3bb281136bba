package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

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
