package bench

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/bench/difference"
	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// differences compares what was recorded of a launch of the normal arm and one of another,
// and what all launches of both arms show of the variables that the command sets itself.
func (c *Campaign) differences(arm gain.Arm, normal, perfect Attempt) []gain.Difference {
	found := append(c.environmentDifferences(arm, normal, perfect), c.Spec.wordDifferences(arm)...)
	for i, f := range normal.Files {
		if i < len(perfect.Files) && perfect.Files[i].SHA256 != f.SHA256 {
			found = append(found, gain.Difference{Kind: "file", Name: f.Path, Normal: f.SHA256,
				Perfect: perfect.Files[i].SHA256})
		}
	}
	if a, b := identities(normal.GPUs), identities(perfect.GPUs); a != b && a != "" && b != "" {
		found = append(found, gain.Difference{Kind: "gpu", Name: "identity", Normal: a, Perfect: b})
	}
	for i := range found {
		found[i].Declared = found[i].Declared || slices.Contains(c.Spec.Accepted, found[i].Name)
		if arm != gain.Perfect {
			found[i].Arm = arm
		}
	}
	return found
}

// environmentDifferences are the variables that the arms were given otherwise, and those that the command
// sets itself otherwise.
func (c *Campaign) environmentDifferences(arm gain.Arm, normal, perfect Attempt) (found []gain.Difference) {
	found = difference.Given(normal.Environment, perfect.Environment)
	for i := range found {
		found[i].Declared = c.Spec.declares(found[i].Name, arm)
	}
	own := difference.Own(c.ownVariables(gain.Normal), c.ownVariables(arm))
	return append(found, slices.DeleteFunc(own, func(d gain.Difference) bool {
		return slices.ContainsFunc(found, func(given gain.Difference) bool { return given.Name == d.Name })
	})...)
}

// ownVariables are those of every finished launch of an arm whose process was seen. A
// profiler sets some of its own.
func (c *Campaign) ownVariables(arm gain.Arm) (own []map[string]string) {
	for _, l := range c.Launches {
		if a, ok := l.Done(); ok && l.Arm == arm && l.Kind != Profiled && a.OwnVariables != nil {
			own = append(own, a.OwnVariables)
		}
	}
	return own
}

// wordDifferences are the words in which the commands of the normal arm and another differ,
// those of {arm} and the flags of --arm; other placeholders stand as
// typed. A word is called by its option: --batch for "--batch=8" and for the 8 of "--batch 8". It is declared
// if Accepted holds that name or one of the words; what sets builds and further arms apart
// is declared by naming them.
func (s Spec) wordDifferences(arm gain.Arm) []gain.Difference {
	fill := func(words []string, arm gain.Arm) []string {
		filled := slices.Clone(words)
		for i, w := range filled {
			filled[i] = strings.ReplaceAll(w, "{arm}", string(s.Builds.Called(arm)))
		}
		return filled
	}
	commands := func(arm gain.Arm) [2][]string {
		server, client := fill(s.Command.Server, arm), fill(s.Command.Normal, arm)
		if flags := fill(s.arm(arm).Flags, arm); len(server) > 0 {
			server = append(server, flags...)
		} else {
			client = append(client, flags...)
		}
		return [2][]string{server, client}
	}
	accepted := slices.Concat(fill(s.Accepted, gain.Normal), fill(s.Accepted, arm))
	normal, other := commands(gain.Normal), commands(arm)
	var found []gain.Difference
	for i := range normal {
		for _, d := range difference.Words(normal[i], other[i]) {
			d.Declared = s.declaredByName(arm) || slices.ContainsFunc([]string{d.Name, d.Normal, d.Perfect},
				func(w string) bool { return slices.Contains(accepted, w) })
			found = append(found, d)
		}
	}
	return found
}

// Undeclared describes the words in which the commands differ without being accepted;
// empty where there are none.
func (s Spec) Undeclared() string {
	var texts []string
	for _, d := range s.wordDifferences(gain.Perfect) {
		if !d.Declared {
			texts = append(texts, fmt.Sprintf("%s: normal %q, perfect %q", d.Name, d.Normal, d.Perfect))
		}
	}
	return strings.Join(texts, "; ")
}

// identities names GPUs by what must not change.
func identities(gpus []launch.GPU) string {
	var ids []string
	for _, g := range gpus {
		ids = append(ids, g.UUID+" "+g.Driver)
	}
	slices.Sort(ids)
	return strings.Join(ids, ", ")
}

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
