package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// proofs say, for each arm, how its ranks were routed over all counted launches; nothing of builds.
func (c *Campaign) proofs() (proofs []gain.Proof) {
	rules, perfect := c.Spec.rules(), c.views(gain.Perfect)
	rules.Printed = len(perfect) > 0 && !slices.ContainsFunc(perfect, func(v view) bool { return len(v.LinesFound) == 0 })
	var launches [2][]proof.Launch
	for i, arm := range gain.Arms {
		for _, v := range c.views(arm) {
			launches[i] = append(launches[i], c.Spec.shown(v))
			if v.order.Counted != nil {
				rules.Counts = append(rules.Counts, v.order.Counted)
			}
		}
	}
	for i, arm := range gain.Arms {
		if !c.Spec.Builds.Named() {
			proofs = append(proofs, rules.OfArm(arm, launches[i])...)
		}
	}
	return proofs
}

// rules are what the spec knows of the proof to come.
func (s Spec) rules() proof.Rules {
	names := slices.Concat(s.Treatment.Names(), s.Treatment.Flags, []string{"the treatment"})
	return proof.Rules{Treatment: s.Treatment.Name, Line: s.Treatment.Line, Switch: names[0],
		Said: s.Treatment.said(), Chance: s.Treatment.Chance(), Within: s.Design.Within(),
		Limited: evidence.GroupLimited(slices.Concat(s.Command.Server, s.Command.Normal))}
}

// shown is what a view shows of its routing.
func (s Spec) shown(v view) proof.Launch {
	l := proof.Launch{Ranks: s.ranks(v), Counted: v.order.Counted, Lines: v.LinesFound, Router: v.order.Router,
		Answered: v.order.Ranks, Report: v.report.Proof}
	_, l.Processes = evidence.Ranks(s.Command.engine())
	if l.Counted != nil {
		l.Placement, _ = v.placement(s.Folder)
		l.Doubt = v.otherWork()
	}
	return l
}

// ranks is how many ranks a launch must prove: the most of what the spec, its report and its command say, else of its
// counts, its proof lines and the ranks that acknowledged; 0 if unknown.
//
//	--ranks 1, a report of "EP Size: 4" → 4
func (s Spec) ranks(v view) int {
	asked, _ := evidence.Ranks(s.Command.engine())
	if said := max(s.Ranks, v.report.Proof.Ranks, asked); said > 0 {
		return said
	}
	ranks := v.order.Ranks
	if v.order.Counted != nil {
		ranks = max(ranks, v.order.Counted.Ranks)
	}
	for _, f := range v.LinesFound {
		ranks = max(ranks, f.Ranks)
	}
	return ranks
}

// tokensOff is the factor by which counted and reported tokens may differ: prefix caches,
// padding, drafts, preempted requests, warm-up and idle ranks part them.
const tokensOff = 2

// otherWork says how the counts contradict the tokens that the reports of all segments under a view's order say;
// empty where they do not, or a report does not say. Without a top-k, of which the counts of a layer are a multiple,
// too few slots contradict alone; without both kinds of tokens, too.
func (v view) otherWork() string {
	c, reported, whole, slots := v.order.Counted, 0.0, v.order.Counted.TopK > 0, 0.0
	for _, s := range v.Segments {
		if s.Sequence != v.order.Sequence || s.Result == nil {
			continue
		}
		in, inKnown := s.Result.Work[gain.WorkInputTokens]
		out, outKnown := s.Result.Work[gain.WorkOutputTokens]
		reported, whole = reported+in+out, whole && inKnown && outKnown
	}
	for _, n := range c.Slots {
		slots += float64(n)
	}
	counted := slots / float64(len(c.Slots)) / float64(max(1, c.TopK))
	if c.Recorded > 0 {
		counted /= c.Recorded
	}
	if reported == 0 || len(c.Slots) == 0 || counted*tokensOff >= reported && (!whole || counted <= tokensOff*reported) {
		return ""
	}
	return fmt.Sprintf("they hold %s per layer, the report says %s: record all steps of the measured requests alone",
		quantity.Count(int64(math.Round(counted)), "token"), quantity.Count(int64(reported), "token"))
}

// placement is the option or variable by which the launch places experts, empty for none,
// and the file that it names, if it names one.
func (a Attempt) placement(folder string) (named, file string) {
	return evidence.Placement(slices.Insert(launch.Environ(nil, a.Environment), 0, strings.Join(a.Arguments, " ")), folder)
}

// findLines counts the proof lines in an attempt's logs, and in the files in which the treatment
// claims to route.
func (t Treatment) findLines(folder string) ([]evidence.ProofLine, error) {
	var files []string
	for _, name := range launch.Logs {
		files = append(files, filepath.Join(folder, name))
	}
	if t.Records != "" {
		claims, _ := filepath.Glob(filepath.Join(folder, outName, t.Records, "*.json")) // the pattern is ours
		files = append(files, claims...)
	}
	return evidence.FindLines(t.Line, t.Failed, files)
}

// ReportLines are the lines of a report that ranks of TensorRT-LLM print where the switch takes effect.
func ReportLines(path string) ([]evidence.ProofLine, error) {
	return evidence.FindLines(treatments[0].Line, treatments[0].Failed, []string{path})
}

// JudgeReports judges reports of both arms as launches of a campaign: by their own statements, else by the lines of
// their ranks. A report that shows neither proves nothing: trust takes it as the arm that it is given as, and never
// overrides what another one shows. Sides of which each proves the other's arm, and not its own, are swapped.
func JudgeReports(launches [2][]proof.Launch, trust bool) []gain.Proof {
	unproved := func(p gain.Proof) bool { return p.Grade == gain.None }
	all, other := judgeReports(launches, trust), judgeReports([2][]proof.Launch{launches[1], launches[0]}, false)
	if !slices.ContainsFunc(all, unproved) || slices.ContainsFunc(other, unproved) {
		return all
	}
	other = slices.CompactFunc(other, func(a, b gain.Proof) bool { return a.Arm == b.Arm })
	for i := range other {
		p := &other[i]
		p.Arm, p.Rank, p.Grade, p.Evidence = gain.Arms[1-i], gain.AllRanks, gain.None, gain.Swapped+": "+p.Evidence
	}
	return other
}

func judgeReports(launches [2][]proof.Launch, trust bool) (all []gain.Proof) {
	rules := proof.Rules{Treatment: treatments[0].Name, Line: treatments[0].Line}
	rules.Printed = !slices.ContainsFunc(launches[1], func(l proof.Launch) bool { return len(l.Lines) == 0 })
	for i, arm := range gain.Arms {
		silent := func(l proof.Launch) bool {
			return !l.Report.Claimed && len(l.Lines) == 0 && (arm == gain.Perfect || !rules.Printed)
		}
		if at := slices.IndexFunc(launches[i], silent); at >= 0 {
			p := gain.Proof{Arm: arm, Rank: gain.AllRanks, Grade: gain.None, Evidence: fmt.Sprintf(
				"%s does not say how it was routed (--trust-arms takes it as the %s arm)", launches[i][at].Name, arm)}
			if trust {
				p.Grade, p.Evidence = gain.Claimed, "taken on trust"
			}
			all = append(all, p)
		}
		all = append(all, rules.OfArm(arm, slices.DeleteFunc(slices.Clone(launches[i]), silent))...)
	}
	return all
}
