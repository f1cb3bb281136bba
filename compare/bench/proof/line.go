package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// byLine judges a launch by the proof lines its ranks printed, of which each must
// print its own: lines that do not name their rank may all be of one rank. Their
// absence from the normal arm is evidence only beside their presence in every launch
// of the perfect one: an engine that never prints the line says nothing by not printing
// it. A launch in which the engine reports a failure claims nothing.
func (r Rules) byLine(arm gain.Arm, l Launch) (ranks []rank) {
	switch {
	case len(l.Lines) > 0:
	case arm == gain.Perfect:
		return all(unproved, "no proof line of %s in any log: check that the ranks see it, or give another %s", r.Switch,
			otherFlags)
	case !r.Printed:
		return all(unproved, "no proof line in either arm: give another %s", otherFlags)
	default:
		return all(unbalanced, "the log lacks the proof line that the perfect arm prints")
	}
	named := slices.DeleteFunc(slices.Clone(l.Lines), func(f evidence.ProofLine) bool { return f.Rank == gain.AllRanks })
	failed := slices.IndexFunc(l.Lines, func(f evidence.ProofLine) bool { return f.Failed })
	printed := 0
	for _, f := range l.Lines {
		printed += f.Times
	}
	for _, f := range l.Lines {
		doubt := ""
		switch first := r.Treatment == "trtllm" && !strings.Contains(f.Text, "ep_rank="); { // it did not name the rank
		case arm == gain.Normal:
		case failed >= 0:
			doubt = fmt.Sprintf(", but the engine says %q", l.Lines[failed].Text)
		case first && r.Limited != "":
			doubt = fmt.Sprintf(" is of TensorRT-LLM's first planner, which ignores the expert groups of %s and is not "+
				"balanced there", r.Limited)
		case l.Ranks == 0:
			doubt = fmt.Sprintf(" seen on %s; say --ranks N", quantity.Count(max(1, len(named)), "rank"))
		case r.Treatment == "trtllm" && printed < l.Processes: // --tp 4 --ep 2 has two of each rank
			doubt = fmt.Sprintf(": %d× in all, of %d processes: each must see the switch", printed, l.Processes)
		case f.Rank == gain.AllRanks && l.Ranks > 1:
			doubt = fmt.Sprintf(" names no rank, so %d× are not %d ranks: name the rank by (?P<rank>…) in --proof, label the "+
				"output by rank (srun --label, mpirun --tag-output), or give --counts", f.Times, l.Ranks)
		}
		one := rank{number: f.Rank, shows: balanced, evidence: fmt.Sprintf("log line %q (%d×)%s", f.Text, f.Times, doubt)}
		if doubt != "" {
			one.shows = unproved
		}
		ranks = append(ranks, one)
	}
	return ranks
}
