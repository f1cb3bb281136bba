package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/bench/proof"
	"github.com/moebalance/moebalance/compare/gain"
)

// proofs say how each rank was routed.
func (c *Campaign) proofs() (proofs []gain.Proof) {
	if !c.Spec.Builds.Named() {
		for _, p := range c.rankProofs() {
			proofs = append(proofs, p.Graded())
		}
	}
	return proofs
}

// rankProofs says, for each arm, how its ranks were routed over all counted launches.
func (c *Campaign) rankProofs() (proofs []proof.Rank) {
	rules := c.Spec.rules()
	rules.Printed = c.printedByPerfect()
	for _, arm := range gain.Arms {
		var launches []proof.Launch
		for _, v := range c.views(arm) {
			launches = append(launches, c.Spec.shown(v))
		}
		proofs = append(proofs, rules.OfArm(arm, launches)...)
	}
	return proofs
}

// rules are what the spec knows of the proof to come.
func (s Spec) rules() proof.Rules {
	names := slices.Concat(s.Treatment.Names(), s.Treatment.Flags, []string{"the treatment"})
	return proof.Rules{Treatment: s.Treatment.Name, Line: s.Treatment.Line, Switch: names[0],
		Said: s.Treatment.said(), Chance: s.Treatment.Chance(), Within: s.Design.Within(), Limited: func(line string) string {
			if !s.Treatment.firstGeneration(line) {
				return ""
			}
			return evidence.GroupLimited(slices.Concat(s.Command.Server, s.Command.Normal), s.Folder)
		}}
}

// shown is what a view shows of its routing.
func (s Spec) shown(v view) proof.Launch {
	l := proof.Launch{Ranks: s.ranks(v), Counted: v.order.Counted, Lines: v.LinesFound, Router: v.order.Router,
		Answered: v.order.Ranks}
	if v.report != nil {
		l.Report = v.report.Proof
	}
	if l.Counted != nil {
		l.Placement, _ = v.placement(s.Folder)
		l.Doubt = v.otherWork()
	}
	return l
}

// ranks is how many ranks a launch must prove: as the spec says, else as many as its
// report names, else its proof lines or those that acknowledged; 0 if unknown.
func (s Spec) ranks(v view) int {
	ranks := s.Ranks
	if ranks == 0 && v.report != nil {
		ranks = v.report.Proof.Ranks
	}
	if ranks == 0 {
		ranks = v.order.Ranks
		for _, f := range v.LinesFound {
			ranks = max(ranks, f.Ranks)
		}
	}
	return ranks
}

// printedByPerfect reports whether every launch of the perfect arm has
// printed the proof line, so that its absence from a log is evidence.
func (c *Campaign) printedByPerfect() bool {
	perfect := c.views(gain.Perfect)
	return len(perfect) > 0 && !slices.ContainsFunc(perfect, func(v view) bool { return len(v.LinesFound) == 0 })
}

// firstGeneration reports whether a proof line is of TensorRT-LLM's first planner, which
// did not name the rank and knew no expert groups.
func (t Treatment) firstGeneration(line string) bool {
	return t.Failed != "" && strings.Contains(line, "Precomputing perfect router") &&
		!strings.Contains(line, "ep_rank=")
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

// JudgeReport judges a report outside a campaign as one within: by its own statement, else by the lines that
// ranks of TensorRT-LLM print where the switch takes effect; nothing where there is neither. Printed says that every
// launch of the perfect arm printed them: then a log that lacks them shows the learned router.
func JudgeReport(arm gain.Arm, path string, said metrics.Proof, printed bool) (proofs []gain.Proof, err error) {
	t, rules := Treatments[0], proof.Rules{}
	shown := proof.Launch{Report: said, Ranks: said.Ranks}
	if info, err := os.Stat(path); !said.Claimed && err == nil && info.Mode().IsRegular() { // a pipe cannot be read twice
		rules = proof.Rules{Treatment: t.Name, Line: t.Line, Printed: printed, Limited: func(string) string { return "" }}
		if shown.Lines, err = evidence.FindLines(t.Line, t.Failed, []string{path}); err != nil {
			return nil, err
		}
	}
	switch {
	case said.Claimed, len(shown.Lines) > 0:
	case arm == gain.Perfect || !printed:
		return nil, nil
	default:
		shown.Ranks = 0
	}
	for _, p := range rules.OfArm(arm, []proof.Launch{shown}) {
		proofs = append(proofs, p.Graded())
	}
	return proofs, nil
}
