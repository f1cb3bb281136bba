package bench

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/bench/evidence"
	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router/quantity"
)

// proveByLine judges a launch by the proof lines its ranks printed, of which each must
// print its own: lines that do not name their rank may all be of one rank. Their
// absence from the normal arm is evidence only beside their presence in every launch
// of the perfect one: an engine that never prints the line says nothing by not printing
// it. A launch in which the engine reports a failure claims nothing.
func (s Spec) proveByLine(arm gain.Arm, lines []evidence.ProofLine, ranks int, printed bool) []rankProof {
	proof := func(rank int, s proofStatus, format string, args ...any) rankProof {
		return rankProof{arm: arm, rank: rank, launches: 1, status: s, evidence: fmt.Sprintf(format, args...)}
	}
	limited := func() string {
		return evidence.GroupLimited(slices.Concat(s.Command.Server, s.Command.Normal, s.Command.Perfect), s.Folder)
	}
	failed := slices.IndexFunc(lines, func(f evidence.ProofLine) bool { return f.Failed })
	named := 0
	for _, f := range lines {
		if f.Rank != gain.AllRanks {
			named++
		}
	}
	var proofs []rankProof
	for _, f := range lines {
		status, doubt := unproved, ""
		switch {
		case arm == gain.Normal:
			status = balanced
		case failed >= 0:
			doubt = fmt.Sprintf(", but the engine says %q", lines[failed].Text)
		case s.Treatment.firstGeneration(f.Text) && limited() != "":
			doubt = fmt.Sprintf(" is of TensorRT-LLM's first planner, which ignores the expert groups of %s and is not balanced there", limited())
		case ranks == 0:
			doubt = fmt.Sprintf(" seen on %s; say --ranks N", quantity.Count(max(1, named), "rank"))
		case f.Rank == gain.AllRanks && ranks > 1:
			doubt = fmt.Sprintf(" names no rank, so %d× are not %d ranks: name the rank by (?P<rank>…) in --proof, label the output by rank (srun --label, mpirun --tag-output), or give --counts or --profile", f.Times, ranks)
		default:
			status = balanced
		}
		proofs = append(proofs, proof(f.Rank, status, "log line %q (%d×)%s", f.Text, f.Times, doubt))
	}
	switch {
	case len(lines) > 0:
		return proofs
	case arm == gain.Perfect:
		return []rankProof{proof(gain.AllRanks, unproved,
			"no log line matches %s: check that the ranks see the switch, or give another %s", s.Treatment.Line,
			otherProofs)}
	case !printed:
		return []rankProof{proof(gain.AllRanks, unproved,
			"neither arm printed the proof line, so its absence proves nothing: give another %s", otherProofs)}
	}
	return []rankProof{proof(gain.AllRanks, unbalanced, "the log lacks the proof line that the perfect arm prints")}
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
